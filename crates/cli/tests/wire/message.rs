//! HTTP/1.1 messages, read from a socket byte by byte, so that what a test sees is what was on the wire.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::wait::patiently;

/// One end of a connection, with what has been read and not used yet.
pub(crate) struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A request or response head.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) start: String,
    pub(crate) fields: Vec<(String, String)>,
}

/// A whole message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Closed,
    Reset,
}

impl Head {
    /// The value of a field that is there at most once.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} is there more than once: {self:?}");
        value
    }

    pub(crate) fn status(&self) -> u16 {
        let status = self.start.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5));
        status.and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("no response: {self:?}"))
    }

    /// The target of a request.
    pub(crate) fn target(&self) -> &str {
        self.start.split(' ').nth(1).unwrap_or_else(|| panic!("no request: {self:?}"))
    }

    fn is_chunked(&self) -> bool {
        self.field("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
    }
}

impl Message {
    pub(crate) fn status(&self) -> u16 {
        self.head.status()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Why the gateway refused; empty if it did not.
    pub(crate) fn reason(&self) -> String {
        let is_problem = self.head.field("content-type") == Some("application/problem+json");
        if is_problem { self.json()["reason"].as_str().unwrap().to_string() } else { String::new() }
    }
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    /// Waits, however long it takes, until there is something to read. Says whether there is.
    pub(crate) async fn readable(&self) -> bool {
        !self.buffer.is_empty() || self.stream.readable().await.is_ok()
    }

    /// Sends all of it.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let sent = patiently("to send", self.stream.write_all(bytes.as_ref())).await;
        sent.unwrap_or_else(|error| panic!("cannot send: {error}"));
    }

    /// Sends what the other end takes; an error means that it takes no more, which is its right.
    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        patiently("to send", self.stream.write_all(bytes.as_ref())).await
    }

    /// Sends as much as the kernel takes now without anybody reading it. Says how much that was.
    pub(crate) async fn send_what_fits(&self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        self.stream.writable().await.unwrap();
        while sent < bytes.len()
            && let Ok(more) = self.stream.try_write(&bytes[sent..])
        {
            sent += more;
        }
        sent
    }

    /// Sends until no byte has been taken for a while, or all are sent. Says how many were.
    pub(crate) async fn send_until_stuck(&self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        // Should it be too short on some machine, the test sees less of what it is for, but does not fail.
        let while_long = Duration::from_millis(100);
        while sent < bytes.len() && timeout(while_long, self.stream.writable()).await.is_ok() {
            sent += self.send_what_fits(&bytes[sent..]).await;
        }
        sent
    }

    /// Ends the connection by a reset, with whatever is still on its way.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }

    /// Waits for the next head and leaves what follows it.
    pub(crate) async fn head(&mut self) -> Head {
        self.try_head().await.unwrap_or_else(|end| panic!("{end:?} before a head came: {self:?}"))
    }

    /// The next head, or how the connection ended.
    pub(crate) async fn try_head(&mut self) -> Result<Head, End> {
        loop {
            let end = self.buffer.windows(4).position(|window| window == b"\r\n\r\n");
            if let Some(end) = end {
                let text = String::from_utf8(self.buffer.drain(..end + 4).take(end).collect()).unwrap();
                let mut lines = text.split("\r\n");
                let start = lines.next().unwrap().to_string();
                return Ok(Head { start, fields: lines.map(field).collect() });
            }
            self.more().await?;
        }
    }

    /// The next message, whole. A response must be one that may have a body.
    pub(crate) async fn message(&mut self) -> Message {
        let head = self.head().await;
        self.rest(head).await
    }

    /// The next message, if its head has come whole; otherwise how the connection ended.
    pub(crate) async fn try_message(&mut self) -> Result<Message, End> {
        let head = self.try_head().await?;
        Ok(self.rest(head).await)
    }

    /// What follows a head.
    pub(crate) async fn rest(&mut self, head: Head) -> Message {
        let mut trailers = Vec::new();
        let body = if head.is_chunked() {
            let mut body = Vec::new();
            loop {
                let chunk = self.chunk().await;
                if chunk.is_empty() {
                    break;
                }
                body.extend(chunk);
            }
            trailers = self.trailers().await;
            body
        } else if let Some(length) = head.field("content-length") {
            self.exactly(length.parse().unwrap()).await
        } else if head.start.starts_with("HTTP/") {
            let end = self.ending().await;
            assert_eq!(end, End::Closed, "a body that ends with its connection was cut off");
            std::mem::take(&mut self.buffer)
        } else {
            Vec::new()
        };
        Message { head, body, trailers }
    }

    /// The data of the next chunk; empty for the last, whose trailers are still to be read.
    pub(crate) async fn chunk(&mut self) -> Vec<u8> {
        let size = self.line().await;
        let size = usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("no chunk size: {size:?}"));
        if size == 0 {
            return Vec::new();
        }
        let data = self.exactly(size).await;
        assert_eq!(self.exactly(2).await, b"\r\n");
        data
    }

    async fn trailers(&mut self) -> Vec<(String, String)> {
        let mut trailers = Vec::new();
        loop {
            let line = self.line().await;
            if line.is_empty() {
                return trailers;
            }
            trailers.push(field(&line));
        }
    }

    async fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                return String::from_utf8(self.buffer.drain(..end + 2).take(end).collect()).unwrap();
            }
            self.more().await.unwrap_or_else(|end| panic!("{end:?} within a line: {self:?}"));
        }
    }

    /// So many bytes.
    pub(crate) async fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.buffer.len() < count {
            self.more().await.unwrap_or_else(|end| panic!("{end:?} before {count} bytes came: {self:?}"));
        }
        self.buffer.drain(..count).collect()
    }

    /// Waits for the end of the connection and gives what came before it.
    pub(crate) async fn until_end(&mut self) -> (Vec<u8>, End) {
        let end = self.ending().await;
        (std::mem::take(&mut self.buffer), end)
    }

    /// Waits for the end of the connection, before which nothing more may come.
    pub(crate) async fn closed(&mut self) -> End {
        let (rest, end) = self.until_end().await;
        assert!(rest.is_empty(), "before the end came: {}", String::from_utf8_lossy(&rest));
        end
    }

    /// Whatever comes next; `None` at the end of the connection.
    pub(crate) async fn some(&mut self) -> Option<Vec<u8>> {
        if self.buffer.is_empty() && self.more().await.is_err() {
            return None;
        }
        Some(std::mem::take(&mut self.buffer))
    }

    /// What has come by now and was not read.
    pub(crate) fn at_hand(&mut self) -> &[u8] {
        let mut scratch = [0; 4096];
        while let Ok(count @ 1..) = self.stream.try_read(&mut scratch) {
            self.buffer.extend_from_slice(&scratch[..count]);
        }
        &self.buffer
    }

    async fn ending(&mut self) -> End {
        loop {
            if let Err(end) = self.more().await {
                return end;
            }
        }
    }

    async fn more(&mut self) -> Result<(), End> {
        match patiently("more bytes", self.stream.read_buf(&mut self.buffer)).await {
            Ok(0) => Err(End::Closed),
            Ok(_) => Ok(()),
            Err(_) => Err(End::Reset),
        }
    }
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "unread {:?}", String::from_utf8_lossy(&self.buffer))
    }
}

fn field(line: &str) -> (String, String) {
    let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("no field: {line:?}"));
    (name.to_string(), value.trim().to_string())
}
