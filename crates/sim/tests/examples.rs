//! The example for whoever has a policy of their own, run: it plays, prints and says what came of it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::process::Command;

/// cargo builds examples before it runs tests, and puts them next to the directory of the tests.
#[test]
fn simulate_your_policy() {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.set_file_name("examples");
    let output = Command::new(path.join("simulate_your_policy")).output().unwrap_or_else(|error| {
        panic!("{error}; `cargo test -p tidegate-sim` builds it, `--test examples` alone does not")
    });
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("Half again as much"), "{said}");
    assert!(said.contains("Useful answers in a minute: "), "{said}");
}
