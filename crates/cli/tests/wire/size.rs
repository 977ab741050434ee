//! `size`: every answer with its arithmetic, for readers and for programs, and never a line that a policy refuses.

use serde_json::Value;
use tidegate_policy::Policy;

use crate::ran::{Ran, run};

fn size(arguments: &str) -> Ran {
    run(&["size"].into_iter().chain(arguments.split_whitespace()).collect::<Vec<_>>())
}

fn json(arguments: &str) -> Value {
    size(&format!("{arguments} --json")).json()
}

/// Each line of this text is in the answer, as a line without the spaces around it and between columns.
#[track_caller]
fn says(arguments: &str, lines: &[&str]) {
    let ran = size(arguments);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let found: Vec<String> =
        ran.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in lines {
        assert!(found.iter().any(|found| found == line), "{line}\nis not in\n{}", ran.out);
    }
}

/// Article 000: Q ≤ W · B / S with the numbers put in; queues of 8 and 64 as it measured them.
#[test]
fn the_first_articles_arithmetic() {
    says(
        "--workers 4 --service-time 200ms --wait 500ms",
        &[
            "it can answer W / S = 4 / 200ms = 20 a second",
            "longest queue Q ≤ W · B / S = 4 · 500ms / 200ms = 10",
            "the last one waits Q · S / W = 10 · 200ms / 4 = 500ms",
        ],
    );
    says(
        "--workers 4 --service-time 200ms --queue 8 --burst 50",
        &[
            "of a burst are served min(N, W + Q) = min(50, 4 + 8) = 12",
            "and refused N − served = 50 − 12 = 38",
            "the last is answered after ⌈served / W⌉ · S = 3 · 200ms = 600ms",
        ],
    );
    let value = json("--workers 4 --service-time 200ms --queue 64 --burst 50");
    assert_eq!((&value["burst_refused"], &value["burst_answered_ms"]), (&0.into(), &2_600.0.into()));
}

/// Article 003: 100 a second, 150 come; a queue of 100 is a second of waiting and is full after two.
#[test]
fn the_other_articles_arithmetic() {
    says(
        "--workers 10 --service-time 100ms --queue 100 --rate 150/s",
        &[
            "the last one waits Q · S / W = 100 · 100ms / 10 = 1s",
            "utilisation λ · S / W = 150/s · 100ms / 10 = 150 %",
            "too many λ − W / S = 150/s − 100/s = 50 a second",
            "the queue is full after Q / (λ − W / S) = 100 / 50/s = 2s",
        ],
    );
    says(
        "--workers 10 --service-time 100ms --queue 3000 --rate 60/s --burst 110",
        &["the queue has drained after (served − W) / (W / S − λ) = 100 / (100/s − 60/s) = 2.5s"],
    );
    let value = json("--workers 10 --service-time 100ms --wait 2s --rate 6000/min");
    assert_eq!((&value["capacity"], &value["utilisation"]), (&200.into(), &1.0.into()));
}

/// A chain: each hop with its part of the one deadline.
#[test]
fn a_chain_under_one_deadline() {
    says(
        "--deadline 1s --hop 4x200ms --hop 10x20ms",
        &[
            "left to wait D − ΣS = 1s − 220ms = 780ms",
            "at each hop B = (D − ΣS) / n = 780ms / 2 = 390ms",
            "hop 1: capacity = 7 W · B / S = 4 · 390ms / 200ms = 7",
            "hop 2 is told 410ms and may take 410ms of it: 390ms to wait, 20ms to work (41 %)",
        ],
    );
    let value = json("--deadline 1s --hop 4x200ms --hop 10x20ms");
    assert_eq!((&value["per_second"], &value["hops"][1]["capacity"]), (&20.0.into(), &195.into()));
}

/// A program gets what was asked, what came out and how.
#[test]
fn json_has_inputs_results_and_formulas() {
    let value = json("--workers 4 --service-time 200ms --wait 500ms");
    assert_eq!(
        value["inputs"],
        serde_json::json!({ "workers": 4, "service_time_ms": 200.0, "wait_ms": 500.0 })
    );
    assert_eq!((&value["capacity"], &value["longest_wait_ms"]), (&10.into(), &500.0.into()));
    assert_eq!(
        value["steps"][1],
        serde_json::json!({
            "what": "longest queue", "formula": "Q ≤ W · B / S", "numbers": "4 · 500ms / 200ms", "result": "10",
        })
    );
}

/// Found by hand: a capacity of 2⁶⁴ was printed, which no policy file takes. Whatever is asked, the lines to paste are
/// a policy.
#[test]
fn the_lines_to_paste_are_a_policy() {
    for arguments in [
        "--workers 4 --service-time 200ms --wait 500ms",
        "--workers 4 --service-time 200ms --queue 46",
        "--workers 4 --service-time 200ms --wait 0s",
        "--workers 1 --service-time 1s --wait 10ms",
        "--workers 3 --service-time 7us --queue 1",
        "--workers 4294967295 --service-time 0.001us --queue 1",
        "--workers 4294967295 --service-time 1us --wait 100h",
        "--workers 4294967295 --service-time 100h --queue 4294967295",
        "--workers 1 --service-time 1us --wait 1h --rate 1/h --burst 4294967295",
        "--deadline 1s --hop 3x200ms",
        "--deadline 1000h --hop 4294967295x1us",
    ] {
        let value = json(arguments);
        let lines = value["policy"].as_str().unwrap();
        let text = format!("[[upstream]]\nname = \"a\"\nendpoints = [\"http://127.0.0.1:1\"]\n{lines}");
        let parsed = Policy::parse(&text, "pasted");
        assert!(parsed.is_ok(), "{arguments}\n{text}\n{:?}", parsed.err());
        let capacity = value["capacity"].as_u64().or_else(|| value["hops"][0]["capacity"].as_u64());
        assert!(capacity.is_none_or(|capacity| capacity <= 100_000), "{arguments}: {capacity:?}");
    }
    let clamped = size("--workers 4294967295 --service-time 1us --wait 1h").out;
    assert!(
        clamped.starts_with("capacity = 100000\n") && clamped.contains("takes at most 100000 places"),
        "{clamped}"
    );
}

/// What cannot be answered is said in words.
#[test]
fn what_cannot_be_answered() {
    for (arguments, code, message) in [
        ("--workers 4 --service-time 0s --wait 1s", 1, "a service time of zero needs no queue"),
        ("--deadline 200ms --hop 4x200ms", 1, "leaves no time to wait anywhere"),
        ("--deadline 1s --hop 4x0s", 1, "hop 1 has a service time of zero"),
        ("--workers 4 --service-time 200ms", 2, "--wait"),
        ("--workers 4 --service-time 200ms --wait 1s --rate 150", 2, "write a rate as"),
        ("--workers 4 --service-time 200ms --wait 1s --burst 0", 2, "0 is not in"),
        ("--deadline 1s --hop 4", 2, "write a hop as"),
        ("--deadline 1s --hop 4x200ms --rate 1/s", 2, "cannot be used with"),
    ] {
        let ran = size(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{arguments}: {}", ran.err);
        assert!(ran.err.contains(message), "{arguments}: {}", ran.err);
    }
}
