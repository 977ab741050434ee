//! One connection of a client: at most one request is under way on it.
//!
//! Nothing waits here. Each method does what the socket allows now and says how it stands.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

use super::answer::{self, Answer, Reading};

/// See the module.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    /// What has arrived of the answer.
    inbox: Vec<u8>,
    /// To be sent as soon as the connection stands.
    outbox: Option<Arc<[u8]>>,
    /// It has carried an answer before, so the peer may have closed it in the very moment when it was used again.
    pub(super) used_before: bool,
}

/// How it stands after the socket was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing to tell yet.
    Waits,
    /// An answer is there.
    Answered(Answer),
    /// The connection is of no use any more. `silent`: it brought nothing of an answer.
    Ended {
        /// Not one byte of an answer had come.
        silent: bool,
    },
}

impl Connection {
    /// Begin to connect. It may stand at once, or be under way.
    pub(super) fn open(to: SocketAddr) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        match connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        Ok(Self { stream, inbox: Vec::new(), outbox: None, used_before: false })
    }

    /// The socket, to be watched.
    pub(super) const fn socket(&self) -> &TcpStream {
        &self.stream
    }

    /// Send a request, now or as soon as the connection stands. Says whether it has to be watched for that.
    pub(super) fn send(&mut self, request: &Arc<[u8]>) -> io::Result<bool> {
        self.inbox.clear();
        match self.stream.write(request) {
            Ok(count) if count == request.len() => Ok(false),
            // Some hundred bytes into an empty buffer: a part of them cannot happen.
            Ok(_) => Err(ErrorKind::WriteZero.into()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                self.outbox = Some(request.clone());
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// The socket can be written to: send what waits for that. Says whether there was anything.
    pub(super) fn writable(&mut self) -> io::Result<bool> {
        let Some(request) = self.outbox.take() else { return Ok(false) };
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        self.send(&request).map(|waits| !waits)
    }

    /// The socket can be read from.
    pub(super) fn readable(&mut self, buffer: &mut [u8]) -> Progress {
        loop {
            let reading = match self.stream.read(buffer) {
                Ok(0) => return self.closed(),
                Ok(count) => {
                    self.inbox.extend_from_slice(&buffer[..count]);
                    answer::read(&self.inbox, false)
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Progress::Waits,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return self.closed(),
            };
            match reading {
                Reading::Partial => {}
                Reading::Whole(answer) => return Progress::Answered(answer),
                Reading::Broken => return Progress::Ended { silent: false },
            }
        }
    }

    fn closed(&self) -> Progress {
        match answer::read(&self.inbox, true) {
            Reading::Whole(answer) => Progress::Answered(answer),
            Reading::Partial | Reading::Broken => Progress::Ended { silent: self.inbox.is_empty() },
        }
    }
}
