//! What is counted through the facade `metrics`, if the feature of that name is on. Otherwise nothing is.
//!
//! The label `upstream` is an authority as the caller wrote it, of which there are at most as many as the policy tells
//! apart.

use tidegate_engine::{Reply, Stop};

use crate::error::Refusal;

#[derive(Debug)]
pub(crate) struct Meter {
    #[cfg(feature = "metrics")]
    upstream: String,
}

#[cfg(feature = "metrics")]
impl Meter {
    pub(crate) fn of(upstream: &str) -> Self {
        Self { upstream: upstream.to_owned() }
    }

    /// A try has ended.
    pub(crate) fn replied(&self, reply: Reply) {
        let (_, name) = Reply::ALL[reply as usize];
        metrics::counter!("tidegate_client_tries_total", "upstream" => self.upstream.clone(), "reply" => name)
            .increment(1);
    }

    /// A retry is decided on.
    pub(crate) fn retried(&self) {
        metrics::counter!("tidegate_client_retries_total", "upstream" => self.upstream.clone()).increment(1);
    }

    /// A second try was sent beside the first.
    pub(crate) fn hedged(&self) {
        metrics::counter!("tidegate_client_hedges_total", "upstream" => self.upstream.clone()).increment(1);
    }

    /// A call is not tried again.
    pub(crate) fn stopped(&self, stop: Stop) {
        let (_, name) = Stop::ALL[stop as usize];
        metrics::counter!("tidegate_client_calls_total", "upstream" => self.upstream.clone(), "end" => name)
            .increment(1);
    }

    /// Something was not sent.
    pub(crate) fn refused(&self, refusal: Refusal) {
        metrics::counter!(
            "tidegate_client_refused_total",
            "upstream" => self.upstream.clone(),
            "reason" => refusal.name()
        )
        .increment(1);
    }
}

#[cfg(not(feature = "metrics"))]
impl Meter {
    pub(crate) const fn of(_: &str) -> Self {
        Self {}
    }

    pub(crate) const fn replied(&self, _: Reply) {}

    pub(crate) const fn retried(&self) {}

    pub(crate) const fn hedged(&self) {}

    pub(crate) const fn stopped(&self, _: Stop) {}

    pub(crate) const fn refused(&self, _: Refusal) {}
}
