//! Whether there may be room for twice as much, and what trying it has shown.
//!
//! A limit that grows by a fifth with each pair of phases needs seconds from ten to a hundred, and meanwhile refuses what
//! could be served. So as long as nothing has shown that the upstream is full, the second phase of a pair is not lower than
//! the first one but twice as high. If nothing queues in it, that was too little too, and it is doubled again: TCP's slow
//! start (RFC 5681, section 3.1) with a phase in the place of a round trip.
//!
//! It only judges. What is done about it is in [`Ebb`](super::Ebb).

use super::estimate::{CHANGED, DEADLINE_SHARE, GAVE_UP_MAX};
use super::sums::Sums;
use crate::policy::EbbPart;

/// More in flight takes as long if nothing queues, and longer by the same factor if all that is more does. This is
/// halfway between, on a logarithmic scale.
const PAYS: f64 = 0.5;
/// From [`PAYS`] to here it may be noise: the estimate follows, and it is tried once more. Beyond this by more than a
/// standard deviation it is full. One wrong verdict costs seconds of slow growth, one more try hardly anything.
const FULL: f64 = 0.75;
/// Less than this factor more, as a logarithm, is not enough to tell the two apart; then it counts as so much.
const MORE_MIN: f64 = 0.3;
/// The same as [`PAYS`] for a low phase, which takes as long if nothing queues and 0.71 times as long at the knee; a
/// standard deviation has to be added.
const ROOM: f64 = 0.85;
/// There is more room than when it was last found full if throughput is a fifth higher, and a standard deviation.
const FASTER: f64 = 0.2;
/// If it is full, twice as much takes twice as long. That may be so much of the deadline.
const BRAKE: f64 = 0.6;

#[derive(Debug)]
pub(super) struct Room {
    /// Nothing has shown yet, or nothing shows any more, that it is full.
    open: bool,
    /// What was measured when it was last tried, if it seemed full then but may not have been: the next try is judged by both.
    unclear: Option<(Sums, Sums)>,
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
    /// It seems full, but that may be noise.
    Unclear,
    /// It is full.
    Full,
}

impl Room {
    pub(super) const fn new(without: Option<EbbPart>) -> Self {
        Self { open: true, unclear: None, full: None, without }
    }

    /// The first pair is next. What was not clear is not judged together with it.
    pub(super) fn begin(&mut self) {
        self.unclear = None;
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
            && high.missed_share() <= GAVE_UP_MAX
            && 2.0 * high.response_time() <= brake
    }

    /// Learns from a high phase and a low one. The deadline is in seconds.
    pub(super) fn learn_low(&mut self, high: &Sums, low: &Sums, deadline: f64) {
        // Whatever was not clear was so at another time.
        self.unclear = None;
        let ratio = low.response_time() / high.response_time().max(1e-9);
        self.open = ratio > ROOM + spread(high, low)
            && high.response_time() < DEADLINE_SHARE * deadline
            && high.missed_share() <= GAVE_UP_MAX
            && low.throughput() < CHANGED * high.throughput();
        if !self.open {
            self.full = Some(*high);
        }
    }

    /// Learns from a phase and one with up to twice as much.
    pub(super) fn learn_doubled(&mut self, below: &Sums, above: &Sums) -> Doubled {
        let (mut below, mut above) = (*below, *above);
        let first = self.unclear.take();
        if let Some((first_below, first_above)) = first {
            below.add(&first_below);
            above.add(&first_above);
        }
        let ratio = below.response_time() / above.response_time().max(1e-9);
        let more = libm::log(above.in_flight() / below.in_flight().max(1e-9)).max(MORE_MIN);
        let longer = -libm::log(ratio);
        let patient = above.missed_share() <= GAVE_UP_MAX;
        if patient && longer < PAYS * more {
            return Doubled::Pays;
        }
        if patient && longer < FULL * more {
            return Doubled::Perhaps(ratio);
        }
        let margin = if self.without == Some(EbbPart::Clear) { 0.0 } else { spread(&below, &above) };
        if patient && first.is_none() && longer < FULL * more + margin {
            self.unclear = Some((below, above));
            return Doubled::Unclear;
        }
        self.open = false;
        self.full = Some(above);
        Doubled::Full
    }

    /// Whether two phases with the same limit have not seen an upstream that changed in between.
    pub(super) fn is_same(one: &Sums, other: &Sums) -> bool {
        libm::fabs(libm::log(one.throughput() / other.throughput())) <= FASTER + spread(one, other)
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

    /// What takes longer by as much as there is more in flight queues, whether that is twice as much or half as much again.
    #[test]
    fn less_than_twice_as_much_is_judged_by_what_it_is() {
        let below = phase(8.0, 400.0);
        assert_eq!(Room::new(None).learn_doubled(&below, &phase(12.0, 600.0)), Doubled::Pays);
        let perhaps = Doubled::Perhaps(0.02 / 0.025);
        assert_eq!(Room::new(None).learn_doubled(&below, &phase(12.0, 480.0)), perhaps);
        assert_eq!(Room::new(None).learn_doubled(&below, &phase(12.0, 300.0)), Doubled::Full);
        // With no more in flight it says little, and that speaks for it.
        assert_eq!(Room::new(None).learn_doubled(&below, &phase(8.0, 360.0)), Doubled::Pays);
    }

    /// Twenty answers are off by a third. One more try costs hardly anything, but there is no third one.
    #[test]
    fn what_is_not_clear_is_tried_once_more_and_not_for_ever() {
        let (below, above) = (phase(8.0, 20.0), phase(16.0, 22.0));
        let mut room = Room::new(None);
        assert_eq!(room.learn_doubled(&below, &above), Doubled::Unclear);
        assert!(room.is_open());
        assert_eq!(room.learn_doubled(&below, &above), Doubled::Full);
        let mut room = Room::new(Some(EbbPart::Clear));
        assert_eq!(room.learn_doubled(&below, &above), Doubled::Full);
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
        late.late = 200.0;
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
