//! One client connection: who is at the other end, how long it may take, how it is closed.
//!
//! hyper parses and writes HTTP; everything with a time limit is decided here, by one watchdog for each connection
//! that looks when something could be overdue, so that a request costs no timer of its own.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tidegate_engine::Timestamp;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until, timeout};

use crate::client_addr::is_trusted;
use crate::gateway::Stage;
use crate::head::Sender;
use crate::live::Live;
use crate::request;
use crate::socket::{Socket, SocketIo, Waiting};
use crate::stream::Streams;
use crate::worker::Worker;

/// How long, and for how many bytes, a closed connection is read on so that its client sees the last answer.
const LINGER_TIME: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 1024 * 1024;
/// How long an idle connection that is told to go has for that.
const GOODBYE_TIME: Duration = Duration::from_secs(1);
/// How often that is lengthened while it still serves a request.
const GOODBYES_MAX: u32 = 60;
/// HTTP/2 streams that one connection may have open; also the first line against rapid resets.
const H2_STREAMS_MAX: u32 = 256;
const H2_STREAM_WINDOW: u32 = 64 * 1024;
const H2_CONNECTION_WINDOW: u32 = 256 * 1024;
/// Streams that we had to reset before the peer is sent away (CVE-2025-8671). hyper's default is 1024.
const H2_LOCAL_RESETS_MAX: usize = 64;

/// One client connection, as its requests see it.
pub(crate) struct Client {
    pub(crate) worker: Arc<Worker>,
    pub(crate) socket: Arc<Socket>,
    /// The peer of the socket, which may be a proxy.
    pub(crate) peer: SocketAddr,
    /// The peer, in the words of the fields that tell the upstream.
    pub(crate) sender: Sender,
    /// The place among the open connections.
    _place: OwnedSemaphorePermit,
}

impl Client {
    /// Whether the peer is a proxy whose word about others is believed.
    pub(crate) fn is_trusted(&self, live: &Live) -> bool {
        is_trusted(self.peer.ip(), &live.policy.server.trusted_proxies)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.worker.shared.clock.now()
    }
}

/// Serves a connection to its end. Written as a block, which holds what it is given only once, since there is one such
/// future for every connection.
pub(crate) fn serve(
    worker: Arc<Worker>,
    stream: TcpStream,
    peer: SocketAddr,
    place: OwnedSemaphorePermit,
) -> impl Future<Output = ()> {
    // Answers are written in one go, so there is nothing for Nagle's algorithm to gather.
    let _ = stream.set_nodelay(true);
    let open = worker.shared.metrics.client_connections.open();
    let socket = Arc::new(Socket::new(stream, worker.shared.clock, worker.shared.read_ahead.clone()));
    let sender = Sender::new(peer.ip(), worker.shared.port);
    let client = Arc::new(Client { worker, socket, peer, sender, _place: place });
    async move {
        if talk(client.clone()).await {
            linger(&client).await;
        }
        drop(open);
    }
}

/// Serves requests until the connection is done. Says whether it ended in good order, so that lingering makes sense.
async fn talk(client: Arc<Client>) -> bool {
    let mut watchdog = Watchdog { still_since: client.now() };
    let max_header_bytes = client.worker.shared.live().policy.server.max_header_bytes;
    let mut stage = client.worker.stage.clone();
    let speaks_http2 = tokio::select! {
        biased;
        protocol = client.socket.speaks_http2() => protocol,
        () = watchdog.watch(&client) => return false,
        // Nothing has been asked on it, so there is nothing to bring to an end.
        _ = stage.wait_for(|stage| *stage != Stage::Serving) => return false,
    };
    let io = TokioIo::new(SocketIo(client.socket.clone()));
    let for_requests = client.clone();
    // Boxed, because hyper would move it about, and it is not small.
    let service = service_fn(move |request| Box::pin(request::serve(for_requests.clone(), request)));
    if speaks_http2 {
        // Boxed, because it is rare, and would make the future of every connection larger.
        let mut conversation = Box::pin(http2(&client, max_header_bytes).serve_connection(io, service));
        return converse(&client, watchdog, conversation.as_mut(), |it| it.graceful_shutdown()).await;
    }
    let conversation = pin!(http1(max_header_bytes).serve_connection(io, service).with_upgrades());
    converse(&client, watchdog, conversation, |it| it.graceful_shutdown()).await
}

async fn converse<C: Future<Output = hyper::Result<()>>>(
    client: &Client,
    mut watchdog: Watchdog,
    mut conversation: Pin<&mut C>,
    close: impl Fn(Pin<&mut C>),
) -> bool {
    let mut stage = client.worker.stage.clone();
    let mut drain = pin!(stage.wait_for(|stage| *stage != Stage::Serving));
    let mut overdue = pin!(watchdog.watch(client));
    let mut draining = false;
    loop {
        tokio::select! {
            biased;
            ended = &mut conversation => return ended.is_ok() || client.socket.has_unread(),
            () = &mut overdue => break,
            _ = &mut drain, if !draining => {
                draining = true;
                close(conversation.as_mut());
            }
        }
    }
    if !matches!(client.socket.waiting(), Waiting::Idle(_)) {
        return false;
    }
    // An idle connection is told to go, which over HTTP/2 takes a word to the client.
    close(conversation.as_mut());
    for _ in 0..GOODBYES_MAX {
        match timeout(GOODBYE_TIME, conversation.as_mut()).await {
            Ok(ended) => return ended.is_ok(),
            // A request that was on its way when the word was sent is still served.
            Err(_) if matches!(client.socket.waiting(), Waiting::Idle(_)) => return false,
            Err(_) => {}
        }
    }
    false
}

fn http1(max_header_bytes: u32) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .max_buf_size(usize::try_from(max_header_bytes).unwrap_or(usize::MAX))
        .timer(TokioTimer::new())
        // The watchdog's work: hyper's would set up a timer for each request.
        .header_read_timeout(None);
    builder
}

fn http2(client: &Client, max_header_bytes: u32) -> http2::Builder<Streams> {
    let mut builder = http2::Builder::new(Streams(client.worker.shared.clone()));
    builder
        .max_concurrent_streams(H2_STREAMS_MAX)
        .max_local_error_reset_streams(H2_LOCAL_RESETS_MAX)
        .max_header_list_size(max_header_bytes)
        // What a client may send of bodies that nobody reads yet, and so what a connection may cost.
        .initial_stream_window_size(H2_STREAM_WINDOW)
        .initial_connection_window_size(H2_CONNECTION_WINDOW)
        .timer(TokioTimer::new());
    builder
}

/// Looks after a connection's time limits.
struct Watchdog {
    /// Since when no byte of a body has gone either way, as far as earlier looks could tell.
    still_since: Timestamp,
}

impl Watchdog {
    /// Ends when the connection has taken too long.
    async fn watch(&mut self, client: &Client) {
        while let Some(look) = self.look(client) {
            sleep_until(look).await;
        }
    }

    /// When to look again; `None` if the connection has taken too long already.
    fn look(&mut self, client: &Client) -> Option<Instant> {
        let shared = &client.worker.shared;
        let live = shared.live();
        let server = &live.policy.server;
        let now = client.now();
        let end = match client.socket.waiting() {
            Waiting::Idle(since) => since.after(server.idle_timeout),
            Waiting::Head(since) => since.after(server.header_timeout),
            Waiting::Us => Timestamp::MAX,
            Waiting::Body { moved } => {
                if moved {
                    self.still_since = now;
                }
                self.still_since.after(server.body_timeout)
            }
        };
        // Whatever it waits for now, it may wait for something else right after this look, which then has its own time.
        let shortest = server.header_timeout.min(server.idle_timeout).min(server.body_timeout);
        (end > now).then(|| shared.clock.instant(end.min(now.after(shortest))))
    }
}

/// Lets the client read its answer before the connection is closed for good.
async fn linger(client: &Client) {
    let shared = &client.worker.shared;
    if !client.socket.has_unread() {
        return;
    }
    // Lingering costs a descriptor, so only so many may; the others are closed at once, which they may see as a reset.
    let Ok(_place) = shared.lingering.try_acquire() else { return };
    let _ = timeout(LINGER_TIME, client.socket.linger(LINGER_BYTES)).await;
}
