//! What a policy does in an overload, before it is anywhere in force: a policy as text, a scenario, and the table of both with
//! and without it.
//!
//! ```sh
//! cargo run -p tidegate-sim --example simulate_your_policy
//! ```
//!
//! Put your own policy in the place of this one, and your own service and clients: what they can do and what they want is in
//! `docs/simulating.md`. It is virtual time, so a minute takes a moment, and the same seed gives the same table.

use std::error::Error;
use std::path::Path;

use tidegate_sim::{Control, play};
use tidegate_workload::{Scenario, table};

/// The policy, as it would stand in a file of its own.
const POLICY: &str = r#"
[[upstream]]
name = "service"
endpoints = ["http://127.0.0.1:8103"]
timeout = "2s"
[upstream.concurrency]
limit = 20
[upstream.queue]
capacity = 20
wait = "500ms"
"#;

/// Ten workers of 100 ms can do 100 requests a second, and half again as many come.
const SCENARIO: &str = r#"
story = "Half again as much as ten workers can do, of clients who wait a second."
duration = "60s"

[[service]]
workers = 10
time = "100ms"

[[clients]]
name = "everybody"
rate = "150/s"
timeout = "1s"
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let text = format!("{SCENARIO}\n[[policy]]\nname = \"mine\"\ntext = '''{POLICY}'''\n");
    // What is wrong with either is said with its line.
    let scenario = Scenario::parse(&text, Path::new("overload.toml"))?;

    let mut reports = Vec::new();
    for control in Control::all(&scenario) {
        // The best static limit is there as well, for whoever wants to know what would have been possible.
        reports.push(play(&scenario, &control, scenario.seed)?);
    }
    print!("{}", table(&scenario, &reports));

    let goodput = |policy: &str| {
        let report = reports.iter().find(|report| report.policy == policy);
        report.map(|report| report.all.goodput).ok_or_else(|| format!("nothing was played for `{policy}`"))
    };
    let (without, with) = (goodput("no control")?, goodput("mine")?);
    println!("\nUseful answers in a minute: {without} without the policy, {with} with it.");
    // The service can do 6,000 in that time.
    assert!(with > 5_500 && without < 1_000, "{without} and {with}");
    Ok(())
}
