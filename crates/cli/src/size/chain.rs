//! A chain of services under one deadline: what the work leaves of it may be waited, in equal parts.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use tidegate_engine::QUEUE_CAPACITY_MAX;

use super::answer::Answer;
use super::queue::policy;
use super::sums::{Hop, millis, number, time};
use crate::exit::Failure;

/// Splits the deadline.
pub(crate) fn answer(deadline: Duration, hops: &[Hop]) -> Result<Answer, Failure> {
    if let Some(index) = hops.iter().position(|hop| hop.service_time.is_zero()) {
        return Err(Failure::runtime(format_args!(
            "hop {} has a service time of zero and needs no queue; leave it out",
            index + 1
        )));
    }
    let work = hops.iter().fold(Duration::ZERO, |work, hop| work.saturating_add(hop.service_time));
    let Some(left) = deadline.checked_sub(work).filter(|left| !left.is_zero()) else {
        return Err(Failure::runtime(format_args!(
            "the work alone takes {}; a deadline of {} leaves no time to wait anywhere",
            time(work),
            time(deadline)
        )));
    };
    let count = u32::try_from(hops.len()).unwrap_or(u32::MAX).max(1);
    let share = left / count;
    let mut answer = Answer::default();
    answer.headline = format!(
        "{} − {} of work = {} to wait, {} at each hop",
        time(deadline),
        time(work),
        time(left),
        time(share)
    );
    answer.input("deadline_ms", millis(deadline));
    answer.result("wait_ms", millis(left));
    let works: Vec<String> = hops.iter().map(|hop| time(hop.service_time)).collect();
    answer.step("the work takes", "ΣS", works.join(" + "), time(work));
    answer.step("left to wait", "D − ΣS", format!("{} − {}", time(deadline), time(work)), time(left));
    answer.step("at each hop", "B = (D − ΣS) / n", format!("{} / {count}", time(left)), time(share));
    each_hop(&mut answer, deadline, share, hops);
    Ok(answer)
}

fn each_hop(answer: &mut Answer, deadline: Duration, share: Duration, hops: &[Hop]) {
    let (mut rows, mut inputs) = (Vec::new(), Vec::new());
    let mut rest = deadline;
    let mut lines = Vec::new();
    for (number_, hop) in (1..).zip(hops) {
        let Hop { workers, service_time } = *hop;
        let exact = hop.places(share);
        let queue = u32::try_from(exact).unwrap_or(u32::MAX).min(QUEUE_CAPACITY_MAX);
        answer.step(
            &format!("hop {number_}: capacity = {queue}"),
            "W · B / S",
            format!("{workers} · {} / {}", time(share), time(service_time)),
            exact.to_string(),
        );
        if u128::from(queue) < exact {
            answer.remarks.push(format!(
                "Hop {number_}: a policy file takes at most {QUEUE_CAPACITY_MAX} places, not {exact}."
            ));
        }
        let takes = share.saturating_add(service_time);
        let percent = takes.as_secs_f64() / deadline.as_secs_f64() * 100.0;
        lines.push(format!(
            "hop {number_} is told {} and may take {} of it: {} to wait, {} to work ({} %)",
            time(rest),
            time(takes),
            time(share),
            time(service_time),
            number(percent)
        ));
        rows.push(json!({
            "capacity": queue,
            "wait_ms": millis(share),
            "told_ms": millis(rest),
            "share_of_deadline": percent / 100.0,
            "per_second": hop.per_second(),
        }));
        inputs.push(json!({ "workers": workers, "service_time_ms": millis(service_time) }));
        rest = rest.saturating_sub(takes);
        let _ = write!(
            answer.policy,
            "{}# hop {number_}\n{}",
            if number_ > 1 { "\n" } else { "" },
            policy(&mut answer.remarks, *hop, share, queue)
        );
    }
    answer.input("hops", inputs);
    answer.result("hops", rows);
    let slowest = hops.iter().map(|hop| hop.per_second()).fold(f64::INFINITY, f64::min);
    answer.result("per_second", slowest);
    answer.details = lines;
    answer.remarks.push(format!(
        "The chain answers {} a second, as its slowest hop does. Each hop should be told what is left of the deadline, \
         and refuse what cannot meet it.",
        number(slowest)
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: Hop = Hop { workers: 4, service_time: Duration::from_millis(200) };

    #[test]
    fn a_chain_that_cannot_work_is_refused() {
        assert!(answer(Duration::from_millis(200), &[FOUR]).is_err());
        let chain = answer(Duration::from_secs(1), &[FOUR, FOUR]).unwrap();
        let text = chain.to_string();
        assert!(text.contains("hop 2: capacity = 6"), "{text}");
        assert!(text.contains("hop 2 is told 500ms and may take 500ms of it"), "{text}");
        assert_eq!(chain.to_json()["hops"][0]["capacity"], 6);
    }
}
