//! What has come of a try, read from a status or from an error. Whether it is tried again is decided elsewhere.

use std::error::Error as StdError;
use std::io;

use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, StatusCode};
use tidegate_engine::{Advice, Reply};

use crate::advice;
use crate::error::Error;

/// What has come of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) reply: Reply,
    pub(crate) advice: Advice,
    /// It is certain that nothing of it was done.
    pub(crate) undone: bool,
    /// Another try makes sense at all.
    pub(crate) again: bool,
}

impl Reading {
    const fn of(reply: Reply) -> Self {
        Self { reply, advice: Advice::Unsaid, undone: false, again: true }
    }

    /// No answer to this try in time.
    pub(crate) const TIMED_OUT: Self = Self::of(Reply::TimedOut);

    /// What the head of an answer says.
    pub(crate) fn of_head(status: StatusCode, headers: &HeaderMap) -> Self {
        let reply = grpc(status, headers).unwrap_or_else(|| http(status));
        if !reply.is_passing() {
            return Self::of(reply);
        }
        Self {
            advice: advice::read(headers),
            // After 504 the work may go on, and another try would be more of it.
            again: reply != Reply::TimedOut,
            ..Self::of(reply)
        }
    }

    /// What an error says, or one that it was caused by.
    pub(crate) fn of_error(error: &(dyn StdError + 'static)) -> Self {
        let mut next = Some(unveiled(error));
        while let Some(error) = next {
            if let Some(known) = known(error) {
                return known;
            }
            next = error.source().map(unveiled);
        }
        Self::of(Reply::Broken)
    }
}

/// An error that shows what is in it as itself names the source of that as its own, and would be passed over.
#[cfg(feature = "reqwest")]
fn unveiled<'a>(error: &'a (dyn StdError + 'static)) -> &'a (dyn StdError + 'static) {
    match error.downcast_ref() {
        Some(reqwest_middleware::Error::Reqwest(error)) => error,
        Some(reqwest_middleware::Error::Middleware(error)) => error.as_ref(),
        None => error,
    }
}

#[cfg(not(feature = "reqwest"))]
const fn unveiled<'a>(error: &'a (dyn StdError + 'static)) -> &'a (dyn StdError + 'static) {
    error
}

fn http(status: StatusCode) -> Reply {
    match status {
        StatusCode::TOO_MANY_REQUESTS => Reply::Refused,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE => Reply::Unavailable,
        StatusCode::GATEWAY_TIMEOUT => Reply::TimedOut,
        status if status.is_server_error() => Reply::Failed,
        _ => Reply::Success,
    }
}

/// An answer in trailers only has the status of gRPC in its head. Others have it behind the messages, when there is
/// nothing to be decided any more.
fn grpc(status: StatusCode, headers: &HeaderMap) -> Option<Reply> {
    Some(match grpc_status(status, headers)? {
        // DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, INTERNAL, UNAVAILABLE, DATA_LOSS.
        b"4" => Reply::TimedOut,
        b"8" => Reply::Refused,
        b"14" => Reply::Unavailable,
        b"13" | b"15" => Reply::Failed,
        _ => Reply::Success,
    })
}

/// The status of gRPC in a head that has one.
pub(crate) fn grpc_status(status: StatusCode, headers: &HeaderMap) -> Option<&[u8]> {
    const STATUS: HeaderName = HeaderName::from_static("grpc-status");
    if status == StatusCode::OK { headers.get(STATUS).map(HeaderValue::as_bytes) } else { None }
}

/// Whether a request is one of gRPC.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

fn known(error: &(dyn StdError + 'static)) -> Option<Reading> {
    const NOT_CONNECTED: Reading =
        Reading { reply: Reply::NoConnection, advice: Advice::Unsaid, undone: true, again: true };
    if let Some(own) = error.downcast_ref::<Error>() {
        return Some(own_error(own));
    }
    #[cfg(feature = "hyper")]
    if let Some(error) = error.downcast_ref::<hyper_util::client::legacy::Error>()
        && error.is_connect()
    {
        return Some(NOT_CONNECTED);
    }
    #[cfg(feature = "hyper")]
    if let Some(error) = error.downcast_ref::<hyper::Error>()
        && error.is_canceled()
    {
        // A kept connection was closed before the request was written.
        return Some(Reading { undone: true, ..Reading::of(Reply::Broken) });
    }
    #[cfg(feature = "reqwest")]
    if let Some(error) = error.downcast_ref::<reqwest::Error>() {
        if error.is_connect() {
            // It follows redirects by itself: what could not be reached may be where the answer of another led.
            return Some(Reading { undone: false, ..NOT_CONNECTED });
        }
        if error.is_timeout() {
            return Some(Reading::TIMED_OUT);
        }
    }
    match error.downcast_ref::<io::Error>()?.kind() {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::AddrNotAvailable => Some(NOT_CONNECTED),
        io::ErrorKind::TimedOut => Some(Reading::TIMED_OUT),
        _ => None,
    }
}

/// Another of these layers lies below. What it refuses, or has tried in vain, is not tried again (one layer only).
fn own_error(error: &Error) -> Reading {
    let reading = match error {
        Error::Refused(_) => Reading { undone: true, ..Reading::of(Reply::Failed) },
        Error::TimedOut => Reading::TIMED_OUT,
        Error::Service(error) => Reading::of_error(&**error),
        Error::TooLong(_) => Reading::of(Reply::Success),
    };
    Reading { again: false, ..reading }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_status_says() {
        for (status, reply) in [
            (200, Reply::Success),
            (404, Reply::Success),
            (429, Reply::Refused),
            (500, Reply::Failed),
            (501, Reply::Failed),
            (502, Reply::Unavailable),
            (503, Reply::Unavailable),
            (504, Reply::TimedOut),
        ] {
            let reading = Reading::of_head(StatusCode::from_u16(status).unwrap(), &HeaderMap::new());
            assert_eq!((reading.reply, reading.again), (reply, status != 504), "{status}");
        }
    }

    #[test]
    fn what_a_status_of_grpc_says() {
        for (status, reply) in [
            ("0", Reply::Success),
            ("5", Reply::Success),
            ("4", Reply::TimedOut),
            ("8", Reply::Refused),
            ("13", Reply::Failed),
            ("14", Reply::Unavailable),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-status", HeaderValue::from_static(status));
            assert_eq!(Reading::of_head(StatusCode::OK, &headers).reply, reply, "{status}");
        }
    }

    #[test]
    fn what_an_error_says() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let reading = Reading::of_error(&refused);
        assert_eq!((reading.reply, reading.undone), (Reply::NoConnection, true));
        let reset = Reading::of_error(&io::Error::from(io::ErrorKind::ConnectionReset));
        assert_eq!((reset.reply, reset.undone, reset.again), (Reply::Broken, false, true));
        // H6: a refusal of our own is not tried again by a layer above.
        let below = Error::Service(Box::new(Error::Refused(crate::Refusal::Throttled)));
        assert!(!Reading::of_error(&below).again);
        let below = Error::Service(Box::new(refused));
        assert_eq!(Reading::of_error(&below).reply, Reply::NoConnection);
    }
}
