//! The fairness case: one tenant that asks for ten times what the three others ask for together.

use std::time::Duration;

use super::case::{Asked, Case, Figure, Goal, Kind, Phase, Story};
use super::load::Patience;
use super::plan::Spacing;

/// The header that says whose request it is.
pub(crate) const TENANT_HEADER: &str = "x-tenant";

/// The only one.
pub(crate) fn cases(quick: bool) -> Vec<Case> {
    let tenant = |name: &'static str, rate| Kind {
        name,
        path: "/work",
        header: Some(format!("{TENANT_HEADER}: {name}")),
        rates: vec![rate],
    };
    let served = |kind| Figure::Served { kind, phase: 0 };
    let modest = |kind| Asked { figure: served(kind), goal: Some(Goal::AtLeast(0.98)) };
    let case = Case {
        name: "fairness",
        title: "three tenants with 50/s each, one with 1500/s, on 10 workers × 20 ms, timeout 400 ms"
            .to_owned(),
        workers: 10,
        phases: vec![Phase {
            length: Duration::from_secs(if quick { 8 } else { 16 }),
            service_time: Duration::from_millis(20),
        }],
        kinds: vec![tenant("anna", 50.0), tenant("bert", 50.0), tenant("cleo", 50.0), tenant("hog", 1500.0)],
        spacing: Spacing::Poisson { seed: 7 },
        patience: Patience { timeout: Duration::from_millis(400), repetitions: 0 },
        story: Story::Tenants,
        figures: vec![
            modest(0),
            modest(1),
            modest(2),
            Asked { figure: served(3), goal: None },
            Asked { figure: Figure::Goodput { phase: None }, goal: None },
        ],
    };
    vec![case]
}
