//! CoDel as RFC 8289 has it: whoever comes to the head of the queue after more than 5 ms is dropped now and then, once
//! everybody has waited for so long for 100 ms; the more often, the longer that goes on.
//!
//! It is a discipline of the queue and no limiter: the limit is the policy's own, and its queue should be long enough not
//! to matter. After the pseudocode of section 5 of <https://www.rfc-editor.org/rfc/rfc8289>, with its constants. There the
//! sender is a TCP that slows down when something is dropped; a client that sends requests does not.

use std::time::Duration;

use tidegate_engine::Timestamp;

/// As long may a queue stand.
const TARGET: Duration = Duration::from_millis(5);
/// After so much time above the target dropping begins.
const INTERVAL: Duration = Duration::from_millis(100);
/// If dropping ended less than so many intervals ago, it goes on where it was.
const REMEMBERED: u32 = 16;

#[derive(Debug, Default)]
pub(crate) struct Codel {
    /// When it will have been above the target for an interval, if it is above it.
    first_above: Option<Timestamp>,
    dropping: bool,
    drop_next: Timestamp,
    /// How many have been dropped since dropping began, those before included if it went on where it was.
    count: u32,
    /// What `count` was when dropping last began.
    last_count: u32,
}

impl Codel {
    /// Somebody has come to the head of the queue after waiting for so long, and somebody else waits, or nobody does.
    /// Says whether it is dropped.
    pub(super) fn drops(&mut self, now: Timestamp, waited: Duration, others: bool) -> bool {
        let ok_to_drop = self.is_above(now, waited, others);
        if !ok_to_drop {
            self.dropping = false;
            return false;
        }
        if self.dropping {
            if now < self.drop_next {
                return false;
            }
            self.count += 1;
            self.drop_next = control_law(self.drop_next, self.count);
            return true;
        }
        self.dropping = true;
        let dropped = self.count.saturating_sub(self.last_count);
        let recently = now.since(self.drop_next) < INTERVAL * REMEMBERED;
        self.count = if dropped > 1 && recently { dropped } else { 1 };
        self.last_count = self.count;
        self.drop_next = control_law(now, self.count);
        true
    }

    fn is_above(&mut self, now: Timestamp, waited: Duration, others: bool) -> bool {
        if waited < TARGET || !others {
            self.first_above = None;
            return false;
        }
        let since = *self.first_above.get_or_insert_with(|| now.after(INTERVAL));
        now >= since
    }
}

/// The next drop comes the sooner the more there have been: throughput of TCP goes with one by the root of the share that
/// is dropped.
fn control_law(from: Timestamp, count: u32) -> Timestamp {
    from.after(INTERVAL.div_f64(f64::from(count.max(1)).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_millis(50);

    /// Somebody comes to the head every millisecond from `from` to `until`: when somebody is dropped.
    fn dropped(codel: &mut Codel, from: u64, until: u64, waited: Duration) -> Vec<u64> {
        (from..until).filter(|millis| codel.drops(Timestamp::from_millis(*millis), waited, true)).collect()
    }

    #[test]
    fn it_drops_after_an_interval_and_then_by_the_root_of_the_count() {
        let mut codel = Codel::default();
        // 100 ms after the first, then 100, 100/sqrt(2), 100/sqrt(3), 100/sqrt(4) ms later.
        assert_eq!(dropped(&mut codel, 0, 460, LONG), [100, 200, 271, 329, 379, 424]);
    }

    #[test]
    fn one_who_waited_shortly_or_an_empty_queue_ends_it() {
        for (waited, others) in [(Duration::from_millis(4), true), (LONG, false)] {
            let mut codel = Codel::default();
            dropped(&mut codel, 0, 300, LONG);
            assert!(!codel.drops(Timestamp::from_millis(300), waited, others));
            assert!(dropped(&mut codel, 301, 400, LONG).is_empty(), "an interval has to pass again");
        }
    }

    #[test]
    fn what_it_had_come_to_is_remembered_for_a_while() {
        let mut codel = Codel::default();
        let first = dropped(&mut codel, 0, 2000, LONG).len() as u32;
        codel.drops(Timestamp::from_millis(2000), Duration::ZERO, true);
        assert_eq!(dropped(&mut codel, 2001, 2102, LONG), [2101]);
        assert_eq!(codel.count, first - 1, "it goes on where it was");
        codel.drops(Timestamp::from_millis(2102), Duration::ZERO, true);
        assert_eq!(dropped(&mut codel, 60_000, 60_101, LONG), [60_100]);
        assert_eq!(codel.count, 1, "and begins anew much later");
    }
}
