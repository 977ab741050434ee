//! The collector: one request at a time, each on a connection of its own, since there is one a second or fewer.

use std::future::{Future, poll_fn};
use std::io;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderName, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tidegate_policy::{Endpoint, Host, Otlp};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::body::Body;

/// From the connection to the end of the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// As much of an answer is read as says what was refused.
const ANSWER_MAX: usize = 64 * 1024;
/// The largest file of fields.
const FIELDS_MAX: u64 = 64 * 1024;

pub(super) struct Collector {
    endpoint: Endpoint,
    fields: HeaderMap,
}

/// Why something was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// Nobody is there, or it has too much to do: later, and if it says so then.
    ForNow(Option<Duration>),
    /// It will not take this, however often it is offered.
    ForGood,
}

impl Collector {
    pub(super) fn new(policy: &Otlp) -> io::Result<Self> {
        let mut fields = HeaderMap::new();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        fields.insert(USER_AGENT, HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION"))));
        fields.insert(CONNECTION, HeaderValue::from_static("close"));
        let host = policy.endpoint.to_string();
        fields.insert(HOST, HeaderValue::try_from(host).map_err(io::Error::other)?);
        for (name, value) in &policy.headers {
            add(&mut fields, name, value)?;
        }
        if let Some(file) = &policy.headers_file {
            for line in read(file)?.lines().filter(|line| !line.trim().is_empty()) {
                // What is wrong with a line is said without the line, which may be a secret.
                let (name, value) =
                    line.split_once(':').ok_or_else(|| wrong("a line is not `name: value`"))?;
                add(&mut fields, name.trim(), value.trim())?;
            }
        }
        Ok(Self { endpoint: policy.endpoint.clone(), fields })
    }

    /// Posts this, and says how much of it was refused after all.
    pub(super) async fn post(&self, path: &'static str, body: String) -> Result<u64, Failed> {
        heard(self.ask(path, body)).await
    }

    async fn ask(&self, path: &'static str, body: String) -> Result<Response<Incoming>, io::Error> {
        let stream = match &self.endpoint.host {
            Host::Ip(address) => TcpStream::connect((*address, self.endpoint.port)).await?,
            Host::Name(name) => TcpStream::connect((name.as_str(), self.endpoint.port)).await?,
        };
        let mut request = Request::new(Body::Whole(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = http::Uri::from_static(path);
        *request.headers_mut() = self.fields.clone();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // Ends with the answer, or when that is dropped.
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(io::Error::other)
    }
}

fn read(file: &Path) -> io::Result<String> {
    let describe = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
    if std::fs::metadata(file).map_err(describe)?.len() > FIELDS_MAX {
        return Err(wrong("the file of fields is too large"));
    }
    std::fs::read_to_string(file).map_err(describe)
}

fn add(fields: &mut HeaderMap, name: &str, value: &str) -> io::Result<()> {
    let name = HeaderName::try_from(name).map_err(|_| wrong("the name of a field is malformed"))?;
    let mut value = HeaderValue::try_from(value).map_err(|_| wrong("the value of a field is malformed"))?;
    value.set_sensitive(true);
    fields.insert(name, value);
    Ok(())
}

fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// What the collector says (<https://opentelemetry.io/docs/specs/otlp/#otlphttp-response>), as far as it does so in time.
async fn heard<B: http_body::Body<Data = Bytes>>(
    asking: impl Future<Output = io::Result<Response<B>>>,
) -> Result<u64, Failed> {
    // Not within the time that is bounded: who has said yes has taken it, and to offer it again would double it.
    let mut head = None;
    let exchange = async {
        let (parts, body) = asking.await?.into_parts();
        let succeeded = head.insert(parts).status.is_success();
        Ok::<_, io::Error>(if succeeded { whole(body).await } else { Vec::new() })
    };
    let said = timeout(PATIENCE, exchange).await;
    match head {
        Some(head) if head.status.is_success() => {
            Ok(refused(&said.unwrap_or_else(|_| Ok(Vec::new())).unwrap_or_default()))
        }
        Some(head) => Err(failed(head.status, &head.headers)),
        None => Err(Failed::ForNow(None)),
    }
}

/// Which failures are worth another try is a closed list.
fn failed(status: StatusCode, headers: &HeaderMap) -> Failed {
    if !matches!(status.as_u16(), 429 | 502 | 503 | 504) {
        return Failed::ForGood;
    }
    let after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    Failed::ForNow(after.map(Duration::from_secs))
}

/// How many spans were refused of a request that was taken.
fn refused(answer: &[u8]) -> u64 {
    let answer: serde_json::Value = serde_json::from_slice(answer).unwrap_or_default();
    let refused = &answer["partialSuccess"]["rejectedSpans"];
    refused.as_u64().or_else(|| refused.as_str()?.parse().ok()).unwrap_or(0)
}

async fn whole(body: impl http_body::Body<Data = Bytes>) -> Vec<u8> {
    let mut body = pin!(body);
    let mut read = Vec::new();
    while read.len() < ANSWER_MAX
        && let Some(Ok(frame)) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await
    {
        read.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::time::sleep;

    #[test]
    fn what_a_collector_says() {
        let mut headers = HeaderMap::new();
        assert_eq!(failed(StatusCode::BAD_REQUEST, &headers), Failed::ForGood);
        assert_eq!(failed(StatusCode::INTERNAL_SERVER_ERROR, &headers), Failed::ForGood);
        assert_eq!(failed(StatusCode::SERVICE_UNAVAILABLE, &headers), Failed::ForNow(None));
        headers.insert(RETRY_AFTER, HeaderValue::from_static("7"));
        let after = Failed::ForNow(Some(Duration::from_secs(7)));
        assert_eq!(failed(StatusCode::TOO_MANY_REQUESTS, &headers), after);
        headers.insert(RETRY_AFTER, HeaderValue::from_static("Wed, 21 Oct 2026 07:28:00 GMT"));
        assert_eq!(failed(StatusCode::TOO_MANY_REQUESTS, &headers), Failed::ForNow(None));
        for (answer, count) in [
            ("{}", 0),
            ("", 0),
            ("{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"no\"}}", 3),
            ("{\"partialSuccess\":{\"rejectedSpans\":3}}", 3),
            ("{\"partialSuccess\":{\"rejectedSpans\":\"-3\"}}", 0),
        ] {
            assert_eq!(refused(answer.as_bytes()), count, "{answer}");
        }
    }

    /// A body that begins and does not end.
    struct Endless;

    impl http_body::Body for Endless {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<io::Result<http_body::Frame<Bytes>>>> {
            Poll::Pending
        }
    }

    /// From the connection to the end of the answer, however slowly one comes after the other.
    #[tokio::test(start_paused = true)]
    async fn patience_is_for_all_of_it() {
        let clock = tidegate_tower::Clock::start();
        let since = async |asking: Asking| (heard(asking).await, clock.now().as_nanos() / 1_000_000);
        let answer = |after: u64, status: StatusCode| -> Asking {
            Box::pin(async move {
                sleep(Duration::from_secs(after)).await;
                let mut answer = Response::new(Endless);
                *answer.status_mut() = status;
                Ok(answer)
            })
        };
        // It was taken: the rest is not worth more time, and not another try either.
        assert_eq!(since(answer(6, StatusCode::OK)).await, (Ok(0), 10_000));
        assert_eq!(since(answer(11, StatusCode::OK)).await, (Err(Failed::ForNow(None)), 20_000));
        // What is refused needs no body.
        assert_eq!(since(answer(6, StatusCode::BAD_REQUEST)).await, (Err(Failed::ForGood), 26_000));
        let broken: Asking = Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) });
        assert_eq!(since(broken).await, (Err(Failed::ForNow(None)), 26_000));
    }

    type Asking = Pin<Box<dyn Future<Output = io::Result<Response<Endless>>>>>;

    /// What is wrong with the fields is known at the start, and said without what may be a secret.
    #[test]
    fn fields_are_read_at_the_start() {
        let policy = |headers: &[(&str, &str)]| Otlp {
            headers: headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            ..Otlp::at("http://[::1]:4318").unwrap()
        };
        let collector = Collector::new(&policy(&[("x-token", "s3cret")])).unwrap();
        assert_eq!(
            (&collector.fields["x-token"], &collector.fields[HOST]),
            (&"s3cret".parse().unwrap(), &"[::1]:4318".parse().unwrap())
        );
        assert!(!format!("{:?}", collector.fields).contains("s3cret"));
        let error = Collector::new(&policy(&[("x token", "s3cret")])).err().unwrap();
        assert!(!error.to_string().contains("s3cret"), "{error}");
        assert!(Collector::new(&policy(&[("x-token", "s3\ncret")])).is_err());
        let file = Otlp { headers_file: Some("/nonexistent/fields".into()), ..policy(&[]) };
        assert!(Collector::new(&file).err().unwrap().to_string().contains("/nonexistent/fields"));
    }
}
