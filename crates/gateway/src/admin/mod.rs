//! The operators' side: health, statistics, metrics, history, and a page to look at them, on an address and a thread of
//! its own, so that it answers however busy the other side is. It is never limited; it has only a bound on its own
//! connections.
//!
//! `site.rs` is the list of what there is to ask for. Nothing here decides about requests of clients.

mod site;

mod guard;

mod live;
mod watcher;

mod asked;
mod change;
mod options;
mod policy;
mod whatif;

mod assets;

mod body;
mod reply;

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::net::{TcpListener as AsyncListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::gateway::{Shared, Stage};
use crate::history::{Arrivals, History};
use crate::upstream;
use site::Visitor;

const CONNECTIONS_MAX: usize = 128;
const HEADER_TIME: Duration = Duration::from_secs(10);
/// What the kernel keeps of what is sent and not taken; it makes it twice as much, and without a word megabytes, which are
/// many minutes of events that nobody reads.
const SENT_MAX: usize = 64 * 1024;
/// However slowly somebody reads, a connection is not kept for longer than this.
const CONNECTION_TIME: Duration = Duration::from_secs(600);

/// What the connections of operators share.
struct Admin {
    shared: Arc<Shared>,
    /// Where we listen.
    address: SocketAddr,
    history: Mutex<History>,
    /// The newest sample, as an event; empty before the first.
    newest: watch::Sender<Bytes>,
    /// Places for those who follow events.
    followers: Arc<Semaphore>,
    arrivals: Mutex<Arrivals>,
    /// One question at a time is played.
    whatif: Arc<Semaphore>,
}

impl Admin {
    fn new(shared: Arc<Shared>, address: SocketAddr) -> Self {
        let arrivals = Arrivals::new(shared.live(), shared.clock.now());
        Self {
            shared,
            address,
            history: Mutex::default(),
            newest: watch::Sender::new(Bytes::new()),
            followers: Arc::new(Semaphore::new(live::FOLLOWERS_MAX)),
            arrivals: Mutex::new(arrivals),
            whatif: Arc::new(Semaphore::new(1)),
        }
    }

    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn run(shared: Arc<Shared>, listener: TcpListener, stage: watch::Receiver<Stage>) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return shared.log.notice(&format!("the admin side could not start: {error}")),
    };
    let address = listener.local_addr().unwrap_or(shared.live().policy.server.admin);
    runtime.block_on(async {
        let mut stage = stage;
        let admin = Arc::new(Admin::new(shared.clone(), address));
        tokio::select! {
            () = accept(&admin, listener) => {}
            // Here, because there is one such thread, and it is never busy.
            () = upstream::watch(shared.clone(), shared.reloads()) => {}
            () = watcher::watch(&admin) => {}
            _ = stage.wait_for(|stage| *stage == Stage::Stopped) => {}
        }
    });
    // The name of an upstream that is being looked up cannot be given up, and nobody waits for it.
    runtime.shutdown_background();
}

async fn accept(admin: &Arc<Admin>, listener: TcpListener) {
    let listener = match AsyncListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return admin.shared.log.notice(&format!("the admin side cannot listen: {error}")),
    };
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let visitor = Visitor { admin: admin.clone(), peer, pace: Arc::default() };
                tokio::spawn(async move {
                    let _ = timeout(CONNECTION_TIME, serve(Arc::new(visitor), stream)).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn serve(visitor: Arc<Visitor>, stream: TcpStream) {
    prepare(&stream);
    let for_service = visitor.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let visitor = for_service.clone();
        async move { Ok::<_, Infallible>(site::answer(&visitor, request).await) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME);
    let connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection => {}
        () = visitor.pace.too_slow() => {}
    }
}

/// What is asked of the kernel for a connection. Without it everything goes on, only less well.
fn prepare(stream: &TcpStream) {
    // An event is small, and whoever follows wants it now.
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_send_buffer_size(SENT_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpSocket;

    /// Whoever follows and does not read is found out when no more can be written: soon, that is.
    #[tokio::test]
    async fn little_is_kept_for_whoever_does_not_read() {
        let listener = AsyncListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpSocket::new_v4().unwrap();
        peer.set_recv_buffer_size(16 * 1024).unwrap();
        let (peer, accepted) = tokio::join!(peer.connect(listener.local_addr().unwrap()), listener.accept());
        let (peer, (stream, _)) = (peer.unwrap(), accepted.unwrap());
        prepare(&stream);
        stream.writable().await.unwrap();
        let mut kept = 0;
        while let Ok(written) = stream.try_write(&[b'x'; 1024]) {
            kept += written;
            assert!(kept <= 4 * SENT_MAX, "as much as somebody likes");
        }
        assert!(kept > 0);
        drop(peer);
    }
}
