//! Path patterns: the very path, or everything under one. How they are written and what they cover.
//!
//! No wildcards inside, no regular expressions: which of two routes wins must be visible at a glance.

use std::fmt;

use crate::model::PathPattern;
use crate::values::{Wrong, show};

/// The longest pattern, in bytes.
const LENGTH_MAX: usize = 1_024;

impl PathPattern {
    /// Whether the pattern covers this path (without the query).
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        match self {
            Self::Exact(exact) => path == exact,
            Self::Under(prefix) => path
                .strip_prefix(prefix.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        }
    }

    /// Whether every path of the other pattern is also one of this.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(_), Self::Under(_)) => false,
            (_, Self::Exact(path) | Self::Under(path)) => self.matches(path),
        }
    }

    /// Whether some path is covered by both. Patterns nest or are apart, they never cross.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.covers(other) || other.covers(self)
    }

    pub(crate) fn parse(text: &str) -> Result<Self, Wrong> {
        if !text.starts_with('/') {
            return Err(Wrong::new("a path begins with `/`", format!("write \"/{}\"", show(text))));
        }
        if text.len() > LENGTH_MAX {
            return Err(Wrong::new(format!("longer than {LENGTH_MAX} bytes"), ""));
        }
        if let Some(prefix) = text.strip_suffix("/*") {
            check_segments(prefix)?;
            return Ok(Self::Under(prefix.to_owned()));
        }
        check_segments(text)?;
        Ok(Self::Exact(text.to_owned()))
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(path) => f.write_str(path),
            Self::Under(prefix) => write!(f, "{prefix}/*"),
        }
    }
}

/// Only the spelling that a normalised request path has is taken: any other would never match.
fn check_segments(path: &str) -> Result<(), Wrong> {
    if path.contains("//") {
        return Err(Wrong::new("an empty segment (`//`) never matches", "write one `/`"));
    }
    for segment in path.split('/') {
        if segment == "." || segment == ".." {
            return Err(Wrong::new(
                format!("the segment `{segment}` never matches"),
                "write the path that it stands for",
            ));
        }
        if segment.contains('*') {
            return Err(Wrong::new(
                "`*` can only be the last segment, alone",
                "write \"/x/*\" for everything under /x; \"/*\" for every path",
            ));
        }
        check_characters(segment)?;
    }
    Ok(())
}

fn check_characters(segment: &str) -> Result<(), Wrong> {
    let bytes = segment.as_bytes();
    let mut at = 0;
    while let Some(character) = segment.get(at..).and_then(|rest| rest.chars().next()) {
        match character {
            '%' => {
                check_escape(bytes.get(at + 1..at + 3).unwrap_or_default())?;
                at += 3;
                continue;
            }
            // Paths are matched without the parameters of their segments, which some upstreams ignore when they route.
            '?' | '#' | ';' => {
                return Err(Wrong::new(
                    format!("what follows `{character}` is not matched"),
                    format!("leave out what begins with `{character}`"),
                ));
            }
            '\\' | '\0'..='\x1f' | '\x7f' => {
                return Err(Wrong::new(
                    format!("a request with {character:?} in its path is refused"),
                    "leave it out",
                ));
            }
            _ if is_plain(character) => {}
            _ => {
                let mut buffer = [0; 4];
                let escaped: String =
                    character.encode_utf8(&mut buffer).bytes().map(|byte| format!("%{byte:02X}")).collect();
                return Err(Wrong::new(
                    format!("{character:?} cannot stand in a path as it is"),
                    format!("write it as {escaped}"),
                ));
            }
        }
        at += character.len_utf8();
    }
    Ok(())
}

/// RFC 3986, section 6.2.2: the normal form has escapes in upper case, and none for unreserved characters.
fn check_escape(digits: &[u8]) -> Result<(), Wrong> {
    let text = std::str::from_utf8(digits).unwrap_or_default();
    let value = (text.len() == 2).then(|| u8::from_str_radix(text, 16).ok()).flatten();
    // `from_str_radix` takes a sign, an escape does not.
    let Some(value) = value.filter(|_| digits[0].is_ascii_hexdigit()) else {
        return Err(Wrong::new(
            "`%` must be followed by two hexadecimal digits",
            "write `%25` for a percent sign",
        ));
    };
    let character = char::from(value);
    if character == '\\' || character.is_ascii_control() {
        return Err(Wrong::new(format!("a request with `%{text}` in its path is refused"), "leave it out"));
    }
    if is_unreserved(character) {
        return Err(Wrong::new(format!("`%{text}` never matches"), format!("write `{character}`")));
    }
    if text.bytes().any(|digit| digit.is_ascii_lowercase()) {
        let upper = text.to_ascii_uppercase();
        return Err(Wrong::new(format!("`%{text}` never matches"), format!("write `%{upper}`")));
    }
    Ok(())
}

/// `pchar` of RFC 3986 without the escapes, and without the `;` of parameters.
fn is_plain(character: char) -> bool {
    is_unreserved(character) || "!$&'()+,=:@".contains(character)
}

fn is_unreserved(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-._~".contains(character)
}
