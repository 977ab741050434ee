//! After how long clients leave that do not say how long they wait.
//!
//! Most clients have a timeout and tell nobody. But when they leave, it shows how long they have waited. Whoever is let in
//! to wait for longer than that is served in vain: the work is done, and nobody takes it. So the wait budget is never more
//! than half of it, and a tenth where there is a queue all the time.
//!
//! It is learned of each class by itself: what one sort of clients does says nothing of another.
//!
//! It is learned where it matters, when many leave; a page that is closed now and then says nothing. It is kept when they
//! do not leave any more, since that is what knowing it brings about; and whoever is served after having waited for longer
//! moves it up.
//!
//! If it is true of nearly all, it is a [deadline](Patience::deadline) for the adaptive limit too.

use core::time::Duration;

use crate::time::nanos;

/// Fewer than this share of those who come to an end have left for reasons of their own.
const MANY: f64 = 0.05;
/// The share is that of about so many who came to an end last.
const ENDS: f64 = 64.0;
/// How far one client moves what is known.
const STEP: u64 = 8;
/// With fewer who have left nothing is believed to be a deadline.
const LEAVERS_MIN: u32 = 16;
/// Nor after so many who were served, if nobody has left meanwhile.
const FORGOTTEN: u32 = 65_536;

#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// In nanoseconds; zero while nothing is known.
    patience: u64,
    leaving: f64,
    /// The share, lately, of those who were served after that time all the same.
    outlasting: f64,
    /// So many have left, and so many have been served since the last of them.
    leavers: u32,
    since: u32,
}

impl Patience {
    /// Somebody has left, so long after having come. Whoever leaves before an answer could be there, which takes
    /// `service`, has not run out of patience, or anybody could shorten the queue by hanging up at once.
    pub(crate) fn left(&mut self, after: Duration, service: Option<Duration>) {
        if service.is_none_or(|service| after <= service) {
            return;
        }
        self.leaving += (1.0 - self.leaving) / ENDS;
        if self.leaving > MANY {
            self.leavers = self.leavers.saturating_add(1);
            self.since = 0;
            let after = nanos(after);
            match self.patience {
                0 => self.patience = after,
                known if after < known => self.patience -= (known - after) / STEP,
                known => self.patience += (after - known) / STEP,
            }
        }
    }

    /// Somebody has got an answer, so long after having come.
    pub(crate) fn served(&mut self, after: Duration) {
        self.leaving -= self.leaving / ENDS;
        let after = nanos(after);
        self.since = self.since.saturating_add(1);
        let outlasts = self.patience > 0 && after > self.patience;
        self.outlasting += (f64::from(u8::from(outlasts)) - self.outlasting) / ENDS;
        if outlasts {
            self.patience += (after - self.patience) / STEP + 1;
        }
    }

    /// After how long an answer comes too late for nearly all. That is known only where hardly anybody has got one later: if
    /// some leave and others stay, it says something of those who leave, and nothing of answers. A few are not believed,
    /// and what was long ago is not true any more.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let known = self.patience > 0 && self.outlasting <= MANY;
        let believed = self.leavers >= LEAVERS_MIN && self.since <= FORGOTTEN;
        (known && believed).then(|| Duration::from_nanos(self.patience))
    }

    /// How long clients wait, if they leave. At least half as long again as an answer takes, which is `service`: whoever means
    /// harm can leave as soon as that is believed, but not shorten everybody's wait to nothing.
    pub(crate) fn known(&self, service: Option<Duration>) -> Option<Duration> {
        let service = service.unwrap_or_default();
        let least = service.saturating_add(service / 2);
        match self.patience {
            0 => None,
            nanos => Some(Duration::from_nanos(nanos).max(least)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    const SERVICE: Option<Duration> = Some(ms(20));

    #[test]
    fn learned_when_many_leave_and_kept_when_they_do_not_any_more() {
        let mut patience = Patience::default();
        for _ in 0..100 {
            patience.served(ms(100));
            patience.left(ms(400), SERVICE);
        }
        assert_eq!(patience.known(SERVICE), Some(ms(400)));
        for _ in 0..10_000 {
            patience.served(ms(200));
        }
        assert_eq!(patience.known(SERVICE), Some(ms(400)));
        // They wait longer than was thought.
        for _ in 0..100 {
            patience.served(ms(900));
        }
        assert!(patience.known(SERVICE).is_some_and(|known| known >= ms(899)), "{patience:?}");
    }

    /// A third leaves after 100 ms, and the others get their answers later. That is no deadline; that nobody gets one later is.
    #[test]
    fn a_deadline_is_when_hardly_anybody_gets_an_answer_any_more() {
        let mut patience = Patience::default();
        for _ in 0..300 {
            patience.left(ms(100), SERVICE);
            patience.served(ms(200));
            patience.served(ms(50));
        }
        assert!(patience.known(SERVICE).is_some() && patience.deadline().is_none(), "{patience:?}");
        let mut patience = Patience::default();
        for _ in 0..300 {
            patience.left(ms(100), SERVICE);
            patience.served(ms(90));
        }
        assert_eq!(patience.deadline(), Some(ms(100)));
        // Not more than what they really wait, however long an answer takes.
        assert_eq!(patience.known(Some(ms(200))), Some(ms(300)));
        assert_eq!(patience.deadline(), Some(ms(100)));
        (0..=FORGOTTEN).for_each(|_| patience.served(ms(90)));
        assert_eq!((patience.known(SERVICE), patience.deadline()), (Some(ms(100)), None));
    }

    #[test]
    fn a_handful_who_leave_make_no_deadline() {
        let mut patience = Patience::default();
        (0..LEAVERS_MIN).for_each(|_| patience.left(ms(100), SERVICE));
        assert!(patience.known(SERVICE).is_some() && patience.deadline().is_none(), "{patience:?}");
    }

    #[test]
    fn a_few_who_leave_say_nothing_and_neither_do_those_who_leave_at_once() {
        let mut patience = Patience::default();
        for _ in 0..1000 {
            (0..30).for_each(|_| patience.served(ms(30)));
            patience.left(ms(100), SERVICE);
        }
        assert_eq!(patience.known(SERVICE), None);
        for _ in 0..1000 {
            patience.left(ms(20), SERVICE);
            patience.left(ms(300), None);
        }
        assert_eq!(patience.known(SERVICE), None);
    }

    /// Clients who leave as soon as it counts, to make everybody else wait shorter.
    #[test]
    fn nobody_can_shorten_it_to_nothing() {
        let mut patience = Patience::default();
        (0..1000).for_each(|_| patience.left(ms(21), SERVICE));
        assert_eq!(patience.known(SERVICE), Some(ms(30)));
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut patience = Patience::default();
        for _ in 0..100 {
            patience.left(Duration::MAX, SERVICE);
            patience.served(Duration::MAX);
            patience.left(Duration::from_nanos(1), Some(Duration::ZERO));
        }
        assert!(patience.known(Some(Duration::MAX)).is_some());
    }
}
