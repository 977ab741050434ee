//! Axes of charts: from a value to a place, and where the ticks stand, at steps of 1, 2 and 5.

use std::time::Duration;

use super::words;

/// A stretch of values laid along a stretch of a picture.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    scale: Scale,
    least: f64,
    most: f64,
    /// Where the least and the most stand in the picture.
    begin: f64,
    end: f64,
    /// Where the ticks stand, and what they say.
    pub(super) ticks: Vec<(f64, String)>,
}

#[derive(Clone, Copy, Debug)]
enum Scale {
    Linear,
    Logarithmic,
    /// Of shares: as far from the last as it is from all, so that 90 %, 99 % and 99.9 % stand at equal distances.
    Nines,
}

/// Nothing stands further away than so many times the length of the axis.
const BEYOND_MAX: f64 = 100.0;

impl Axis {
    /// From zero to at least `most`, in about so many steps.
    pub(super) fn counts(most: f64, steps: u32, (begin, end): (f64, f64)) -> Self {
        let most = if most > 0.0 && most.is_finite() { most } else { 1.0 };
        let step = round_step(most / f64::from(steps));
        // A little above the last tick is no reason for another one.
        let count = (most / step - 0.02).ceil().max(1.0);
        let tick = |index: u32| (f64::from(index) * step, number(f64::from(index) * step));
        let ticks = (0..=count as u32).map(tick).collect();
        Self { scale: Scale::Linear, least: 0.0, most: (count * step).max(most), begin, end, ticks }
    }

    /// Exactly so long, with ticks at times that people count in.
    pub(super) fn time(length: Duration, steps: u32, (begin, end): (f64, f64)) -> Self {
        let most = length.as_secs_f64().max(1e-9);
        let step = time_step(most / f64::from(steps));
        let (unit, name) = match step {
            step if step >= 86_400.0 => (86_400.0, "d"),
            step if step >= 3_600.0 => (3_600.0, "h"),
            step if step >= 60.0 => (60.0, "min"),
            step if step >= 1.0 => (1.0, "s"),
            _ => (1e-3, "ms"),
        };
        let tick = |index: u32| {
            let at = f64::from(index) * step;
            (at, if index == 0 { "0".to_owned() } else { format!("{} {name}", number(at / unit)) })
        };
        let ticks = (0..=(most / step * (1.0 + 1e-9)) as u32).map(tick).collect();
        Self { scale: Scale::Linear, least: 0.0, most, begin, end, ticks }
    }

    /// Times of very different sizes, from microseconds on.
    pub(super) fn latencies(least: Duration, most: Duration, (begin, end): (f64, f64)) -> Self {
        let micros = |time: Duration| (time.as_nanos() as f64 / 1e3).max(1.0);
        let (least, most) = (micros(least), micros(most));
        // Room around it, and never nothing at all.
        let (least, most) = (least / 1.3, most * 1.3);
        let decades = (most / least).log10();
        let steps: &[f64] = match decades {
            decades if decades < 0.9 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            decades if decades < 2.5 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let mut ticks = Vec::new();
        for decade in least.log10().floor() as i32..=most.log10().ceil() as i32 {
            let marks = steps.iter().map(|step| step * 10f64.powi(decade));
            let marks = marks.filter(|mark| (least..=most).contains(mark));
            ticks.extend(marks.map(|mark| (mark, round_time(mark))));
        }
        Self { scale: Scale::Logarithmic, least, most, begin, end, ticks }
    }

    /// Shares of so many, up to the last that says anything.
    pub(super) fn nines(count: u64, (begin, end): (f64, f64)) -> Self {
        let nines = (count.max(10) as f64).log10().floor().clamp(1.0, 4.0);
        let most = 1.0 - 10f64.powf(-nines);
        let ticks =
            [(0.0, "0%"), (0.5, "50%"), (0.9, "90%"), (0.99, "99%"), (0.999, "99.9%"), (0.9999, "99.99%")];
        let ticks = ticks.into_iter().filter(|(share, _)| *share <= most + 1e-9);
        let ticks = ticks.map(|(share, text)| (share, text.to_owned())).collect();
        Self { scale: Scale::Nines, least: 0.0, most, begin, end, ticks }
    }

    /// Where a value stands. What is less than the least stands there, what is more than the most beyond the end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let along = |value: f64| match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.max(f64::MIN_POSITIVE).ln(),
            Scale::Nines => -(1.0 - value).max(f64::MIN_POSITIVE).ln(),
        };
        let (least, most) = (along(self.least), along(self.most));
        let share = ((along(value) - least) / (most - least)).clamp(0.0, BEYOND_MAX);
        self.begin + share * (self.end - self.begin)
    }

    /// So many values at equal distances in the picture.
    pub(super) fn spread(&self, count: u32) -> impl Iterator<Item = f64> {
        let value = |share: f64| match self.scale {
            Scale::Linear => self.least + share * (self.most - self.least),
            Scale::Logarithmic => self.least * (self.most / self.least).powf(share),
            Scale::Nines => 1.0 - (1.0 - self.most).powf(share),
        };
        (0..=count).map(move |index| value(f64::from(index) / f64::from(count.max(1))))
    }

    pub(super) fn begin(&self) -> f64 {
        self.begin
    }

    pub(super) fn end(&self) -> f64 {
        self.end
    }
}

/// The next step of 1, 2 or 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    let decade = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
    steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(10.0 * decade)
}

/// The same for seconds, which are counted in sixties and the hours of days.
fn time_step(least: f64) -> f64 {
    const STEPS: [f64; 12] = [
        60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0, 21_600.0, 43_200.0, 86_400.0,
    ];
    match least {
        least if least <= 20.0 => round_step(least),
        least if least <= 30.0 => 30.0,
        least => {
            let step = STEPS.into_iter().find(|step| *step >= least);
            step.unwrap_or_else(|| 86_400.0 * round_step(least / 86_400.0))
        }
    }
}

fn number(value: f64) -> String {
    if value >= 10_000.0 && value % 500.0 == 0.0 {
        return format!("{}k", words::count(value / 1e3));
    }
    if value == value.round() {
        words::count(value)
    } else {
        format!("{:.6}", value).trim_end_matches('0').to_owned()
    }
}

fn round_time(micros: f64) -> String {
    match micros.round() {
        micros if micros < 1e3 => format!("{micros} µs"),
        micros if micros < 1e6 => format!("{} ms", micros / 1e3),
        micros => format!("{} s", micros / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn counts_step_by_one_two_and_five() {
        let axis = |most| Axis::counts(most, 4, (0.0, 100.0));
        assert_eq!(said(&axis(151.0)), ["0", "50", "100", "150"]);
        assert_eq!(said(&axis(0.7)), ["0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(said(&axis(73_000.0)), ["0", "20k", "40k", "60k", "80k"]);
        for most in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(said(&axis(most)).last(), Some(&"1"), "nothing to show is an axis all the same");
        }
        let places = [-1.0, 50.0, 150.0, 1e9].map(|value| axis(100.0).at(value));
        assert_eq!(places, [0.0, 50.0, 150.0, 10_000.0]);
    }

    #[test]
    fn time_steps_as_people_count() {
        let axis = |seconds| Axis::time(Duration::from_secs_f64(seconds), 6, (0.0, 100.0));
        assert_eq!(said(&axis(60.0)), ["0", "10 s", "20 s", "30 s", "40 s", "50 s", "60 s"]);
        assert_eq!(said(&axis(600.0)), ["0", "2 min", "4 min", "6 min", "8 min", "10 min"]);
        assert_eq!(said(&axis(0.1)), ["0", "20 ms", "40 ms", "60 ms", "80 ms", "100 ms"]);
        assert_eq!(said(&axis(86_400.0)), ["0", "4 h", "8 h", "12 h", "16 h", "20 h", "24 h"]);
        assert_eq!(axis(2_678_400.0).ticks.len(), 4, "a month in steps of ten days");
    }

    #[test]
    fn latencies_and_shares_are_spread_by_their_logarithm() {
        let millis = Duration::from_millis;
        let axis = Axis::latencies(millis(80), millis(2_000), (0.0, 1.0));
        assert_eq!(said(&axis), ["100 ms", "200 ms", "500 ms", "1 s", "2 s"]);
        assert_eq!(
            said(&Axis::latencies(millis(20), millis(50), (0.0, 1.0))),
            ["20 ms", "30 ms", "40 ms", "50 ms"]
        );
        assert_eq!(said(&Axis::latencies(millis(0), millis(0), (0.0, 1.0))), ["1 µs"]);
        let nines = Axis::nines(5_990, (0.0, 3.0));
        assert_eq!(said(&nines), ["0%", "50%", "90%", "99%", "99.9%"]);
        assert!((nines.at(0.99) - 2.0).abs() < 1e-9 && nines.spread(100).count() == 101);
    }
}
