//! Whether those who wait get through quickly, and who is sent away if not.
//!
//! As long as anybody got through quickly of late, the queue does what it is for, however long it is. If nobody did, then
//! it only makes everybody wait, and whoever has waited for long is sent away when his turn comes, so that those behind
//! him get through sooner. That is the rule of B. Maurer, "Fail at Scale" (ACM Queue 13(8), 2015), which takes from CoDel
//! (RFC 8289) what it measures and not the law by which it drops: on callers that do not slow down that law takes minutes
//! to find its rate.

use core::time::Duration;

use crate::time::Timestamp;

/// Over so long it is looked.
const INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(crate) struct Codel {
    ends: Timestamp,
    /// The shortest wait since the interval began.
    shortest: Duration,
    /// Nobody got through quickly in the interval before.
    congested: bool,
}

impl Codel {
    /// Somebody's turn has come after such a wait. Whether he is to be sent away; `long` is what counts as long, and half of
    /// it is not quick any more.
    pub(crate) fn sends_away(&mut self, now: Timestamp, waited: Duration, long: Duration) -> bool {
        if now >= self.ends {
            // After a silence nothing is known.
            let silent = now.since(self.ends) >= INTERVAL;
            self.congested = !silent && self.shortest > long / 2;
            self.shortest = Duration::MAX;
            self.ends = now.after(INTERVAL);
        }
        self.shortest = self.shortest.min(waited);
        self.congested && waited > long
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_away(codel: &mut Codel, millis: u64, waited_ms: u64) -> bool {
        let waited = Duration::from_millis(waited_ms);
        codel.sends_away(Timestamp::from_millis(millis), waited, Duration::from_millis(40))
    }

    #[test]
    fn a_burst_is_served_and_a_standing_queue_is_cut() {
        let mut codel = Codel::default();
        assert!(!sent_away(&mut codel, 1000, 60), "who knows how long that has been so");
        assert!(!sent_away(&mut codel, 1050, 5), "somebody got through quickly");
        assert!(!sent_away(&mut codel, 1100, 90));
        assert!(!sent_away(&mut codel, 1150, 30));
        assert!(sent_away(&mut codel, 1210, 90), "for an interval nobody waited less than 30 ms");
        assert!(!sent_away(&mut codel, 1220, 40), "not long");
        assert!(!sent_away(&mut codel, 1230, 10), "quick");
        assert!(sent_away(&mut codel, 1290, 60));
        assert!(!sent_away(&mut codel, 1310, 60), "somebody did");
        assert!(!sent_away(&mut codel, 9000, 60), "a silence says nothing");
    }
}
