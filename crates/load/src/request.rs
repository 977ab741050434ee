//! Requests, made ready once for each kind, so that sending one costs little.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Request, Uri};
use tidegate_workload::{Clients, Kind, Scenario};

use crate::play::Order;
use crate::settings::{Protocol, Settings};

const AGENT: &str = concat!("tidegate-load/", env!("CARGO_PKG_VERSION"));
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// All kinds of requests of a scenario, clients by clients.
pub(crate) struct Requests {
    kinds: Vec<Vec<Ready>>,
    deadline: HeaderName,
    attempt: HeaderName,
    tenant: Option<HeaderName>,
    /// Tells this run's keys from those of others.
    seed: u64,
}

struct Ready {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
    /// What clients of the kind say besides.
    says_deadline: Option<HeaderValue>,
    says_attempt: bool,
    says_key: bool,
    /// The name of the tenant, if there are several behind it.
    one_of: Option<String>,
}

/// A request of the scenario cannot be one of HTTP.
#[derive(Clone, Debug)]
pub(crate) struct NoRequest(String);

impl fmt::Display for NoRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Requests {
    pub(crate) fn new(scenario: &Scenario, settings: &Settings) -> Result<Self, NoRequest> {
        let name = |text: &str| {
            HeaderName::from_bytes(text.as_bytes()).map_err(|_| NoRequest(format!("`{text}` is not a field")))
        };
        let kinds = scenario.clients.iter().map(|clients| {
            clients.mix.iter().map(|kind| Ready::new(clients, kind, settings)).collect::<Result<_, _>>()
        });
        Ok(Self {
            kinds: kinds.collect::<Result<_, _>>()?,
            deadline: name(&settings.names.deadline)?,
            attempt: name(&settings.names.attempt)?,
            tenant: settings.names.tenant.as_deref().map(name).transpose()?,
            seed: scenario.seed,
        })
    }

    /// The request of an attempt, and its body.
    pub(crate) fn make(&self, now: Duration, order: &Order) -> Request<Bytes> {
        let kind = &self.kinds[usize::from(order.crowd)][usize::from(order.kind)];
        let mut request = Request::new(kind.body.clone());
        *request.method_mut() = kind.method.clone();
        *request.uri_mut() = kind.uri.clone();
        let mut headers = kind.headers.clone();
        if let Some(deadline) = &kind.says_deadline {
            // Our own client has one deadline for all its tries, and says what is left of it.
            let left = order.deadline.map(|deadline| HeaderValue::from(millis(deadline.saturating_sub(now))));
            headers.insert(self.deadline.clone(), left.unwrap_or_else(|| deadline.clone()));
        }
        if kind.says_attempt && order.attempt > 1 {
            headers.insert(self.attempt.clone(), HeaderValue::from(order.attempt));
        }
        if kind.says_key
            && let Ok(key) = HeaderValue::try_from(format!("\"{}-{}\"", self.seed, order.number))
        {
            headers.insert(IDEMPOTENCY_KEY, key);
        }
        if let (Some(name), Some(tenant)) = (&self.tenant, &kind.one_of)
            && let Ok(value) = HeaderValue::try_from(format!("{tenant}-{}", order.tenant))
        {
            headers.insert(name.clone(), value);
        }
        *request.headers_mut() = headers;
        request
    }
}

impl Ready {
    fn new(clients: &Clients, kind: &Kind, settings: &Settings) -> Result<Self, NoRequest> {
        let Kind { method, path, headers: fields, body, class, tenant, cost, .. } = kind;
        let names = &settings.names;
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| NoRequest(format!("`{method}` is not a method")))?;
        let authority = &settings.target.authority;
        let uri = match settings.protocol {
            Protocol::Http1 => path.parse(),
            // There the host is part of the address (RFC 9113, section 8.3.1).
            Protocol::Http2 => format!("http://{authority}{path}").parse(),
        };
        let uri: Uri = uri.map_err(|_| NoRequest(format!("`{path}` is not a path")))?;
        let mut headers = HeaderMap::new();
        if settings.protocol == Protocol::Http1 {
            headers.insert(HOST, value("host", authority)?);
        }
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if !body.is_empty() {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        let cost = (*cost != 1.0).then(|| cost.to_string());
        let said = [(&names.class, Some(class)), (&names.tenant, Some(tenant)), (&names.cost, cost.as_ref())];
        let said = said.into_iter().filter_map(|(name, value)| Some((name.as_ref()?, value?)));
        // What the scenario writes down goes before what is derived. What it writes down twice is sent twice.
        let mut written: Vec<HeaderName> = Vec::new();
        let said = said.map(|(name, text)| (name, text, false));
        for (name, text, again) in said.chain(fields.iter().map(|(name, text)| (name, text, true))) {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| NoRequest(format!("`{name}` is not a field")))?;
            if name == HOST && settings.protocol == Protocol::Http2 {
                return Err(NoRequest(
                    "`host` cannot be chosen over HTTP/2: it is part of the address".into(),
                ));
            }
            let value = value(name.as_str(), text)?;
            if again && written.contains(&name) {
                headers.append(name, value);
            } else {
                headers.insert(name.clone(), value);
                written.extend(again.then_some(name));
            }
        }
        let timeout = clients.timeout.filter(|_| clients.tells_deadline);
        Ok(Self {
            method,
            uri,
            headers,
            body: Bytes::from(body.clone()),
            says_deadline: timeout.map(|timeout| HeaderValue::from(millis(timeout))),
            says_attempt: clients.retry.marked,
            says_key: clients.identified,
            one_of: (clients.tenants.get() > 1).then(|| tenant.clone()),
        })
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn value(name: &str, text: &str) -> Result<HeaderValue, NoRequest> {
    HeaderValue::from_str(text).map_err(|_| NoRequest(format!("`{text}` cannot be the value of `{name}`")))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::play::{Do, Play};
    use crate::target::Target;

    /// Of one deadline for all tries, what is left at the moment of sending is said; of one for each try, all of it.
    #[test]
    fn what_is_left_is_what_is_told() {
        for (retry, told) in [("resilient = 1", "700"), ("attempts = 2", "2000")] {
            let text = format!(
                "story = \"\"\nduration = \"1s\"\n[[service]]\nworkers = 1\ntime = \"1ms\"\n[[clients]]\nname = \"all\"\n\
                 burst = [{{ at = \"0s\", count = 1 }}]\ntimeout = \"2s\"\ntells_deadline = true\nretry = {{ {retry} }}\n"
            );
            let scenario = Scenario::parse(&text, Path::new("told.toml")).unwrap();
            let settings = Settings::new(Target::parse("http://127.0.0.1:9/").unwrap());
            let requests = Requests::new(&scenario, &settings).unwrap();
            let mut play = Play::new(&scenario, "test", 10);
            play.advance(Duration::ZERO);
            let Some(Do::Send(order)) = play.poll() else { panic!("nothing is sent") };
            let request = requests.make(Duration::from_millis(1_300), &order);
            assert_eq!(request.headers()["x-envoy-expected-rq-timeout-ms"], told, "{retry}");
        }
    }
}
