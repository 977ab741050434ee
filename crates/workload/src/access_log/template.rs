//! Lines made of fields with fixed texts between them: what nginx, Apache, Envoy and Traefik write.
//!
//! A field ends where the text after it begins. That text may also occur inside of the field, so a line is matched with
//! the first place, then the second and so on, until all fields are what their roles demand; the number of places that
//! are tried has a bound.

use std::ops::Range;

use super::draft::{Draft, bad};
use super::fault::{Fault, What};
use super::role::Role;
use super::stamp::Zone;
use super::value::{self, Escape};

/// The most parts of a format.
pub(crate) const PARTS_MAX: usize = 256;
/// So many places are tried for the ends of one line's fields.
const TRIES_MAX: u32 = 1_024;

/// The layout of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) parts: Vec<Part>,
    pub(crate) escape: Escape,
    /// Whether a line may have more fields than the layout knows, after a space.
    pub(crate) open_ended: bool,
}

/// A piece of a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text(Box<str>),
    Field(Field),
}

/// A field, and what it is if anybody wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: Box<str>,
    pub(crate) role: Meaning,
}

/// What the text of a field is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing.
    Ignored,
    One(Role),
    /// A host, and the path right behind it, as in nginx's `$host$request_uri`.
    HostAndTarget,
}

impl Template {
    /// Reads a line.
    pub(crate) fn read(&self, line: &str, zone: &Zone) -> Result<Draft, Fault> {
        let mut walk = Walk::new(self, line);
        if !walk.fits(0, 0) {
            return Err(walk.fault());
        }
        let mut draft = Draft::default();
        let fields = self.parts.iter().filter_map(|part| match part {
            Part::Field(field) => Some(field),
            Part::Text(_) => None,
        });
        for (field, span) in fields.zip(walk.spans) {
            let text = &line[span.clone()];
            field
                .set(&mut draft, text, self.escape, zone)
                .map_err(|kind| Fault::at(span.start, bad(&field.name, kind)))?;
        }
        Ok(draft)
    }

    /// How much of a line the layout explains, to tell a format from one that has the same beginning.
    pub(crate) fn weight(&self) -> usize {
        self.parts.len()
    }
}

impl Field {
    fn set(&self, draft: &mut Draft, text: &str, escape: Escape, zone: &Zone) -> Result<(), &'static str> {
        match self.role {
            Meaning::Ignored => Ok(()),
            // A quoted dash is a missing value, and stays one however the field is written.
            Meaning::One(role) => draft.set(role, &value::unescape(text, escape), zone),
            Meaning::HostAndTarget => {
                let text = value::unescape(text, escape);
                // Without a slash there is no path, and nginx wrote a dash for it.
                let without_path = || text.len() - usize::from(text.ends_with('-'));
                let end = text.find('/').unwrap_or_else(without_path);
                let (host, target) = text.split_at(end);
                draft.set(Role::Host, host, zone)?;
                draft.set(Role::Target, target, zone)
            }
        }
    }

    fn may_be(&self, text: &str) -> bool {
        match self.role {
            Meaning::One(role) => role.may_be(text),
            Meaning::Ignored | Meaning::HostAndTarget => true,
        }
    }

    fn kind(&self) -> &'static str {
        match self.role {
            Meaning::One(role) => role.kind(),
            Meaning::Ignored | Meaning::HostAndTarget => "a text",
        }
    }
}

/// One attempt after the other to lay the template over a line.
struct Walk<'a> {
    template: &'a Template,
    line: &'a str,
    spans: Vec<Range<usize>>,
    tries: u32,
    /// One more than the part of the fault below.
    depth: usize,
    /// The first fault of the last part that was reached: that earlier parts did not fit was part of the search.
    fault: Fault,
}

impl<'a> Walk<'a> {
    fn new(template: &'a Template, line: &'a str) -> Self {
        let fault = Fault::missing("text");
        Self { template, line, spans: Vec::new(), tries: 0, depth: 0, fault }
    }

    fn fault(self) -> Fault {
        if self.tries >= TRIES_MAX {
            Fault { what: What::Ambiguous(self.tries), ..self.fault }
        } else {
            self.fault
        }
    }

    fn note(&mut self, part: usize, at: usize, what: impl FnOnce() -> What) {
        if part >= self.depth {
            (self.depth, self.fault) = (part + 1, Fault::at(at, what()));
        }
    }

    /// Whether the parts from `part` on fit the line from byte `at` on. Goes as deep as there are parts.
    fn fits(&mut self, part: usize, at: usize) -> bool {
        let template = self.template;
        let rest = &self.line[at..];
        match template.parts.get(part) {
            None => {
                let done = rest.is_empty() || (template.open_ended && rest.starts_with(' '));
                if !done {
                    self.note(part, at, || What::Trailing);
                }
                done
            }
            Some(Part::Text(text)) if rest.starts_with(&**text) => self.fits(part + 1, at + text.len()),
            Some(Part::Text(text)) => {
                let same = rest.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
                self.note(part, at + same, || What::Expected(text[text.floor_char_boundary(same)..].into()));
                false
            }
            Some(Part::Field(field)) => self.field_fits(field, part, at),
        }
    }

    fn field_fits(&mut self, field: &Field, part: usize, at: usize) -> bool {
        let Some(Part::Text(after)) = self.template.parts.get(part + 1) else {
            return self.last_field_fits(field, part, at);
        };
        let mut from = at;
        while let Some(end) = self.find(after, from) {
            self.tries += 1;
            if self.tries >= TRIES_MAX {
                return false;
            }
            if field.may_be(&self.line[at..end]) {
                self.spans.push(at..end);
                if self.fits(part + 1, end) {
                    return true;
                }
                self.spans.pop();
            } else {
                self.note(part, at, || bad(&field.name, field.kind()));
            }
            from = end + 1;
            while !self.line.is_char_boundary(from) {
                from += 1;
            }
        }
        if from == at {
            self.note(part, at, || What::Missing(format!("{after:?} after {}", field.name).into()));
        }
        false
    }

    fn last_field_fits(&mut self, field: &Field, part: usize, at: usize) -> bool {
        let rest = &self.line[at..];
        let end = if self.template.open_ended { rest.find(' ').unwrap_or(rest.len()) } else { rest.len() };
        if !field.may_be(&rest[..end]) {
            self.note(part, at, || bad(&field.name, field.kind()));
            return false;
        }
        self.spans.push(at..at + end);
        self.fits(part + 1, at + end)
    }

    /// Where `text` begins, at or after byte `from`, and is not escaped.
    fn find(&self, text: &str, mut from: usize) -> Option<usize> {
        let escapes =
            matches!(self.template.escape, Escape::Backslash | Escape::Json) && text.starts_with('"');
        loop {
            let at = from + self.line.get(from..)?.find(text)?;
            let backslashes = self.line[..at].bytes().rev().take_while(|&byte| byte == b'\\').count();
            if !escapes || backslashes % 2 == 0 {
                return Some(at);
            }
            from = at + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, role: Option<Role>) -> Part {
        Part::Field(Field { name: name.into(), role: role.map_or(Meaning::Ignored, Meaning::One) })
    }

    fn template(open_ended: bool) -> Template {
        let text = |text: &str| Part::Text(text.into());
        let parts = vec![
            field("who", Some(Role::Client)),
            text(" \""),
            field("request", Some(Role::Request)),
            text("\" "),
            field("status", Some(Role::Status)),
        ];
        Template { parts, escape: Escape::None, open_ended }
    }

    fn fault(line: &str) -> String {
        let fault = template(false).read(line, &Zone::UTC).unwrap_err();
        super::super::fault::Unreadable::new(1, line, &fault).to_string()
    }

    #[test]
    fn a_field_may_have_the_text_that_ends_it() {
        let fits = |line| template(false).read(line, &Zone::UTC).is_ok();
        assert!(fits("me \"GET /\" x HTTP/1.1\" 200"));
        assert!(fits("me \"GET / HTTP/1.1\" 200"));
        assert!(!fits("me \"GET / HTTP/1.1\" 200 more"));
        assert!(template(true).read("me \"GET / HTTP/1.1\" 200 more", &Zone::UTC).is_ok());
    }

    #[test]
    fn the_fault_is_of_the_part_that_was_reached_last() {
        assert_eq!(fault("me"), "line 1, column 1: there is no \" \\\"\" after who, near `me`");
        assert_eq!(
            fault("me \"GET /\" 2oo"),
            "line 1, column 12: status is not a status, near `me \"GET /\" 2oo`"
        );
        assert_eq!(
            fault("me \"GET /"),
            "line 1, column 5: there is no \"\\\" \" after request, near `me \"GET /`"
        );
    }

    #[test]
    fn a_line_of_nothing_but_ends_is_given_up() {
        let line = " \"".repeat(3_000);
        assert!(fault(&line).contains("its fields cannot be told apart"), "{}", fault(&line));
    }
}
