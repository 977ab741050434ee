//! Services for a gateway to stand in front of.
//!
//! A [`Script`] hands every connection to the test, which reads and writes it as it likes. A [`Service`] answers by
//! itself, at once or when the test lets it, and remembers what it was asked.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::message::{Message, Wire};
use crate::wait::{patiently, until};

/// A listener whose connections the test takes in hand.
pub(crate) struct Script {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl Script {
    pub(crate) async fn start() -> Self {
        Self::at("127.0.0.1:0".parse().unwrap()).await
    }

    pub(crate) async fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { listener, address }
    }

    /// The next connection.
    pub(crate) async fn accept(&self) -> Wire {
        Wire::new(patiently("a connection to the upstream", self.listener.accept()).await.unwrap().0)
    }
}

/// An address at which nobody listens.
pub(crate) async fn nobody() -> SocketAddr {
    Script::start().await.address
}

/// An address at which nobody listens, and where a service may be started later: no other test uses this host.
pub(crate) async fn nobody_yet() -> SocketAddr {
    Script::at("127.77.0.1:0".parse().unwrap()).await.address
}

/// A service that answers by itself.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    answer: Mutex<String>,
    seen: Mutex<Vec<Message>>,
    /// A permit for each answer that may go out.
    answers: Semaphore,
}

const DONE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ndone\n";

impl Service {
    /// Answers at once.
    pub(crate) async fn prompt() -> Self {
        Self::answering(Script::start().await, Semaphore::MAX_PERMITS)
    }

    /// The same, at this address.
    pub(crate) async fn prompt_at(address: SocketAddr) -> Self {
        Self::answering(Script::at(address).await, Semaphore::MAX_PERMITS)
    }

    /// Answers as often as it is let.
    pub(crate) async fn held() -> Self {
        Self::answering(Script::start().await, 0)
    }

    /// The same, at this address.
    pub(crate) async fn held_at(address: SocketAddr) -> Self {
        Self::answering(Script::at(address).await, 0)
    }

    fn answering(script: Script, answers: usize) -> Self {
        let Script { listener, address } = script;
        let state = State {
            answer: Mutex::new(DONE.into()),
            seen: Mutex::default(),
            answers: Semaphore::new(answers),
        };
        let state = Arc::new(state);
        let for_task = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(for_task.clone().serve(Wire::new(stream)));
            }
        });
        Self { address, state, task }
    }

    /// Lets so many answers go out.
    pub(crate) fn release(&self, answers: usize) {
        self.state.answers.add_permits(answers);
    }

    /// Answers with this status from now on.
    pub(crate) fn turn_to(&self, status: u16) {
        *self.state.answer.lock().unwrap() = DONE.replace("200 OK", &format!("{status} Whatever"));
    }

    /// Every request so far.
    pub(crate) fn seen(&self) -> Vec<Message> {
        self.state.seen.lock().unwrap().clone()
    }

    /// Forgets them.
    pub(crate) fn forget(&self) {
        self.state.seen.lock().unwrap().clear();
    }

    pub(crate) fn targets(&self) -> Vec<String> {
        self.seen().iter().map(|request| request.head.target().to_string()).collect()
    }

    /// Waits until it has been asked so many things in all.
    pub(crate) async fn until_asked(&self, times: usize) {
        let look = async || (self.state.seen.lock().unwrap().len() >= times).then_some(());
        until("a request at the service", look).await;
    }
}

impl State {
    async fn serve(self: Arc<Self>, mut wire: Wire) {
        // A connection may stand idle for longer than the test's patience with one read.
        while wire.readable().await
            && let Ok(request) = wire.try_message().await
        {
            self.seen.lock().unwrap().push(request);
            let Ok(permit) = self.answers.acquire().await else { return };
            permit.forget();
            let answer = self.answer.lock().unwrap().clone();
            if wire.try_send(answer).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}
