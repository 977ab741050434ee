//! Nothing that a file can hold makes the reader panic.

use proptest::prelude::*;
use tidegate_policy::{Policy, QuickStart, Style, schema};

use crate::FULL;

/// Reads, and renders whatever comes of it.
fn exercise(text: &str) {
    match Policy::parse(text, "policy.toml") {
        Ok(parsed) => parsed.lints.iter().for_each(|lint| assert!(!lint.render(Style::Colour).is_empty())),
        Err(errors) => {
            assert!(!errors.problems().is_empty());
            assert!(!errors.render(Style::Plain).is_empty());
        }
    }
}

/// A value of TOML, right for some key and wrong for most.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i128>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:?}").to_lowercase()),
        proptest::string::string_regex("\"[0-9.]{0,12}(us|ms|s|m|h|/s|/min|/[0-9]{0,20}d)\"").unwrap(),
        proptest::string::string_regex(
            "\"(http://|/|header:|[0-9]{1,3}\\.)[^\"\\\\\u{0}-\u{1f}\u{7f}]{0,12}\""
        )
        .unwrap(),
        Just("[]".to_owned()),
        Just("[\"/x\", 1, [], {}]".to_owned()),
        Just("{ wait = 1, capacity = [] }".to_owned()),
        Just("true".to_owned()),
        Just("1979-05-27T07:32:00Z".to_owned()),
        Just("\"adaptive\"".to_owned()),
        Just("0".to_owned()),
        Just("nan".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        exercise(&text);
    }

    #[test]
    fn text_made_of_toml(text in "([a-z]{1,3}|[\\[\\]{}=.,\"'#\\\\\n\r\té🌊 0-9_+:-]){0,80}") {
        exercise(&text);
    }

    #[test]
    fn a_piece_of_a_policy_replaced(at in 0..FULL.len(), length in 0_usize..40, new in "\\PC{0,10}") {
        let start = FULL.floor_char_boundary(at);
        let end = FULL.floor_char_boundary((at + length).min(FULL.len()));
        exercise(&format!("{}{new}{}", &FULL[..start], &FULL[end..]));
    }

    #[test]
    fn values_of_a_policy_replaced(changes in prop::collection::vec((any::<prop::sample::Index>(), value()), 1..6)) {
        let mut lines: Vec<String> = FULL.lines().map(str::to_owned).collect();
        for (index, value) in changes {
            let line = index.index(lines.len());
            if let Some((key, _)) = lines[line].clone().split_once(" = ") {
                lines[line] = format!("{key} = {value}");
            }
        }
        exercise(&lines.join("\n"));
    }

    #[test]
    fn lines_of_a_policy_shuffled(order in Just(FULL.lines().collect::<Vec<_>>()).prop_shuffle(), left in 0_usize..80) {
        exercise(&order[..left.min(order.len())].join("\r\n"));
    }

    #[test]
    fn any_flags(upstream in "\\PC{0,30}", limit in "\\PC{0,8}", wait in any::<String>()) {
        let quick = QuickStart { limit: Some(limit), wait: Some(wait), ..QuickStart::new(upstream) };
        if let Err(errors) = Policy::for_upstream(&quick) {
            // Text that had escaped from its quotes would show as broken TOML.
            let broken = errors.problems().iter().any(|problem| problem.message().contains("not TOML"));
            prop_assert!(!broken, "{}", errors);
        }
    }
}

#[test]
fn tables_nested_beyond_any_bound() {
    exercise(&format!("x = {}", "[".repeat(100_000)));
    exercise(&format!("{} = 1", vec!["a"; 10_000].join(".")));
    exercise(&"[a]\n".repeat(50_000));
    assert!(schema().is_object());
}
