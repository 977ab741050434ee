//! Why a line could not be read: as its reader states it, and as a person sees it.
//!
//! A log has addresses of people in it, and reports are passed on. So what is quoted of a line is a few words round
//! the place, with everything that looks like an address hidden.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// So many characters before and after the place are quoted.
const QUOTED: usize = 24;
/// So many characters of a first line are quoted.
const QUOTED_LINE: usize = 160;

/// What is wrong with a line, and at which byte if that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: Option<usize>,
    pub(crate) what: What,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The text of the format itself, which has to stand here.
    Expected(Box<str>),
    /// The field is not of its kind.
    Bad {
        field: Box<str>,
        kind: &'static str,
    },
    /// The line does not have this.
    Missing(Box<str>),
    NotJson(&'static str),
    /// It is JSON, and not an object.
    NotObject,
    /// A quoted field that does not end.
    OpenQuote,
    /// So many choices of where fields end were tried.
    Ambiguous(u32),
    TooLong {
        bytes: u64,
        most: usize,
    },
    /// Text after the last field.
    Trailing,
}

impl Fault {
    pub(crate) const fn at(at: usize, what: What) -> Self {
        Self { at: Some(at), what }
    }

    pub(crate) const fn somewhere(what: What) -> Self {
        Self { at: None, what }
    }

    pub(crate) fn missing(name: &str) -> Self {
        Self::somewhere(What::Missing(name.into()))
    }

    /// The fault of a part of a line that begins `by` bytes later in the whole.
    pub(crate) fn moved(self, by: usize) -> Self {
        Self { at: self.at.map(|at| at + by), ..self }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expected(text) => write!(f, "expected {text:?}"),
            Self::Bad { field, kind } => write!(f, "{field} is not {kind}"),
            Self::Missing(name) => write!(f, "there is no {name}"),
            Self::NotJson(why) => f.write_str(why),
            Self::NotObject => f.write_str("it is JSON, but not an object"),
            Self::OpenQuote => f.write_str("a quoted field does not end on this line"),
            Self::Ambiguous(tries) => write!(f, "its fields cannot be told apart ({tries} ways were tried)"),
            Self::TooLong { bytes, most } => {
                write!(f, "it has {bytes} bytes, and at most {most} are read")
            }
            Self::Trailing => f.write_str("there is text after the last field"),
        }
    }
}

/// A line that could not be read. It shows no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Which line, from 1.
    pub line: u64,
    /// Where on it, in characters from 1, if that is known.
    pub column: Option<usize>,
    /// Why, as half a sentence.
    pub reason: String,
    /// The words round the column; empty if that is unknown.
    pub near: String,
}

impl Unreadable {
    pub(crate) fn new(line: u64, text: &str, fault: &Fault) -> Self {
        let at = fault.at.map(|at| text.floor_char_boundary(at));
        let column = at.map(|at| text[..at].chars().count() + 1);
        let near = at.map_or_else(String::new, |at| near(text, at));
        Self { line, column, reason: fault.what.to_string(), near }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        write!(f, ": {}", self.reason)?;
        if self.near.is_empty() { Ok(()) } else { write!(f, ", near `{}`", self.near) }
    }
}

/// The start of a line, for a message.
pub(crate) fn shown(text: &str) -> String {
    excerpt(text, 0..text.char_indices().nth(QUOTED_LINE).map_or(text.len(), |(at, _)| at))
}

fn near(text: &str, at: usize) -> String {
    let before = text[..at].char_indices().rev().take(QUOTED).last().map_or(at, |(start, _)| start);
    let after = text[at..].char_indices().nth(QUOTED).map_or(text.len(), |(end, _)| at + end);
    excerpt(text, before..after)
}

/// A part of a line, printable and without addresses. Addresses are looked for in the whole line, so that none is
/// missed for being cut in two.
fn excerpt(text: &str, part: Range<usize>) -> String {
    let mut out = String::new();
    if part.start > 0 {
        out.push('…');
    }
    let mut at = part.start;
    for hidden in addresses(text) {
        if hidden.end <= at || hidden.start >= part.end {
            continue;
        }
        push_printable(&mut out, &text[at..hidden.start.max(at)]);
        out.push_str("<address>");
        at = hidden.end;
    }
    push_printable(&mut out, text.get(at..part.end).unwrap_or_default());
    if part.end < text.len() {
        out.push('…');
    }
    out
}

fn push_printable(out: &mut String, text: &str) {
    for c in text.chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
}

/// Where something stands that looks like an address: four numbers with dots, or hexadecimal digits with colons.
fn addresses(text: &str) -> impl Iterator<Item = Range<usize>> {
    let part_of_one = |c: char| c.is_ascii_hexdigit() || c == '.' || c == ':';
    let mut from = 0;
    std::iter::from_fn(move || {
        while let Some(start) = text[from..].find(part_of_one).map(|at| from + at) {
            let length = text[start..].find(|c| !part_of_one(c)).unwrap_or(text.len() - start);
            from = start + length;
            if let Some(inner) = address(&text[start..from]) {
                return Some(start + inner.start..start + inner.end);
            }
        }
        None
    })
}

/// The address in a run of hexadecimal digits, dots and colons, such as `127.0.0.1:80` or `::1`.
fn address(run: &str) -> Option<Range<usize>> {
    let trimmed = run.trim_end_matches(['.', ':']);
    let is_v6 = |text: &str| text.parse::<Ipv6Addr>().is_ok();
    if is_v6(run) || is_v6(trimmed) {
        return Some(0..run.len());
    }
    if let Some((host, _)) = run.rsplit_once(':')
        && is_v6(host)
    {
        return Some(0..host.len());
    }
    // A piece between colons may be an IPv4 address, with hexadecimal letters glued to it by no means.
    let mut start = 0;
    for piece in run.split(':') {
        if piece.trim_end_matches('.').parse::<Ipv4Addr>().is_ok() {
            return Some(start..start + piece.len());
        }
        start += piece.len() + 1;
    }
    // Not well-formed, and yet enough of one to tell who it is.
    let dots = run.bytes().filter(|&byte| byte == b'.').count();
    let colons = run.bytes().filter(|&byte| byte == b':').count();
    (dots >= 3 || colons >= 5 || run.contains("::")).then_some(0..run.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hidden_and_times_are_not() {
        let cases = [
            ("127.0.0.1 - -", "<address> - -"),
            ("127.0.0.1:8080 x", "<address>:8080 x"),
            ("[::1]:80", "[<address>]:80"),
            ("2001:db8::7 GET", "<address> GET"),
            ("x=fe80::1%eth0", "x=<address>%eth0"),
            ("999.1.2.3.4", "<address>"),
            ("at 10:20:30.123 and 06/Feb/2009:12:14:14.655", "at 10:20:30.123 and 06/Feb/2009:12:14:14.655"),
            ("1.2.3", "1.2.3"),
            ("a\tb\u{7}", "a\\tb\\u{7}"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn an_address_cut_by_the_excerpt_is_still_hidden() {
        let text = format!("{}203.0.113.77{}", "y ".repeat(12), " z".repeat(30));
        for at in 0..text.len() {
            let near = near(&text, at);
            assert!(!near.contains("113"), "{near}");
        }
    }

    #[test]
    fn columns_count_characters() {
        let fault = Fault::at(3, What::Trailing);
        let unreadable = Unreadable::new(7, "éé!", &fault);
        assert_eq!(
            unreadable.to_string(),
            "line 7, column 2: there is text after the last field, near `éé!`"
        );
    }
}
