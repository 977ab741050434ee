//! What the simulator predicts, beside what comes of the same scenario on sockets: the clients of `load`, the gateway, and
//! a service that does what the scenario says.
//!
//! It is real time, and what is measured depends on what else the machine does: so these tests have a program of their own,
//! and are run one after the other.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// So many runs decide, by the median. A machine may have no room for five seconds; a wrong prediction is wrong most times.
const RUNS: usize = 3;
/// How often a scenario is played for that at most: where the generator was the limit by its own word, a run says nothing of what
/// was predicted.
const PLAYED_MAX: usize = 6;
/// How near to the prediction goodput has to be.
const NEAR: f64 = 0.05;
/// The same where the generator was the limit in each run: not much can be known there, but what is wrong by a quarter is wrong.
const NEAR_IF_LIMITED: f64 = 0.25;

/// Measured goodput by predicted, and both reports.
type Run = (f64, [Value; 2]);

/// One after the other, also where one of them failed.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate")).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn file(scenario: &str) -> String {
    format!("{}/../../scenarios/lab/{scenario}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// The reports of a scenario that was predicted and played in the lab. If the first run is not near, the median of up to three
/// has to be: of those whose generator was not the limit, if there is any such run, and else of
/// all, more loosely.
fn played(scenario: &str, arguments: &[&str]) -> [Value; 2] {
    let file = file(scenario);
    let near = |ratio: f64| (ratio - 1.0).abs() <= NEAR;
    let (mut sound, mut limited): (Vec<Run>, Vec<Run>) = (Vec::new(), Vec::new());
    while sound.len() < RUNS && sound.len() + limited.len() < PLAYED_MAX {
        let whole = run(&[&["load", &file, "--lab", "--predict", "--json"], arguments].concat());
        let both = [0, 1].map(|index| whole["reports"][index].clone());
        // The same clients come at the same moments.
        assert_eq!(both[0]["offered"], both[1]["offered"]);
        let ratio = goodput(&both[1]) / goodput(&both[0]);
        if near(ratio) && sound.is_empty() && limited.is_empty() {
            return both;
        }
        let is_limited = !both[1]["sending"]["limited"].is_null();
        if is_limited { &mut limited } else { &mut sound }.push((ratio, both));
    }
    let list = |runs: &[Run]| runs.iter().map(|(ratio, _)| *ratio).collect::<Vec<_>>();
    let found = format!("{:.3?}, and with a limited generator {:.3?}", list(&sound), list(&limited));
    let (mut runs, bound) = if sound.is_empty() { (limited, NEAR_IF_LIMITED) } else { (sound, NEAR) };
    runs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (ratio, both) = runs.swap_remove(runs.len() / 2);
    assert!((ratio - 1.0).abs() <= bound, "{scenario}: measured by predicted: {found}");
    both
}

fn goodput(report: &Value) -> f64 {
    report["goodput"].as_f64().unwrap()
}

#[test]
fn a_burst() {
    let _turn = turn();
    let [predicted, measured] = played("burst", &[]);
    assert_eq!((&predicted["goodput"], &predicted["rejected"]["queue_full"]), (&24.into(), &76.into()));
    // On sockets one more or less may come through, and whoever does not is refused.
    let refused = measured["rejected"]["queue_full"].as_f64().unwrap();
    assert!((refused + goodput(&measured) - 100.0).abs() <= 1.0, "{measured:#}");
}

/// With a gateway and with none: it is not the service alone that the prediction is about.
#[test]
fn a_steady_overload() {
    let _turn = turn();
    let [_, with] = played("overload", &[]);
    let [_, without] = played("overload", &["--only", "no control"]);
    assert!(goodput(&without) < goodput(&with) / 1.5, "{without:#}");
}

#[test]
fn a_drop_of_capacity() {
    let _turn = turn();
    played("capacity-drop", &[]);
}

#[test]
fn a_stall_with_clients_who_try_again() {
    let _turn = turn();
    let both = played("stall", &[]);
    let [predicted, measured] =
        both.map(|report| report["attempts"].as_f64().unwrap() / report["offered"].as_f64().unwrap());
    assert!((predicted - measured).abs() < 0.15, "{predicted} {measured}");
}

/// What the scenarios themselves promise, in virtual time.
#[test]
fn the_scenarios_keep_their_promises() {
    let _turn = turn();
    for scenario in ["burst", "overload", "capacity-drop", "stall"] {
        run(&["simulate", &file(scenario), "--json"]);
    }
}
