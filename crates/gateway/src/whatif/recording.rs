//! What has happened to one upstream, copied out of what is kept: it goes to another thread, and the gateway goes on.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tidegate_engine::{Reason, Timestamp};
use tidegate_policy::{Policy, PriorityClass, Route, RoutePriority};

use super::Question;
use crate::history::{Arrivals, Came, History, Layout, Sample, Worked};
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
        let samples = newest(history, span);
        let (happened, useful) = happened(&samples, &live.policy, question.upstream, span);
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

/// Where in the samples of one layout the numbers of an upstream are.
struct Places {
    arrivals: Sum,
    goodput: Sum,
    refused: Sum,
    in_flight: Sum,
    limit: Sum,
    /// Useful answers of each class.
    useful: Vec<Sum>,
}

/// A number less others that are a part of it. What a layout does not have is nothing.
#[derive(Default)]
struct Sum {
    whole: Option<usize>,
    less: Vec<usize>,
}

impl Places {
    /// Looked up in one go, since a layout may have thousands of numbers.
    ///
    /// What a rate limit refuses is not played, and neither is what comes on exempt routes, which take no slot; so both are
    /// left out here as well. Of an exempt route whose class is said by a header it is not known how much was of which
    /// class: that stays in the counts of the classes.
    fn find(layout: &Layout, policy: &Policy, upstream: usize) -> Self {
        let name = policy.upstreams[upstream].name.as_str();
        let of_upstream = |(place, leaf): (usize, &'_ [Arc<str>])| match leaf {
            [first, of, path @ ..] if &**first == "upstreams" && &**of == name => {
                Some((path.to_vec(), place))
            }
            _ => None,
        };
        let all: HashMap<Vec<Arc<str>>, usize> = layout.paths().enumerate().filter_map(of_upstream).collect();
        let place = |path: &[&str]| {
            let path: Vec<Arc<str>> = path.iter().map(|&name| Arc::from(name)).collect();
            all.get(&path).copied()
        };
        let exempt: Vec<&Route> =
            policy.routes.iter().filter(|route| route.exempt && route.upstream == upstream).collect();
        let of_exempt = |number: &str| {
            exempt.iter().filter_map(|route| place(&["routes", &route.label, number])).collect()
        };
        let limited = place(&["rejected", Reason::RateLimited.name()]);
        let without = |number: &str, limited: Option<usize>| {
            let mut less: Vec<usize> = of_exempt(number);
            less.extend(limited);
            Sum { whole: place(&[number]), less }
        };
        let whole = |number: &str| Sum { whole: place(&[number]), less: Vec::new() };
        let useful = |(index, class): (usize, &PriorityClass)| {
            let of_class = exempt.iter().filter(|route| route.priority == RoutePriority::Class(index));
            let less = of_class.filter_map(|route| place(&["routes", &route.label, "goodput"])).collect();
            Sum { whole: place(&["priorities", &class.name, "goodput"]), less }
        };
        Self {
            arrivals: without("arrivals", limited),
            goodput: without("goodput", None),
            refused: without("refused", limited),
            in_flight: whole("in_flight_mean"),
            limit: whole("limit"),
            useful: policy.priorities.iter().enumerate().map(useful).collect(),
        }
    }
}

impl Sum {
    fn of(&self, sample: &Sample) -> f64 {
        let value = |place: usize| sample.values.get(place).copied().map_or(0.0, f64::from);
        let less: f64 = self.less.iter().copied().map(value).sum();
        self.whole.map_or(0.0, |whole| value(whole) - less)
    }
}

/// What was seen of an upstream, second by second, and the useful answers of each class in all.
fn happened(
    samples: &[&Sample],
    policy: &Policy,
    upstream: usize,
    span: Duration,
) -> (Vec<Second>, Vec<f64>) {
    let mut seconds = Vec::with_capacity(samples.len());
    let mut useful = vec![0.0; policy.priorities.len()];
    let mut known: Option<(&Arc<Layout>, Places)> = None;
    // The newest ends now, as nearly as matters.
    let mut end = span.as_secs_f64();
    for sample in samples {
        let (_, places) = match known.take() {
            Some(same) if Arc::ptr_eq(same.0, &sample.layout) => known.insert(same),
            _ => known.insert((&sample.layout, Places::find(&sample.layout, policy, upstream))),
        };
        let length = f64::from(sample.seconds);
        seconds.push(Second {
            end,
            length,
            arrivals: places.arrivals.of(sample),
            goodput: places.goodput.of(sample),
            refused: places.refused.of(sample),
            in_flight: places.in_flight.of(sample),
            limit: places.limit.of(sample),
        });
        for (sum, place) in useful.iter_mut().zip(&places.useful) {
            *sum += place.of(sample) * length;
        }
        end -= length;
    }
    seconds.reverse();
    (seconds, useful)
}
