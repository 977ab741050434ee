//! The two protocols: an attempt goes out as a request, and what comes back is read to its end.
//!
//! Nothing is decided here. An attempt is a task that ends with an [`Event`]; whoever drops the task ends the exchange,
//! with its connection over HTTP/1.1, with its stream over HTTP/2.

pub(crate) mod head;
pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod watched;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tidegate_workload::WireError;
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};

use crate::clock::Clock;
use crate::play::{Heard, Order};
use crate::request::Requests;

/// What all exchanges know.
pub(crate) struct Shared {
    pub(crate) address: SocketAddr,
    pub(crate) clock: Clock,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) places: Places,
    pub(crate) requests: Requests,
}

/// What came of something that was begun.
pub(crate) enum Event {
    /// An attempt has ended.
    Ended {
        order: Order,
        /// When its first byte was written; `None` if none ever was.
        sent: Option<Duration>,
        heard: Heard,
        /// Its connection of HTTP/1.1, if it can carry another.
        kept: Option<Box<http1::Connection>>,
    },
    /// The attempt goes out again on another connection: this one was being closed when it came.
    Again {
        order: Order,
        /// When its first byte was written, if any was.
        sent: Option<Duration>,
    },
    /// A connection stands, after so long, or could not be opened.
    Opened(Result<(Opened, Duration), WireError>),
}

/// A connection that stands.
pub(crate) enum Opened {
    /// Of HTTP/1.1.
    One(Box<http1::Connection>),
    /// Of HTTP/2.
    Many(http2::Connection),
}

/// How many connections are open. Each holds a place until it is closed, however it ends.
#[derive(Clone, Default)]
pub(crate) struct Places(Arc<Counted>);

#[derive(Default)]
struct Counted {
    taken: AtomicU64,
    /// Somebody has left.
    left: Notify,
}

/// A place for a connection.
pub(crate) struct Place(Places);

impl Places {
    /// One, if fewer than so many are taken.
    pub(crate) fn take(&self, most: usize) -> Option<Place> {
        if self.taken() >= most as u64 {
            return None;
        }
        self.0.taken.fetch_add(1, Relaxed);
        Some(Place(self.clone()))
    }

    pub(crate) fn taken(&self) -> u64 {
        self.0.taken.load(Relaxed)
    }

    /// Waits until one has been given back since this was waited for last.
    pub(crate) async fn given_back(&self) {
        self.0.left.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.taken.fetch_sub(1, Relaxed);
        self.0.0.left.notify_one();
    }
}

/// The descriptors of a process and of all processes, on every Unix; the standard library has no names for them.
const NO_DESCRIPTOR: [i32; 2] = [24, 23];

/// Whose fault it is. Without a port or a descriptor nothing was sent, and nothing can be said of the other side.
fn not_opened(error: &io::Error) -> WireError {
    let no_descriptor = error.raw_os_error().is_some_and(|code| NO_DESCRIPTOR.contains(&code));
    if cfg!(unix) && no_descriptor || error.kind() == io::ErrorKind::AddrNotAvailable {
        WireError::Exhausted
    } else {
        WireError::Connect
    }
}

impl Shared {
    /// Opens a connection, and says how long that took.
    pub(crate) async fn connect(&self) -> Result<(TcpStream, Duration), WireError> {
        let began = self.clock.elapsed();
        let stream = TcpStream::connect(self.address).await.map_err(|error| not_opened(&error))?;
        // Requests are small, and what waits for more to send with them would be lag.
        let _ = stream.set_nodelay(true);
        Ok((stream, self.clock.elapsed().saturating_sub(began)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No descriptor for this process, none for any, and no port are the generator's own limits (EMFILE, ENFILE,
    /// EADDRNOTAVAIL); that nobody listens, or that nobody can be reached, is not.
    #[cfg(target_os = "linux")]
    #[test]
    fn whose_fault_it_is() {
        for (code, error) in [
            (24, WireError::Exhausted),
            (23, WireError::Exhausted),
            (99, WireError::Exhausted),
            (111, WireError::Connect),
            (110, WireError::Connect),
            (113, WireError::Connect),
        ] {
            assert_eq!(not_opened(&io::Error::from_raw_os_error(code)), error, "{code}");
        }
    }
}
