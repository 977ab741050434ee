//! Follows an instance: samples as they come, and when it goes away, that it has gone, and samples again when it is back.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::mpsc::Sender;
use tokio::time::{sleep, timeout};

use super::events::Events;
use super::sample::{RefusedKey, Sample};

/// To connect, and to the head of an answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// An instance says something every ten seconds, sample or not.
const SILENCE_MAX: Duration = Duration::from_secs(25);
/// How long is waited before the second try; then twice as long each time.
const BACK_OFF: Duration = Duration::from_millis(500);
const BACK_OFF_MAX: Duration = Duration::from_secs(8);
/// The longest answer that is no stream.
const ANSWER_MAX: usize = 1024 * 1024;
/// Samples between two questions of who is refused most.
const SAMPLES_PER_LIST: u32 = 2;

/// What is heard of an instance.
pub(super) enum News {
    /// A sample, and the text that it was read from.
    Sample(Box<Sample>, String),
    /// Whose requests are refused most.
    Refused(Vec<RefusedKey>),
    /// It is not there, for this reason. Another try follows.
    Lost(String),
}

/// Follows until nobody listens.
pub(super) async fn follow(admin: SocketAddr, news: Sender<News>) {
    let mut back_off = BACK_OFF;
    loop {
        let (why, had_samples) = stream(admin, &news).await;
        if news.send(News::Lost(why)).await.is_err() {
            return;
        }
        if had_samples {
            back_off = BACK_OFF;
        }
        sleep(back_off).await;
        back_off = (back_off * 2).min(BACK_OFF_MAX);
    }
}

/// One stream to its end. Says why it ended, and whether there was anything in it.
async fn stream(admin: SocketAddr, news: &Sender<News>) -> (String, bool) {
    let mut body = match get(admin, "/api/live").await {
        Ok(answer) if answer.status() == StatusCode::OK => answer.into_body(),
        Ok(answer) => return (format!("the answer to /api/live was {}", answer.status()), false),
        Err(error) => return (error.to_string(), false),
    };
    let mut events = Events::default();
    let mut samples = 0;
    loop {
        let why = match timeout(SILENCE_MAX, body.frame()).await {
            Ok(Some(Ok(frame))) => {
                let Ok(found) = events.take(frame.data_ref().map_or(&[], |data| data)) else {
                    return ("what comes is no sample".into(), samples > 0);
                };
                for text in found {
                    let Some(sample) = Sample::parse(&text) else {
                        return ("what comes is no sample".into(), samples > 0);
                    };
                    if news.send(News::Sample(Box::new(sample), text)).await.is_err() {
                        return ("nobody listens".into(), true);
                    }
                    if samples % SAMPLES_PER_LIST == 0
                        && let Ok(keys) = refused(admin).await
                    {
                        let _ = news.send(News::Refused(keys)).await;
                    }
                    samples += 1;
                }
                continue;
            }
            Ok(Some(Err(error))) => error.to_string(),
            Ok(None) => "it ended the stream".into(),
            Err(_) => format!("nothing came for {SILENCE_MAX:?}"),
        };
        return (why, samples > 0);
    }
}

/// Whose requests are refused most, by rate limits and by fairness between tenants.
pub(super) async fn refused(admin: SocketAddr) -> io::Result<Vec<RefusedKey>> {
    let mut all = Vec::new();
    for (by, group) in [("rate_limit", "rate_limit"), ("tenant", "upstream")] {
        let answer = get(admin, &format!("/api/top?by={by}")).await?;
        let body = Limited::new(answer.into_body(), ANSWER_MAX).collect();
        let body = timeout(PATIENCE, body).await?.map_err(io::Error::other)?.to_bytes();
        let list: Value = serde_json::from_slice(&body)?;
        all.extend(RefusedKey::all(&list, group));
    }
    all.sort_by(|one, other| other.refused.total_cmp(&one.refused));
    Ok(all)
}

async fn get(admin: SocketAddr, target: &str) -> io::Result<Response<Incoming>> {
    let asking = async {
        let stream = TcpStream::connect(admin).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // Ends with the answer, or when that is dropped.
        tokio::spawn(connection);
        let request = Request::get(target).header("host", admin.to_string()).body(Empty::<Bytes>::new());
        sender.send_request(request.map_err(io::Error::other)?).await.map_err(io::Error::other)
    };
    timeout(PATIENCE, asking).await.unwrap_or_else(|_| {
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer came for {PATIENCE:?}")))
    })
}
