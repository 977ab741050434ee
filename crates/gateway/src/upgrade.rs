//! Connections that stop being HTTP: WebSocket and the like.
//!
//! They hold no slot, since how long they last says nothing about the upstream, and the limit must not learn from
//! them; instead they have a cap of their own. Nothing that the client sends early reaches the upstream before it has
//! agreed (CVE-2026-2833): until then hyper keeps it.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderValue, Response, StatusCode, Version, request};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tidegate_engine::Reason;
use tokio::io::copy_bidirectional;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::connection::Client;
use crate::head::lists;
use crate::upstream::AnswerBody;

/// How long the two ends have to switch, once both have agreed to.
const SWITCH_TIME: Duration = Duration::from_secs(10);

/// A request to switch protocols, and the place that it would take.
pub(crate) struct Upgrade {
    protocol: HeaderValue,
    client_side: OnUpgrade,
    place: OwnedSemaphorePermit,
}

impl Upgrade {
    /// What the request asks to switch to, if it does. HTTP/2 by upgrade is not passed on (RFC 9113 dropped it, and
    /// it has been a way past gateways).
    pub(crate) fn asked_for(client: &Client, head: &mut request::Parts) -> Result<Option<Self>, Reason> {
        let asks = head.version == Version::HTTP_11
            && head.headers.get_all(CONNECTION).iter().any(|value| lists(value.as_bytes(), b"upgrade"));
        let protocol = head.headers.get(UPGRADE).filter(|value| asks && !lists(value.as_bytes(), b"h2c"));
        let Some(protocol) = protocol.cloned() else { return Ok(None) };
        let Some(client_side) = head.extensions.remove::<OnUpgrade>() else { return Ok(None) };
        let upgrades = client.worker.shared.upgrades.clone();
        let place = upgrades.try_acquire_owned().map_err(|_| Reason::GatewayOverloaded)?;
        Ok(Some(Self { protocol, client_side, place }))
    }

    pub(crate) fn protocol(&self) -> HeaderValue {
        self.protocol.clone()
    }

    /// Joins the two ends if the upstream has agreed; otherwise its answer is an answer like any other.
    pub(crate) fn finish(
        self,
        client: &Arc<Client>,
        mut response: Response<AnswerBody>,
    ) -> Response<AnswerBody> {
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return response;
        }
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
        response.headers_mut().insert(UPGRADE, self.protocol);
        let upstream_side = hyper::upgrade::on(&mut response);
        response.body_mut().upgraded();
        let (client, place) = (client.clone(), self.place);
        tokio::spawn(async move {
            let both = async { tokio::try_join!(self.client_side, upstream_side) };
            if let Ok(Ok((client_side, upstream_side))) = timeout(SWITCH_TIME, both).await {
                // Either end closes it. How long it may stand idle is for the two to say; the cap bounds how many do.
                let _ = copy_bidirectional(&mut TokioIo::new(client_side), &mut TokioIo::new(upstream_side))
                    .await;
            }
            // The connection's place among the open ones is held until here too.
            drop((client, place));
        });
        response
    }
}
