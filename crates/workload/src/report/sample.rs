//! For tests of what is shown: a small scenario, and two reports filled in by hand.

use std::path::Path;
use std::time::Duration;

use tidegate_engine::Reason;

use super::{Gauges, Meter, Report, Try};
use crate::scenario::Scenario;

pub(crate) fn scenario() -> Scenario {
    parse("sample.toml", "Two kinds of requests come for ten seconds.")
}

/// A scenario with a name and a story of one's own.
pub(crate) fn parse(file: &str, story: &str) -> Scenario {
    let text = format!(
        r#"
        story = '''{story}'''
        duration = "10s"
        [[service]]
        workers = 2
        time = "100ms"
        change = [{{ at = "5s", pause = "1s" }}]
        [[clients]]
        name = "people"
        rate = "30/s"
        timeout = "1s"
        mix = [{{ class = "checkout" }}, {{ class = "search", share = 2 }}]
        [[expect]]
        policy = "no control"
        goodput = [10, 20]
        [[expect]]
        policy = "best static limit"
        goodput = 200
        failed = 0
        "#
    );
    Scenario::parse(&text, Path::new(file)).expect("it is a scenario")
}

pub(crate) fn reports() -> Vec<Report> {
    vec![report("no control", 20), report("gate", 2), report("best static limit", 3)]
}

/// One request in `rest` gets its answer if nothing stands before the service, all but one in `rest` otherwise.
fn report(policy: &str, rest: u64) -> Report {
    let mut meter = Meter::new(&scenario(), policy);
    let useful = |number: u64| number.is_multiple_of(rest) == (policy == "no control");
    for number in 0..300 {
        let now = Duration::from_millis(number * 33);
        let who = meter.who(if number.is_multiple_of(3) { "checkout" } else { "search" }, "people");
        let who = meter.offered(now, who);
        meter.attempted(who, Try { told: number.is_multiple_of(50) && policy == "gate", retry: false });
        if useful(number) {
            meter.served(now, who, Duration::from_millis(100 + number));
        } else if policy == "no control" {
            meter.late(now, who);
            meter.gave_up(who);
        } else {
            meter.rejected(now, who, Reason::QueueFull, Duration::from_micros(number));
            meter.gave_up(who);
        }
        let limit = if policy == "no control" { 0.0 } else { 2.0 };
        meter.look(now, Gauges { limit, in_flight: 2.0, queue: 1.0, service_queue: number as f64 });
    }
    meter.finish(1_234, 5)
}
