//! What has happened to one upstream, copied out of what is kept: it goes to another thread, and the gateway goes on.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tidegate_engine::{Reason, Timestamp};

use super::Question;
use crate::history::{Arrivals, Came, History, Sample, Worked};
use crate::live::Live;

/// So many are played; of a span with more, the last part is.
pub(super) const REQUESTS_MAX: u64 = 1_500_000;

pub(crate) struct Recording {
    pub(super) live: Arc<Live>,
    pub(super) from: Timestamp,
    pub(super) span: Duration,
    /// In the order of time.
    pub(super) came: Vec<Came>,
    pub(super) worked: Vec<Worked>,
    /// How much the upstream is taken to do at once.
    pub(super) workers: NonZeroU32,
    /// What was seen, second by second.
    pub(super) happened: Vec<Second>,
    /// Useful answers of each class meanwhile, in the order of the policy.
    pub(super) useful: Vec<f64>,
}

/// How it went in one second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Second {
    /// Its end, from the beginning of the span.
    pub(super) end: f64,
    pub(super) length: f64,
    pub(super) arrivals: f64,
    pub(super) goodput: f64,
    pub(super) refused: f64,
    pub(super) in_flight: f64,
    pub(super) limit: f64,
}

impl Recording {
    /// Says in words if there is nothing to play.
    pub(crate) fn copy(
        question: &Question,
        arrivals: &Arrivals,
        history: &History,
        now: Timestamp,
    ) -> Result<Self, String> {
        let live = arrivals.live().clone();
        let is_of_upstream = |came: &Came| {
            let route = live.policy.routes.get(usize::from(came.route));
            route.is_some_and(|route| route.upstream == question.upstream)
        };
        let span = question.span.min(now.since(arrivals.since));
        let mut from = Timestamp::from_nanos(now.as_nanos().saturating_sub(span.as_nanos() as u64));
        let mut came: Vec<Came> =
            arrivals.came().filter(|came| came.at > from && is_of_upstream(came)).collect();
        // From the end, as many as can be played.
        let mut requests = 0;
        let fits = came.iter().rev().take_while(|came| {
            requests += u64::from(came.count);
            requests <= REQUESTS_MAX
        });
        let skipped = came.len() - fits.count();
        if let Some(last) = came.drain(..skipped).next_back() {
            from = last.at;
        }
        if came.is_empty() {
            return Err("nobody has come for this upstream lately, so there is nothing to play".to_owned());
        }
        let worked = arrivals.worked(question.upstream as u16, now);
        if worked.is_empty() {
            return Err("it has not answered lately, so it is not known how long it works".to_owned());
        }
        let span = now.since(from);
        let name = &live.policy.upstreams[question.upstream].name;
        let samples = newest(history, span);
        let happened = happened(&samples, name, span);
        let useful = live.policy.priorities.iter().map(|class| useful(&samples, name, &class.name)).collect();
        let most = happened.iter().map(|second| second.in_flight).fold(1.0, f64::max);
        let seen = NonZeroU32::new(most.ceil() as u32).unwrap_or(NonZeroU32::MIN);
        let workers = question.workers.unwrap_or(seen);
        Ok(Self { from, span, came, worked, workers, happened, useful, live })
    }
}

/// The samples of the span, the newest first.
fn newest(history: &History, span: Duration) -> Vec<&Sample> {
    let samples: Vec<&Sample> = history.last(span.as_secs() as usize + 1).collect();
    let mut left = span.as_secs_f64();
    let within = |sample: &&Sample| {
        let is_within = left > 0.0;
        left -= f64::from(sample.seconds);
        is_within
    };
    samples.into_iter().rev().take_while(within).collect()
}

/// What a sample says of an upstream; nothing if it did not know it.
fn value(sample: &Sample, upstream: &str, path: &[&str]) -> f64 {
    let place = sample.layout.find(&[&["upstreams", upstream], path].concat());
    place.map_or(0.0, |place| f64::from(sample.values[place]))
}

fn useful(samples: &[&Sample], upstream: &str, class: &str) -> f64 {
    let path = ["priorities", class, "goodput"];
    samples.iter().map(|sample| value(sample, upstream, &path) * f64::from(sample.seconds)).sum()
}

/// What was seen of an upstream, second by second.
fn happened(samples: &[&Sample], upstream: &str, span: Duration) -> Vec<Second> {
    let mut seconds = Vec::with_capacity(samples.len());
    // The newest ends now, as nearly as matters.
    let mut end = span.as_secs_f64();
    for sample in samples {
        let length = f64::from(sample.seconds);
        let value = |path: &[&str]| value(sample, upstream, path);
        // What a rate limit refuses is not played, and so left out here as well.
        let limited = value(&["rejected", Reason::RateLimited.name()]);
        seconds.push(Second {
            end,
            length,
            arrivals: value(&["arrivals"]) - limited,
            goodput: value(&["goodput"]),
            refused: value(&["refused"]) - limited,
            in_flight: value(&["in_flight_mean"]),
            limit: value(&["limit"]),
        });
        end -= length;
    }
    seconds.reverse();
    seconds
}
