//! House rule: what the formatter and the linter do not look at. Small files, small functions, an opening line that
//! says what a module is for, no loose ends.
//!
//! One file a kind of rule: [`text`] reads lines, [`tokens`] reads what the compiler reads. Each rule is tried on a
//! bad sample beside it, so that a rule that no longer bites is noticed.

mod allowed;
mod source;
mod text;
mod tokens;

use allowed::{ALLOWED, Allowance};
use source::{Finding, Source};

/// Everything wrong with one file.
fn findings(source: &Source, allowed: &[Allowance]) -> Vec<Finding> {
    let mut found = text::check(source);
    found.extend(tokens::check(source, allowed));
    found
}

#[test]
fn the_sources_are_tidy() -> anyhow::Result<()> {
    let sources = Source::all()?;
    // A walk that finds nothing would find nothing wrong.
    for expected in ["crates/engine/src/lib.rs", "xtask/tests/tidy/main.rs"] {
        assert!(sources.iter().any(|source| source.path == expected), "the walk missed {expected}");
    }
    let mut found: Vec<_> = sources.iter().flat_map(|source| findings(source, ALLOWED)).collect();
    found.extend(allowed::stale(ALLOWED, &sources));
    found.sort();
    let report: Vec<_> = found.iter().map(Finding::to_string).collect();
    assert!(found.is_empty(), "\n{}\n{} findings\n", report.join("\n"), found.len());
    Ok(())
}

/// Check a made-up file and compare what is found, as `line: what` up to the first colon, with what is expected.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    check_allowing(&[], text, expected);
}

#[track_caller]
fn check_allowing(allowed: &[Allowance], text: &str, expected: &[&str]) {
    let source = Source { path: "crates/x/src/y.rs".to_owned(), text: text.to_owned() };
    let mut found = findings(&source, allowed);
    found.sort();
    let shown: Vec<_> = found.iter().map(|finding| format!("{}: {}", finding.line, finding.what)).collect();
    assert_eq!(shown, expected);
}

#[test]
fn a_tidy_file_passes() {
    check("//! What it is for.\n\n/// One.\nfn one() {}\n", &[]);
}

#[test]
fn a_finding_says_where_what_and_what_to_do() {
    let source = Source { path: "crates/x/src/y.rs".to_owned(), text: "fn one() {}\n".to_owned() };
    let found: Vec<_> = findings(&source, &[]).iter().map(Finding::to_string).collect();
    assert_eq!(
        found,
        [
            "crates/x/src/y.rs:1: the file does not open with `//!`; say in a sentence what it is for and what it is not"
        ]
    );
}
