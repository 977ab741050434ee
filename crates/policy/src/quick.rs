//! A policy without a file: one upstream, a few flags, defaults for the rest.
//!
//! The flags are written down as a policy file and read like any other, so that they mean the same, have the same
//! bounds and get the same answers when they are wrong.

use std::fmt::Write as _;

use crate::model::Policy;
use crate::problem::{Origin, PolicyErrors, Source};
use crate::{Parsed, read};

/// What `tidegate run --upstream URL` can be told, as it was typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuickStart {
    /// `--upstream`: `http://host:port`; without a port it is 80.
    pub upstream: String,
    /// `--limit`: a number, or `adaptive`.
    pub limit: Option<String>,
    /// `--queue`: how many may wait.
    pub queue: Option<String>,
    /// `--wait`: the wait budget, with a unit.
    pub wait: Option<String>,
    /// `--timeout`: how long the upstream may take, with a unit.
    pub timeout: Option<String>,
    /// `--listen`: an address and a port.
    pub listen: Option<String>,
    /// `--admin`: an address and a port.
    pub admin: Option<String>,
}

impl QuickStart {
    /// Only an upstream; everything else by default.
    #[must_use]
    pub fn new(upstream: impl Into<String>) -> Self {
        Self { upstream: upstream.into(), ..Self::default() }
    }

    /// The policy file that says the same, to go on from.
    #[must_use]
    pub fn to_toml(&self) -> String {
        self.lines().into_iter().fold(String::new(), |mut text, (_, line)| {
            text.push_str(&line);
            text.push('\n');
            text
        })
    }

    /// The lines of that file, each with the flag that it says.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        let mut table = |header: &str, keys: &[(&'static str, &str, Option<String>)]| {
            if let Some((first, ..)) = keys.iter().find(|(.., value)| value.is_some()) {
                lines.push((*first, header.to_owned()));
            }
            for (flag, key, value) in keys {
                if let Some(value) = value {
                    lines.push((*flag, format!("{key} = {value}")));
                }
            }
        };
        let text = |value: &Option<String>| value.as_deref().map(quoted);
        table(
            "[server]",
            &[("--listen", "listen", text(&self.listen)), ("--admin", "admin", text(&self.admin))],
        );
        table(
            "[[upstream]]",
            &[
                ("--upstream", "name", Some(quoted("upstream"))),
                ("--upstream", "endpoints", Some(format!("[{}]", quoted(&self.upstream)))),
                ("--timeout", "timeout", text(&self.timeout)),
            ],
        );
        table("[upstream.concurrency]", &[("--limit", "limit", self.limit.as_deref().map(number_or_quoted))]);
        table(
            "[upstream.queue]",
            &[
                ("--wait", "wait", text(&self.wait)),
                ("--queue", "capacity", self.queue.as_deref().map(number_or_quoted)),
            ],
        );
        lines
    }
}

impl Policy {
    /// The policy for one upstream without a file: every request goes to it, under an adaptive limit unless another
    /// is given.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, each problem with the [flag](crate::Problem::flag) that it is about.
    pub fn for_upstream(quick: &QuickStart) -> Result<Parsed, PolicyErrors> {
        let flags = quick.lines().into_iter().map(|(flag, _)| flag).collect();
        read::read(Source { origin: Origin::Flags(flags), text: quick.to_toml() })
    }
}

/// As a basic string of TOML, on one line whatever it holds.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            _ if character.is_control() => {
                // Writing to a string does not fail.
                let _ = write!(quoted, "\\u{:04X}", u32::from(character));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

fn number_or_quoted(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return quoted(text);
    }
    // TOML knows no leading zeros.
    let significant = digits.trim_start_matches('0');
    format!("{sign}{}", if significant.is_empty() { "0" } else { significant })
}
