//! One table of the file, read key by key with the help of the [key table](crate::keys).
//!
//! It sees to what holds for every key: is it known, is it of its type, is it within its bounds, what if it is left
//! out. It does not know what any key means.

use std::num::NonZeroU32;
use std::ops::Range;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Places;
use crate::keys::{self, Absent, Key, Kind, Shape};
use crate::problem::{Raw, Report};
use crate::values::{Wrong, nearest, show};

mod kind;
pub(crate) use kind::{
    AdaptiveOr, adaptive_or, choice, duration, factor, integer, one_of, rate, share, switch, text,
};

/// A table in the file, and where its header is; `None` for the file itself.
#[derive(Clone, Debug)]
pub(crate) struct Found<'d> {
    pub(crate) table: &'d DeTable<'d>,
    pub(crate) span: Option<Range<usize>>,
}

/// One table that is being read.
#[derive(Debug)]
pub(crate) struct Section<'r, 'd> {
    section: &'static keys::Section,
    index: usize,
    /// `None` if the file has no such table: then every key is left out.
    found: Option<Found<'d>>,
    report: &'r mut Report,
    places: &'r mut Places,
    /// One bit for each key of the section that was asked for.
    asked: u64,
    problems_before: usize,
}

impl<'r, 'd> Section<'r, 'd> {
    /// Begins to read a table, and reports what it should not contain. `index` tells apart those of a list.
    pub(crate) fn open(
        section: &'static keys::Section,
        index: usize,
        found: Option<Found<'d>>,
        report: &'r mut Report,
        places: &'r mut Places,
    ) -> Self {
        let problems_before = report.count();
        if let Some(span) = found.as_ref().and_then(|found| found.span.clone()) {
            places.keys.insert((section.path, index, ""), span);
        }
        places.opened.push((section, index));
        let mut this = Self { section, index, found, report, places, asked: 0, problems_before };
        this.refuse_unknown();
        this
    }

    /// Ends the reading. Here a key that is in the table and that nobody reads shows up.
    pub(crate) fn close(self) {
        debug_assert_eq!(
            self.asked.count_ones() as usize,
            self.section.keys.len(),
            "every key of {} in the table is read",
            self.section.header()
        );
    }

    /// Whether nothing is wrong with the section so far: only then do its values say anything about each other.
    pub(crate) fn is_sound(&self) -> bool {
        self.report.count() == self.problems_before
    }

    /// Whether the table has this key or inner table, right or wrong.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// A key that has a default.
    pub(crate) fn value<T>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&Key, &DeValue<'_>) -> Result<T, Wrong>,
    ) -> T {
        let key = self.key(name);
        if let Some(value) = self.given(key, &parse) {
            return value;
        }
        let Absent::Default(default) = key.absent else { unreachable!("`{name}` has no default") };
        let value = DeValue::parse(default).ok().and_then(|value| parse(key, value.get_ref()).ok());
        value.expect("a default in the table is a value that its own reader takes")
    }

    /// A key that may be left out.
    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&Key, &DeValue<'_>) -> Result<T, Wrong>,
    ) -> Option<T> {
        let key = self.key(name);
        debug_assert!(matches!(key.absent, Absent::Means(_)), "`{name}` may be left out");
        self.given(key, &parse)
    }

    /// A key that must be given. `None` after a problem was reported.
    pub(crate) fn required<T>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&Key, &DeValue<'_>) -> Result<T, Wrong>,
    ) -> Option<T> {
        let key = self.key(name);
        debug_assert_eq!(key.absent, Absent::Required, "`{name}` is required");
        if self.entry(name).is_none() {
            self.missing_key(key);
        }
        self.given(key, &parse)
    }

    /// A whole number that its bounds keep above 0.
    pub(crate) fn count(&mut self, name: &'static str) -> NonZeroU32 {
        nonzero(self.value(name, integer))
    }

    pub(crate) fn duration(&mut self, name: &'static str) -> Duration {
        self.value(name, duration)
    }

    /// A list of strings, each of which is read and reported upon by itself. A list that must not be empty and is
    /// left out is reported, and comes back empty.
    pub(crate) fn list<T: PartialEq>(
        &mut self,
        name: &'static str,
        parse: fn(&str) -> Result<T, Wrong>,
    ) -> Vec<T> {
        let key = self.key(name);
        let Kind::List { of, min, max } = key.kind else { unreachable!("`{name}` is a list") };
        let Some((_, value)) = self.entry(name) else {
            if key.absent == Absent::Required {
                self.missing_key(key);
            }
            return Vec::new();
        };
        self.places.keys.insert((self.section.path, self.index, key.name), value.span());
        let DeValue::Array(elements) = value.get_ref() else {
            let wrong =
                kind::mismatch(&format!("a list of strings ({}) is needed", of.says()), value.get_ref());
            self.refuse(key, value.span(), wrong);
            return Vec::new();
        };
        if elements.len() < min || elements.len() > max {
            let message = format!("a list of {} where {} are allowed", elements.len(), key.kind.bounds());
            self.refuse(key, value.span(), Wrong::new(message, ""));
        }
        let mut list = Vec::new();
        for element in elements.iter().take(max) {
            match text(element.get_ref()).and_then(parse) {
                Ok(item) if list.contains(&item) => {
                    self.refuse(key, element.span(), Wrong::new("this is in the list twice", "leave it out"));
                }
                Ok(item) => list.push(item),
                Err(wrong) => self.refuse(key, element.span(), wrong),
            }
        }
        list
    }

    /// The table `[name]` within this one.
    pub(crate) fn child(&mut self, section: &'static keys::Section) -> Option<Found<'d>> {
        debug_assert_eq!(section.shape, Shape::One, "a list of tables is read by `children`");
        let (_, value) = self.entry(section.name)?;
        if let DeValue::Table(table) = value.get_ref() {
            return Some(Found { table, span: Some(value.span()) });
        }
        let help = format!("write {} on a line of its own, and its keys below", section.header());
        self.misshapen(section, value, &help);
        None
    }

    /// The tables `[[name]]` within this one.
    pub(crate) fn children(&mut self, section: &'static keys::Section) -> Vec<Found<'d>> {
        let Shape::Many { max } = section.shape else { unreachable!("a single table is read by `child`") };
        let Some((_, value)) = self.entry(section.name) else { return Vec::new() };
        let help = format!("write {} with two brackets, once for each", section.header());
        let DeValue::Array(elements) = value.get_ref() else {
            self.misshapen(section, value, &help);
            return Vec::new();
        };
        if let Some(excess) = elements.get(max) {
            let message = format!("more than {max} of {}", section.header());
            self.push(Some(excess.span()), None, Wrong::new(message, ""));
        }
        let mut tables = Vec::new();
        for element in elements.iter().take(max) {
            match element.get_ref() {
                DeValue::Table(table) => tables.push(Found { table, span: Some(element.span()) }),
                _ => self.misshapen(section, element, &help),
            }
        }
        tables
    }

    /// Reports what two keys say of each other, at one of them.
    pub(crate) fn contradiction(
        &mut self,
        name: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let span = self.entry(name).map(|(_, value)| value.span()).or_else(|| self.header());
        self.push(span, Some(name), Wrong::new(message, help));
    }

    /// Reports what is not there, at the header.
    pub(crate) fn missing(&mut self, message: impl Into<String>, help: impl Into<String>) {
        self.push(self.header(), None, Wrong::new(message, help));
    }

    fn missing_key(&mut self, key: &Key) {
        let message = format!("`{}` is missing in {}", key.name, self.section.header());
        self.missing(message, format!("add `{}`. {}", key.name, key.doc));
    }

    fn header(&self) -> Option<Range<usize>> {
        self.found.as_ref().and_then(|found| found.span.clone())
    }

    fn entry(&self, name: &str) -> Option<(Range<usize>, &'d Spanned<DeValue<'d>>)> {
        let (key, value) = self.found.as_ref()?.table.get_key_value(name)?;
        Some((key.span(), value))
    }

    /// Looks the key up in the table, which must know it.
    fn key(&mut self, name: &'static str) -> &'static Key {
        let Some((bit, key)) = self.section.key(name) else {
            unreachable!("`{name}` of {} is missing from the key table", self.section.header())
        };
        self.asked |= 1 << bit;
        key
    }

    fn given<T>(
        &mut self,
        key: &'static Key,
        parse: impl Fn(&Key, &DeValue<'_>) -> Result<T, Wrong>,
    ) -> Option<T> {
        let (_, value) = self.entry(key.name)?;
        self.places.keys.insert((self.section.path, self.index, key.name), value.span());
        parse(key, value.get_ref()).map_err(|wrong| self.refuse(key, value.span(), wrong)).ok()
    }

    fn refuse_unknown(&mut self) {
        let Some(found) = self.found.clone() else { return };
        for name in found.table.keys() {
            let known = self.section.names().any(|known| known == name.get_ref());
            if known {
                continue;
            }
            let shown = show(name.get_ref());
            let wrong = if let Some(later) =
                self.section.not_yet.iter().find(|later| *later == name.get_ref())
            {
                Wrong::not_yet(&format!("`{later}`"), "remove it; it would not be in force")
            } else {
                let near = nearest(name.get_ref(), self.section.names());
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known are {}", list_of(self.section.names())),
                };
                let place =
                    if self.section.path.is_empty() { "a policy".to_owned() } else { self.section.header() };
                Wrong::new(format!("`{shown}` is not known in {place}"), help)
            };
            self.push(Some(name.span()), None, wrong);
        }
    }

    fn misshapen(&mut self, section: &keys::Section, value: &Spanned<DeValue<'_>>, help: &str) {
        let needed = match section.shape {
            Shape::One => format!("`{}` is a table", section.name),
            Shape::Many { .. } => format!("`{}` is a list of tables", section.name),
        };
        self.push(
            Some(value.span()),
            None,
            Wrong::new(kind::mismatch(&needed, value.get_ref()).message, help),
        );
    }

    fn refuse(&mut self, key: &'static Key, span: Range<usize>, wrong: Wrong) {
        self.push(Some(span), Some(key.name), wrong);
    }

    fn push(&mut self, span: Option<Range<usize>>, subject: Option<&'static str>, wrong: Wrong) {
        self.report.push(Raw { span, subject, message: wrong.message, help: wrong.help });
    }
}

/// For numbers whose bounds in the table begin at 1.
pub(crate) fn nonzero(number: u32) -> NonZeroU32 {
    debug_assert!(number > 0, "the bounds of a count begin at 1");
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

fn list_of(names: impl Iterator<Item = &'static str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
