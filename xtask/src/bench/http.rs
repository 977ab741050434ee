//! A small blocking HTTP/1.1 client: one connection, one request after the other.
//!
//! Only as much of the protocol as the benchmarks' own servers speak; a body has to come with its length.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

/// How long an answer may take. Everything here is on loopback, so silence means that something is wrong.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// The longest body that is read.
const BODY_MAX: usize = 1 << 20;

/// A connection that is kept open from request to request.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    host: SocketAddr,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status code.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: Vec<u8>,
}

impl Connection {
    /// Connect.
    pub(crate) fn open(host: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&host, ANSWER_LIMIT)
            .with_context(|| format!("cannot connect to {host}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        Ok(Self { stream: BufReader::new(stream), host })
    }

    /// Send a GET and wait for its answer.
    pub(crate) fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> Result<Answer> {
        self.send_get(path, headers)?;
        self.answer()
    }

    /// Send a POST without a body and wait for its answer.
    pub(crate) fn post(&mut self, path: &str) -> Result<Answer> {
        let request = format!("POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-length: 0\r\n\r\n", self.host);
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.answer()
    }

    /// Send a GET and wait for nothing.
    pub(crate) fn send_get(&mut self, path: &str, headers: &[(&str, &str)]) -> Result<()> {
        let mut request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n", self.host);
        for (name, value) in headers {
            write!(request, "{name}: {value}\r\n")?;
        }
        request.push_str("\r\n");
        Ok(self.stream.get_mut().write_all(request.as_bytes())?)
    }

    fn answer(&mut self) -> Result<Answer> {
        let status_line = self.line()?;
        let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.with_context(|| format!("no status line: {status_line:?}"))?;
        let mut length = 0;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse::<usize>()?;
            }
        }
        ensure!(length <= BODY_MAX, "a body of {length} bytes");
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Answer { status, body })
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.stream.read_line(&mut line)? > 0, "the connection was closed before the answer");
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}
