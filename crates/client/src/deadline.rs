//! How long a caller waits, and how that is told to whom it calls.
//!
//! A deadline can only shrink on its way: what is sent is what is left when it is sent, and never more than the request said
//! itself. Reading what a client said is the business of whoever serves it; [`Ambient`](crate::Ambient) carries it here.

use std::time::Duration;

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use tokio::time::Instant;

use crate::clock;

// The same as the server's side reads, so that what is told is what is understood.
pub use tidegate_engine::DeadlineUnit as Unit;

/// When the answer to a request is of no use any more. Put into the request's extensions it is that request's deadline, if
/// the policy's own timeout does not come first.
///
/// ```
/// use std::time::Duration;
/// use tidegate_client::Deadline;
///
/// let mut request = http::Request::get("http://orders/42").body(()).unwrap();
/// request.extensions_mut().insert(Deadline::within(Duration::from_millis(300)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(pub(crate) Instant);

impl Deadline {
    /// So long from now; what is longer than thirty years is thirty years.
    pub fn within(left: Duration) -> Self {
        const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);
        Self(clock::instant() + left.min(FAR))
    }

    /// At this instant of the standard library's clock.
    pub fn at(instant: std::time::Instant) -> Self {
        Self(instant.into())
    }

    /// How long until then; zero if it has passed. What a handler asks before each expensive step.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(clock::instant())
    }
}

/// A field by which callers say how long they wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineField {
    /// Its name.
    pub name: HeaderName,
    /// How it says it.
    pub unit: Unit,
}

impl DeadlineField {
    /// `grpc-timeout`, which is added to gRPC requests only.
    pub const GRPC: Self = Self { name: HeaderName::from_static("grpc-timeout"), unit: Unit::Grpc };
    /// `x-envoy-expected-rq-timeout-ms`, as Envoy tells its upstreams.
    pub const ENVOY: Self =
        Self { name: HeaderName::from_static("x-envoy-expected-rq-timeout-ms"), unit: Unit::Millis };

    /// What it says in these headers; `None` if it is not there, or cannot be read, which is the same.
    pub fn read(&self, headers: &HeaderMap) -> Option<Duration> {
        self.unit.parse(headers.get(&self.name)?.to_str().ok()?.trim())
    }

    fn belongs_into(&self, headers: &HeaderMap, is_grpc: bool) -> bool {
        self.unit != Unit::Grpc || is_grpc || headers.contains_key(&self.name)
    }
}

/// The shortest of what these fields say.
pub(crate) fn said(fields: &[DeadlineField], headers: &HeaderMap) -> Option<Duration> {
    fields.iter().filter_map(|field| field.read(headers)).min()
}

/// Tells whoever is called what is left.
pub(crate) fn tell(fields: &[DeadlineField], headers: &mut HeaderMap, is_grpc: bool, left: Duration) {
    for field in fields {
        if field.belongs_into(headers, is_grpc) {
            headers.insert(field.name.clone(), value(field.unit.show(left)));
        }
    }
}

/// Digits and letters, which every field may have.
fn value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H1. As the server's side reads it, however long the fraction is; what cannot be read is not there.
    #[test]
    fn what_a_field_says() {
        let field = DeadlineField { name: HeaderName::from_static("request-timeout"), unit: Unit::Seconds };
        let mut headers = HeaderMap::new();
        assert_eq!(field.read(&headers), None);
        for (value, said) in [(" 0.2500000000000000000000 ", Some(250)), ("1e3", None)] {
            headers.insert("request-timeout", HeaderValue::from_static(value));
            assert_eq!(field.read(&headers), said.map(Duration::from_millis), "{value}");
        }
    }

    /// H3. What is told is never longer than what is left, and what was read comes out no longer.
    #[test]
    fn a_deadline_only_shrinks() {
        let seconds = DeadlineField { name: HeaderName::from_static("request-timeout"), unit: Unit::Seconds };
        let fields = [DeadlineField::GRPC, DeadlineField::ENVOY, seconds];
        let mut headers = HeaderMap::new();
        tell(&fields, &mut headers, false, Duration::from_micros(1_234_567));
        assert!(!headers.contains_key("grpc-timeout"));
        assert_eq!(headers["x-envoy-expected-rq-timeout-ms"], "1234");
        assert_eq!(headers["request-timeout"], "1.234");
        tell(&fields, &mut headers, true, Duration::MAX);
        assert_eq!(headers["grpc-timeout"], "99999999S");
        tell(&fields, &mut headers, true, Duration::ZERO);
        assert_eq!(said(&fields, &headers), Some(Duration::ZERO));
    }
}
