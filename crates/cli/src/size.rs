//! `tidegate size`: how long a queue may be, with the arithmetic shown.
//!
//! Little's law: what waits is what is served in the time that it waits. So with W workers, a service time S and a
//! wait of at most B, at most W · B / S may wait; one more would wait for longer.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_policy::parse_duration;

use crate::args::SizeArgs;
use crate::exit::Failure;

/// One service of a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    workers: u32,
    service_time: Duration,
}

/// `4x200ms`.
pub(crate) fn parse_hop(text: &str) -> Result<Hop, String> {
    let wrong = || format!("write a hop as WORKERSxTIME, such as 4x200ms, not {text:?}");
    let (workers, service_time) = text.split_once('x').ok_or_else(wrong)?;
    let workers = workers.parse().ok().filter(|workers| *workers > 0).ok_or_else(wrong)?;
    Ok(Hop { workers, service_time: parse_duration(service_time)? })
}

pub(crate) fn run(args: &SizeArgs) -> Result<(), Failure> {
    let (text, value) = match (args.deadline, args.workers, args.service_time) {
        (Some(deadline), ..) => chain(deadline, &args.hop)?,
        (None, Some(workers), Some(service_time)) => {
            let hop = Hop { workers, service_time };
            if service_time.is_zero() {
                return Err(Failure::runtime("a service time of zero needs no queue"));
            }
            match args.queue {
                Some(queue) => meaning(hop, queue),
                None => longest(hop, args.wait.unwrap_or_default()),
            }
        }
        // The argument parser has asked for what is needed.
        _ => return Err(Failure::runtime("--workers and --service-time are needed")),
    };
    let mut out = std::io::stdout();
    if args.json {
        writeln!(out, "{value:#}")?
    } else {
        write!(out, "{text}")?
    }
    Ok(())
}

/// The longest queue that a wait budget allows.
fn longest(hop: Hop, wait: Duration) -> (String, Value) {
    let queue = places(hop, wait);
    let Hop { workers, service_time } = hop;
    let mut text = String::new();
    let _ = writeln!(text, "capacity = {queue}\n");
    let _ = writeln!(text, "  Q ≤ W · B / S = {workers} · {wait:?} / {service_time:?} = {queue}");
    let _ = writeln!(text, "  The service answers {} a second.", per_second(hop));
    if queue == 0 {
        let _ = writeln!(text, "  Nobody who has to wait can be served in time: refuse at once.");
    } else {
        let _ = writeln!(
            text,
            "  Place {queue} waits about {:?}, if slots come free evenly; one more",
            waited(hop, queue)
        );
        let _ = writeln!(text, "  would wait too long, so it is better told no at once. After a burst");
        let _ =
            writeln!(text, "  all slots come free together, and tidegate, which sees that, lets fewer wait.");
    }
    let _ = writeln!(
        text,
        "\n  [upstream.concurrency]\n  limit = {workers}\n\n  [upstream.queue]\n  wait = \"{}\"\n  capacity = {queue}",
        // As policy files write it.
        format!("{wait:?}").replace('µ', "u")
    );
    (
        text,
        json!({ "capacity": queue, "per_second": rate(hop), "longest_wait_ms": millis(waited(hop, queue)) }),
    )
}

/// What a given queue means.
fn meaning(hop: Hop, queue: u32) -> (String, Value) {
    let wait = waited(hop, queue.into());
    let Hop { workers, service_time } = hop;
    let mut text = String::new();
    let _ = writeln!(text, "the last of {queue} waits about {wait:?}\n");
    let _ = writeln!(text, "  wait = Q · S / W = {queue} · {service_time:?} / {workers} = {wait:?}");
    let _ = writeln!(text, "  and has its answer after about {:?}.", wait.saturating_add(service_time));
    let _ = writeln!(text, "  The service answers {} a second.", per_second(hop));
    (
        text,
        json!({ "wait_ms": millis(wait), "answer_ms": millis(wait.saturating_add(service_time)), "per_second": rate(hop) }),
    )
}

/// Splits one deadline over a chain: what the work leaves of it may be waited, in equal parts.
fn chain(deadline: Duration, hops: &[Hop]) -> Result<(String, Value), Failure> {
    let work = hops.iter().fold(Duration::ZERO, |work, hop| work.saturating_add(hop.service_time));
    let Some(left) = deadline.checked_sub(work).filter(|left| !left.is_zero()) else {
        return Err(Failure::runtime(format_args!(
            "the work alone takes {work:?}; a deadline of {deadline:?} leaves no time to wait anywhere"
        )));
    };
    let share = left / u32::try_from(hops.len()).unwrap_or(u32::MAX).max(1);
    let mut text = String::new();
    let _ = writeln!(text, "{deadline:?} − {work:?} of work = {left:?} to wait, {share:?} at each hop\n");
    let mut rows = Vec::new();
    for (index, hop) in hops.iter().enumerate() {
        if hop.service_time.is_zero() {
            return Err(Failure::runtime("a hop with a service time of zero needs no queue; leave it out"));
        }
        let queue = places(*hop, share);
        let Hop { workers, service_time } = hop;
        let number = index + 1;
        let _ =
            writeln!(text, "  hop {number}: capacity = {queue}   ({workers} · {share:?} / {service_time:?})");
        rows.push(json!({ "capacity": queue, "wait_ms": millis(share) }));
    }
    let _ = writeln!(
        text,
        "\n  Each hop should be told what is left of the deadline, and refuse what cannot meet it."
    );
    Ok((text, json!({ "wait_ms": millis(left), "hops": rows })))
}

fn places(hop: Hop, wait: Duration) -> u64 {
    let places = u128::from(hop.workers) * wait.as_nanos() / hop.service_time.as_nanos().max(1);
    u64::try_from(places).unwrap_or(u64::MAX)
}

fn waited(hop: Hop, queue: u64) -> Duration {
    let nanos =
        u128::from(queue).saturating_mul(hop.service_time.as_nanos()) / u128::from(hop.workers.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn rate(hop: Hop) -> f64 {
    f64::from(hop.workers) / hop.service_time.as_secs_f64()
}

/// The rate with at most one decimal, which nobody needs for large ones.
fn per_second(hop: Hop) -> String {
    let rate = rate(hop);
    if rate.fract().abs() < 0.05 { format!("{rate:.0}") } else { format!("{rate:.1}") }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: Hop = Hop { workers: 4, service_time: Duration::from_millis(200) };

    #[test]
    fn the_articles_numbers() {
        assert_eq!(places(FOUR, Duration::from_millis(500)), 10);
        assert_eq!(waited(FOUR, 10), Duration::from_millis(500));
        // "200 requests/s … 450 ms … 90": ten workers of 50 ms.
        let hop = Hop { workers: 10, service_time: Duration::from_millis(50) };
        assert_eq!(places(hop, Duration::from_millis(450)), 90);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let hop = Hop { workers: u32::MAX, service_time: Duration::from_nanos(1) };
        assert_eq!(places(hop, Duration::MAX), u64::MAX);
        assert!(waited(Hop { workers: 1, service_time: Duration::MAX }, u64::MAX) > Duration::ZERO);
        assert!(parse_hop("0x1ms").is_err() && parse_hop("4").is_err() && parse_hop("4x9").is_err());
    }

    #[test]
    fn a_chain_that_cannot_work_is_refused() {
        assert!(chain(Duration::from_millis(200), &[FOUR]).is_err());
        let (text, value) = chain(Duration::from_secs(1), &[FOUR, FOUR]).unwrap();
        assert!(text.contains("hop 2: capacity = 6"), "{text}");
        assert_eq!(value["hops"][0]["capacity"], 6);
    }
}
