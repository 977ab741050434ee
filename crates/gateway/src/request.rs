//! The life of one request. Start reading here.
//!
//! ```text
//! prepare → route → classify → deadline → rate limits → gate → upstream → body
//!    400     404                              429      503, 504  502, 504
//! ```
//!
//! Every path out of here is a response. A client that leaves ends all of it, wherever it is: the future that does
//! the work is dropped, and with it a place in the queue is given up, and an exchange under way ends as a
//! [`Flight`] ends.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderValue, Request, Response, StatusCode, Version, request};
use hyper::body::{Body as _, Incoming};
use tidegate_engine::{Reason, Timestamp};
use tidegate_policy::TenantKey;
use tidegate_tower::{Admitted, Entry, Waiting};

use crate::answer::Refusal;
use crate::body::Body;
use crate::classify::{Class, Source};
use crate::client_addr::client_address;
use crate::connection::Client;
use crate::deadline;
use crate::explain::tenant_name;
use crate::gateway::Stage;
use crate::head;
use crate::live::Live;
use crate::mask::is_credential;
use crate::rate::{self, Asking, WITHOUT_TENANT};
use crate::record::Record;
use crate::reply::{self, Manner};
use crate::route;
use crate::signals;
use crate::upgrade::Upgrade;
use crate::upstream::{self, Flight, RequestBody, Slot};

/// Serves one request of this client.
///
/// The future is as large as all that it holds while it waits, and ten thousand may wait: so it is written as a block,
/// which holds what it is given once, where a function would hold it twice.
pub(crate) fn serve(
    client: Arc<Client>,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<Body>, Infallible>> {
    let (mut head, body) = request.into_parts();
    let manner = Manner::of(&head);
    // Still there when the request is refused: then it was not read.
    let mut body = Some(body);
    async move {
        let live = client.worker.shared.live();
        let mut record = Record::begin(&client, &live, &head);
        let answer = tokio::select! {
            biased;
            answer = answer(&client, &live, &mut record, &mut head, &mut body) => answer,
            () = client.socket.left() => Err(Refusal::from(Reason::ClientLeft)),
        };
        let refusal = match answer {
            Ok(response) => return Ok(response.map(|body| Body::answer(body, record))),
            Err(refusal) => refusal,
        };
        let response = reply::refuse(&client, record, &head, manner, refusal);
        Ok(match body.filter(|body| !body.is_end_stream()) {
            // Boxed, like what follows the queue: a request that waits need not have room for it.
            Some(body) => Box::pin(reply::see_to_unread(&client, manner, body, response)).await,
            None => response,
        })
    }
}

/// All of the way but its end.
#[expect(clippy::manual_async_fn, reason = "a block, as in `serve`")]
fn answer<'a>(
    client: &'a Arc<Client>,
    live: &'a Live,
    record: &'a mut Record,
    head: &'a mut request::Parts,
    body: &'a mut Option<Incoming>,
) -> impl Future<Output = Result<Response<upstream::AnswerBody>, Refusal>> + use<'a> {
    async move {
        route::prepare(head)?;
        let index =
            route::find(&live.policy.routes, &head.method, head.uri.path()).ok_or(Refusal::NotFound)?;
        record.routed(index);
        let trusted = client.is_trusted(live);
        record.address = client_address(client.peer.ip(), &head.headers, &live.policy.server.trusted_proxies);
        let class = live.classes.of(index, head, Source { address: record.address, trusted });
        record.classified(&class);
        let deadline = deadline::of(
            &live.deadline_fields,
            &head.headers,
            live.policy.routes[index].deadline,
            record.head_began(),
        );
        let returns = &client.worker.shared.returns;
        let returning = returns.comes(record.began(), || record.fingerprint(head));
        let entered = enter(client, live, record, index, head, &class, deadline);
        let slot = entered.slot(client, record, head.version).await;
        returns.became(returning, &slot);
        if slot.is_err() {
            count_refusal(client, live, record, index, head, &class);
        }
        let slot = slot?;
        let upgrade = Upgrade::asked_for(client, head)?;

        let protocol = upgrade.as_ref().map(Upgrade::protocol);
        head::for_upstream(head, &client.sender, trusted, protocol);
        live.classes.pass_on(index, &class, trusted, &mut head.headers);
        record.pass_on_trace(&mut head.headers);
        head.uri = route::origin_form(&head.uri);
        let body = RequestBody::new(body.take(), client);
        if body.has_content() && !head.headers.contains_key(CONTENT_LENGTH) {
            // hyper would send a GET without its body, if nothing said that it has one.
            head.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        let upstream = &live.upstreams[live.policy.routes[index].upstream];
        let flight = Flight::new(client.worker.clone(), upstream.clone(), slot, deadline, record.exchange());
        record.dispatched(flight.began());
        let request = head::request(head, body);
        // Boxed, so that a request in the queue takes no more memory than waiting needs.
        let mut response = Box::pin(upstream::send(client, upstream, flight, request)).await?;

        record.answered(response.status(), response.body().took());
        if !head::for_client(response.headers_mut()) {
            return Err(Reason::UpstreamReset.into());
        }
        signals::on_answer(response.headers_mut(), live, &record.standings, upstream);
        match upgrade {
            Some(upgrade) => Ok(upgrade.finish(client, response)),
            // It switches to a protocol that nobody has asked for.
            None if response.status() == StatusCode::SWITCHING_PROTOCOLS => Err(Reason::UpstreamReset.into()),
            None => Ok(response),
        }
    }
}

/// Counts whose key or tenant was refused, for the lists of those who are refused most.
fn count_refusal(
    client: &Client,
    live: &Live,
    record: &Record,
    index: usize,
    head: &request::Parts,
    class: &Class,
) {
    let (shared, now) = (&client.worker.shared, record.began());
    let policy = &live.policy.routes[index];
    let name = || {
        let believed = live.policy.server.untrusted_tenants || client.is_trusted(live);
        let key = policy.tenant.as_ref()?;
        let name = tenant_name(key, &head.headers, record.address, believed)?;
        Some(match key {
            TenantKey::Header(header) if is_credential(header) => shared.mask.cover(name.as_bytes()),
            TenantKey::Header(_) | TenantKey::ClientIp => name,
        })
    };
    if let Some(rule) = record.over() {
        let asking = asking(live, record, index, head, class);
        rule.count_refusal(now, &asking, name, &shared.top_keys, &shared.mask);
    }
    if let Some(tenant) = class.tenant {
        let upstream = &live.policy.upstreams[policy.upstream].name;
        let name = || name().unwrap_or_else(|| WITHOUT_TENANT.to_owned());
        shared.top_tenants.refused(now, upstream, tenant.id, name);
    }
}

/// What rate limits look at.
fn asking<'a>(
    live: &Live,
    record: &Record,
    index: usize,
    head: &'a request::Parts,
    class: &Class,
) -> Asking<'a> {
    Asking {
        client: record.address,
        headers: &head.headers,
        path: head.uri.path(),
        route: live.routes[index].id,
        tenant: class.tenant.map(|tenant| tenant.id),
    }
}

/// How a request has fared at rate limits and gate.
enum Entered {
    At(Slot),
    Waits(Waiting),
    Not(Refusal),
}

impl From<Refusal> for Entered {
    fn from(refusal: Refusal) -> Self {
        Self::Not(refusal)
    }
}

/// Asks for the right to reach the upstream: of rate limits and gate, unless the route is exempt from both.
fn enter(
    client: &Client,
    live: &Live,
    record: &mut Record,
    index: usize,
    head: &request::Parts,
    class: &Class,
    deadline: Option<Timestamp>,
) -> Entered {
    let policy = &live.policy.routes[index];
    let upstream = &live.upstreams[policy.upstream];
    if policy.exempt {
        return match upstream.exempt() {
            Some(place) => Entered::At(Slot::Exempt { _place: place }),
            None => Refusal::from(Reason::GatewayOverloaded).into(),
        };
    }
    let route = live.routes[index].id;
    let asking = asking(live, record, index, head, class);
    let longest = live.policy.server.retry_after_max;
    let standings = signals::wants_standing(live);
    match rate::check(&live.rules, record.began(), &asking, longest, standings) {
        Ok(standings) => record.standings = standings,
        Err(over) => {
            record.over_limit(over.rule);
            return Refusal::from(over.rejection).into();
        }
    }
    if let Some(rejection) = upstream.refusal(record.began()) {
        return Refusal::from(rejection).into();
    }
    match upstream.gate.enter_at(record.began(), class.arrival(route, deadline)) {
        Entry::Admitted(admitted) => Entered::At(Slot::Admitted(admitted)),
        Entry::Rejected(rejection) => Refusal::from(rejection).into(),
        // Whoever is closing takes no new places in line.
        Entry::Waiting(_) if *client.worker.stage.borrow() != Stage::Serving => {
            Refusal::from(Reason::Draining).into()
        }
        Entry::Waiting(waiting) => Entered::Waits(waiting),
    }
}

impl Entered {
    /// Waits until it is decided, if it is not yet. What it waits for is borrowed and not moved: a future has room for both
    /// ends of a move.
    #[expect(clippy::manual_async_fn, reason = "a block, as in `serve`")]
    fn slot<'a>(
        mut self,
        client: &'a Client,
        record: &'a mut Record,
        version: Version,
    ) -> impl Future<Output = Result<Slot, Refusal>> + use<'a> {
        async move {
            let waiting = match self {
                Self::At(slot) => return Ok(slot),
                Self::Not(refusal) => return Err(refusal),
                Self::Waits(ref mut waiting) => waiting,
            };
            record.wait_began();
            let decision = tokio::select! {
                decision = waiting => decision,
                never = client.socket.read_ahead(), if version != Version::HTTP_2 => match never {},
            };
            record.wait_ended(decision.as_ref().map_or_else(|_| client.now(), Admitted::since));
            Ok(Slot::Admitted(decision?))
        }
    }
}
