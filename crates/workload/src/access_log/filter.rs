//! Which entries are wanted: by path, status, method, host, route and time, so that health checks and the night can be
//! left out.

use std::ops::RangeInclusive;

use tidegate_engine::Timestamp;

use super::entry::Entry;

/// Which entries are wanted. A list that is empty wants all; without any, every entry is wanted.
///
/// An entry that does not say what a list asks for, such as a status, is not wanted. In patterns `*` stands for any
/// text, slashes too: `/api/*` is all below `/api/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Patterns, one of which the path has to match.
    pub paths: Vec<Box<str>>,
    /// Patterns, none of which the path may match, such as `/healthz`.
    pub without_paths: Vec<Box<str>>,
    /// Ranges, one of which the status has to be in.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// Methods, one of which it has to be; capitals do not matter.
    pub methods: Vec<Box<str>>,
    /// Patterns, one of which the host has to match, as it is written but for capitals.
    pub hosts: Vec<Box<str>>,
    /// Patterns, one of which the route has to match.
    pub routes: Vec<Box<str>>,
    /// The first moment that is wanted, in nanoseconds since the Unix epoch.
    pub from: Option<Timestamp>,
    /// The first moment that is not wanted any more.
    pub until: Option<Timestamp>,
}

/// Entries that were not wanted, each counted under the first thing that spoke against it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filtered {
    /// Before the first or after the last moment.
    pub time: u64,
    /// For their path.
    pub path: u64,
    /// For their status.
    pub status: u64,
    /// For their method.
    pub method: u64,
    /// For their host.
    pub host: u64,
    /// For their route.
    pub route: u64,
}

impl Filtered {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.time + self.path + self.status + self.method + self.host + self.route
    }
}

impl Filter {
    /// Whether the entry is wanted; if not, it is counted.
    pub(crate) fn wants(&self, entry: &Entry, filtered: &mut Filtered) -> bool {
        let count = match self.against(entry) {
            None => return true,
            Some(Against::Time) => &mut filtered.time,
            Some(Against::Path) => &mut filtered.path,
            Some(Against::Status) => &mut filtered.status,
            Some(Against::Method) => &mut filtered.method,
            Some(Against::Host) => &mut filtered.host,
            Some(Against::Route) => &mut filtered.route,
        };
        *count += 1;
        false
    }

    fn against(&self, entry: &Entry) -> Option<Against> {
        let one_of = |patterns: &[Box<str>], text: Option<&str>| {
            patterns.is_empty()
                || text.is_some_and(|text| patterns.iter().any(|pattern| matches(pattern, text)))
        };
        let method =
            |wanted: &str| entry.method.as_deref().is_some_and(|method| method.eq_ignore_ascii_case(wanted));
        let host = |pattern: &str| {
            let folded = entry.host.as_deref().map(str::to_ascii_lowercase);
            folded.is_some_and(|host| matches(&pattern.to_ascii_lowercase(), &host))
        };
        let status = |range: &RangeInclusive<u16>| entry.status.is_some_and(|status| range.contains(&status));
        if self.from.is_some_and(|from| entry.arrived < from)
            || self.until.is_some_and(|until| entry.arrived >= until)
        {
            Some(Against::Time)
        } else if !one_of(&self.paths, Some(&entry.path))
            || self.without_paths.iter().any(|pattern| matches(pattern, &entry.path))
        {
            Some(Against::Path)
        } else if !self.statuses.is_empty() && !self.statuses.iter().any(status) {
            Some(Against::Status)
        } else if !self.methods.is_empty() && !self.methods.iter().any(|wanted| method(wanted)) {
            Some(Against::Method)
        } else if !self.hosts.is_empty() && !self.hosts.iter().any(|pattern| host(pattern)) {
            Some(Against::Host)
        } else if !one_of(&self.routes, entry.route.as_deref()) {
            Some(Against::Route)
        } else {
            None
        }
    }
}

/// What speaks against an entry.
enum Against {
    Time,
    Path,
    Status,
    Method,
    Host,
    Route,
}

/// Whether `pattern` matches all of `text`. Each `*` takes as little as it can, which is enough: what comes after the
/// last one is compared with the end.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut pieces = rest.split('*').peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return text.ends_with(piece);
        }
        let Some(at) = text.find(piece) else { return false };
        text = &text[at + piece.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("/a", "/a", true),
            ("/a", "/a/", false),
            ("/a/*", "/a/b/c", true),
            ("/a/*", "/a", false),
            ("*.js", "/x/y.js", true),
            ("*.js", "/x/y.jsx", false),
            ("/*/b/*", "/a/b/", true),
            ("/*/b/*c", "/a/b/b/c", true),
            ("/a*a", "/a", false),
            ("*", "", true),
            ("**", "é", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
