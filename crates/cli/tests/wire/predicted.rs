//! What the simulator predicts, beside what comes of the same scenario on sockets: the clients of `load`, the gateway, and
//! a service that does what the scenario says.

use serde_json::Value;

use crate::ran::run;
use crate::wait::turn;

/// How often a scenario is played until what is measured agrees: a machine may have no room for five seconds, and a wrong
/// prediction is wrong each time.
const TRIES: usize = 3;

/// The reports of a scenario that was predicted and played in the lab, with goodput within five in a hundred.
async fn played(scenario: &str, arguments: &[&str]) -> [Value; 2] {
    let _turn = turn().await;
    let file = format!("{}/../../scenarios/lab/{scenario}.toml", env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for _ in 0..TRIES {
        let whole = run(&[&["load", &file, "--lab", "--predict", "--json"], arguments].concat()).json();
        let both = [0, 1].map(|index| whole["reports"][index].clone());
        // The same clients come at the same moments.
        assert_eq!(both[0]["offered"], both[1]["offered"]);
        let [predicted, measured] = [0, 1].map(|index| goodput(&both[index]));
        if (measured / predicted - 1.0).abs() <= 0.05 {
            return both;
        }
        found.push((predicted, measured, both[1]["sending"]["limited"].clone()));
    }
    panic!("{scenario}: predicted, measured, and what limited it: {found:?}");
}

fn goodput(report: &Value) -> f64 {
    report["goodput"].as_f64().unwrap()
}

#[tokio::test]
async fn a_burst() {
    let [_, measured] = played("burst", &[]).await;
    assert_eq!((&measured["goodput"], &measured["rejected"]["queue_full"]), (&24.into(), &76.into()));
}

/// With a gateway and with none: it is not the service alone that the prediction is about.
#[tokio::test]
async fn a_steady_overload() {
    let [_, with] = played("overload", &[]).await;
    let [_, without] = played("overload", &["--only", "no control"]).await;
    assert!(goodput(&without) < goodput(&with) / 1.5, "{without:#}");
}

#[tokio::test]
async fn a_drop_of_capacity() {
    played("capacity-drop", &[]).await;
}

#[tokio::test]
async fn a_stall_with_clients_who_try_again() {
    let both = played("stall", &[]).await;
    let [predicted, measured] =
        both.map(|report| report["attempts"].as_f64().unwrap() / report["offered"].as_f64().unwrap());
    assert!((predicted - measured).abs() < 0.15, "{predicted} {measured}");
}

/// What the scenarios themselves promise, in virtual time.
#[test]
fn the_scenarios_keep_their_promises() {
    for scenario in ["burst", "overload", "capacity-drop", "stall"] {
        let file = format!("{}/../../scenarios/lab/{scenario}.toml", env!("CARGO_MANIFEST_DIR"));
        let ran = run(&["simulate", &file]);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    }
}
