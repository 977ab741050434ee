//! Looks for fields in heads that have none of them, as most do.
//!
//! There are a dozen fields to look for, and to look for one by its name hashes the name. So the names that are there are
//! glanced at once, and what cannot be among them is not looked for.

use http::header::{GetAll, HeaderName};
use http::{HeaderMap, HeaderValue};

/// A field to look for.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) name: HeaderName,
    mark: u64,
}

impl Name {
    /// The field of this name, which is in lower case.
    pub(crate) const fn of(name: &'static str) -> Self {
        Self { name: HeaderName::from_static(name), mark: mark(name.as_bytes()) }
    }

    /// The same for a name of the policy. `None` for what is none, which the policy does not let through.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        let mark = mark(name.as_str().as_bytes());
        Some(Self { name, mark })
    }
}

/// One bit of 64, by what is quickly seen of a name. By the factors, which were found by trying, the names that are looked for
/// are apart from those that nearly every head has.
const fn mark(name: &[u8]) -> u64 {
    let (Some(first), Some(last)) = (name.first(), name.last()) else { return 0 };
    1 << ((name.len() + 4 * *first as usize + 3 * *last as usize) % 64)
}

/// The fields of a head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'h> {
    headers: &'h HeaderMap,
    marks: u64,
}

impl<'h> Fields<'h> {
    pub(crate) fn of(headers: &'h HeaderMap) -> Self {
        let marks = headers.keys().fold(0, |marks, name| marks | mark(name.as_str().as_bytes()));
        Self { headers, marks }
    }

    /// The first field of this name.
    pub(crate) fn get(&self, name: &Name) -> Option<&'h HeaderValue> {
        if self.may_have(name) { self.headers.get(&name.name) } else { None }
    }

    /// All fields of this name, if there can be any.
    pub(crate) fn all(&self, name: &Name) -> Option<GetAll<'h, HeaderValue>> {
        self.may_have(name).then(|| self.headers.get_all(&name.name))
    }

    const fn may_have(&self, name: &Name) -> bool {
        self.marks & name.mark != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What nearly every head has.
    const USUAL: [&str; 16] = [
        "host",
        "user-agent",
        "accept",
        "accept-encoding",
        "accept-language",
        "cache-control",
        "connection",
        "content-length",
        "content-type",
        "origin",
        "referer",
        "sec-fetch-dest",
        "sec-fetch-mode",
        "sec-fetch-site",
        "x-forwarded-for",
        "x-request-id",
    ];
    /// What is looked for in each head by default.
    const WANTED: [&str; 10] = [
        "amz-sdk-request",
        "authorization",
        "cookie",
        "grpc-previous-rpc-attempts",
        "grpc-timeout",
        "idempotency-key",
        "traceparent",
        "x-envoy-attempt-count",
        "x-envoy-expected-rq-timeout-ms",
        "x-stainless-retry-count",
    ];

    #[test]
    fn a_usual_head_is_not_searched() {
        let usual = USUAL.iter().map(|name| (HeaderName::from_static(name), HeaderValue::from_static("x")));
        let headers: HeaderMap = usual.collect();
        let fields = Fields::of(&headers);
        for name in WANTED {
            assert!(!fields.may_have(&Name::of(name)), "{name}");
        }
    }

    #[test]
    fn what_is_there_is_found() {
        for name in WANTED.iter().chain(&USUAL).chain(&["x", "x-tenant", "x-class", "priority"]) {
            let mut headers = HeaderMap::new();
            headers.append(*name, HeaderValue::from_static("1"));
            headers.append(*name, HeaderValue::from_static("2"));
            for wanted in [Name::of(name), Name::named(&name.to_ascii_uppercase()).unwrap()] {
                let fields = Fields::of(&headers);
                assert_eq!(fields.get(&wanted).unwrap(), "1", "{name}");
                assert_eq!(fields.all(&wanted).unwrap().iter().count(), 2, "{name}");
            }
            assert_eq!(Fields::of(&HeaderMap::new()).get(&Name::of(name)), None);
        }
    }
}
