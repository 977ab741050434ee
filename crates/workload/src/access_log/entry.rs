//! One request as a log tells it, whatever wrote the log.
//!
//! It is what happened to a request under the system that logged it. What would happen to it elsewhere is for the
//! simulator to say.

use std::time::Duration;

use tidegate_engine::Timestamp;

use super::stamp::Grain;

/// The longest path that is kept, in bytes. The rest is cut off: it is the window's entries that fill the memory.
pub(crate) const PATH_MAX: usize = 1_024;
/// The longest other text of an entry that is kept, in bytes.
pub(crate) const TEXT_MAX: usize = 256;

/// One request of an access log.
///
/// What a log does not say is `None`; an empty `path` is one that the log does not have, as after a handshake that was
/// not HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The line of the log, from 1, the lines of a compressed log counted after unpacking.
    pub line: u64,
    /// When the request came, in nanoseconds since the Unix epoch. How it is found depends on the format:
    /// [`Recognised::time`](super::Recognised::time) has it in words. Entries come in the order of this field.
    pub arrived: Timestamp,
    /// How fine the log's clock was written.
    pub grain: Grain,
    /// From the arrival to the end of the answer.
    pub total: Option<Duration>,
    /// The part of it spent in a queue of the proxy.
    pub queued: Option<Duration>,
    /// The part of it spent at the upstream, all attempts together: to the end of its answer with nginx and Traefik, to
    /// the head of it with HAProxy, Envoy, AWS and tidegate. Caddy does not say.
    pub service: Option<Duration>,
    /// The status that the client was sent.
    pub status: Option<u16>,
    /// The method, as written.
    pub method: Option<Box<str>>,
    /// The path without the query, as written, escapes and all; at most 1,024 bytes of it.
    pub path: Box<str>,
    /// The host that was asked for, with its port if one was written.
    pub host: Option<Box<str>>,
    /// Who asked: an address, without its port.
    pub client: Option<Box<str>>,
    /// Bytes sent to the client.
    pub bytes: Option<u64>,
    /// The proxy's name for where the request went: an upstream, a backend, a router, a route.
    pub route: Option<Box<str>>,
    /// Whom to be fair between, if a mapping says where that stands.
    pub tenant: Option<Box<str>>,
    /// How many times the upstream was tried; zero if the log says that it was not.
    pub attempts: u32,
    /// Whether the log says that the proxy refused the request before an upstream had it: it was offered and not served.
    pub refused: bool,
    /// Whether the log says that the client was gone before its answer was complete.
    pub left: bool,
}

/// `text`, cut to at most `max` bytes between two characters.
pub(crate) fn cut(text: &str, max: usize) -> Box<str> {
    text[..text.floor_char_boundary(max)].into()
}
