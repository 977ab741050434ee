//! One spelling for each path, so that a rule cannot be walked round by spelling it another way.
//!
//! `/api`, `//api`, `/./api`, `/%61pi` and `/x/../api` name the same thing (RFC 3986 section 6.2.2), and many
//! upstreams treat them so. The path is brought into one form, routes and rules see that form, and the upstream is
//! sent that form too: what was matched is what is asked for. Escapes that change the structure of a path when an
//! upstream decodes them late (`%2F`, `%5C`, `%00`) are kept as they are or refused.

use std::borrow::Cow;

/// Why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadPath {
    /// A `%` that is not followed by two hexadecimal digits.
    Escape,
    /// A control character, a backslash, or an escape of one.
    Character,
    /// More `..` than there are segments.
    AboveRoot,
    /// It does not begin with `/`.
    NotAbsolute,
    /// A segment that is nothing, `.` or `..` but for its parameters: whoever drops those sees another path.
    Parameters,
}

impl BadPath {
    pub(crate) const fn message(self) -> &'static str {
        match self {
            Self::Escape => "the path has a % that is not followed by two hexadecimal digits",
            Self::Character => "the path has a control character or a backslash",
            Self::AboveRoot => "the path leads above its root",
            Self::NotAbsolute => "the path does not begin with a slash",
            Self::Parameters => "a segment of the path has parameters and no name",
        }
    }
}

/// The one spelling of `path`. Borrowed if it was spelled so already, which costs one pass over it.
pub(crate) fn normalize(path: &str) -> Result<Cow<'_, str>, BadPath> {
    if !path.starts_with('/') {
        return Err(BadPath::NotAbsolute);
    }
    let path = if needs_work(path.as_bytes())? {
        Cow::Owned(resolve_dots(&unescape(path)?)?)
    } else {
        Cow::Borrowed(path)
    };
    let is_nameless = |segment: &str| matches!(segment.split_once(';'), Some(("" | "." | "..", _)));
    if path.contains(';') && path.split('/').any(is_nameless) {
        return Err(BadPath::Parameters);
    }
    Ok(path)
}

/// The path as rules see it: without the parameters of its segments (`/api;v=1/x` is under `/api`), which some
/// upstreams ignore when they route. They are forwarded all the same.
pub(crate) fn without_parameters(path: &str) -> Cow<'_, str> {
    if !path.contains(';') {
        return Cow::Borrowed(path);
    }
    let bare = |segment: &str| segment.split(';').next().unwrap_or_default().to_string();
    Cow::Owned(path.split('/').map(bare).collect::<Vec<_>>().join("/"))
}

fn needs_work(path: &[u8]) -> Result<bool, BadPath> {
    let mut before = 0;
    let mut work = false;
    for &byte in path {
        match byte {
            b'%' => work = true,
            b'/' | b'.' if before == b'/' => work = true,
            b'\\' | 0..=0x20 | 0x7f => return Err(BadPath::Character),
            _ => work |= !stands_as_it_is(byte),
        }
        before = byte;
    }
    Ok(work)
}

/// Whether a path may have this character as it is (RFC 3986 section 3.3). All others are escaped, as rules have them.
fn stands_as_it_is(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte)
}

fn push_escaped(out: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

fn push_raw(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if stands_as_it_is(byte) { out.push(char::from(byte)) } else { push_escaped(out, byte) }
    }
}

/// Decodes escapes of unreserved characters (RFC 3986 section 6.2.2.2), writes the others in upper case, and escapes
/// what should have been.
fn unescape(path: &str) -> Result<String, BadPath> {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        push_raw(&mut out, before);
        let digits = after.get(..2).ok_or(BadPath::Escape)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(BadPath::Escape);
        }
        let byte = u8::from_str_radix(digits, 16).map_err(|_| BadPath::Escape)?;
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            b'\\' | 0..=0x1f | 0x7f => return Err(BadPath::Character),
            _ => push_escaped(&mut out, byte),
        }
        rest = after.get(2..).unwrap_or_default();
    }
    push_raw(&mut out, rest);
    Ok(out)
}

/// Removes `.` and `..` segments (RFC 3986 section 5.2.4) and empty ones.
fn resolve_dots(path: &str) -> Result<String, BadPath> {
    let mut segments: Vec<&str> = Vec::new();
    let mut ends_with_slash = false;
    for segment in path.split('/').skip(1) {
        ends_with_slash = matches!(segment, "" | "." | "..");
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop().ok_or(BadPath::AboveRoot)?;
            }
            segment => segments.push(segment),
        }
    }
    let mut out = String::with_capacity(path.len());
    for segment in &segments {
        out.push('/');
        out.push_str(segment);
    }
    if ends_with_slash || segments.is_empty() {
        out.push('/');
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(path: &str, expect: &str) {
        assert_eq!(normalize(path).as_deref(), Ok(expect), "{path}");
    }

    #[test]
    fn many_spellings_are_one() {
        for path in
            ["/api", "//api", "/./api", "/%61pi", "/x/../api", "///x//..//api", "/%2e/api", "/x/%2E%2e/api"]
        {
            check(path, "/api");
        }
        check("/api/", "/api/");
        check("/api//", "/api/");
        check("/api/.", "/api/");
        check("/api/x/..", "/api/");
        check("/a%2fb%3f", "/a%2Fb%3F");
        check("/ümlaut", "/%C3%BCmlaut");
        check("/{\"id\"}", "/%7B%22id%22%7D");
        check("/", "/");
        check("//", "/");
        check("/..a/...", "/..a/...");
        check("/a;b=1/c", "/a;b=1/c");
        assert_eq!(without_parameters("/a;b=1/c;d"), "/a/c");
    }

    #[test]
    fn what_cannot_be_trusted_is_refused() {
        assert_eq!(normalize("/../etc"), Err(BadPath::AboveRoot));
        assert_eq!(normalize("/%2e%2e/etc"), Err(BadPath::AboveRoot));
        assert_eq!(normalize("/%zz"), Err(BadPath::Escape));
        assert_eq!(normalize("/%+1"), Err(BadPath::Escape));
        assert_eq!(normalize("/%"), Err(BadPath::Escape));
        assert_eq!(normalize("/%é"), Err(BadPath::Escape));
        assert_eq!(normalize("/%00"), Err(BadPath::Character));
        assert_eq!(normalize("/a\\b"), Err(BadPath::Character));
        assert_eq!(normalize("/%5cb"), Err(BadPath::Character));
        assert_eq!(normalize("*"), Err(BadPath::NotAbsolute));
        // Tomcat and its kin drop the parameters, and only then resolve the dots.
        for path in ["/public/..;/checkout", "/;x/api", "/.;/api", "/%2e%2e;a=1/api"] {
            assert_eq!(normalize(path), Err(BadPath::Parameters), "{path}");
        }
    }

    proptest! {
        /// The one spelling is the spelling of itself, whatever comes, and nothing panics.
        #[test]
        fn normalizing_twice_changes_nothing(path in "(/|\\.|%2e|%2F|%41|a|;|\\PC){0,12}") {
            if let Ok(once) = normalize(&path) {
                let twice = normalize(&once);
                prop_assert_eq!(twice.as_deref(), Ok(&*once));
                prop_assert!(!once.contains("//") && !once.contains("/../") && !once.contains("/./"));
            }
        }
    }
}
