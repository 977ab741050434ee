//! Breakers: short stories of what they see and whom they let pass, and what must hold whatever they see.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::time::Duration;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use tidegate_engine::*;

fn policy() -> BreakerPolicy {
    let number = |number| NonZeroU32::new(number).unwrap();
    BreakerPolicy {
        connect_failures: number(3),
        failure_ratio: 0.5,
        min_requests: number(4),
        window: Duration::from_secs(1),
        open: Duration::from_millis(100),
        open_max: Duration::from_millis(400),
        probes: number(2),
        probe_timeout: Duration::from_millis(50),
    }
}

/// A line of a story is `<time>ms <verb>`. `pass` keeps a pass for later, which is completed, first come first, by `ok`,
/// `overload`, `fail`, `nobody` and `nothing`; `trip`, `hasten`; `go <verdict>` is a pass and its verdict.
fn check(story: &str, expect: Expect) {
    let mut breaker = Breaker::new(policy());
    let mut passes = std::collections::VecDeque::new();
    let mut log = String::new();
    let verdict = |word| match word {
        "ok" => Verdict::Success,
        "overload" => Verdict::Overload,
        "fail" => Verdict::Failure,
        "nobody" => Verdict::NoConnection,
        "nothing" => Verdict::Nothing,
        other => panic!("{other}"),
    };
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (time, verb) = line.split_once("ms ").unwrap();
        let now = Timestamp::from_millis(time.parse().unwrap());
        let mut said = String::new();
        let mut pass = |breaker: &mut Breaker| match breaker.try_pass(now) {
            Ok(pass) => {
                said = if pass.is_probe() { " probe" } else { "" }.to_string();
                Some(pass)
            }
            Err(refused) => {
                said = format!(" refused, again in {:?}", refused.retry_after);
                None
            }
        };
        match verb.split_once(' ') {
            Some(("go", word)) => {
                if let Some(pass) = pass(&mut breaker) {
                    breaker.complete(now, pass, verdict(word));
                }
            }
            _ => match verb {
                "pass" => passes.extend(pass(&mut breaker)),
                "trip" => breaker.trip(now),
                "hasten" => breaker.hasten(now),
                word => breaker.complete(now, passes.pop_front().unwrap(), verdict(word)),
            },
        }
        writeln!(log, "{line}:{said} {}", breaker.state(now).name()).unwrap();
    }
    expect.assert_eq(&log);
}

#[test]
fn it_opens_on_connections_in_a_row() {
    check(
        "0ms go ok
         0ms go ok
         0ms go ok
         0ms go ok
         0ms go ok
         1ms go nobody
         2ms go nobody
         3ms go ok
         4ms go nobody
         5ms go nobody
         6ms go nobody",
        expect![[r#"
            0ms go ok: closed
            0ms go ok: closed
            0ms go ok: closed
            0ms go ok: closed
            0ms go ok: closed
            1ms go nobody: closed
            2ms go nobody: closed
            3ms go ok: closed
            4ms go nobody: closed
            5ms go nobody: closed
            6ms go nobody: open
        "#]],
    );
}

#[test]
fn it_opens_on_a_share_of_enough_requests() {
    check(
        "0ms go fail
         0ms go fail
         0ms go fail
         1050ms go ok
         1050ms go ok
         1051ms go ok
         1052ms go fail
         1052ms go fail
         1053ms go fail",
        expect![[r#"
            0ms go fail: closed
            0ms go fail: closed
            0ms go fail: closed
            1050ms go ok: closed
            1050ms go ok: closed
            1051ms go ok: closed
            1052ms go fail: closed
            1052ms go fail: closed
            1053ms go fail: open
        "#]],
    );
}

/// What is too much for the other end is for the limit to answer, and a client that left says nothing.
#[test]
fn overload_and_nothing_are_no_failures() {
    check(
        "0ms go overload
         0ms go overload
         0ms go overload
         0ms go overload
         0ms go overload
         1ms go nothing
         1ms go nothing
         2ms go fail
         2ms go fail
         2ms go fail
         2ms go fail
         2ms go fail",
        expect![[r#"
            0ms go overload: closed
            0ms go overload: closed
            0ms go overload: closed
            0ms go overload: closed
            0ms go overload: closed
            1ms go nothing: closed
            1ms go nothing: closed
            2ms go fail: closed
            2ms go fail: closed
            2ms go fail: closed
            2ms go fail: closed
            2ms go fail: open
        "#]],
    );
}

/// It is shut for twice as long each time that a probe fails, up to a bound; and not for so long any more once it has
/// been well for as long as it had been shut.
#[test]
fn the_time_doubles() {
    check(
        "0ms trip
         99ms pass
         100ms go fail
         299ms pass
         300ms go fail
         699ms pass
         700ms go fail
         1100ms go ok
         1100ms go ok
         1200ms trip
         1599ms pass
         1600ms go ok
         1600ms go ok
         2000ms trip
         2100ms pass",
        expect![[r#"
            0ms trip: open
            99ms pass: refused, again in 1ms open
            100ms go fail: probe open
            299ms pass: refused, again in 62.803398ms open
            300ms go fail: probe open
            699ms pass: refused, again in 48.213595ms open
            700ms go fail: probe open
            1100ms go ok: probe half_open
            1100ms go ok: probe closed
            1200ms trip: open
            1599ms pass: refused, again in 171.820393ms open
            1600ms go ok: probe half_open
            1600ms go ok: probe closed
            2000ms trip: open
            2100ms pass: probe half_open
        "#]],
    );
}

/// H9 (resilience4j#544, #903, #935). A probe that leaves, says nothing or is never heard of gives its place back.
#[test]
fn a_probe_is_a_lease() {
    check(
        "0ms trip
         100ms pass
         100ms pass
         110ms pass
         120ms nothing
         120ms pass
         149ms pass
         150ms pass
         170ms ok
         170ms ok",
        expect![[r#"
            0ms trip: open
            100ms pass: probe half_open
            100ms pass: probe half_open
            110ms pass: refused, again in 40ms half_open
            120ms nothing: half_open
            120ms pass: probe half_open
            149ms pass: refused, again in 31.901699ms half_open
            150ms pass: probe half_open
            170ms ok: half_open
            170ms ok: closed
        "#]],
    );
}

/// H9. Whatever was let through before does not decide about what is now.
#[test]
fn a_late_verdict_changes_nothing() {
    check(
        "0ms pass
         0ms pass
         0ms pass
         1ms trip
         2ms ok
         100ms go nothing
         101ms fail
         101ms go ok
         101ms go ok
         102ms nobody",
        expect![[r#"
            0ms pass: closed
            0ms pass: closed
            0ms pass: closed
            1ms trip: open
            2ms ok: open
            100ms go nothing: refused, again in 1ms open
            101ms fail: half_open
            101ms go ok: probe half_open
            101ms go ok: probe closed
            102ms nobody: closed
        "#]],
    );
}

/// Whoever does worse than the others has to be in time again; of others it is enough that they answer.
#[test]
fn overload_counts_for_the_probes_of_an_outlier() {
    check(
        "0ms trip
         100ms go overload
         300ms go nobody
         700ms go overload
         701ms go overload",
        expect![[r#"
            0ms trip: open
            100ms go overload: probe open
            300ms go nobody: probe open
            700ms go overload: probe half_open
            701ms go overload: probe closed
        "#]],
    );
}

/// Another policy shortens what was to last longer under the one before.
#[test]
fn another_policy_counts_at_once() {
    let at = Timestamp::from_millis;
    let long = Duration::from_secs(3_600);
    let mut breaker =
        Breaker::new(BreakerPolicy { open: long, open_max: long, probe_timeout: long, ..policy() });
    breaker.trip(at(0));
    breaker.reconfigure(at(10), BreakerPolicy { probe_timeout: long, ..policy() });
    assert!(breaker.check(at(409)).is_err());
    let probes = [breaker.try_pass(at(410)), breaker.try_pass(at(410))];
    assert!(probes.iter().all(Result::is_ok) && breaker.check(at(1_000)).is_err());
    breaker.reconfigure(at(1_000), policy());
    assert!(breaker.check(at(1_049)).is_err());
    assert!(breaker.check(at(1_050)).is_ok());
}

#[test]
fn it_may_be_hastened() {
    check(
        "0ms trip
         1ms pass
         2ms hasten
         3ms go ok
         4ms go ok
         5ms hasten",
        expect![[r#"
            0ms trip: open
            1ms pass: refused, again in 99ms open
            2ms hasten: half_open
            3ms go ok: probe half_open
            4ms go ok: probe closed
            5ms hasten: closed
        "#]],
    );
}

/// H10. A thousand who are refused at once are told times that are spread evenly, none before there is a probe to be.
#[test]
fn those_refused_are_not_told_the_same_time() {
    let mut breaker = Breaker::new(BreakerPolicy { open: Duration::from_millis(400), ..policy() });
    breaker.trip(Timestamp::ZERO);
    let told: Vec<u128> =
        (0..1_000).map(|_| breaker.try_pass(Timestamp::ZERO).unwrap_err().retry_after.as_millis()).collect();
    for from in (400..600).step_by(20) {
        let here = told.iter().filter(|told| (from..from + 20).contains(*told)).count();
        assert!((95..=105).contains(&here), "{here} of 1000 are told {from} to {} ms", from + 20);
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Pass,
    Complete(prop::sample::Index, Verdict),
    Lose(prop::sample::Index),
    Trip,
    Hasten,
    Reconfigure { open: u8, probes: u8, probe_timeout: u8, ratio: f64 },
}

fn operations() -> impl Strategy<Value = Vec<(i16, Operation)>> {
    let index = any::<prop::sample::Index>;
    let verdict = prop_oneof![
        Just(Verdict::Success),
        Just(Verdict::Overload),
        Just(Verdict::Failure),
        Just(Verdict::NoConnection),
        Just(Verdict::Nothing),
    ];
    let ratio = prop_oneof![0.0..1.0, Just(f64::NAN), Just(f64::INFINITY), Just(-1.0)];
    let operation = prop_oneof![
        8 => Just(Operation::Pass),
        8 => (index(), verdict).prop_map(|(at, verdict)| Operation::Complete(at, verdict)),
        1 => index().prop_map(Operation::Lose),
        1 => Just(Operation::Trip),
        1 => Just(Operation::Hasten),
        1 => (any::<u8>(), 1..40u8, any::<u8>(), ratio).prop_map(|(open, probes, probe_timeout, ratio)| {
            Operation::Reconfigure { open, probes, probe_timeout, ratio }
        }),
    ];
    // Steps in time go back now and then.
    prop::collection::vec((-20..200i16, operation), 0..200)
}

/// A pass, in which opening of the breaker it was given, and when its place is given to another if it is a probe's.
struct Held {
    pass: Pass,
    opening: u64,
    until: Timestamp,
}

/// A breaker, what was let through and has not ended, and the rules that it is under.
struct Driver {
    breaker: Breaker,
    policy: BreakerPolicy,
    passes: Vec<Held>,
    /// The most probes that any of its policies allowed at once.
    most_probes: usize,
    now: Timestamp,
    trace: String,
}

impl Driver {
    fn new() -> Self {
        let (breaker, now) = (Breaker::new(policy()), Timestamp::ZERO);
        Self { breaker, policy: policy(), passes: Vec::new(), most_probes: 2, now, trace: String::new() }
    }

    fn apply(&mut self, step: i16, operation: Operation) {
        let now = match u64::try_from(step) {
            Ok(forward) => self.now.after(Duration::from_millis(forward)),
            Err(_) => Timestamp::ZERO,
        };
        self.now = self.now.max(now);
        // Also if nothing comes of it, time has passed for the breaker too.
        self.breaker.tally(now);
        match operation {
            Operation::Pass => {
                let checked = self.breaker.check(now);
                let pass = self.breaker.try_pass(now);
                assert_eq!(checked.is_ok(), pass.is_ok(), "a check is true for whoever comes next");
                let until = self.now.after(self.policy.probe_timeout.max(Duration::from_millis(1)));
                let opening = self.breaker.openings();
                self.passes.extend(pass.map(|pass| Held { pass, opening, until }));
                let is_probe =
                    |held: &&Held| held.pass.is_probe() && held.opening == opening && held.until > self.now;
                let probes = self.passes.iter().filter(is_probe).count();
                assert!(probes <= self.most_probes, "{probes} probes at once");
            }
            Operation::Complete(at, verdict) if !self.passes.is_empty() => {
                let held = self.passes.swap_remove(at.index(self.passes.len()));
                self.breaker.complete(now, held.pass, verdict);
            }
            Operation::Lose(at) if !self.passes.is_empty() => {
                self.passes.swap_remove(at.index(self.passes.len()));
            }
            Operation::Trip => self.breaker.trip(now),
            Operation::Hasten => self.breaker.hasten(now),
            Operation::Reconfigure { open, probes, probe_timeout, ratio } => {
                self.policy = BreakerPolicy {
                    open: Duration::from_millis(open.into()),
                    open_max: Duration::from_millis(u64::from(open) * 2),
                    probes: NonZeroU32::new(probes.into()).unwrap(),
                    probe_timeout: Duration::from_millis(probe_timeout.into()),
                    failure_ratio: ratio,
                    ..policy()
                };
                self.most_probes = self.most_probes.max(probes.min(PROBES_MAX as u8).into());
                let until = self.now.after(self.policy.probe_timeout.max(Duration::from_millis(1)));
                self.passes.iter_mut().for_each(|held| held.until = held.until.min(until));
                self.breaker.reconfigure(now, self.policy);
            }
            Operation::Complete(..) | Operation::Lose(_) => {}
        }
        writeln!(self.trace, "{:?} {}", self.breaker.state(self.now), self.breaker.openings()).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// H9 (resilience4j#1432). However it got there, with never more probes at once than places, and whatever happens to
    /// those under way: after the longest time that it may be open, and the longest that a probe may keep its place,
    /// somebody may pass; and when that turns out well, everybody.
    #[test]
    fn it_is_never_stuck(script in operations()) {
        let mut driver = Driver::new();
        for (step, operation) in script {
            driver.apply(step, operation);
        }
        let Driver { mut breaker, policy, now, .. } = driver;
        let soon = now.after(policy.open_max).after(policy.probe_timeout.max(Duration::from_millis(1)));
        prop_assert!(breaker.check(soon).is_ok());
        for _ in 0..policy.probes.get().min(PROBES_MAX) {
            let pass = breaker.try_pass(soon);
            prop_assert!(pass.is_ok());
            breaker.complete(soon, pass.unwrap(), Verdict::Success);
        }
        prop_assert_eq!(breaker.state(soon), BreakerState::Closed);
    }

    /// A refusal never promises what is not so: whoever comes back when told, and finds nobody before, may pass.
    #[test]
    fn whoever_comes_back_when_told_may_pass(script in operations()) {
        let mut driver = Driver::new();
        for (step, operation) in script {
            driver.apply(step, operation);
        }
        let Driver { mut breaker, now, .. } = driver;
        if let Err(refused) = breaker.try_pass(now) {
            prop_assert!(breaker.check(now.after(refused.retry_after)).is_ok());
        }
    }

    #[test]
    fn the_same_story_gives_the_same_trace(script in operations()) {
        let tell = || {
            let mut driver = Driver::new();
            script.iter().for_each(|(step, operation)| driver.apply(*step, *operation));
            driver.trace
        };
        prop_assert_eq!(tell(), tell());
    }
}
