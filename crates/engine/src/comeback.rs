//! When to come back: each of those who are refused is told a time of its own.
//!
//! If all were told the same, all would come at the same moment, and most be refused again. So there is a cursor that
//! goes on with every refusal, as fast as half of the capacity could serve: the other half is for whoever comes for the
//! first time. What is told is no reservation; a turn that is not used is free for all.
//!
//! Most clients round up to whole seconds. Those who were refused at one moment then all come back at the same moments of
//! their seconds, however finely the cursor spread them. So it is also noted who comes when by whole seconds, and whoever
//! would come into a crowd is told a second more, until there is room: a crowd is three quarters of what can be taken in at
//! once, into slots and queue. It makes a difference only where the queue is shorter than half a second.
//!
//! Whoever is refused for a bound of its own, that of its route or of its tenant, does not come into the way of others, and
//! has a cursor for that bound alone. Those are kept in a table of fixed size, the same as for rate limits.

use alloc::boxed::Box;
use alloc::vec;
use core::time::Duration;

use crate::decision::Rejection;
use crate::rate::Turns;
use crate::time::{Timestamp, nanos};

/// Nobody is told to stay away for longer. Whoever would be, is told a short time again: by then the cursor has long
/// stopped to mean anything, and the turns that it gave out are spread over all of the time.
const LONGEST: Duration = Duration::from_secs(60);
/// The part of the capacity that is given to those who come back: one in so many.
const SHARE: u64 = 2;
/// So much of what can be taken in at once may come at once. More than the half that the cursor gives out on average, or
/// many would be told to come later for want of room in the one tenth of a second, beside an empty one.
const CROWD_PERCENT: u64 = 75;

/// Bounds of their own, of routes and tenants, told apart: cursors for an eighth of them, 24 KiB, made when the first is
/// refused for one. Those that are not being refused need none.
const BOUNDS: u32 = 8_192;

/// The calendar's day: 64 to a second, so that a second is a whole number of them; and somewhat more than a minute.
const DAY: u64 = 1_000_000_000 / 64;
const DAYS: usize = 4096;
/// Whatever is taken in over half a second or more takes in a second's worth of the cursor at once.
const DAYS_CROWDED_MAX: u64 = 32;

/// What a capacity can take in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// How long a slot stays taken, if that is known.
    pub(crate) service: Option<Duration>,
    pub(crate) slots: u32,
    /// How many may wait.
    pub(crate) places: u32,
}

/// A bound that holds for some only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// What tells it from others.
    pub(crate) key: u64,
    /// How many slots it leaves to whom it holds for.
    pub(crate) slots: u32,
}

/// Whether somebody who is refused was told a time before that has not come yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// No: it joins those who are to come back.
    New,
    /// Yes. Otherwise one who hammers would use up everybody's turns.
    Joined,
}

impl Line {
    /// By how much the line grows.
    const fn by(self, gap: u64) -> Duration {
        match self {
            Self::New => Duration::from_nanos(gap),
            Self::Joined => Duration::ZERO,
        }
    }
}

/// The moment up to which turns have been given out, and who comes when.
#[derive(Debug, Default)]
pub(crate) struct Comeback {
    cursor: Timestamp,
    calendar: Calendar,
    bounds: Option<Turns>,
}

impl Comeback {
    /// The next turn, seen from now. Those who wait have to be served first, which takes `wait`. It is used up, unless
    /// whoever asks has one already: then it stands at the end of the line, and does not make it longer.
    pub(crate) fn next(&mut self, now: Timestamp, wait: Duration, room: Room, line: Line) -> Duration {
        let Some(service) = room.service else { return wait };
        let slots = room.slots.max(1);
        let gap = line.by(nanos(service).saturating_mul(SHARE) / u64::from(slots));
        let earliest = now.after(wait);
        if self.cursor.since(now) > LONGEST {
            self.cursor = earliest;
        }
        self.cursor = self.cursor.max(earliest).after(gap);
        let turn = self.cursor.since(now);
        if line == Line::Joined {
            return turn;
        }
        let at_once = u64::from(slots) + u64::from(room.places);
        let absorbed_in = nanos(service).saturating_mul(at_once) / u64::from(slots);
        let days = absorbed_in.div_ceil(DAY);
        if days >= DAYS_CROWDED_MAX {
            return turn;
        }
        let crowd = u32::try_from(at_once * CROWD_PERCENT / 100).unwrap_or(u32::MAX);
        self.calendar.avoid_crowds(now, turn, days, crowd.max(1))
    }
}

impl Comeback {
    /// The next turn of those for whom this bound holds: when one of its slots is likely to be free, and then as far apart as
    /// half of them can serve.
    pub(crate) fn next_within(
        &mut self,
        now: Timestamp,
        bound: Bound,
        service: Option<Duration>,
        line: Line,
    ) -> Duration {
        let Some(service) = service else { return Duration::ZERO };
        let free = service / bound.slots.max(1);
        let gap = line.by(nanos(free).saturating_mul(SHARE));
        let bounds = self.bounds.get_or_insert_with(|| Turns::new(BOUNDS));
        bounds.next(now, bound.key, free, gap, LONGEST)
    }
}

/// How many will come on each day, if all round up to whole seconds. Allocated when it is first needed.
#[derive(Debug, Default)]
struct Calendar {
    days: Box<[u16]>,
    /// Since the epoch. What lies before it has been cleared.
    today: u64,
}

impl Calendar {
    /// This turn, or so many seconds later as it takes to come not into a crowd of `most` within `span` days; or, if
    /// there are crowds everywhere, into the smallest.
    fn avoid_crowds(&mut self, now: Timestamp, turn: Duration, span: u64, most: u32) -> Duration {
        self.advance(now);
        let (mut best, mut smallest) = (turn, u32::MAX);
        for later in 0..=LONGEST.as_secs() {
            let told = turn.saturating_add(Duration::from_secs(later));
            if told > LONGEST || smallest < most {
                break;
            }
            let crowd = self.crowd(day(now, told), span);
            if crowd < smallest {
                (best, smallest) = (told, crowd);
            }
        }
        let comes = &mut self.days[place(day(now, best))];
        *comes = comes.saturating_add(1);
        best
    }

    /// How many come within so many days up to this one.
    fn crowd(&self, day: u64, span: u64) -> u32 {
        (0..span).map(|back| u32::from(self.days[place(day.saturating_sub(back))])).sum()
    }

    /// Clears the days that have passed, for those a minute ahead.
    fn advance(&mut self, now: Timestamp) {
        if self.days.is_empty() {
            self.days = vec![0; DAYS].into_boxed_slice();
        }
        let today = now.as_nanos() / DAY;
        let passed = today.saturating_sub(self.today).min(DAYS as u64);
        for day in today - passed..today {
            self.days[place(day)] = 0;
        }
        self.today = self.today.max(today);
    }
}

/// When somebody comes who is told this.
fn day(now: Timestamp, told: Duration) -> u64 {
    // As clients do who know no shorter time.
    now.after(Duration::from_secs(whole_seconds(told))).as_nanos() / DAY
}

const fn place(day: u64) -> usize {
    (day % DAYS as u64) as usize
}

/// A time to come back in whole seconds, as `Retry-After` has it (RFC 9110 section 10.2.3): rounded up, since whoever comes a
/// moment too early is refused again.
pub fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0))
}

/// The same in whole milliseconds.
pub fn whole_millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

impl Rejection {
    /// When to come back, if nobody is told more than `longest`. Whoever would be is told a time in the upper half of
    /// that: as they were told different times, so they are here.
    pub fn told(&self, longest: Duration) -> Duration {
        let half = nanos(longest / 2).max(1);
        match self.retry_after {
            told if told <= longest => told,
            // No time at all makes sense.
            Duration::MAX => longest,
            told => longest.saturating_sub(Duration::from_nanos(nanos(told - longest) % half)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Reason;

    const SECOND: Timestamp = Timestamp::from_millis(1000);

    /// Ten slots of 20 ms.
    fn room(places: u32) -> Room {
        Room { service: Some(Duration::from_millis(20)), slots: 10, places }
    }

    fn told(comeback: &mut Comeback, now: Timestamp, wait_ms: u64) -> u128 {
        comeback.next(now, Duration::from_millis(wait_ms), room(240), Line::New).as_millis()
    }

    #[test]
    fn each_is_told_a_time_of_its_own() {
        let mut comeback = Comeback::default();
        assert_eq!([500, 500, 500].map(|wait| told(&mut comeback, SECOND, wait)), [504, 508, 512]);
        // Time goes on, and the turns that have passed are not given out again.
        assert_eq!(told(&mut comeback, Timestamp::from_millis(1500), 0), 16);
        assert_eq!(told(&mut comeback, Timestamp::from_millis(9000), 0), 4);
    }

    /// H10. A thousand who are refused at one moment and round up to whole seconds are no crowd, whatever the queue.
    #[test]
    fn no_crowds_by_whole_seconds() {
        // So many places in the queue, so many who may come together, so many seconds until the last.
        for (places, together, last) in [(490, 250, 4), (90, 75, 14), (40, 37, 28), (6, 17, 60)] {
            let mut comeback = Comeback::default();
            let mut arrivals = [0; 61];
            for _ in 0..1000 {
                let told = comeback.next(SECOND, Duration::ZERO, room(places), Line::New);
                arrivals[whole_seconds(told) as usize] += 1;
            }
            let most = *arrivals.iter().max().unwrap();
            let end = arrivals.iter().rposition(|count| *count > 0).unwrap();
            assert_eq!((most, end), (together, last), "{places} places");
        }
    }

    /// Those who were refused at other moments of their seconds are nobody's crowd, and days that have passed are clear.
    #[test]
    fn a_crowd_is_of_one_moment() {
        let mut comeback = Comeback::default();
        let ask = |comeback: &mut Comeback, at: u64, times: usize| {
            let at = Timestamp::from_millis(at);
            (0..times).map(|_| comeback.next(at, Duration::ZERO, room(0), Line::New)).max().unwrap().as_secs()
        };
        assert_eq!(ask(&mut comeback, 1000, 8), 1, "the eighth would be one too many");
        assert_eq!(ask(&mut comeback, 1500, 7), 0);
        assert_eq!(ask(&mut comeback, 1750, 7), 0);
        assert_eq!(ask(&mut comeback, 500_000, 7), 0);
        assert_eq!(ask(&mut comeback, 500_000, 7), 1);
    }

    #[test]
    fn who_is_told_less_is_spread_too() {
        let told = |seconds| {
            let rejection =
                Rejection { reason: Reason::QueueFull, retry_after: Duration::from_secs(seconds) };
            rejection.told(Duration::from_secs(10)).as_secs()
        };
        assert_eq!([1, 10, 11, 12, 14, 15, 16, 60].map(told), [1, 10, 9, 8, 6, 10, 9, 10]);
        let never = Rejection { reason: Reason::RateLimited, retry_after: Duration::MAX };
        assert_eq!(never.told(Duration::from_secs(10)), Duration::from_secs(10));
    }

    #[test]
    fn nobody_is_told_to_stay_away_for_ever() {
        let mut comeback = Comeback::default();
        let longest = (0..100_000).map(|_| told(&mut comeback, SECOND, 0)).max();
        assert!(longest.is_some_and(|longest| (60_000..=60_010).contains(&longest)), "{longest:?}");
        let hour = Room { service: Some(Duration::from_secs(3600)), slots: 1, places: 0 };
        assert_eq!(comeback.next(SECOND, Duration::MAX, hour, Line::New), Timestamp::MAX.since(SECOND));
        let unknown = Room { service: None, ..hour };
        assert_eq!(Comeback::default().next(SECOND, Duration::ZERO, unknown, Line::New), Duration::ZERO);
    }
}
