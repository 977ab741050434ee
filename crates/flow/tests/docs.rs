//! The page `docs/flow.md` lists every rule of the specification once, each with a test that exists or a reason, and no test
//! of a rule is missing from it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../docs/flow.md");
const TESTS: &str = include_str!("rules.rs");

/// How many rules each section of the specification has.
const SECTIONS: [(u32, u32); 4] = [(1, 11), (2, 13), (3, 17), (4, 2)];

#[test]
fn every_rule_has_a_test_or_a_reason() {
    let rows: Vec<Vec<&str>> = PAGE
        .lines()
        .filter(|line| line.starts_with("| ") && line.as_bytes().get(2).is_some_and(u8::is_ascii_digit))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    let rules: Vec<String> = SECTIONS
        .iter()
        .flat_map(|(section, count)| (1..=*count).map(move |rule| format!("{section}.{rule}")))
        .collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), rules);

    let tests: BTreeSet<&str> = TESTS
        .lines()
        .filter_map(|line| line.trim_start_matches("async ").strip_prefix("fn ")?.split('(').next())
        .filter(|name| name.starts_with("rule_"))
        .collect();
    let mut named = BTreeSet::new();
    for row in &rows {
        let (section, rule) = row[0].split_once('.').unwrap();
        match row[2].strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
            Some(test) => {
                assert!(test.starts_with(&format!("rule_{section}_{rule:0>2}_")), "{row:?}");
                assert!(tests.contains(test), "no such test: {test}");
                named.insert(test);
            }
            None => assert!(row[2].starts_with("does not apply"), "neither a test nor a reason: {row:?}"),
        }
    }
    assert_eq!(named, tests);
}
