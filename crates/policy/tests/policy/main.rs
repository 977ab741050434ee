//! The policy file from outside: what is taken, what is refused and how, what is warned of.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod accepted;
mod examples;
mod generated;
mod lints;
mod order;
mod protection;
mod quick;
mod random;
mod refused;
mod settings;

use std::fmt::{Debug, Write as _};

use expect_test::Expect;
use tidegate_policy::{Policy, Style};

/// Every key that there is.
const FULL: &str = include_str!("full.toml");

/// The shortest policy.
const UPSTREAM: &str = "[[upstream]]\nname = \"orders\"\nendpoints = [\"http://127.0.0.1:8103\"]\n";

/// The text must be a policy without warnings; the part of it that matters is compared.
#[track_caller]
fn accept<T: Debug>(text: &str, part: impl Fn(&Policy) -> T, expect: Expect) {
    let parsed = Policy::parse(text, "policy.toml").unwrap_or_else(|errors| panic!("refused:\n{errors}"));
    assert!(parsed.lints.is_empty(), "{:#?}", parsed.lints);
    expect.assert_eq(&format!("{:#?}\n", part(&parsed.policy)));
}

/// The text must not be a policy; the whole answer is compared.
#[track_caller]
fn refuse(text: &str, expect: Expect) {
    let errors = Policy::parse(text, "policy.toml").expect_err("a problem must be found");
    expect.assert_eq(&errors.render(Style::Plain));
}

/// The text follows the shortest policy and must make it none; only the messages and what would be right are compared.
#[track_caller]
fn refuse_briefly(texts: &[&str], expect: Expect) {
    let mut answers = String::new();
    for text in texts {
        let Err(errors) = Policy::parse(&format!("{UPSTREAM}{text}"), "policy.toml") else {
            panic!("accepted: {text}")
        };
        let _ = writeln!(answers, "{}", text.trim().replace('\n', " / "));
        for problem in errors.problems() {
            let _ = writeln!(answers, "    {}", problem.message());
            if let Some(help) = problem.help() {
                let _ = writeln!(answers, "        {help}");
            }
        }
    }
    expect.assert_eq(&answers);
}

/// The text must be a policy; its warnings are compared.
#[track_caller]
fn warn(text: &str, expect: Expect) {
    let parsed = Policy::parse(text, "policy.toml").unwrap_or_else(|errors| panic!("refused:\n{errors}"));
    let warnings: Vec<String> = parsed.lints.iter().map(|lint| lint.render(Style::Plain)).collect();
    expect.assert_eq(&warnings.join("\n"));
}
