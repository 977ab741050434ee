//! One service: the longest queue that a wait budget allows, what a given queue means, and what load does to it.

use std::time::Duration;

use tidegate_engine::{LIMIT_MAX, QUEUE_CAPACITY_MAX};

use super::answer::Answer;
use super::sums::{Hop, Rate, millis, number, seconds, time};

/// The longest wait budget that a policy file takes.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// What comes, as far as it was said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) rate: Option<Rate>,
    pub(crate) burst: Option<u32>,
}

/// The longest queue that a wait budget allows.
pub(crate) fn longest(hop: Hop, wait: Duration, load: Load) -> Answer {
    let Hop { workers, service_time } = hop;
    let mut answer = Answer::default();
    answer.input("wait_ms", millis(wait));
    of_service(&mut answer, hop);
    let exact = hop.places(wait);
    answer.step(
        "longest queue",
        "Q ≤ W · B / S",
        format!("{workers} · {} / {}", time(wait), time(service_time)),
        exact.to_string(),
    );
    let queue = clamped(&mut answer, exact);
    answer.headline = format!("capacity = {queue}");
    answer.result("capacity", queue);
    last_waits(&mut answer, hop, queue.into());
    answer.result("longest_wait_ms", millis(hop.waited(queue.into())));
    if queue == 0 {
        answer.remarks.push("Nobody who has to wait can be served in time: refuse at once.".to_owned());
    } else {
        answer.remarks.push(format!(
            "Place {queue} is served in time if slots come free evenly; one more would wait too long, so it is better \
             told no at once. After a burst all slots come free together, and tidegate, which sees that, lets fewer \
             wait."
        ));
    }
    loaded(&mut answer, hop, queue.into(), load);
    answer.policy = policy(&mut answer.remarks, hop, wait, queue);
    answer
}

/// What a given queue means.
pub(crate) fn meaning(hop: Hop, queue: u32, load: Load) -> Answer {
    let mut answer = Answer::default();
    answer.input("queue", queue);
    of_service(&mut answer, hop);
    let wait = hop.waited(queue.into());
    let answered = wait.saturating_add(hop.service_time);
    answer.headline = format!("the last of {queue} waits about {}", time(wait));
    last_waits(&mut answer, hop, queue.into());
    answer.step(
        "and is answered after",
        "Q · S / W + S",
        format!("{} + {}", time(wait), time(hop.service_time)),
        time(answered),
    );
    answer.result("wait_ms", millis(wait));
    answer.result("answer_ms", millis(answered));
    answer.remarks.push(format!(
        "Clients who wait less than {} in all have left before the last answer comes.",
        time(answered)
    ));
    let capacity = clamped(&mut answer, queue.into());
    loaded(&mut answer, hop, capacity.into(), load);
    answer.policy = policy(&mut answer.remarks, hop, wait, capacity);
    answer
}

fn of_service(answer: &mut Answer, hop: Hop) {
    answer.input("workers", hop.workers);
    answer.input("service_time_ms", millis(hop.service_time));
    answer.result("per_second", hop.per_second());
    answer.step(
        "it can answer",
        "W / S",
        format!("{} / {}", hop.workers, time(hop.service_time)),
        format!("{} a second", number(hop.per_second())),
    );
}

fn last_waits(answer: &mut Answer, hop: Hop, queue: u64) {
    answer.step(
        "the last one waits",
        "Q · S / W",
        format!("{queue} · {} / {}", time(hop.service_time), hop.workers),
        time(hop.waited(queue)),
    );
}

/// The capacity that a policy file takes.
fn clamped(answer: &mut Answer, exact: u128) -> u32 {
    let queue = u32::try_from(exact).unwrap_or(u32::MAX).min(QUEUE_CAPACITY_MAX);
    if u128::from(queue) < exact {
        answer.remarks.push(format!(
            "A policy file takes at most {QUEUE_CAPACITY_MAX} places; {exact} would be more memory than a queue is \
             worth."
        ));
    }
    queue
}

/// What a rate and a burst do to a queue of this length.
fn loaded(answer: &mut Answer, hop: Hop, queue: u64, load: Load) {
    if let Some(rate) = load.rate {
        at_rate(answer, hop, queue, rate);
    }
    if let Some(burst) = load.burst {
        at_once(answer, hop, queue, u64::from(burst), load.rate);
    }
}

fn at_rate(answer: &mut Answer, hop: Hop, queue: u64, rate: Rate) {
    let (comes, can) = (rate.per_second(), hop.per_second());
    let busy = comes / can;
    answer.input("rate_per_second", comes);
    answer.result("utilisation", busy);
    answer.step(
        "utilisation",
        "λ · S / W",
        format!("{}/s · {} / {}", number(comes), time(hop.service_time), hop.workers),
        format!("{} %", number(busy * 100.0)),
    );
    if busy < 1.0 {
        answer.remarks.push(format!(
            "There is room for {} more a second. How many wait depends on how unevenly they come; tidegate simulate \
             plays that.",
            number(can - comes)
        ));
        return;
    }
    let excess = comes - can;
    answer.result("refused_per_second", excess);
    answer.step(
        "too many",
        "λ − W / S",
        format!("{}/s − {}/s", number(comes), number(can)),
        format!("{} a second", number(excess)),
    );
    if excess <= 0.0 {
        answer.remarks.push("It is busy all the time, and a queue, once it is there, stays.".to_owned());
        return;
    }
    answer.step(
        "the queue is full after",
        "Q / (λ − W / S)",
        format!("{queue} / {}/s", number(excess)),
        seconds(queue as f64 / excess),
    );
    answer.result("full_after_ms", queue as f64 / excess * 1e3);
    answer.remarks.push(format!(
        "No queue helps against that, a longer one only makes everybody wait longer: {} % have to be refused.",
        number(excess / comes * 100.0)
    ));
}

/// W are worked on at once, Q wait, and there is no room for more.
fn at_once(answer: &mut Answer, hop: Hop, queue: u64, burst: u64, rate: Option<Rate>) {
    let room = queue.saturating_add(hop.workers.into());
    let served = burst.min(room);
    answer.input("burst", burst);
    answer.step(
        "of a burst are served",
        "min(N, W + Q)",
        format!("min({burst}, {} + {queue})", hop.workers),
        served.to_string(),
    );
    answer.step("and refused", "N − served", format!("{burst} − {served}"), (burst - served).to_string());
    let (rounds, last) = hop.rounds(served);
    answer.step(
        "the last is answered after",
        "⌈served / W⌉ · S",
        format!("{rounds} · {}", time(hop.service_time)),
        time(last),
    );
    answer.result("burst_served", served);
    answer.result("burst_refused", burst - served);
    answer.result("burst_answered_ms", millis(last));
    let Some(rate) = rate else { return };
    let spare = hop.per_second() - rate.per_second();
    if spare <= 0.0 {
        answer.remarks.push("At this rate the queue of a burst never drains.".to_owned());
        return;
    }
    let waiting = served.saturating_sub(hop.workers.into());
    let drained = waiting as f64 / spare;
    answer.result("drained_after_ms", drained * 1e3);
    answer.step(
        "the queue has drained after",
        "(served − W) / (W / S − λ)",
        format!("{waiting} / ({}/s − {}/s)", number(hop.per_second()), number(rate.per_second())),
        seconds(drained),
    );
}

/// The lines for a policy, within what a policy file takes.
pub(crate) fn policy(remarks: &mut Vec<String>, hop: Hop, wait: Duration, capacity: u32) -> String {
    let limit = hop.workers.min(LIMIT_MAX);
    if limit < hop.workers {
        remarks.push(format!("A policy file takes a limit of at most {LIMIT_MAX}."));
    }
    if wait > WAIT_MAX {
        remarks.push(format!("A policy file takes a wait of at most {}.", time(WAIT_MAX)));
    }
    // A policy file counts in microseconds, and a budget of nothing goes only with a queue of nothing.
    let micros = wait.min(WAIT_MAX).as_nanos().div_ceil(1_000).max(u128::from(capacity > 0));
    let wait = Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX));
    format!(
        "[upstream.concurrency]\nlimit = {limit}\n\n[upstream.queue]\nwait = \"{}\"\ncapacity = {capacity}\n",
        time(wait)
    )
}
