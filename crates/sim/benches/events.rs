//! How fast it plays: events a second on one core, for a busy service behind a gateway and for a long overload.

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark that cannot run has failed")]

use std::path::Path;

use divan::Bencher;
use divan::counter::ItemsCount;
use tidegate_sim::{Control, play};
use tidegate_workload::Scenario;

fn main() {
    divan::main();
}

fn scenario(rate: u32, duration: &str, time: &str) -> Scenario {
    let text = format!(
        r#"
        story = "Ten workers."
        duration = "{duration}"
        [[service]]
        workers = 10
        time = {time}
        [[clients]]
        name = "everybody"
        rate = "{rate}/s"
        timeout = "2s"
        [[policy]]
        name = "a limit"
        text = '''
        [[upstream]]
        name = "service"
        endpoints = ["http://127.0.0.1:8103"]
        timeout = "1s"
        [upstream.concurrency]
        limit = 10
        [upstream.queue]
        wait = "500ms"
        '''
        "#
    );
    Scenario::parse(&text, Path::new("bench.toml")).unwrap()
}

fn events(bencher: Bencher<'_, '_>, scenario: &Scenario, control: &Control) {
    let count = play(scenario, control, 1).unwrap().events;
    bencher.counter(ItemsCount::new(count)).bench_local(|| play(scenario, control, 1).unwrap());
}

/// Nine in ten of what ten workers can do, exponential times.
#[divan::bench(sample_count = 5)]
fn busy(bencher: Bencher<'_, '_>) {
    let scenario = scenario(900, "600s", "{ exponential = \"10ms\" }");
    events(bencher, &scenario, &Control::all(&scenario)[1]);
}

/// Ten times as much as they can do: most are refused.
#[divan::bench(sample_count = 5)]
fn flooded(bencher: Bencher<'_, '_>) {
    let scenario = scenario(10_000, "60s", "\"10ms\"");
    events(bencher, &scenario, &Control::all(&scenario)[1]);
}

/// The same without control: the queue grows and grows.
#[divan::bench(sample_count = 5)]
fn flooded_without_control(bencher: Bencher<'_, '_>) {
    let scenario = scenario(10_000, "60s", "\"10ms\"");
    events(bencher, &scenario, &Control::Nothing);
}
