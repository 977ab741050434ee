//! The priorities case: a checkout that must not notice that analytics has three times as much to ask.
//!
//! The exercise of the article *System Design: Backpressure and Load Shedding*, on real sockets.

use std::time::Duration;

use super::case::{Asked, Case, Figure, Goal, Kind, Phase, Story};
use super::load::Patience;
use super::plan::Spacing;

/// Where the important clients go.
pub(crate) const CHECKOUT: &str = "/work/checkout";
/// Where the others go.
pub(crate) const ANALYTICS: &str = "/work/analytics";
/// What analytics gets of the capacity even under overload.
pub(crate) const FLOOR: f64 = 0.05;

/// The only one.
pub(crate) fn cases(quick: bool) -> Vec<Case> {
    let phase = |seconds: u64| Phase {
        length: Duration::from_secs(if quick { seconds / 2 } else { seconds }),
        service_time: Duration::from_millis(20),
    };
    let (checkout, analytics, surge) = (0, 1, 1);
    let goal = |figure, goal| Asked { figure, goal: Some(goal) };
    let case = Case {
        name: "priorities",
        title: "checkout 100/s beside analytics 300 → 900/s, on 10 workers × 20 ms, timeout 400 ms"
            .to_owned(),
        workers: 10,
        phases: vec![phase(10), phase(20)],
        kinds: vec![
            Kind { name: "checkout", path: CHECKOUT, header: None, rates: vec![100.0, 100.0] },
            Kind { name: "analytics", path: ANALYTICS, header: None, rates: vec![300.0, 900.0] },
        ],
        spacing: Spacing::Poisson { seed: 6 },
        patience: Patience { timeout: Duration::from_millis(400), repetitions: 0 },
        story: Story::Priorities,
        figures: vec![
            goal(Figure::Served { kind: checkout, phase: surge }, Goal::AtLeast(0.99)),
            goal(Figure::Slowdown { kind: checkout }, Goal::AtMost(3.0)),
            goal(Figure::ShareOfCapacity { kind: analytics, phase: surge }, Goal::AtLeast(FLOOR)),
            goal(Figure::Goodput { phase: Some(surge) }, Goal::AtLeast(0.96)),
        ],
    };
    vec![case]
}
