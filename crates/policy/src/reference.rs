//! The reference page of the policy file, in Markdown. It comes from the [key table](crate::keys) and the lints.

use std::fmt::Write as _;

use crate::keys::{Absent, Key, ROOT, Section, Shape};
use crate::lint::LintCode;

const INTRODUCTION: &str = "\
# The policy file

<!-- Generated from the key table of tidegate-policy. Do not edit. -->

A policy is a TOML file. A key that is not on this page is an error, and so is a value out of its bounds: `tidegate
check FILE` reports everything that is wrong, with the line, and warns of what is unwise. `tidegate schema` prints a
JSON schema for editors.

- A **duration** is a string with a unit, `us`, `ms`, `s`, `m` or `h`: `\"500ms\"`, `\"1.5s\"`, `\"2m\"`.
- A **rate** is a count and a period, `s`, `min`, `h` or `day`: `\"10/s\"`, `\"600/min\"`, `\"5/10s\"`.
- A bare number where a unit is needed is an error. Nothing means \"unlimited\".
";

/// The reference page of the policy file, in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for inner in ROOT.inner {
        section(&mut page, inner);
    }
    page.push_str("\n## Warnings\n\n| code | what it warns of |\n|---|---|\n");
    for code in LintCode::ALL {
        // Writing to a string does not fail.
        let _ = writeln!(page, "| {} | {} |", code.as_str(), code.summary());
    }
    page
}

fn section(page: &mut String, section: &Section) {
    let _ = writeln!(page, "\n## `{}`\n\n{}", section.header(), section.doc);
    if let Shape::Many { max } = section.shape {
        let _ = writeln!(page, "At most {max}.");
    }
    page.push_str("\n| key | type | default | bounds | |\n|---|---|---|---|---|\n");
    for key in section.keys {
        row(page, key);
    }
    for inner in section.inner {
        self::section(page, inner);
    }
}

fn row(page: &mut String, key: &Key) {
    let absent = match key.absent {
        Absent::Required => "required".to_owned(),
        Absent::Default(default) => format!("`{default}`"),
        Absent::Means(means) => means.to_owned(),
    };
    let _ = writeln!(
        page,
        "| `{}` | {} | {absent} | {} | {} |",
        key.name,
        key.kind.says(),
        key.kind.bounds(),
        key.doc
    );
}
