//! What a policy says, key by key, and where each value comes from: for whoever wonders why the gateway does what it does.
//!
//! It is made of what was read, after nothing was found wrong with it, and decides nothing. Values are shown as TOML; what
//! they mean is in the [`Policy`](crate::Policy).

use crate::keys::{Absent, Key, ROOT, Section, Shape};
use crate::problem::{Origin, Source};
use crate::read::Places;

/// One key of a section of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The section as it stands in the file, such as `[[upstream]]`.
    pub section: String,
    /// Which of the sections of this name: the name of the upstream, class, tenant or rate limit, or the path of the
    /// route. Empty where there is only one.
    pub of: String,
    /// The key.
    pub key: &'static str,
    /// Its value as TOML; for a key that was left out and has no default, what that means, in words.
    pub value: String,
    /// Where the value comes from.
    pub from: ValueSource,
    /// What the key is for.
    pub doc: &'static str,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// This line of a file.
    Line {
        /// The name of the file.
        file: String,
        /// The line, from 1.
        line: usize,
    },
    /// This flag of the command line.
    Flag(&'static str),
    /// This variable of the environment.
    Environment(&'static str),
    /// Somebody has set it while the gateway ran; the next reload of the policy ends that.
    Operator,
    /// Nobody has said anything, and this is the default.
    Default,
    /// Nobody has said anything, and no single value says what that means.
    LeftOut,
}

/// What one key says, found by the name that it has in the file; used where a flag goes before what is written.
pub fn set_by_flag(settings: &mut [Setting], section: &str, key: &str, value: &str, flag: &'static str) {
    for setting in settings.iter_mut().filter(|it| it.section == section && it.key == key) {
        value.clone_into(&mut setting.value);
        setting.from = ValueSource::Flag(flag);
    }
}

/// The same of a variable of the environment. A section that nobody has written is there from now on, as it is by default.
pub fn set_by_environment(
    settings: &mut Vec<Setting>,
    section: &str,
    key: &str,
    value: &str,
    variable: &'static str,
) {
    if !settings.iter().any(|it| it.section == section) {
        settings.extend(by_default(section));
    }
    for setting in settings.iter_mut().filter(|it| it.section == section && it.key == key) {
        value.clone_into(&mut setting.value);
        setting.from = ValueSource::Environment(variable);
    }
}

/// What a section says of which nothing is written, found by the name that it has in the file.
fn by_default(section: &str) -> Vec<Setting> {
    let outer = ROOT.inner.iter();
    let found =
        outer.flat_map(|outer| [outer].into_iter().chain(outer.inner)).find(|it| it.header() == section);
    let keys = found.map_or(&[][..], |section| section.keys).iter();
    let one = |key: &Key| {
        let (value, from) = match key.absent {
            Absent::Default(default) => (default, ValueSource::Default),
            Absent::Means(words) => (words, ValueSource::LeftOut),
            Absent::Required => return None,
        };
        let (section, of, value) = (section.to_owned(), String::new(), value.to_owned());
        Some(Setting { section, of, key: key.name, value, from, doc: key.doc })
    };
    keys.filter_map(one).collect()
}

/// Every key of every section that was read, in the order of reading.
pub(crate) fn settings(source: &Source, places: &Places) -> Vec<Setting> {
    let lines = Lines::of(&source.text);
    let value = |section: &Section, index: usize, key: &'static str| {
        let span = places.of(section, index, key)?;
        Some((source.text.get(span.clone())?, lines.line(span.start)))
    };
    let mut all = Vec::new();
    for (section, index) in places.opened() {
        let of = name_of(section).and_then(|(section, key)| value(section, *index, key));
        let of = of.map_or("", |(text, _)| text.trim_matches('"')).to_owned();
        for key in section.keys {
            let (value, from) = match (value(section, *index, key.name), key.absent) {
                (Some((text, line)), _) => (one_line(text), source_of(source, line)),
                (None, Absent::Default(default)) => (default.to_owned(), ValueSource::Default),
                (None, Absent::Means(words)) => (words.to_owned(), ValueSource::LeftOut),
                // Then there is no policy.
                (None, Absent::Required) => continue,
            };
            all.push(Setting {
                section: section.header(),
                of: of.clone(),
                key: key.name,
                value,
                from,
                doc: key.doc,
            });
        }
    }
    all
}

/// The section and the key that tell those of one name apart; those within an upstream have its number.
fn name_of(section: &'static Section) -> Option<(&'static Section, &'static str)> {
    match (section.path.split_once('.'), section.shape) {
        (Some((outer, _)), _) => {
            let outer = ROOT.inner.iter().find(|it| it.name == outer)?;
            Some((outer, "name"))
        }
        (None, Shape::Many { .. }) => {
            let key = section.keys.iter().find(|key| matches!(key.name, "name" | "path"))?;
            Some((section, key.name))
        }
        (None, Shape::One) => None,
    }
}

fn source_of(source: &Source, line: usize) -> ValueSource {
    match &source.origin {
        Origin::File(file) => ValueSource::Line { file: file.clone(), line },
        Origin::Flags(flags) => {
            flags.get(line - 1).map_or(ValueSource::Default, |flag| ValueSource::Flag(flag))
        }
    }
}

/// A list may stand on many lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where lines begin, since a file may have as many keys as lines.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self([0].into_iter().chain(ends).collect())
    }

    /// From 1.
    fn line(&self, at: usize) -> usize {
        self.0.partition_point(|start| *start <= at)
    }
}
