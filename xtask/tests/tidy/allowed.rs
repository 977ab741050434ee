//! The functions that may be longer than the rule says, each with its reason.
//!
//! A ratchet: an entry allows the length it names and no more, and one that is no longer needed has to go.

use crate::source::{Finding, Source};
use crate::tokens::{FUNCTION_LINES_MAX, Function, functions};

/// One function that may be longer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// The file, from the root of the repository.
    pub(crate) path: &'static str,
    /// The function's name.
    pub(crate) function: &'static str,
    /// How long it may be.
    pub(crate) lines: usize,
    /// Why it reads better in one piece.
    pub(crate) reason: &'static str,
}

impl Allowance {
    /// Whether this is the entry for `function` of the file `path`, at its present length.
    pub(crate) fn covers(&self, path: &str, function: &Function) -> bool {
        self.path == path && self.function == function.name && function.lines <= self.lines
    }
}

/// All of them.
pub(crate) const ALLOWED: &[Allowance] = &[];

/// Entries without a reason, and entries that allow more than is needed by now.
pub(crate) fn stale(allowed: &[Allowance], sources: &[Source]) -> Vec<Finding> {
    let list = Source { path: "xtask/tests/tidy/allowed.rs".to_owned(), text: String::new() };
    let mut found = Vec::new();
    for entry in allowed {
        let Allowance { path, function, lines, reason } = entry;
        if reason.trim().is_empty() {
            found.push(list.finding(
                1,
                format!("`{function}` of {path} has no reason"),
                "say why it stays whole",
            ));
        }
        let longest = sources
            .iter()
            .filter(|source| source.path == *path)
            .flat_map(functions)
            .filter(|candidate| candidate.name == *function)
            .map(|candidate| candidate.lines)
            .max();
        match longest {
            Some(longest) if longest == *lines && longest > FUNCTION_LINES_MAX => {}
            Some(longest) if longest <= FUNCTION_LINES_MAX => {
                found.push(list.finding(
                    1,
                    format!("`{function}` of {path} fits the rule"),
                    "remove its entry",
                ));
            }
            Some(longest) if longest < *lines => {
                let what = format!("`{function}` of {path} has only {longest} lines by now");
                found.push(list.finding(1, what, "lower its entry to that"));
            }
            // Longer than allowed: the rule itself reports the function where it stands.
            Some(_) => {}
            None => found.push(list.finding(
                1,
                format!("{path} has no function `{function}`"),
                "remove its entry",
            )),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_stale(lines: usize, allowance: Allowance, expected: &[&str]) {
        let text = format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2));
        let found = stale(&[allowance], &[Source { path: "a.rs".to_owned(), text }]);
        let shown: Vec<_> = found.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_entry_has_to_be_needed_exact_and_reasoned() {
        let entry = Allowance { path: "a.rs", function: "long", lines: 80, reason: "a test" };
        check_stale(80, entry, &[]);
        check_stale(79, entry, &["`long` of a.rs has only 79 lines by now"]);
        check_stale(70, entry, &["`long` of a.rs fits the rule"]);
        check_stale(80, Allowance { reason: " ", ..entry }, &["`long` of a.rs has no reason"]);
        check_stale(80, Allowance { function: "gone", ..entry }, &["a.rs has no function `gone`"]);
    }
}
