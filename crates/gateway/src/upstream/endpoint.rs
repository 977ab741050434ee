//! One address of an upstream, and how much is under way to it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use tidegate_policy::{Endpoint as Address, Host};
use tokio::net::TcpStream;

pub(crate) struct Endpoint {
    /// Never used twice, so that a pool cannot mix up endpoints of different policies.
    pub(super) id: u64,
    pub(super) address: Address,
    in_flight: AtomicU32,
}

impl Endpoint {
    pub(super) fn new(address: Address) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { id: NEXT.fetch_add(1, Relaxed), address, in_flight: AtomicU32::new(0) }
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight.load(Relaxed)
    }

    /// Counts an exchange with this endpoint until the guard is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Relaxed);
        InFlight(self.clone())
    }

    pub(super) async fn connect(&self) -> io::Result<TcpStream> {
        let port = self.address.port;
        let stream = match &self.address.host {
            Host::Ip(address) => TcpStream::connect(SocketAddr::new(*address, port)).await?,
            Host::Name(name) => TcpStream::connect((name.as_str(), port)).await?,
        };
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

pub(crate) struct InFlight(Arc<Endpoint>);

impl InFlight {
    pub(super) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}
