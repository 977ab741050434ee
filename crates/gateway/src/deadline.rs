//! How long a client waits, as far as it says so, and what of that is left for the upstream.
//!
//! A client can only shorten: the earliest of what its fields say, what the route says, and the upstream's own timeout
//! counts, from the first byte of the head on. The upstream is told what is left, and never more, in the field
//! that the client used, so that a deadline shrinks from hop to hop.

use std::time::Duration;

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use tidegate_engine::Timestamp;
use tidegate_policy::Policy;
use tidegate_tower::deadline::Unit;

use crate::fields::{Fields, Name};

/// Kept back for the way of the answer: a fiftieth of what is left, at most so much.
const MARGIN_MAX: Duration = Duration::from_millis(5);
const MARGIN_SHARE: u32 = 50;

/// A field by which clients say how long they wait, and how it says it.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    name: Name,
    unit: Unit,
}

impl Field {
    /// Those that the policy names.
    pub(crate) fn all(policy: &Policy) -> Vec<Self> {
        policy.server.deadline_headers.iter().filter_map(|name| Self::named(name)).collect()
    }

    /// The field of this name, in the unit that it has by its name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(Self { name: Name::named(name)?, unit: Unit::of_field(name) })
    }
}

/// When the answer is of no use any more; `None` if nobody says. `began` is when the request began to come.
pub(crate) fn of(
    fields: &[Field],
    headers: &HeaderMap,
    route: Option<Duration>,
    began: Timestamp,
) -> Option<Timestamp> {
    let said = said(fields, headers).map(|(_, time)| time);
    said.chain(route).min().map(|shortest| began.after(shortest))
}

/// What the client says, field by field.
pub(crate) fn said<'a>(
    fields: &'a [Field],
    headers: &'a HeaderMap,
) -> impl Iterator<Item = (&'a HeaderName, Duration)> {
    let head = Fields::of(headers);
    fields.iter().filter_map(move |field| {
        let value = head.get(&field.name)?.to_str().ok()?;
        Some((&field.name.name, field.unit.parse(value.trim())?))
    })
}

/// Tells the upstream what is left, in the fields that are there.
pub(crate) fn pass_on(fields: &[Field], headers: &mut HeaderMap, left: Duration) {
    let left = left.saturating_sub((left / MARGIN_SHARE).min(MARGIN_MAX));
    for field in fields {
        if let Some(value) = headers.get_mut(&field.name.name) {
            // Digits and a letter, which every field may have.
            *value = HeaderValue::try_from(field.unit.show(left))
                .unwrap_or_else(|_| HeaderValue::from_static("0"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H3. The earliest counts, and whatever comes in comes out no longer.
    #[test]
    fn a_deadline_only_shrinks() {
        let fields: Vec<Field> = ["grpc-timeout", "x-timeout-ms", "request-timeout"]
            .iter()
            .filter_map(|name| Field::named(name))
            .collect();
        let mut headers = HeaderMap::new();
        headers.insert("grpc-timeout", HeaderValue::from_static("2S"));
        headers.insert("x-timeout-ms", HeaderValue::from_static("1000"));
        let began = Timestamp::from_millis(500);
        assert_eq!(of(&fields, &headers, None, began), Some(Timestamp::from_millis(1500)));
        assert_eq!(
            of(&fields, &headers, Some(Duration::from_millis(10)), began),
            Some(Timestamp::from_millis(510))
        );
        assert_eq!(of(&[], &headers, None, began), None);
        pass_on(&fields, &mut headers, Duration::from_millis(100));
        assert_eq!(
            (&headers["grpc-timeout"], &headers["x-timeout-ms"]),
            (&"98m".parse().unwrap(), &"98".parse().unwrap())
        );
        assert!(!headers.contains_key("request-timeout"), "nothing is added that was not there");
        pass_on(&fields, &mut headers, Duration::from_secs(10));
        assert_eq!(headers["x-timeout-ms"], "9995");
        pass_on(&fields, &mut headers, Duration::MAX);
        assert_eq!(headers["grpc-timeout"], "99999999S");
    }
}
