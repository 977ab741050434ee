//! Plays a recording, on a thread that has nothing else to do.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use serde_json::Value;
use tidegate_engine::{LimitPolicy, Timestamp};
use tidegate_policy::{PathPattern, Policy, PriorityClass, QuickStart, Route, RoutePriority};
use tidegate_sim::{Control, Recorded, Replay};
use tidegate_tower::Clock;
use tidegate_workload::{
    Arrivals, Capacity, Clients, Kind, NamedPolicy, Purpose, Random, RetryPolicy, Scenario, Service,
    ServiceTime,
};

use super::{Limit, Question, Recording, result};
use crate::history::Came;

/// After so long it is given up: it is a question in passing, on a machine that has other work.
const TIME_MAX: Duration = Duration::from_secs(20);
const SEED: u64 = 1;
/// So many are handed in between two looks at the clock.
const BATCH: usize = 4_096;
/// Between two looks at who came.
const LOOK: Duration = Duration::from_millis(100);

/// The policy as it is and as it would be, side by side with what happened; or in words why not. Ends early when `stop` is
/// set, which is when nobody waits for it any more.
pub(crate) fn play(
    question: &Question,
    recording: &Recording,
    clock: Clock,
    stop: &Arc<AtomicBool>,
) -> Result<Value, String> {
    let began = clock.now();
    let kinds = Kinds::of(recording);
    let as_it_is = policy(recording, question, false)?;
    let changed = policy(recording, question, true)?;
    let patience = as_it_is.upstreams[0].timeout;
    let scenario = scenario(recording, &kinds, patience);
    let named = |name: &str, policy: Policy| {
        Control::Policy(Box::new(NamedPolicy { name: name.to_owned(), policy, model: None }))
    };
    let controls = [named("as it is", as_it_is), named("changed", changed)];
    let mut replay = Replay::new(&scenario, &controls, SEED);
    let mut requests = Requests::new(recording);
    let too_many = |_| "more requests are under way at once than can be played".to_owned();
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        requests.next(recording, &kinds, &mut batch);
        if batch.is_empty() {
            break;
        }
        for request in batch.drain(..) {
            replay.offer(request).map_err(too_many)?;
        }
        if stop.load(Relaxed) || clock.now().since(began) > TIME_MAX {
            return Err(format!("it would take longer than {TIME_MAX:?}: ask about a shorter time"));
        }
    }
    let reports = replay.finish().map_err(too_many)?;
    Ok(result::json(recording, &reports, clock.now().since(began)))
}

/// The kinds of requests that came: a route and a class.
struct Kinds(Vec<(u16, u8)>);

impl Kinds {
    fn of(recording: &Recording) -> Self {
        let mut kinds: Vec<(u16, u8)> = recording.came.iter().map(|came| (came.route, came.class)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        Self(kinds)
    }

    fn number(&self, came: &Came) -> u16 {
        self.0.binary_search(&(came.route, came.class)).unwrap_or_default() as u16
    }
}

/// Where a route of this number is found.
fn path(route: usize) -> String {
    format!("/{route}")
}

fn policy(recording: &Recording, question: &Question, is_changed: bool) -> Result<Policy, String> {
    let mut policy = recording.live.policy.clone();
    let mut upstream = policy.upstreams.swap_remove(question.upstream);
    if is_changed {
        upstream.queue.wait = question.wait.unwrap_or(upstream.queue.wait);
        match question.limit {
            Some(Limit::Fixed(limit)) => upstream.limit = LimitPolicy::Fixed(limit),
            Some(Limit::Adaptive) => upstream.limit = adaptive()?,
            None => {}
        }
        if let Some(order) = &question.order {
            policy.priorities = order
                .iter()
                .filter_map(|class| policy.priorities.get(*class))
                .cloned()
                .collect::<Vec<PriorityClass>>();
        }
    }
    upstream.breaker = None;
    policy.upstreams = vec![upstream];
    // The class of each request is known, and is what it says it is.
    let route = |(number, route): (usize, Route)| Route {
        path: PathPattern::Exact(path(number)),
        methods: Vec::new(),
        upstream: 0,
        priority: RoutePriority::Header("class".to_owned()),
        tenant: None,
        ..route
    };
    policy.routes = std::mem::take(&mut policy.routes).into_iter().enumerate().map(route).collect();
    policy.server.trusted_proxies = "0.0.0.0/0".parse().into_iter().collect();
    policy.server.priority_ceiling = 0;
    policy.rate_limits = Vec::new();
    Ok(policy)
}

/// What a limit is that nobody says anything about.
fn adaptive() -> Result<LimitPolicy, String> {
    let parsed = Policy::for_upstream(&QuickStart::new("http://127.0.0.1:1"));
    let parsed = parsed.map_err(|errors| errors.to_string())?;
    parsed
        .policy
        .upstreams
        .into_iter()
        .next()
        .map(|it| it.limit)
        .ok_or_else(|| "there is no limit".to_owned())
}

fn scenario(recording: &Recording, kinds: &Kinds, patience: Duration) -> Scenario {
    let policy = &recording.live.policy;
    let kind = |&(route, class): &(u16, u8)| Kind {
        share: 1.0,
        class: policy.priorities.get(usize::from(class)).map_or_else(String::new, |class| class.name.clone()),
        tenant: String::new(),
        method: "GET".to_owned(),
        path: path(usize::from(route)),
        headers: Vec::new(),
        body: String::new(),
        cost: 1.0,
        service: 0,
    };
    let all = recording.worked.iter().flat_map(|worked| worked.times).map(nanos);
    Scenario {
        name: "what if".to_owned(),
        story: String::new(),
        seed: SEED,
        runs: 1,
        duration: recording.span,
        warmup: Duration::ZERO,
        gateways: 1,
        services: vec![Service {
            name: "upstream".to_owned(),
            capacity: Capacity::Workers(recording.workers.get()),
            time: ServiceTime::Recorded(all.collect()),
            queue: None,
            delay: Duration::ZERO,
            best: None,
            fails: 0.0,
            cancels_work: false,
            calls: Vec::new(),
            changes: Vec::new(),
        }],
        clients: vec![Clients {
            name: "as recorded".to_owned(),
            arrivals: Arrivals::Recorded,
            timeout: Some(patience),
            tells_deadline: false,
            identified: false,
            tenants: NonZeroU32::MIN,
            // They are among those who came.
            retry: RetryPolicy::NONE,
            mix: kinds.0.iter().map(kind).collect(),
        }],
        policies: Vec::new(),
        expectations: Vec::new(),
    }
}

fn nanos(millis: f32) -> u64 {
    (f64::from(millis) * 1e6).max(1.0) as u64
}

/// Those who came, in the order of time, each with the time that the upstream works on it.
struct Requests {
    next: usize,
    random: Random,
}

impl Requests {
    fn new(_: &Recording) -> Self {
        Self { next: 0, random: Random::stream(SEED, Purpose::Service, 1_000_000) }
    }

    /// Those of some of the next looks, at least one if there are any left.
    fn next(&mut self, recording: &Recording, kinds: &Kinds, out: &mut Vec<Recorded>) {
        while out.len() < BATCH && self.next < recording.came.len() {
            let at = recording.came[self.next].at;
            let first = out.len();
            while let Some(came) = recording.came.get(self.next).filter(|came| came.at == at) {
                self.next += 1;
                let end = at.since(recording.from);
                let begin = end.saturating_sub(LOOK);
                for number in 0..came.count {
                    // Evenly, since it is not known when in a tenth of a second each came.
                    let share = (f64::from(number) + 0.5) / f64::from(came.count);
                    let at = begin + (end - begin).mul_f64(share);
                    let work = self.work(recording, came.at);
                    out.push(Recorded { at, kind: kinds.number(came), work: Some(work) });
                }
            }
            out[first..].sort_by_key(|request| request.at);
        }
    }

    /// As long as what the upstream did at that time, one of them by chance.
    fn work(&mut self, recording: &Recording, at: Timestamp) -> Duration {
        let worked =
            recording.worked.iter().find(|worked| worked.until >= at).or_else(|| recording.worked.last());
        let Some(worked) = worked else { return Duration::ZERO };
        let number = (self.random.uniform() * worked.times.len() as f64) as usize;
        Duration::from_nanos(nanos(worked.times[number.min(worked.times.len() - 1)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Worked;
    use crate::live::Live;

    const SECONDS: u64 = 20;

    /// Two hundred a second come, a quarter of them critical, to an upstream that can do a hundred at ten at once.
    fn recording() -> Recording {
        let text = "[[upstream]]\nname = \"a\"\nendpoints = [\"http://127.0.0.1:1\"]\n\
                    [upstream.concurrency]\nlimit = 10\n[upstream.queue]\nwait = \"200ms\"\n\
                    [[route]]\npath = \"/c\"\npriority = \"critical\"\n[[route]]\npath = \"/*\"\n";
        let parsed = Policy::parse(text, "policy.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let live = Arc::new(Live::new(parsed.policy, Vec::new(), None, Clock::start()));
        let looks = (1..=SECONDS * 10).map(|look| Timestamp::from_millis(look * 100));
        let came = looks.flat_map(|at| {
            [Came { at, route: 0, class: 0, count: 5 }, Came { at, route: 1, class: 1, count: 15 }]
        });
        let until = Timestamp::from_millis(SECONDS * 1_000);
        Recording {
            live,
            from: Timestamp::ZERO,
            span: Duration::from_secs(SECONDS),
            came: came.collect(),
            worked: vec![Worked { until, upstream: 0, times: [100.0; 32] }],
            workers: NonZeroU32::new(10).expect("ten"),
            happened: Vec::new(),
            useful: Vec::new(),
        }
    }

    fn ask(limit: Option<u32>, order: Option<Vec<usize>>) -> Value {
        let limit = limit.and_then(NonZeroU32::new).map(Limit::Fixed);
        let question = Question {
            upstream: 0,
            limit,
            wait: None,
            order,
            workers: None,
            span: Duration::from_secs(SECONDS),
        };
        play(&question, &recording(), Clock::start(), &Arc::default()).unwrap_or_else(|why| panic!("{why}"))
    }

    #[track_caller]
    fn assert_near(value: &Value, expected: f64) {
        let value = value.as_f64().unwrap_or(f64::NAN);
        assert!((value - expected).abs() <= expected * 0.06 + 5.0, "{value}, and not about {expected}");
    }

    #[test]
    fn a_smaller_limit_answers_less_and_as_it_is_stays_as_it_is() {
        let said = ask(Some(5), None);
        assert_eq!(said["as_it_is"]["arrivals"], SECONDS * 200);
        assert_near(&said["as_it_is"]["goodput"], SECONDS as f64 * 100.0);
        assert_near(&said["changed"]["goodput"], SECONDS as f64 * 50.0);
        assert_eq!(ask(None, None)["changed"], ask(None, None)["as_it_is"]);
    }

    /// A higher limit than the upstream can do at once gains nothing, and costs time.
    #[test]
    fn a_limit_beyond_what_the_upstream_can_do_only_costs_time() {
        let said = ask(Some(40), None);
        assert_near(&said["changed"]["goodput"], SECONDS as f64 * 100.0);
        let median = |played: &str| said[played]["p50_ms"].as_f64().unwrap_or_default();
        assert!(median("changed") > 1.3 * median("as_it_is"), "{} {}", median("changed"), median("as_it_is"));
    }

    #[test]
    fn another_order_serves_others() {
        let said = ask(None, Some(vec![1, 0, 2]));
        assert_near(&said["as_it_is"]["classes"]["critical"]["goodput"], SECONDS as f64 * 50.0);
        assert_near(&said["changed"]["classes"]["critical"]["goodput"], 0.0);
        assert_near(&said["changed"]["classes"]["default"]["goodput"], SECONDS as f64 * 100.0);
    }

    #[test]
    fn it_ends_when_nobody_waits_for_it() {
        let question = Question {
            upstream: 0,
            limit: None,
            wait: None,
            order: None,
            workers: None,
            span: Duration::ZERO,
        };
        let stop = Arc::new(AtomicBool::new(true));
        assert!(play(&question, &recording(), Clock::start(), &stop).is_err());
    }
}
