//! When to come back: each of those who are refused is told a time of its own.
//!
//! If all were told the same, all would come at the same moment, and most be refused again. So there is a cursor that
//! goes on with every refusal, as fast as half of the capacity could serve: the other half is for whoever comes for the
//! first time. What is told is no reservation; a turn that is not used is free for all.

use core::time::Duration;

use crate::time::{Timestamp, nanos};

/// Nobody is told to stay away for longer. Whoever would be, is told a short time again: by then the cursor has long
/// stopped to mean anything, and the turns that it gave out are spread over all of the time.
const LONGEST: Duration = Duration::from_secs(60);
/// The part of the capacity that is given to those who come back: one in so many.
const SHARE: u64 = 2;

/// The moment up to which turns have been given out.
#[derive(Debug, Default)]
pub(crate) struct Comeback {
    cursor: Timestamp,
}

impl Comeback {
    /// The next turn, seen from now. Those who wait have to be served first, which takes `wait`; `service` is how long a
    /// slot stays taken, if that is known, and `limit` how many there are.
    pub(crate) fn next(
        &mut self,
        now: Timestamp,
        wait: Duration,
        service: Option<Duration>,
        limit: u32,
    ) -> Duration {
        let Some(service) = service else { return wait };
        let gap = nanos(service).saturating_mul(SHARE) / u64::from(limit.max(1));
        let earliest = now.after(wait);
        if self.cursor.since(now) > LONGEST {
            self.cursor = earliest;
        }
        self.cursor = self.cursor.max(earliest).after(Duration::from_nanos(gap));
        self.cursor.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Timestamp = Timestamp::from_millis(1000);

    fn told(comeback: &mut Comeback, now: Timestamp, wait_ms: u64) -> u128 {
        let service = Some(Duration::from_millis(20));
        comeback.next(now, Duration::from_millis(wait_ms), service, 10).as_millis()
    }

    #[test]
    fn each_is_told_a_time_of_its_own() {
        let mut comeback = Comeback::default();
        assert_eq!([500, 500, 500].map(|wait| told(&mut comeback, SECOND, wait)), [504, 508, 512]);
        // Time goes on, and the turns that have passed are not given out again.
        assert_eq!(told(&mut comeback, Timestamp::from_millis(1500), 0), 16);
        assert_eq!(told(&mut comeback, Timestamp::from_millis(9000), 0), 4);
    }

    #[test]
    fn nobody_is_told_to_stay_away_for_ever() {
        let mut comeback = Comeback::default();
        let longest = (0..100_000).map(|_| told(&mut comeback, SECOND, 0)).max();
        assert!(longest.is_some_and(|longest| (60_000..=60_010).contains(&longest)), "{longest:?}");
        let hour = Some(Duration::from_secs(3600));
        assert_eq!(comeback.next(SECOND, Duration::MAX, hour, 1), Timestamp::MAX.since(SECOND));
        assert_eq!(Comeback::default().next(SECOND, Duration::ZERO, None, 1), Duration::ZERO);
    }
}
