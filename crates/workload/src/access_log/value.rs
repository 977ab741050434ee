//! Values as logs write them: durations in four units, counts, statuses, request lines, escapes.
//!
//! Everything here comes from outside: it saturates where it is too large, and is `None` where it is no such value.

use std::borrow::Cow;
use std::time::Duration;

/// What a number of a duration counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Millis,
    Micros,
    Nanos,
}

impl Unit {
    pub(crate) const fn nanos(self) -> u64 {
        match self {
            Self::Seconds => 1_000_000_000,
            Self::Millis => 1_000_000,
            Self::Micros => 1_000,
            Self::Nanos => 1,
        }
    }

    /// Reads `s`, `ms`, `us` or `ns`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "s" => Self::Seconds,
            "ms" => Self::Millis,
            "us" | "µs" => Self::Micros,
            "ns" => Self::Nanos,
            _ => return None,
        })
    }
}

/// A duration that a log may leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// `-`, nothing, or a negative number: the phase was not reached.
    Absent,
    Took(Duration),
}

/// Reads a number of `unit`. `None` if it is neither a number nor absent.
pub(crate) fn timer(text: &str, unit: Unit) -> Option<Timer> {
    if is_absent(text) {
        return Some(Timer::Absent);
    }
    // HAProxy marks a total with `+` that was logged before the end (`option logasap`).
    let text = text.strip_prefix('+').unwrap_or(text);
    if let Some(rest) = text.strip_prefix('-') {
        return decimal(rest, unit.nanos()).map(|_| Timer::Absent);
    }
    decimal(text, unit.nanos()).map(|nanos| Timer::Took(Duration::from_nanos(nanos)))
}

/// `-`, nothing, or JSON's null.
pub(crate) fn is_absent(text: &str) -> bool {
    matches!(text, "" | "-" | "null")
}

/// A decimal number of units, in nanoseconds.
fn decimal(text: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !plain(whole) || !plain(fraction) {
        return scientific(text, unit);
    }
    let whole: u64 = whole.parse().unwrap_or(u64::MAX);
    let billionths = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    let billionths = billionths.fold(0, |sum: u64, digit| sum * 10 + u64::from(digit - b'0'));
    let rest = u128::from(billionths) * u128::from(unit) / 1_000_000_000;
    Some(whole.saturating_mul(unit).saturating_add(u64::try_from(rest).unwrap_or(u64::MAX)))
}

/// JSON writers spell small numbers `4.5e-05`.
fn scientific(text: &str, unit: u64) -> Option<u64> {
    let first = text.bytes().next()?;
    if !first.is_ascii_digit() || !text.contains(['e', 'E']) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    // A float that is too large becomes the largest number.
    number.is_finite().then_some((number * unit as f64) as u64)
}

/// A number of bytes or attempts. `None` if it is neither a number nor absent.
pub(crate) fn count(text: &str) -> Option<Option<u64>> {
    if is_absent(text) {
        return Some(None);
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((!negative).then(|| digits.parse().unwrap_or(u64::MAX)))
}

/// A status; `0`, `000` and `-1` stand for none. `None` if it is no status.
pub(crate) fn status(text: &str) -> Option<Option<u16>> {
    match text {
        "" | "-" | "0" | "000" | "-1" | "null" => Some(None),
        _ if text.len() == 3 => match text.parse() {
            Ok(status @ 100..=999) => Some(Some(status)),
            _ => None,
        },
        _ => None,
    }
}

/// A request line: what was asked, as far as it can be made out. Junk, such as a TLS greeting to a plain port, has no
/// part at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestLine<'a> {
    pub(crate) method: Option<&'a str>,
    pub(crate) target: Option<&'a str>,
}

/// Reads `GET /path?query HTTP/1.1`; a version may be missing, and a target may have spaces.
pub(crate) fn request_line(text: &str) -> RequestLine<'_> {
    let Some((method, rest)) = text.split_once(' ') else { return RequestLine::default() };
    if !is_method(method) {
        return RequestLine::default();
    }
    let target = match rest.rsplit_once(' ') {
        Some((target, version)) if version.starts_with("HTTP/") || version == "-" => target,
        _ => rest,
    };
    RequestLine { method: Some(method), target: Some(target.trim()).filter(|target| !is_absent(target)) }
}

/// Whether this may be a method: letters, and what WebDAV puts between them.
pub(crate) fn is_method(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphabetic() || byte == b'-' || byte == b'_';
    (1..=32).contains(&text.len()) && text.bytes().all(fits) && text != "-"
}

/// The host and the path of a request target: `/path?query`, `http://host:port/path`, `host:port` or `*`.
pub(crate) fn target(text: &str) -> (Option<&str>, &str) {
    let end = text.find(['?', '#']).unwrap_or(text.len());
    let text = &text[..end];
    let Some((scheme, rest)) = text.split_once("://") else { return (None, text) };
    if scheme.starts_with('/') {
        return (None, text);
    }
    let path_at = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(path_at);
    (Some(host), if path.is_empty() { "/" } else { path })
}

/// An address without its port: `[::1]:80`, `127.0.0.1:80`, `::1`.
pub(crate) fn without_port(text: &str) -> &str {
    if let Some(rest) = text.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') && port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => text,
    }
}

/// How a log writes what would end a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// Not at all.
    None,
    /// `\xHH`, `\"` and the like: nginx and Apache.
    Backslash,
    /// As in JSON.
    Json,
    /// `#HH`: HAProxy.
    Hash,
}

/// Undoes the escapes of `text`. What is no escape stays as it is.
pub(crate) fn unescape(text: &str, escape: Escape) -> Cow<'_, str> {
    let marker = match escape {
        Escape::None => return Cow::Borrowed(text),
        Escape::Backslash | Escape::Json => b'\\',
        Escape::Hash => b'#',
    };
    if !text.as_bytes().contains(&marker) {
        return Cow::Borrowed(text);
    }
    if escape == Escape::Json {
        // Whoever wrote it had a JSON writer, so a JSON reader undoes it.
        return serde_json::from_str(&format!("\"{text}\"")).map_or(Cow::Borrowed(text), Cow::Owned);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let (pushed, used) = if byte == marker { escaped(after, escape) } else { (byte, 0) };
        out.push(pushed);
        rest = &after[used..];
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

/// What the escape that begins before `after` stands for, and how many bytes more it has.
fn escaped(after: &[u8], escape: Escape) -> (u8, usize) {
    let hex = |digits: &[u8]| {
        let digits = std::str::from_utf8(digits).ok()?;
        let plain = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        plain.then(|| u8::from_str_radix(digits, 16).ok())?
    };
    match (escape, after) {
        (Escape::Hash, _) => after.get(..2).and_then(hex).map_or((b'#', 0), |byte| (byte, 2)),
        (_, [b'x', ..]) => after.get(1..3).and_then(hex).map_or((b'\\', 0), |byte| (byte, 3)),
        (_, [b'n', ..]) => (b'\n', 1),
        (_, [b't', ..]) => (b'\t', 1),
        (_, [b'r', ..]) => (b'\r', 1),
        (_, [quoted @ (b'"' | b'\\' | b'\''), ..]) => (*quoted, 1),
        _ => (b'\\', 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_have_units_and_may_be_absent() {
        let took = |nanos| Some(Timer::Took(Duration::from_nanos(nanos)));
        assert_eq!(timer("0.250", Unit::Seconds), took(250_000_000));
        assert_eq!(timer("12", Unit::Millis), took(12_000_000));
        assert_eq!(timer("+12", Unit::Millis), took(12_000_000));
        assert_eq!(timer("1.5", Unit::Micros), took(1_500));
        assert_eq!(timer("4.5e-05", Unit::Seconds), took(45_000));
        assert_eq!(timer("99999999999999999999", Unit::Seconds), took(u64::MAX));
        assert_eq!(timer("1e300", Unit::Seconds), took(u64::MAX));
        for absent in ["", "-", "-1", "-0.5", "null"] {
            assert_eq!(timer(absent, Unit::Seconds), Some(Timer::Absent), "{absent}");
        }
        for wrong in ["x", "1x", "1.x", ".5", "--1", "NaN", "inf", "1e", "1 2"] {
            assert_eq!(timer(wrong, Unit::Seconds), None, "{wrong}");
        }
    }

    #[test]
    fn request_lines_and_targets_come_apart() {
        let read = |text| {
            let line = request_line(text);
            (line.method, line.target.map(target))
        };
        assert_eq!(read("GET /a?b=/c HTTP/1.1"), (Some("GET"), Some((None, "/a"))));
        assert_eq!(read("GET /a b c HTTP/2.0"), (Some("GET"), Some((None, "/a b c"))));
        assert_eq!(read("GET /"), (Some("GET"), Some((None, "/"))));
        assert_eq!(read("OPTIONS * HTTP/1.1"), (Some("OPTIONS"), Some((None, "*"))));
        assert_eq!(
            read("POST https://shop.test:443 HTTP/1.1"),
            (Some("POST"), Some((Some("shop.test:443"), "/")))
        );
        assert_eq!(read("GET /?u=http://x/ HTTP/1.1"), (Some("GET"), Some((None, "/"))));
        for junk in ["", "-", "\x16\x03\x01", "\\x16\\x03 x", "<BADREQ>", "- - -"] {
            assert_eq!(read(junk), (None, None), "{junk}");
        }
    }

    #[test]
    fn addresses_lose_their_ports() {
        for (text, expected) in
            [("127.0.0.1:80", "127.0.0.1"), ("[::1]:80", "::1"), ("::1", "::1"), ("127.0.0.1", "127.0.0.1")]
        {
            assert_eq!(without_port(text), expected);
        }
    }

    #[test]
    fn escapes_are_undone_and_half_ones_stay() {
        assert_eq!(unescape(r#"a\x22b\"c\\d\x4"#, Escape::Backslash), r#"a"b"c\d\x4"#);
        assert_eq!(unescape(r"\u00e9\/", Escape::Json), "é/");
        assert_eq!(unescape(r"\u00", Escape::Json), r"\u00");
        assert_eq!(unescape("a#22b#zz#", Escape::Hash), "a\"b#zz#");
        assert_eq!(unescape("a\\x22#22", Escape::None), "a\\x22#22");
        assert_eq!(unescape("\\xC3\\xA9\\xFF", Escape::Backslash), "é\u{fffd}");
    }
}
