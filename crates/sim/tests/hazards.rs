//! What has gone wrong with adaptive limits elsewhere, each as a small story (docs/hazards.md, I). The numbers from the
//! wire that are no numbers, I7, are in the tests of the limits themselves.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use tidegate_sim::{Control, play};
use tidegate_workload::{Bucket, Report, Scenario, Window};

/// By their names in a policy. Without a baseline, AIMD only sees what takes half of the timeout.
const ALGORITHMS: [&str; 4] = ["ebb", "aimd", "gradient2", "vegas"];

/// A service and its clients as a scenario has them, behind a limit that is all that the gateway does: no breaker, and
/// nothing about retries.
fn played(algorithm: &str, story: &str, limits: &str) -> Report {
    let text = format!(
        r#"
        story = "A hazard."
        {story}
        [[policy]]
        name = "{algorithm}"
        text = '''
        [[upstream]]
        name = "service"
        endpoints = ["http://127.0.0.1:8103"]
        timeout = "1s"
        cancels_work = {}
        [upstream.concurrency]
        algorithm = "{algorithm}"
        {limits}
        [upstream.retries]
        damp = false
        [upstream.breaker]
        enabled = false
        '''
        "#,
        story.contains("cancels_work = true"),
    );
    let scenario = Scenario::parse(&text, Path::new("hazard.toml")).unwrap_or_else(|error| panic!("{error}"));
    play(&scenario, &Control::all(&scenario)[1], 3).unwrap()
}

fn between(report: &Report, from_s: u64, until_s: u64) -> Bucket {
    report.series.sum(Window { from: Duration::from_secs(from_s), until: Duration::from_secs(until_s) })
}

fn mean_limit(report: &Report, from_s: u64, until_s: u64) -> f64 {
    let sum = between(report, from_s, until_s);
    sum.mean(sum.limit)
}

fn share(report: &Report, from_s: u64, until_s: u64) -> f64 {
    let sum = between(report, from_s, until_s);
    sum.goodput as f64 / sum.offered as f64
}

/// I1 (envoy#10647, Netflix/concurrency-limits#176): ten times slower for a minute. The limit neither rises with latency
/// nor sticks to its floor, then or afterwards.
#[test]
fn ten_times_slower_and_back() {
    let story = r#"
        duration = "120s"
        [[service]]
        workers = 10
        time = { exponential = "20ms" }
        change = [{ at = "20s", slowdown = 10 }, { at = "80s", slowdown = 1 }]
        [[clients]]
        name = "everybody"
        rate = "300/s"
        timeout = "1s"
    "#;
    let report = played("ebb", story, "");
    // Ten workers are ten workers, however long each takes: within five seconds it is where they need it, no lower and no
    // higher.
    let during = mean_limit(&report, 25, 80);
    assert!((10.0..18.0).contains(&during), "{during}");
    let useful = between(&report, 25, 80).goodput;
    assert!(useful >= 2_475, "of the 50 a second that it can do then, nine in ten: {useful}");
    assert!(share(&report, 85, 120) > 0.99, "{}", share(&report, 85, 120));
    assert!(mean_limit(&report, 110, 120) >= 10.0, "as many as there are workers, or nothing is gained");
}

/// I2 (Netflix/concurrency-limits#176): what fails at once is not a sign of health, nor of overload.
#[test]
fn fast_failures_say_nothing() {
    let story = r#"
        duration = "60s"
        [[service]]
        workers = 10
        time = { exponential = "20ms" }
        change = [
          { at = "20s", fails = 1 }, { at = "20s", slowdown = 0.01 },
          { at = "40s", fails = 0 }, { at = "40s", slowdown = 1 },
        ]
        [[clients]]
        name = "everybody"
        rate = "700/s"
        timeout = "1s"
    "#;
    for algorithm in ALGORITHMS {
        let report = played(algorithm, story, "");
        let (before, after) = (mean_limit(&report, 19, 20), mean_limit(&report, 21, 40));
        assert!((after / before - 1.0).abs() < 0.25, "{algorithm}: from {before} to {after}");
        let (first, again) = (between(&report, 1, 20).goodput, between(&report, 41, 60).goodput);
        assert!(again * 10 >= first * 9, "{algorithm}: {first} at first, {again} when it is well again");
    }
}

/// I3 (Netflix/concurrency-limits#137): everything times out, and so takes exactly as long.
#[test]
fn when_everything_times_out_the_limit_falls() {
    let story = r#"
        duration = "60s"
        [[service]]
        elastic = { slope = 0 }
        time = "20ms"
        cancels_work = true
        change = [{ at = "10s", slowdown = 500 }]
        [[clients]]
        name = "everybody"
        rate = "300/s"
    "#;
    for algorithm in ALGORITHMS {
        let report = played(algorithm, story, "");
        let (before, after) = (mean_limit(&report, 5, 10), mean_limit(&report, 50, 60));
        assert!(after <= before / 2.0, "{algorithm}: from {before} to {after}");
    }
}

/// I4 (envoy#11579): everything gets slower by a hundredth every minute, for two hours. Nobody is refused for it.
#[test]
fn a_slow_drift_is_followed() {
    let mut changes = String::new();
    for minute in 1..120 {
        let slowdown = 1.01_f64.powi(minute);
        write!(changes, "{{ at = \"{minute}m\", slowdown = {slowdown:.4} }}, ").unwrap();
    }
    let story = format!(
        r#"
        duration = "120m"
        [[service]]
        workers = 10
        time = {{ exponential = "20ms" }}
        change = [{changes}]
        [[clients]]
        name = "everybody"
        rate = "60/s"
        timeout = "1s"
    "#
    );
    let report = played("ebb", &story, "");
    assert!(report.all.goodput_share() > 0.999, "{}", report.all.goodput_share());
}

/// I5 (Netflix/concurrency-limits#134): a fifth too much for an hour. The limit does not creep up.
#[test]
fn a_modest_overload_does_not_raise_the_limit_for_ever() {
    let story = r#"
        duration = "60m"
        [[service]]
        workers = 5
        time = { exponential = "50ms" }
        [[clients]]
        name = "everybody"
        rate = "120/s"
        timeout = "1s"
    "#;
    let report = played("ebb", story, "");
    // It goes up and down: what it found out by chance it unlearns within a minute or two.
    let (early, late) = (mean_limit(&report, 300, 1800), mean_limit(&report, 1800, 3600));
    assert!(late < early * 1.25 && late < 20.0, "from {early} to {late}");
    let useful = between(&report, 60, 3600).goodput;
    assert!(useful >= 354_000 * 96 / 100, "{useful}");
}

/// I6 (Netflix/concurrency-limits#155): it reaches the highest that it may be, and stays there.
#[test]
fn at_its_highest_it_stays() {
    let story = r#"
        duration = "60s"
        [[service]]
        workers = 50
        time = { exponential = "20ms" }
        [[clients]]
        name = "everybody"
        rate = "600/s"
        timeout = "1s"
    "#;
    for algorithm in ALGORITHMS {
        let report = played(algorithm, story, "max = 8\ninitial = 4");
        let buckets = report.series.buckets.iter().skip(90);
        let lowest = buckets.map(|bucket| bucket.mean(bucket.limit)).fold(f64::MAX, f64::min);
        assert!(lowest >= 5.0, "{algorithm}: down to {lowest} of 8");
        let mean = mean_limit(&report, 45, 60);
        // Ebb measures with fewer now and then, and so does Vegas.
        assert!((5.5..=8.0).contains(&mean), "{algorithm}: {mean} of 8 on average");
    }
}

/// I8: requests of a millisecond and of a second behind one limit. Neither makes it think that the other is slow.
#[test]
fn short_and_long_requests_together() {
    let story = r#"
        duration = "120s"
        [[service]]
        workers = 20
        time = "1ms"
        [[clients]]
        name = "short"
        rate = "500/s"
        timeout = "3s"
        [[clients]]
        name = "long"
        rate = "10/s"
        cost = 900
        timeout = "3s"
    "#;
    let report = played("ebb", story, "");
    for class in ["short", "long"] {
        let share = report.class(class).unwrap().goodput_share();
        assert!(share > 0.985, "{class}: {share}");
    }
}

/// I9 (Netflix/concurrency-limits#146): half of the clients leave before there can be an answer. That is no sample.
#[test]
fn clients_that_leave_say_nothing() {
    let story = r#"
        duration = "60s"
        [[service]]
        workers = 10
        time = "20ms"
        [[clients]]
        name = "leave"
        rate = "200/s"
        timeout = "10ms"
        [[clients]]
        name = "stay"
        rate = "200/s"
        timeout = "1s"
    "#;
    for algorithm in ALGORITHMS {
        let report = played(algorithm, story, "");
        let stay = report.class("stay").unwrap();
        assert!(stay.goodput_share() > 0.99, "{algorithm}: {}", stay.goodput_share());
        let (limit, left) = (mean_limit(&report, 30, 60), report.class("leave").unwrap().left);
        assert!(limit >= 10.0 && left > 11_000, "{algorithm}: {limit}, {left} have left");
    }
}

/// I9 once more: a tenth of all requests is given up just after the mean response time. Times vary, so many an answer takes
/// longer than that, and who leaves then says more of himself than of the service.
#[test]
fn clients_that_leave_just_after_the_mean_say_little() {
    let story = |leave: &str| {
        format!(
            r#"
        duration = "90s"
        [[service]]
        workers = 100
        time = {{ exponential = "50ms" }}
        [[clients]]
        name = "stay"
        rate = "1680/s"
        timeout = "1s"
        [[clients]]
        name = "leave"
        rate = "720/s"
        timeout = "{leave}"
    "#
        )
    };
    let limit = |leave| mean_limit(&played("ebb", &story(leave), ""), 30, 90);
    let (patient, hasty) = (limit("1s"), limit("55ms"));
    assert!(hasty >= 0.9 * patient, "{patient} if all stay, {hasty} if not");
}

/// I9 again: a tenth of all requests is given up 10 ms after an answer may be expected, on purpose. All times are the same here,
/// so nothing else would be in their place. What they had the service do is lost, and hardly more.
#[test]
fn clients_that_leave_on_purpose_harm_nobody_else() {
    let story = r#"
        duration = "90s"
        [[service]]
        workers = 10
        time = "20ms"
        [[clients]]
        name = "stay"
        rate = "600/s"
        timeout = "1s"
        [[clients]]
        name = "leave"
        rate = "66/s"
        timeout = "30ms"
    "#;
    let report = played("ebb", story, "");
    let useful = between(&report, 5, 90).goodput as f64 / 85.0;
    assert!(useful > 0.9 * 500.0, "{useful} a second of 500");
}

/// Fifty workers behind so many gateways, asked for half as much again as they can do, for so many seconds.
fn behind_gateways(gateways: u32, seconds: u64) -> Report {
    let story = format!(
        r#"
        duration = "{seconds}s"
        gateways = {gateways}
        [[service]]
        workers = 50
        time = {{ exponential = "20ms" }}
        [[clients]]
        name = "everybody"
        rate = "3750/s"
        timeout = "1s"
    "#
    );
    played("ebb", &story, "")
}

/// I10 once more: none of several gateways sees what the others do, so each takes what it wins from them for room. What stops them
/// is when clients leave.
#[test]
fn ten_gateways_do_not_climb_until_all_is_late() {
    let report = behind_gateways(10, 120);
    for from in (0..120).step_by(20) {
        let useful = between(&report, from, from + 20).goodput as f64 / 20.0;
        assert!(useful > 0.97 * 2500.0, "{useful} a second of 2,500, from {from} s on");
    }
}

/// I10 (envoy#8337): gateways that start at the same moment do not all measure at the same moment, or there would be
/// half-seconds in which the service has too little to do.
#[test]
fn several_gateways_are_not_in_step() {
    let report = behind_gateways(4, 60);
    let useful: Vec<u64> = report.series.buckets.iter().skip(20).map(|bucket| bucket.goodput).collect();
    let lowest = useful.iter().min().unwrap();
    assert!(*lowest >= 1250 * 7 / 10, "in one half second {lowest} of 1250 were useful");
    assert!(useful.iter().sum::<u64>() >= 100 * 1250 * 95 / 100, "{useful:?}");
}

/// I11: a request every five seconds. It does not wait for a measurement to have enough of them, and a burst after an hour
/// finds as much room as at first.
#[test]
fn hardly_any_traffic() {
    let story = r#"
        duration = "61m"
        [[service]]
        workers = 10
        time = { exponential = "20ms" }
        [[clients]]
        name = "now and then"
        rate = "0.2/s"
        timeout = "500ms"
        [[clients]]
        name = "burst"
        burst = [{ at = "60m", count = 50 }]
        timeout = "500ms"
    "#;
    for algorithm in ALGORITHMS {
        let report = played(algorithm, story, "");
        assert_eq!((report.all.refusals(), report.all.failed), (0, 0), "{algorithm}");
    }
}
