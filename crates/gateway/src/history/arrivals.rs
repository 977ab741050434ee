//! Who came in the last five minutes, and how long the upstreams worked: enough to play it again with another policy.
//!
//! No request is kept: of every tenth of a second there is how many came on each route in each class and passed the rate
//! limits, and of every ten seconds how long each upstream took, as [`TIMES`] times that are as likely as each other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tidegate_engine::{Reason, Timestamp};

use crate::live::Live;
use crate::metrics::{BUCKETS, percentile};

/// For so long.
const KEPT: Duration = Duration::from_secs(300);
/// So many counts are kept, of eight bytes and a time: where more routes and classes are busy, fewer minutes are.
const COUNTS_MAX: usize = 200_000;
/// Times are of so long.
const STRETCH: Duration = Duration::from_secs(10);
/// And of each stretch and upstream there are so many.
const TIMES: usize = 32;

/// So many of a kind came between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Came {
    /// The later of the looks.
    pub(crate) at: Timestamp,
    pub(crate) route: u16,
    pub(crate) class: u8,
    pub(crate) count: u32,
}

/// How long an upstream worked on what it began in a stretch of time.
#[derive(Clone, Debug)]
pub(crate) struct Worked {
    /// The end of the stretch.
    pub(crate) until: Timestamp,
    pub(crate) upstream: u16,
    /// In milliseconds, in rising order.
    pub(crate) times: [f32; TIMES],
}

/// What is kept, and the policy that it was recorded under.
pub(crate) struct Arrivals {
    live: Arc<Live>,
    came: VecDeque<Came>,
    worked: VecDeque<Worked>,
    /// What had come by the last look, route by route and class by class.
    before: Vec<u64>,
    /// What each upstream had done by the end of the last stretch.
    done: Vec<[u64; BUCKETS]>,
    stretch: Timestamp,
    pub(crate) since: Timestamp,
}

impl Arrivals {
    pub(crate) fn new(live: Arc<Live>, now: Timestamp) -> Self {
        let mut arrivals = Self {
            came: VecDeque::new(),
            worked: VecDeque::new(),
            before: Vec::new(),
            done: Vec::new(),
            stretch: now,
            since: now,
            live: live.clone(),
        };
        arrivals.begin(live, now);
        arrivals
    }

    /// Looks what has come since. To be called about ten times a second.
    pub(crate) fn look(&mut self, now: Timestamp, live: &Arc<Live>) {
        if !Arc::ptr_eq(live, &self.live) {
            let [old, new] = [&self.live.policy, &live.policy];
            let is_other =
                old.routes != new.routes || old.priorities != new.priorities || names(old) != names(new);
            self.live = live.clone();
            if is_other {
                // Numbers of routes and classes mean something else now.
                self.begin(live.clone(), now);
                return;
            }
        }
        let mut before = self.before.iter_mut();
        for (route, counted) in self.live.routes.iter().enumerate() {
            for (class, stats) in counted.stats.iter().enumerate() {
                let Some(before) = before.next() else { return };
                let total = stats.arrived.get().saturating_sub(stats.rejected(Reason::RateLimited));
                let count = u32::try_from(total.saturating_sub(*before)).unwrap_or(u32::MAX);
                *before = total;
                if count > 0 && !self.live.policy.routes[route].exempt {
                    self.came.push_back(Came { at: now, route: route as u16, class: class as u8, count });
                }
            }
        }
        while self.came.len() > COUNTS_MAX || self.came.front().is_some_and(|it| now.since(it.at) > KEPT) {
            if let Some(gone) = self.came.pop_front() {
                self.since = self.since.max(gone.at);
            }
        }
        if now.since(self.stretch) >= STRETCH {
            self.end_stretch(now);
        }
    }

    pub(crate) fn came(&self) -> impl Iterator<Item = Came> {
        self.came.iter().copied()
    }

    /// Of one upstream, the oldest first, with what has come of the stretch that is not over.
    pub(crate) fn worked(&self, upstream: u16, now: Timestamp) -> Vec<Worked> {
        let mut all: Vec<Worked> = self.worked.iter().filter(|it| it.upstream == upstream).cloned().collect();
        all.extend(self.times(usize::from(upstream)).map(|times| Worked { until: now, upstream, times }));
        all
    }

    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.live
    }

    fn begin(&mut self, live: Arc<Live>, now: Timestamp) {
        self.came.clear();
        self.worked.clear();
        let counts = live.routes.iter().flat_map(|route| &route.stats);
        let total =
            counts.map(|stats| stats.arrived.get().saturating_sub(stats.rejected(Reason::RateLimited)));
        self.before = total.collect();
        self.done = live.upstreams.iter().map(|upstream| upstream.stats.head.counts()).collect();
        (self.stretch, self.since, self.live) = (now, now, live);
    }

    fn end_stretch(&mut self, now: Timestamp) {
        self.stretch = now;
        for upstream in 0..self.done.len() {
            if let Some(times) = self.times(upstream) {
                self.worked.push_back(Worked { until: now, upstream: upstream as u16, times });
            }
            self.done[upstream] = self.live.upstreams[upstream].stats.head.counts();
        }
        while self.worked.front().is_some_and(|it| now.since(it.until) > KEPT) {
            self.worked.pop_front();
        }
    }

    /// What an upstream has done since the last stretch ended.
    fn times(&self, upstream: usize) -> Option<[f32; TIMES]> {
        let (live, done) = (self.live.upstreams.get(upstream)?, self.done.get(upstream)?);
        let now = live.stats.head.counts();
        let counts: [u32; BUCKETS] =
            std::array::from_fn(|it| u32::try_from(now[it].saturating_sub(done[it])).unwrap_or(u32::MAX));
        let share = |number: usize| (number as f64 + 0.5) / TIMES as f64;
        percentile(&counts, 0.5)?;
        Some(std::array::from_fn(|number| percentile(&counts, share(number)).unwrap_or_default() as f32))
    }
}

fn names(policy: &tidegate_policy::Policy) -> Vec<&str> {
    policy.upstreams.iter().map(|upstream| upstream.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Ending;
    use tidegate_policy::Policy;
    use tidegate_tower::Clock;

    fn live(routes: &str, before: Option<&Live>) -> Arc<Live> {
        let text = format!("[[upstream]]\nname = \"a\"\nendpoints = [\"http://127.0.0.1:1\"]\n{routes}");
        let parsed = Policy::parse(&text, "policy.toml").unwrap_or_else(|errors| panic!("{errors}"));
        Arc::new(Live::new(parsed.policy, Vec::new(), before, Clock::start()))
    }

    const ROUTES: &str = "[[route]]\npath = \"/health\"\nexempt = true\n[[route]]\npath = \"/*\"\n";

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn those_who_reached_the_gate_are_kept_for_five_minutes() {
        let live = live(ROUTES, None);
        let stats = |route: usize| &live.routes[route].stats[1];
        let mut arrivals = Arrivals::new(live.clone(), at(0));
        stats(0).arrived.add(9);
        stats(1).arrived.add(5);
        stats(1).ended(Ending::Rejected, Some(Reason::RateLimited));
        arrivals.look(at(100), &live);
        let came: Vec<Came> = arrivals.came().collect();
        assert_eq!(came, [Came { at: at(100), route: 1, class: 1, count: 4 }]);
        arrivals.look(at(300_100), &live);
        assert_eq!(arrivals.came().count(), 1);
        arrivals.look(at(300_101), &live);
        assert_eq!((arrivals.came().count(), arrivals.since), (0, at(100)));
    }

    #[test]
    fn counts_and_times_have_a_bound() {
        let live = live(ROUTES, None);
        let mut arrivals = Arrivals::new(live.clone(), at(0));
        // A look every millisecond stands for a hundred kinds that come at every look.
        for look in 1..=COUNTS_MAX as u64 + 1_000 {
            live.routes[1].stats[0].arrived.add(1);
            live.upstreams[0].stats.head.observe(Duration::from_millis(20));
            arrivals.look(at(look), &live);
        }
        assert_eq!(arrivals.came().count(), COUNTS_MAX);
        assert_eq!(arrivals.since, at(1_000), "older ones are not all there");
        assert_eq!(arrivals.worked.len(), 20);
        let end = COUNTS_MAX as u64 + 1_000;
        for look in 1..=1_000 {
            live.upstreams[0].stats.head.observe(Duration::from_millis(20));
            arrivals.look(at(end + 10_000 * look), &live);
        }
        assert!(arrivals.worked.len() <= 31, "{}", arrivals.worked.len());
        assert!(arrivals.worked.iter().all(|it| it.times.iter().all(|time| (17.0..23.0).contains(time))));
    }

    /// A reload that changes what the numbers of routes mean begins anew; one that does not goes on.
    #[test]
    fn a_reload_mixes_nothing_up() {
        let first = live(ROUTES, None);
        let mut arrivals = Arrivals::new(first.clone(), at(0));
        first.routes[1].stats[0].arrived.add(3);
        arrivals.look(at(100), &first);
        let same = Arc::new(first.with_limit(0, std::num::NonZeroU32::new(7), Clock::start()));
        same.routes[1].stats[0].arrived.add(2);
        arrivals.look(at(200), &same);
        assert_eq!(arrivals.came().map(|came| came.count).collect::<Vec<_>>(), [3, 2]);
        let other = live("[[route]]\npath = \"/*\"\n", Some(&same));
        arrivals.look(at(300), &other);
        arrivals.look(at(400), &other);
        assert_eq!(arrivals.came().count(), 0);
    }
}
