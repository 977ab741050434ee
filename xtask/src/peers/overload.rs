//! The overload cases: a service that is asked for more than it can do, in all the ways that happens.
//!
//! Nothing in them is known to tidegate: it is told where the service is, and no number.

use std::time::Duration;

use super::case::{Asked, Case, Figure, Goal, Kind, Phase, Story};
use super::load::Patience;
use super::plan::Spacing;

const PATH: &str = "/work";

/// tidegate's default wait budget. A refusal must not come later.
const WAIT_BUDGET_MILLIS: f64 = 500.0;

/// All of them. `quick` halves most of the times.
pub(crate) fn cases(quick: bool) -> Vec<Case> {
    let length = |seconds: u64| Duration::from_secs(if quick { seconds.div_ceil(2) } else { seconds });
    let mut cases: Vec<_> =
        [("overload-1.5", 1.5, 750.0), ("overload-5", 5.0, 2500.0), ("overload-10", 10.0, 5000.0)]
            .map(|(name, times, rate)| overload(name, times, rate, length(12)))
            .into();
    cases.extend([drop(length(6), length(15)), stall(length(6), length(11)), light(length(8))]);
    cases.extend([slow(length(10), length(14), length(4)), cold(length(16))]);
    cases
}

fn overload(name: &'static str, times: f64, rate: f64, length: Duration) -> Case {
    Case {
        name,
        title: format!("{times}× overload: {rate}/s on 10 workers × 20 ms, timeout 400 ms"),
        workers: 10,
        phases: vec![phase(length, 20)],
        kinds: vec![kind(vec![rate])],
        spacing: Spacing::Poisson { seed: 1 },
        patience: patience(400, 0),
        story: Story::Untold,
        figures: vec![
            goal(Figure::Goodput { phase: None }, Goal::AtLeast(0.98)),
            shown(Figure::AnswerMedian),
            goal(Figure::RefusalMedian, Goal::AtMost(1.0)),
            shown(Figure::RefusalTail),
            goal(Figure::RefusalMax, Goal::AtMost(WAIT_BUDGET_MILLIS)),
            shown(Figure::GaveUp),
        ],
    }
}

/// The capacity falls to a twentieth, and comes back.
fn drop(before: Duration, during: Duration) -> Case {
    Case {
        name: "drop",
        title: "capacity drops: 1500/s, 10 workers × 4 → 90 → 4 ms, timeout 1 s".to_owned(),
        workers: 10,
        phases: vec![phase(before, 4), phase(during, 90), phase(before, 4)],
        kinds: vec![kind(vec![1500.0; 3])],
        spacing: Spacing::Poisson { seed: 2 },
        patience: patience(1000, 0),
        story: Story::Untold,
        figures: vec![
            goal(Figure::Goodput { phase: None }, Goal::AtLeast(0.97)),
            shown(Figure::Goodput { phase: Some(1) }),
            shown(Figure::GaveUp),
        ],
    }
}

/// The service stands nearly still, and its clients ask again and again. Even moments, so that a recovery is not a matter
/// of who happened to come in one second.
fn stall(before: Duration, after: Duration) -> Case {
    Case {
        name: "stall",
        title: "stall of 3 s: 400/s, 20 → 500 → 20 ms, timeout 400 ms, 3 retries at once".to_owned(),
        workers: 10,
        phases: vec![phase(before, 20), phase(Duration::from_secs(3), 500), phase(after, 20)],
        kinds: vec![kind(vec![400.0; 3])],
        spacing: Spacing::Even,
        patience: patience(400, 3),
        story: Story::Untold,
        figures: vec![
            goal(Figure::Goodput { phase: None }, Goal::AtLeast(0.95)),
            goal(Figure::Recovery, Goal::AtMost(2.0)),
        ],
    }
}

fn light(length: Duration) -> Case {
    Case {
        name: "light",
        title: "light load: 250/s on 10 workers × 20 ms, timeout 400 ms".to_owned(),
        workers: 10,
        phases: vec![phase(length, 20)],
        kinds: vec![kind(vec![250.0])],
        spacing: Spacing::Poisson { seed: 3 },
        patience: patience(400, 0),
        story: Story::Untold,
        figures: vec![goal(Figure::Refused, Goal::AtMost(0.0)), shown(Figure::AnswerMedian)],
    }
}

/// Ten times slower, and still far from full: whoever takes slow for full refuses here.
fn slow(before: Duration, during: Duration, after: Duration) -> Case {
    Case {
        name: "slow",
        title: "slow, not full: 300/s on 200 workers × 20 → 200 → 20 ms, timeout 2 s".to_owned(),
        workers: 200,
        phases: vec![phase(before, 20), phase(during, 200), phase(after, 20)],
        kinds: vec![kind(vec![300.0; 3])],
        spacing: Spacing::Poisson { seed: 4 },
        patience: patience(2000, 0),
        story: Story::Untold,
        figures: vec![goal(Figure::Refused, Goal::AtMost(0.01))],
    }
}

/// The smallest service there is, from its first request on.
fn cold(length: Duration) -> Case {
    Case {
        name: "one-worker",
        title: "1.5× overload of one worker: 70/s on 1 × 20 ms, timeout 400 ms".to_owned(),
        workers: 1,
        phases: vec![phase(length, 20)],
        kinds: vec![kind(vec![70.0])],
        spacing: Spacing::Poisson { seed: 5 },
        patience: patience(400, 0),
        story: Story::Untold,
        figures: vec![goal(Figure::Goodput { phase: None }, Goal::AtLeast(0.95)), shown(Figure::GaveUp)],
    }
}

const fn phase(length: Duration, service_millis: u64) -> Phase {
    Phase { length, service_time: Duration::from_millis(service_millis) }
}

const fn kind(rates: Vec<f64>) -> Kind {
    Kind { name: "all", path: PATH, header: None, rates }
}

const fn patience(timeout_millis: u64, repetitions: u32) -> Patience {
    Patience { timeout: Duration::from_millis(timeout_millis), repetitions }
}

const fn shown(figure: Figure) -> Asked {
    Asked { figure, goal: None }
}

const fn goal(figure: Figure, goal: Goal) -> Asked {
    Asked { figure, goal: Some(goal) }
}
