//! W3C Trace Context, level 1 (<https://www.w3.org/TR/trace-context-1/>): the field `traceparent`.
//!
//! It is read strictly: what does not look exactly as it should is no trace. `tracestate` is other people's, and is not
//! looked into.

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};

pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
#[cfg(feature = "otlp")]
pub(crate) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The name of a trace, which all of its spans have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceId(pub(crate) NonZeroU128);

/// The name of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanId(pub(crate) NonZeroU64);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What a `traceparent` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) trace: TraceId,
    pub(crate) parent: SpanId,
    pub(crate) sampled: bool,
}

/// `00-` trace `-` span `-` flags.
const LENGTH: usize = 55;

impl Context {
    /// `None` if there is no such field, or several, or one that is not right.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(&TRACEPARENT).iter();
        let value = values.next()?;
        if values.next().is_some() {
            return None;
        }
        Self::parse(value.as_bytes())
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let (known, rest) = text.split_at_checked(LENGTH)?;
        let version = hex(&known[..2])?;
        // 255 is forbidden, and what is longer is of a version that we do not know, of which the front counts.
        let has_right_end = if version == 0 { rest.is_empty() } else { matches!(rest, [] | [b'-', ..]) };
        let has_dashes = [2, 35, 52].into_iter().all(|at| known[at] == b'-');
        if version == 255 || !has_right_end || !has_dashes {
            return None;
        }
        Some(Self {
            trace: TraceId(NonZeroU128::new(hex(&known[3..35])?)?),
            parent: SpanId(NonZeroU64::new(u64::try_from(hex(&known[36..52])?).ok()?)?),
            sampled: hex(&known[53..])? & 1 == 1,
        })
    }

    /// The field that says this. Flags that level 1 does not know are not set.
    #[cfg_attr(
        not(any(feature = "otlp", test)),
        expect(dead_code, reason = "nothing is put in the place of what came")
    )]
    pub(crate) fn field(&self) -> Option<HeaderValue> {
        let flags = u8::from(self.sampled);
        HeaderValue::try_from(format!("00-{}-{}-{flags:02x}", self.trace, self.parent)).ok()
    }
}

/// Digits of base sixteen, of which those above nine are small letters.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn parse(text: &str) -> Option<Context> {
        Context::parse(text.as_bytes())
    }

    #[test]
    fn what_is_right_is_read() {
        let context = parse(&format!("00-{TRACE}-{SPAN}-01")).unwrap();
        assert_eq!((context.trace.to_string(), context.parent.to_string()), (TRACE.into(), SPAN.into()));
        assert!(context.sampled);
        assert!(!parse(&format!("00-{TRACE}-{SPAN}-00")).unwrap().sampled);
        // Flags that we do not know count for nothing, and neither does what a later version has at its end.
        assert!(parse(&format!("00-{TRACE}-{SPAN}-ff")).unwrap().sampled);
        assert!(!parse(&format!("00-{TRACE}-{SPAN}-fe")).unwrap().sampled);
        assert!(parse(&format!("cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like")).unwrap().sampled);
        assert!(parse(&format!("cc-{TRACE}-{SPAN}-01")).is_some());
        // The fields of our own are of the version that we know.
        assert_eq!(
            parse(&format!("00-{TRACE}-{SPAN}-ff")).unwrap().field().unwrap(),
            format!("00-{TRACE}-{SPAN}-01")
        );
    }

    /// The cases of the W3C's own test suite, <https://github.com/w3c/trace-context/blob/main/test/test.py>.
    #[test]
    fn what_is_not_right_is_no_trace() {
        for wrong in [
            String::new(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}-011"),
            format!("00-{TRACE}-{SPAN}-01-"),
            format!("00-{TRACE}-{SPAN}-01.what"),
            format!("cc-{TRACE}-{SPAN}-01.what-the-future-will-not-be-like"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!(".0-{TRACE}-{SPAN}-01"),
            format!("0-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-{}-01", SPAN.to_uppercase()),
            format!("00-{}-{SPAN}-01", &TRACE[1..]),
            format!("00-.{}-{SPAN}-01", &TRACE[1..]),
            format!("00-{TRACE}-.{}-01", &SPAN[1..]),
            format!("00-{TRACE}-{SPAN}-.0"),
            format!("00-{TRACE}-{SPAN}-0."),
            format!("00_{TRACE}_{SPAN}_01"),
            format!(" 00-{TRACE}-{SPAN}-01"),
        ] {
            assert_eq!(parse(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn two_of_them_are_none() {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::try_from(format!("00-{TRACE}-{SPAN}-01")).unwrap();
        assert_eq!(Context::of(&headers), None);
        headers.append(TRACEPARENT, value.clone());
        assert!(Context::of(&headers).is_some());
        headers.append(TRACEPARENT, value);
        assert_eq!(Context::of(&headers), None);
    }

    proptest! {
        /// Whatever is read is written as it was, and nothing makes it panic.
        #[test]
        fn what_is_read_is_written_again(text in "0[0-9a]-[0-9a-f]{32}-[0-9a-f]{16}-0[01](-.*)?|.*") {
            if let Some(context) = parse(&text) {
                let field = context.field().unwrap();
                prop_assert_eq!(&field.as_bytes()[3..LENGTH - 2], &text.as_bytes()[3..LENGTH - 2]);
                prop_assert_eq!(Context::parse(field.as_bytes()), Some(context));
            }
        }
    }
}
