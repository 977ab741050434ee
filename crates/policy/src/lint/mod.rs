//! Lints: what a policy may say and is hardly meant, or does not do what it seems to.
//!
//! A lint warns only of what follows from the policy alone. What depends on how long the upstream really takes is
//! for the simulator and the live metrics.

mod code;
pub use code::LintCode;

mod order;
mod protection;
mod route;
mod server;
mod upstream;

use std::ops::Range;
use std::sync::Arc;

use crate::keys::Section;
use crate::model::Policy;
use crate::problem::{PROBLEMS_MAX, Problem, Raw, Source, Style};
use crate::read::Places;

/// A warning: its code, where, what, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lint {
    code: LintCode,
    problem: Problem,
}

impl Lint {
    /// Which lint it is.
    #[must_use]
    pub fn code(&self) -> LintCode {
        self.code
    }

    /// Where and what.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The warning as text for a reader: the message, the line with a caret, the help. Ends with a newline.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        self.problem.render(style)
    }
}

/// All warnings about a policy, in the order of the file; at most a hundred.
pub(crate) fn lint(policy: &Policy, places: &Places, source: &Arc<Source>) -> Vec<Lint> {
    let mut lints = Lints { places, found: Vec::new() };
    server::check(policy, &mut lints);
    upstream::check(policy, &mut lints);
    route::check(policy, &mut lints);
    protection::check(policy, &mut lints);
    order::check(policy, &mut lints);
    let mut found = lints.found;
    found.sort_by_key(|(code, raw)| (raw.span.as_ref().map(|span| span.start), *code));
    found.truncate(PROBLEMS_MAX);
    let place =
        |(code, raw): (LintCode, Raw)| Lint { code, problem: Problem::new(source, raw, Some(code.as_str())) };
    found.into_iter().map(place).collect()
}

/// The warnings found so far, and where the keys stand.
#[derive(Debug)]
struct Lints<'p> {
    places: &'p Places,
    found: Vec<(LintCode, Raw)>,
}

impl Lints<'_> {
    /// Warns at a key, or at the header of its section if the key was left out.
    fn warn(&mut self, code: LintCode, at: At, message: impl Into<String>, help: impl Into<String>) {
        let span = self.given(at).or_else(|| self.places.header(at.section, at.index));
        self.found
            .push((code, Raw { span, subject: Some(at.key), message: message.into(), help: help.into() }));
    }

    /// Where the key was given, if it was.
    fn given(&self, at: At) -> Option<Range<usize>> {
        self.places.of(at.section, at.index, at.key)
    }
}

/// A key of the policy: `key` in the section, or in that number of a list of them.
#[derive(Clone, Copy, Debug)]
struct At {
    section: &'static Section,
    index: usize,
    key: &'static str,
}
