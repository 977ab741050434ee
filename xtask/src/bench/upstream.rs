//! An upstream inside the benchmark's own process, for the memory benchmark: it answers at once, or never.
//!
//! One thread a connection, which is fine for the few that a gateway opens. The proxy benchmark does not use it: there
//! the upstream has to be cheap and on a core of its own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use anyhow::Result;

/// What it does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Answer 200 at once.
    Answers,
    /// Read it and say nothing until the peer goes.
    Holds,
}

/// Listen on loopback until the process ends, and say where.
pub(crate) fn start(manner: Manner) -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A peer that goes away ends its thread; there is nobody to tell.
            thread::spawn(move || serve(stream, manner));
        }
    });
    Ok(address)
}

fn serve(stream: TcpStream, manner: Manner) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            return Ok(());
        }
        // A GET has no body: the empty line ends it.
        if line == "\r\n" && manner == Manner::Answers {
            lines.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n")?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::http::Connection;
    use super::*;

    #[test]
    fn the_client_and_the_upstream_speak_the_same_language() {
        let mut connection = Connection::open(start(Manner::Answers).unwrap()).unwrap();
        for _ in 0..3 {
            let answer = connection.get("/", &[("x-key", "1")]).unwrap();
            assert_eq!((answer.status, answer.body.as_slice()), (200, b"ok\n".as_slice()));
        }
    }
}
