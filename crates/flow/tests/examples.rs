//! Runs the examples, and looks at what they count. What they measure is for whoever reads it, and not tested.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::process::Command;

/// Built into the folder that this test was built into, so that nothing is built twice.
fn run(example: &str) -> String {
    let this = std::env::current_exe().unwrap();
    let target = this.ancestors().nth(3).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "-p", "tidegate-flow", "--example", example, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The words of the line that begins with `start`, after it.
#[track_caller]
fn line<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(start));
    line.unwrap_or_else(|| panic!("no line `{start}` in:\n{text}")).split_whitespace().collect()
}

#[test]
fn slow_consumer() {
    let text = run("slow_consumer");
    assert_eq!(line(&text, "submit ")[4..], ["100", "0", "0..=99", "17"]);
    assert_eq!(line(&text, "offer, newest ")[4..], ["17", "83", "0..=16", "17"]);
    assert_eq!(line(&text, "offer, oldest ")[4..], ["17", "83", "83..=99", "17"]);
}

#[test]
fn ingestion() {
    let text = run("ingestion");
    let numbers = line(&text, "written ");
    let written: u32 = numbers[0].trim_end_matches(',').parse().unwrap();
    let refused: u32 = numbers[2].trim_end_matches(';').parse().unwrap();
    assert_eq!(written + refused, 3_000, "{text}");
    assert!(refused > 0, "the database never was too slow:\n{text}");
}
