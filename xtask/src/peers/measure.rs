//! What a run was worth: arithmetic on its samples.
//!
//! Nothing here reads a clock, a socket or a policy; it can be tried by hand.

use std::ops::Range;
use std::time::Duration;

use super::load::{Ending, Sample};

/// The window in which goodput is looked at for a recovery, and the step by which it is moved.
const WINDOW: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(100);

/// Good answers a second within `span`. Each counts when it came, so one that comes after the end does not.
pub(crate) fn goodput(samples: &[Sample], span: &Range<Duration>) -> f64 {
    let good =
        samples.iter().filter(|sample| sample.ending == Ending::Good && span.contains(&sample.ended()));
    good.count() as f64 / (span.end - span.start).as_secs_f64()
}

/// Of the clients that came within `span`, the share whose first try ended so; `None` without clients.
pub(crate) fn share(samples: &[Sample], ending: Ending, span: &Range<Duration>) -> Option<f64> {
    let firsts = samples.iter().filter(|sample| sample.repetition == 0 && span.contains(&sample.planned));
    let (all, such) = firsts
        .fold((0_u64, 0_u64), |(all, such), sample| (all + 1, such + u64::from(sample.ending == ending)));
    (all > 0).then(|| such as f64 / all as f64)
}

/// How long those took that ended so and came within `span`, shortest first.
pub(crate) fn latencies(samples: &[Sample], ending: Ending, span: &Range<Duration>) -> Vec<Duration> {
    let such = samples.iter().filter(|sample| sample.ending == ending && span.contains(&sample.planned));
    let mut took: Vec<_> = such.map(|sample| sample.took).collect();
    took.sort_unstable();
    took
}

/// The nearest-rank percentile of sorted values: the least one that `share` of all do not exceed.
pub(crate) fn percentile(sorted: &[Duration], share: f64) -> Option<Duration> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

/// How long after `from` goodput is back at `rate`, and is so for a second at least; `None` when it never is.
pub(crate) fn recovery(samples: &[Sample], from: Duration, until: Duration, rate: f64) -> Option<Duration> {
    let starts = (0..).map(|step| from + STEP * step).take_while(|start| *start + WINDOW <= until);
    let back = |start: &Duration| goodput(samples, &(*start..*start + WINDOW)) >= rate;
    starts.into_iter().find(back).map(|start| start - from)
}

/// The middle of the values that are numbers; without any, not a number. Infinity is one: it means never.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.into_iter().filter(|value| !value.is_nan()).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ if values[middle].is_infinite() => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn sample(planned: u64, took: u64, ending: Ending) -> Sample {
        Sample { planned: ms(planned), lag: ms(0), took: ms(took), ending, repetition: 0 }
    }

    #[test]
    fn an_answer_counts_when_it_comes() {
        let samples = [
            sample(100, 200, Ending::Good),
            // Asked for within the span, answered on its end: not within.
            sample(900, 100, Ending::Good),
            sample(200, 50, Ending::Refused),
            // Asked for before the span, answered in it.
            sample(0, 600, Ending::Good),
        ];
        assert_eq!(goodput(&samples, &(ms(0)..ms(1000))), 2.0);
        assert_eq!(goodput(&samples, &(ms(500)..ms(1000))), 2.0);
    }

    #[test]
    fn a_share_is_of_clients_and_not_of_tries() {
        let again = Sample { repetition: 1, ..sample(0, 1, Ending::Refused) };
        let samples = [sample(0, 1, Ending::Refused), again, again, sample(10, 1, Ending::Good)];
        assert_eq!(share(&samples, Ending::Refused, &(ms(0)..ms(100))), Some(0.5));
        assert_eq!(share(&samples, Ending::Refused, &(ms(5)..ms(100))), Some(0.0));
        assert_eq!(share(&samples, Ending::Refused, &(ms(50)..ms(100))), None);
    }

    #[test]
    fn a_percentile_is_a_value_that_was_there() {
        let values: Vec<_> = (1..=10).map(ms).collect();
        for (share, millis) in [(0.0, 1), (0.5, 5), (0.51, 6), (0.9, 9), (0.99, 10), (1.0, 10)] {
            assert_eq!(percentile(&values, share), Some(ms(millis)), "{share}");
        }
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn latencies_are_of_one_ending_within_the_span_and_sorted() {
        let samples = [
            sample(0, 9, Ending::Refused),
            sample(1, 3, Ending::Refused),
            sample(2, 1, Ending::Good),
            sample(100, 1, Ending::Refused),
        ];
        assert_eq!(latencies(&samples, Ending::Refused, &(ms(0)..ms(100))), [ms(3), ms(9)]);
    }

    /// One good answer every ten milliseconds, in these spans.
    fn good_in(spans: &[Range<u64>]) -> Vec<Sample> {
        spans.iter().cloned().flatten().step_by(10).map(|at| sample(at, 0, Ending::Good)).collect()
    }

    #[test]
    fn a_recovery_is_when_goodput_is_back_and_stays_for_a_second() {
        let back_after_700_ms = good_in(&[0..1000, 3700..6000]);
        assert_eq!(recovery(&back_after_700_ms, ms(3000), ms(6000), 95.0), Some(ms(700)));
        let only_for_half_a_second = good_in(&[3000..3500, 4500..6000]);
        assert_eq!(recovery(&only_for_half_a_second, ms(3000), ms(6000), 95.0), Some(ms(1500)));
        let never = good_in(&[0..3000, 3000..3400]);
        assert_eq!(recovery(&never, ms(3000), ms(6000), 95.0), None);
        // The last window ends with the run.
        let too_late_to_tell = good_in(&[0..0, 5100..6000]);
        assert_eq!(recovery(&too_late_to_tell, ms(3000), ms(6000), 95.0), None);
    }

    #[test]
    fn a_median_knows_never_and_nothing() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0]), 2.5);
        assert_eq!(median([f64::NAN, 1.0]), 1.0);
        assert_eq!(median([f64::INFINITY, 1.0, f64::INFINITY]), f64::INFINITY);
        assert_eq!(median([f64::INFINITY, 1.0]), f64::INFINITY);
        assert!(median([f64::NAN]).is_nan() && median([]).is_nan());
    }
}
