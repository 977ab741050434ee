//! What an answer says about the service: the same of a status over HTTP and over gRPC.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode, response};
use tidegate_engine::Outcome;

use crate::layers::answer::{GRPC_STATUS, Manner};

/// What the head of an answer says about the service, where nobody says otherwise.
///
/// 503 and 504 say that it has too much to do, and so do `UNAVAILABLE` and `DEADLINE_EXCEEDED` over gRPC. All other
/// 5xx, and `UNKNOWN`, `INTERNAL` and `DATA_LOSS`, say that it fails, but nothing about how much it can take: a fast
/// failure is not a sign of health (Netflix/concurrency-limits#176). Everything else is a success, whatever the caller
/// makes of it. A change of protocol says nothing.
pub fn outcome_of(head: &response::Parts) -> Outcome {
    of_head(head).unwrap_or(Outcome::Success)
}

/// `None` if it is in the trailers that are to come.
pub(crate) fn of_head(head: &response::Parts) -> Option<Outcome> {
    match head.status {
        StatusCode::SWITCHING_PROTOCOLS => Some(Outcome::Ignore),
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => Some(Outcome::Overload),
        status if status.is_server_error() => Some(Outcome::Failure),
        _ if !head.headers.contains_key(CONTENT_TYPE) => Some(Outcome::Success),
        _ => match of_grpc(&head.headers) {
            None if Manner::of(&head.headers) == Manner::Grpc => None,
            outcome => Some(outcome.unwrap_or(Outcome::Success)),
        },
    }
}

/// `None` if there is no `grpc-status`.
pub(crate) fn of_grpc(fields: &HeaderMap) -> Option<Outcome> {
    Some(match fields.get(GRPC_STATUS)?.as_bytes() {
        b"4" | b"14" => Outcome::Overload,
        b"2" | b"13" | b"15" => Outcome::Failure,
        _ => Outcome::Success,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Response;

    fn outcome(status: u16, fields: &[(&str, &str)]) -> Option<Outcome> {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        of_head(&response.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn what_answers_say() {
        const GRPC: (&str, &str) = ("content-type", "application/grpc+proto");
        for (status, expected) in [
            (101, Outcome::Ignore),
            (200, Outcome::Success),
            (404, Outcome::Success),
            (429, Outcome::Success),
            (500, Outcome::Failure),
            (502, Outcome::Failure),
            (503, Outcome::Overload),
            (504, Outcome::Overload),
        ] {
            assert_eq!(outcome(status, &[]), Some(expected), "{status}");
            assert_eq!(outcome(status, &[("content-type", "text/plain")]), Some(expected), "{status}");
        }
        for (code, expected) in [
            ("0", Outcome::Success),
            ("5", Outcome::Success),
            ("8", Outcome::Success),
            ("4", Outcome::Overload),
            ("14", Outcome::Overload),
            ("2", Outcome::Failure),
            ("13", Outcome::Failure),
            ("15", Outcome::Failure),
        ] {
            assert_eq!(outcome(200, &[GRPC, ("grpc-status", code)]), Some(expected), "{code}");
        }
        assert_eq!(outcome(200, &[GRPC]), None);
        assert_eq!(outcome(503, &[GRPC]), Some(Outcome::Overload));
    }
}
