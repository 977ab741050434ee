//! The examples, run: each starts by itself, asks itself, and says what came of it. cargo builds them before this test.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;
use std::process::Command;

/// cargo puts examples next to the directory of the tests.
fn run(example: &str) -> String {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    path.set_file_name("examples");
    let output = Command::new(path.join(example)).output().unwrap_or_else(|error| {
        panic!(
            "{example}: {error}; `cargo test -p tidegate-tower` builds it, `--test examples` alone does not"
        )
    });
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{example}: {}", said(&output.stderr));
    said(&output.stdout)
}

#[track_caller]
fn number_before(text: &str, what: &str) -> u32 {
    let line =
        text.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("no {what:?} in:\n{text}"));
    let before = line.split(what).next().unwrap();
    before.split_whitespace().next_back().unwrap().parse().unwrap()
}

#[test]
fn axum_service() {
    let said = run("axum_service");
    // Thirty-two bots, of which thirty are within their quota.
    assert_eq!(number_before(&said, " × bot     429"), 2, "{said}");
    assert_eq!(number_before(&said, " × person  200"), 8, "{said}");
    assert!(said.ends_with("at most 4 at once; 0 in flight at the end\n"), "{said}");
}

#[test]
fn tonic_service() {
    let said = run("tonic_service");
    assert_eq!(number_before(&said, " × OK"), 4, "{said}");
    assert_eq!(number_before(&said, " × Unavailable"), 4, "{said}");
    assert_eq!(number_before(&said, " × ResourceExhausted"), 1, "{said}");
    assert!(said.ends_with("at most 2 at once; 0 in flight at the end\n"), "{said}");
}

#[test]
fn bulkhead() {
    let said = run("bulkhead");
    let checkout = said.lines().find(|line| line.starts_with("checkout")).unwrap();
    let reports = said.lines().find(|line| line.starts_with("reports")).unwrap();
    assert_eq!(number_before(checkout, " served"), 100, "{said}");
    assert_eq!(number_before(reports, " served") + number_before(reports, " refused"), 500, "{said}");
    assert!(number_before(reports, " refused") > 400, "{said}");
    assert!(said.ends_with("0 in flight at the end\n"), "{said}");
}
