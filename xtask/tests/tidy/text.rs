//! Rules that need only the lines of a file: its length, its opening, its white space, its loose ends.
//!
//! What depends on the language's structure is in [`tokens`](crate::tokens).

use crate::source::{Finding, Source};

/// The longest a file may be.
const LINES_MAX: usize = 600;

/// Words that mark something unfinished. Put together here, because this file is checked too.
const LOOSE_ENDS: &[&str] = &[
    concat!("todo", "!"),
    concat!("unimplemented", "!"),
    concat!("dbg", "!"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Everything wrong with the lines of `source`.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(opening(source));
    found.extend(length(source));
    for (index, line) in source.text.lines().enumerate() {
        let line_number = index + 1;
        found.extend(white_space(source, line_number, line));
        found.extend(loose_ends(source, line_number, line));
    }
    found
}

fn opening(source: &Source) -> Option<Finding> {
    let opens_well = source.text.starts_with("//!");
    (!opens_well).then(|| {
        source.finding(
            1,
            "the file does not open with `//!`",
            "say in a sentence what it is for and what it is not",
        )
    })
}

fn length(source: &Source) -> Option<Finding> {
    let lines = source.text.lines().count();
    (lines > LINES_MAX).then(|| {
        source.finding(
            LINES_MAX + 1,
            format!("the file has {lines} lines (at most {LINES_MAX})"),
            "find its second subject and give it a module",
        )
    })
}

fn white_space(source: &Source, number: usize, line: &str) -> Option<Finding> {
    if line.contains('\t') {
        return Some(source.finding(number, "a tab", "indent with spaces; in a string write \\t"));
    }
    (line.trim_end() != line)
        .then(|| source.finding(number, "white space at the end of the line", "remove it"))
}

fn loose_ends<'a>(
    source: &'a Source,
    number: usize,
    line: &'a str,
) -> impl Iterator<Item = Finding> + use<'a> {
    LOOSE_ENDS.iter().filter(move |word| has_word(line, word)).map(move |word| {
        source.finding(number, format!("`{word}`"), "finish it, or say in a sentence why it is as it is")
    })
}

/// Whether `line` has `word` with nothing joined to either end of it.
fn has_word(line: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        // A macro's name ends with `!`, to which its arguments may be joined.
        !before.is_some_and(joins) && (word.ends_with('!') || !after.is_some_and(joins))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;

    #[test]
    fn a_file_has_to_open_with_its_purpose() {
        check("use std::fmt;\n", &["1: the file does not open with `//!`"]);
        check("// A comment is not enough.\n", &["1: the file does not open with `//!`"]);
        check("\n//! Too late.\n", &["1: the file does not open with `//!`"]);
    }

    #[test]
    fn a_file_may_have_600_lines_and_not_one_more() {
        check(&("//! Long.\n".to_owned() + &"// A line.\n".repeat(599)), &[]);
        check(
            &("//! Long.\n".to_owned() + &"// A line.\n".repeat(600)),
            &["601: the file has 601 lines (at most 600)"],
        );
    }

    #[test]
    fn tabs_and_white_space_at_the_end_are_found() {
        check("//! Tab.\n\tfn one() {}\n", &["2: a tab"]);
        check("//! End. \nfn one() {}\n", &["1: white space at the end of the line"]);
    }

    #[test]
    fn every_loose_end_is_found() {
        for word in LOOSE_ENDS {
            check(&format!("//! Unfinished.\n\n// {word}(later)\n"), &[&format!("3: `{word}`")]);
        }
    }

    #[test]
    fn a_loose_end_inside_another_word_is_none() {
        for word in LOOSE_ENDS {
            check(&format!("//! A{word}\n"), &[]);
        }
        check(concat!("//! RUSTSEC-2026-XX", "XX, FIX", "MENT.\n"), &[]);
    }
}
