//! Where an answer ends, and what it says: as much of HTTP/1.1 as a client of these gateways needs.
//!
//! Not a validator: whatever a gateway sends, the generator only has to know its status and whether the connection may
//! be used again.

/// The longest answer that is read. Refusals and the lab's answers have some hundred bytes.
const BYTES_MAX: usize = 1 << 20;

/// A whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// The status code.
    pub(super) status: u16,
    /// The connection may be used for another request.
    pub(super) keep: bool,
}

/// What has arrived so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// More is to come.
    Partial,
    /// All of it is there.
    Whole(Answer),
    /// It is nothing that a client could use.
    Broken,
}

/// Read what has arrived. `closed` says that nothing more will come.
pub(super) fn read(bytes: &[u8], closed: bool) -> Reading {
    let more = if closed { Reading::Broken } else { Reading::Partial };
    if bytes.len() > BYTES_MAX {
        return Reading::Broken;
    }
    let Some(head_length) = find(bytes, b"\r\n\r\n").map(|at| at + 4) else { return more };
    let Some(head) = Head::parse(&bytes[..head_length]) else { return Reading::Broken };
    let body = &bytes[head_length..];
    let whole = Reading::Whole(Answer { status: head.status, keep: head.keep && !closed });
    match head.length {
        Length::Bytes(length) if body.len() == length => whole,
        // Nobody asked for more.
        Length::Bytes(length) if body.len() > length => Reading::Broken,
        // Neither nginx, HAProxy, Envoy nor tidegate sends trailers here, so the last chunk ends the answer.
        Length::Chunked if body.ends_with(b"0\r\n\r\n") => whole,
        Length::UntilClosed if closed => whole,
        _ => more,
    }
}

#[derive(Clone, Copy, Debug)]
enum Length {
    Bytes(usize),
    Chunked,
    UntilClosed,
}

struct Head {
    status: u16,
    length: Length,
    keep: bool,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(bytes).ok()?.split("\r\n");
        let mut start = lines.next()?.split(' ');
        let version = start.next()?;
        let status = start.next()?.parse().ok()?;
        let mut head = Self { status, length: Length::UntilClosed, keep: version == "HTTP/1.1" };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                head.length = Length::Bytes(value.parse().ok()?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                head.length = Length::Chunked;
            } else if name.eq_ignore_ascii_case("connection") {
                head.keep &= !value.eq_ignore_ascii_case("close");
            }
        }
        Some(head)
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ndone\n";

    fn whole(status: u16, keep: bool) -> Reading {
        Reading::Whole(Answer { status, keep })
    }

    #[test]
    fn an_answer_is_whole_when_its_last_byte_is_there() {
        for end in 0..OK.len() {
            assert_eq!(read(&OK.as_bytes()[..end], false), Reading::Partial, "{end}");
            assert_eq!(read(&OK.as_bytes()[..end], true), Reading::Broken, "{end}");
        }
        assert_eq!(read(OK.as_bytes(), false), whole(200, true));
        assert_eq!(read(OK.as_bytes(), true), whole(200, false));
    }

    #[test]
    fn every_way_to_say_how_long_it_is() {
        let chunked = "HTTP/1.1 503 X\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n";
        assert_eq!(read(chunked.as_bytes(), false), Reading::Partial);
        assert_eq!(read(format!("{chunked}0\r\n\r\n").as_bytes(), false), whole(503, true));
        let until_closed = "HTTP/1.0 503 Service Unavailable\r\ncache-control: no-cache\r\n\r\n<html>";
        assert_eq!(read(until_closed.as_bytes(), false), Reading::Partial);
        assert_eq!(read(until_closed.as_bytes(), true), whole(503, false));
    }

    #[test]
    fn a_connection_is_kept_unless_the_answer_says_otherwise() {
        let close = "HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(read(close.as_bytes(), false), whole(429, false));
    }

    #[test]
    fn what_is_no_answer_is_broken() {
        for bytes in ["HTTP/1.1 two hundred\r\n\r\n", "\r\n\r\n", &format!("{OK}more")] {
            assert_eq!(read(bytes.as_bytes(), false), Reading::Broken, "{bytes:?}");
        }
    }
}
