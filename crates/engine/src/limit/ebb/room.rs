//! Whether there may be room for twice as much, and what trying it has shown.
//!
//! A limit that grows by a fifth with each pair of phases needs seconds from ten to a hundred, and meanwhile refuses what
//! could be served. So as long as nothing has shown that the upstream is full, the second phase of a pair is not lower than
//! the first one but twice as high. If nothing queues in it, that was too little too, and it is doubled again: TCP's slow
//! start (RFC 5681, section 3.1) with a phase in the place of a round trip.
//!
//! It only judges. What is done about it is in [`Ebb`](super::Ebb).

use super::estimate::{CHANGED, DEADLINE_SHARE, IMPATIENT};
use super::sums::Sums;
use crate::policy::EbbPart;

/// Twice as much takes as long if nothing queues, and twice as long if all that is more does. This is halfway between,
/// on a logarithmic scale.
const PAYS: f64 = 0.7;
/// From here to [`PAYS`] it may be noise: the estimate follows, and it is tried once more. Below this it is full. One
/// wrong verdict costs seconds of slow growth, one more try hardly anything.
const FULL: f64 = 0.6;
/// The same for a low phase, which takes as long if nothing queues and 0.71 times as long at the knee; a standard
/// deviation has to be added.
const ROOM: f64 = 0.85;
/// There is more room than when it was last found full if throughput is a fifth higher, and a standard deviation.
const FASTER: f64 = 0.2;
/// If it is full, twice as much takes twice as long. That may be so much of the deadline.
const BRAKE: f64 = 0.6;

#[derive(Debug)]
pub(super) struct Room {
    /// Nothing has shown yet, or nothing shows any more, that it is full.
    open: bool,
    /// The phase in which it was last found full.
    full: Option<Sums>,
    without: Option<EbbPart>,
}

/// What twice as much has brought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Doubled {
    /// Nothing queues.
    Pays,
    /// The knee may be in between; this is the one response time by the other.
    Perhaps(f64),
    /// It is full.
    Full,
}

impl Room {
    pub(super) const fn new(without: Option<EbbPart>) -> Self {
        Self { open: true, full: None, without }
    }

    /// Whether nothing says that it is full.
    pub(super) const fn is_open(&self) -> bool {
        self.open
    }

    /// Whether twice as much is worth a try after this phase. The deadline is in seconds.
    pub(super) fn is_worth_a_try(&self, high: &Sums, deadline: f64) -> bool {
        let part = |part| self.without != Some(part);
        let brake = if part(EbbPart::Brake) { BRAKE * deadline } else { f64::INFINITY };
        part(EbbPart::Doubling)
            && (self.open || (part(EbbPart::Faster) && self.is_faster(high)))
            && high.missed_share() <= IMPATIENT
            && 2.0 * high.response_time() <= brake
    }

    /// Learns from a high phase and a low one. The deadline is in seconds.
    pub(super) fn learn_low(&mut self, high: &Sums, low: &Sums, deadline: f64) {
        let ratio = low.response_time() / high.response_time().max(1e-9);
        self.open = ratio > ROOM + spread(high, low)
            && high.response_time() < DEADLINE_SHARE * deadline
            && high.missed_share() <= IMPATIENT
            && low.throughput() < CHANGED * high.throughput();
        if !self.open {
            self.full = Some(*high);
        }
    }

    /// Learns from a phase and one with twice as much.
    pub(super) fn learn_doubled(&mut self, below: &Sums, above: &Sums) -> Doubled {
        let ratio = below.response_time() / above.response_time().max(1e-9);
        let patient = above.missed_share() <= IMPATIENT;
        if patient && ratio > PAYS {
            return Doubled::Pays;
        }
        self.full = Some(*above);
        self.open = patient && ratio > FULL;
        if self.open { Doubled::Perhaps(ratio) } else { Doubled::Full }
    }

    fn is_faster(&self, high: &Sums) -> bool {
        self.full.is_some_and(|full| {
            libm::log(high.throughput() / full.throughput()) > FASTER + spread(high, &full)
        })
    }
}

/// The standard deviation of the logarithm of the ratio of what two phases say.
fn spread(one: &Sums, other: &Sums) -> f64 {
    libm::sqrt(1.0 / one.responses.max(1.0) + 1.0 / other.responses.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A phase of a second with so many in flight and so many answers.
    fn phase(in_flight: f64, responses: f64) -> Sums {
        Sums::of(1.0, in_flight, responses, 0.0)
    }

    #[test]
    fn it_pays_as_long_as_nothing_queues() {
        let mut room = Room::new(None);
        assert_eq!(room.learn_doubled(&phase(8.0, 400.0), &phase(16.0, 800.0)), Doubled::Pays);
        assert_eq!(room.learn_doubled(&phase(8.0, 400.0), &phase(16.0, 500.0)), Doubled::Perhaps(0.625));
        assert!(room.is_open(), "once more");
        assert_eq!(room.learn_doubled(&phase(8.0, 400.0), &phase(16.0, 400.0)), Doubled::Full);
        assert!(!room.is_open() && !room.is_worth_a_try(&phase(8.0, 400.0), 1.0));
    }

    /// As when workers are added.
    #[test]
    fn more_throughput_than_when_it_was_full_is_room() {
        let mut room = Room::new(None);
        room.learn_doubled(&phase(8.0, 400.0), &phase(16.0, 400.0));
        assert!(!room.is_worth_a_try(&phase(8.0, 480.0), 1.0), "that may be noise");
        assert!(room.is_worth_a_try(&phase(8.0, 600.0), 1.0));
    }

    #[test]
    fn a_low_phase_that_is_not_faster_is_room() {
        let mut room = Room::new(None);
        let high = phase(14.0, 500.0);
        room.learn_low(&high, &phase(9.0, 450.0), 1.0);
        assert!(!room.is_open(), "at the knee it is");
        room.learn_low(&high, &phase(9.0, 321.0), 1.0);
        assert!(room.is_open());
        room.learn_low(&high, &phase(9.0, 30.0), 0.1);
        assert!(
            !room.is_open(),
            "more than a quarter of the deadline is queueing, whatever else is measured"
        );
    }

    #[test]
    fn nobody_has_to_wait_longer_than_there_is_time_so_that_it_can_be_tried() {
        let room = Room::new(None);
        let high = phase(12.0, 100.0);
        assert!(room.is_worth_a_try(&high, 0.401), "twice 120 ms are six tenths of 400");
        assert!(!room.is_worth_a_try(&high, 0.399));
    }

    /// Those who leave sooner than an answer was to be expected say nothing, but the answers to nobody do.
    #[test]
    fn answers_that_come_too_late_end_it() {
        let mut late = phase(16.0, 800.0);
        late.late = 50.0;
        let mut room = Room::new(None);
        assert!(!room.is_worth_a_try(&late, 1.0));
        assert_eq!(room.learn_doubled(&phase(8.0, 400.0), &late), Doubled::Full);
    }

    #[test]
    fn nothing_that_is_measured_opens_it_by_being_no_number() {
        let nothing = Sums::default();
        let mut room = Room::new(None);
        assert_ne!(room.learn_doubled(&nothing, &phase(f64::NAN, 0.0)), Doubled::Pays);
        room.learn_low(&nothing, &nothing, f64::NAN);
        assert!(!room.is_open());
        assert!(!room.is_worth_a_try(&phase(f64::NAN, f64::NAN), f64::NAN));
    }
}
