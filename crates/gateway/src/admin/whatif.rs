//! The question "what if", over HTTP: one at a time, on a thread of its own, and given up when nobody waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use http::header::RETRY_AFTER;
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Admin;
use super::body::Body;
use super::reply::{JSON, page};
use crate::whatif::{Question, Recording, play};

pub(super) async fn answer(admin: &Admin, question: &Value) -> Response<Body> {
    let Ok(turn) = admin.whatif.clone().try_acquire_owned() else {
        let mut response =
            say(StatusCode::SERVICE_UNAVAILABLE, "another is being played; ask again in a moment");
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
        return response;
    };
    let now = admin.shared.clock.now();
    let copied = {
        let arrivals = admin.arrivals();
        let question = Question::parse(question, &arrivals.live().policy);
        question.and_then(|question| {
            let recording = Recording::copy(&question, &arrivals, &admin.history(), now)?;
            Ok((question, recording))
        })
    };
    let (question, recording) = match copied {
        Ok(copied) => copied,
        Err(why) => return say(StatusCode::BAD_REQUEST, &why),
    };
    let stop = StopWhenDropped(Arc::new(AtomicBool::new(false)));
    let (clock, stopped) = (admin.shared.clock, stop.0.clone());
    let (done, result) = oneshot::channel();
    let thread = std::thread::Builder::new().name("tidegate-whatif".into()).spawn(move || {
        give_way();
        let result = play(&question, &recording, clock, &stopped);
        // Before the result is known, or whoever asks again at once would be told to wait.
        drop(turn);
        // Nobody may wait for it any more.
        let _ = done.send(result);
    });
    if let Err(error) = thread {
        return say(StatusCode::SERVICE_UNAVAILABLE, &format!("a thread could not be started: {error}"));
    }
    match result.await {
        Ok(Ok(result)) => page(StatusCode::OK, JSON, result.to_string()),
        Ok(Err(why)) => say(StatusCode::BAD_REQUEST, &why),
        Err(_) => say(StatusCode::INTERNAL_SERVER_ERROR, "the simulator failed"),
    }
}

/// Clients go before a question in passing: on a machine with no core to spare this thread gets what is left. Where it cannot
/// be asked for, it goes without.
fn give_way() {
    #[cfg(target_os = "linux")]
    {
        // There it is of the thread, against POSIX, which has it of the process (nice(2)).
        let _ = rustix::process::nice(19);
    }
}

/// Whoever asked has left: there is no need to go on.
struct StopWhenDropped(Arc<AtomicBool>);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn say(status: StatusCode, why: &str) -> Response<Body> {
    page(status, JSON, json!({ "error": why }).to_string())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_thread_gives_way_and_no_other() {
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let before = priority();
        let of_thread = std::thread::spawn(move || {
            give_way();
            priority()
        });
        assert_eq!((of_thread.join().unwrap(), priority()), (19, before));
    }
}
