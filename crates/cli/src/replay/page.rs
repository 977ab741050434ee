//! The result as one HTML file: the page of every report, with what was logged and what is to be known in its text.

use std::path::Path;

use tidegate_workload::{MadeBy, Scenario, page};

use super::show::Shown;
use crate::exit::Failure;

/// Writes the page.
pub(crate) fn write(path: &Path, shown: &Shown<'_>) -> Result<(), Failure> {
    let mut story = vec![shown.scenario.story.clone(), shown.logged_in_words()];
    story.extend(shown.notes.iter().cloned());
    let scenario = Scenario { story: story.join("\n\n"), ..shown.scenario.clone() };
    let made_by = MadeBy { command: &command(std::env::args()), version: env!("CARGO_PKG_VERSION") };
    std::fs::write(path, page(&scenario, shown.reports, &made_by))
        .map_err(|error| Failure::runtime(format_args!("cannot write {}: {error}", path.display())))
}

/// What was typed, as a shell reads it.
fn command(words: impl Iterator<Item = String>) -> String {
    let quoted = |word: String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let words: Vec<String> = words.skip(1).map(quoted).collect();
    format!("tidegate {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_typed_again() {
        let words = ["/usr/bin/tidegate", "replay", "it's.log", "--log-format", "$a [$msec]", ""];
        let text = command(words.into_iter().map(str::to_owned));
        assert_eq!(text, r"tidegate replay 'it'\''s.log' --log-format '$a [$msec]' ''");
    }
}
