//! Server-sent events (<https://html.spec.whatwg.org/multipage/server-sent-events.html>), as far as an instance sends them:
//! bytes in, the data of events out. Comments, names and numbers of events are passed over.

/// The longest event. Whoever sends more is no instance of ours.
const EVENT_MAX: usize = 8 * 1024 * 1024;

/// What has come and is no whole event yet.
#[derive(Debug, Default)]
pub(super) struct Events {
    line: Vec<u8>,
    data: String,
}

/// It is too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Events {
    /// Takes what has come, and gives out the data of the events that end with it.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut events = Vec::new();
        for &byte in bytes {
            if byte != b'\n' {
                if self.line.len() + self.data.len() >= EVENT_MAX {
                    return Err(TooLong);
                }
                self.line.push(byte);
                continue;
            }
            let line = String::from_utf8_lossy(&self.line);
            let line = line.strip_suffix('\r').unwrap_or(&line);
            if line.is_empty() && !self.data.is_empty() {
                events.push(std::mem::take(&mut self.data));
            } else if let Some(data) = line.strip_prefix("data:") {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            }
            self.line.clear();
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_any_pieces() {
        let stream = "retry: 2000\n: a comment\n\nevent: sample\nid: 1\ndata: {\"a\":1}\n\n: still here\n\n\
                      data:two\r\ndata: lines\r\n\r\ndata: unfinished\n";
        for size in [1, 2, 7, stream.len()] {
            let mut events = Events::default();
            let found: Vec<String> =
                stream.as_bytes().chunks(size).flat_map(|piece| events.take(piece).unwrap()).collect();
            assert_eq!(found, ["{\"a\":1}", "two\nlines"]);
        }
    }

    #[test]
    fn an_event_has_a_bound() {
        let mut events = Events::default();
        let piece = [b'x'; 64 * 1024];
        let taken = (0..).take_while(|_| events.take(&piece).is_ok()).count();
        assert_eq!(taken, EVENT_MAX / piece.len());
    }
}
