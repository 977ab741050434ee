//! Numbers for people: how counts, shares and times are written in tables and charts.

use std::time::Duration;

/// What stands where there is no number.
pub(super) const NONE: &str = "–";

/// A count, which may be a mean over several runs: grouped, and with one decimal where that says something.
pub(super) fn count(number: f64) -> String {
    let decimal = number.abs() < 99.95 && (number - number.round()).abs() >= 0.05;
    let text = format!("{:.*}", usize::from(decimal), number.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::with_capacity(text.len() + text.len() / 3 + 1);
    if number <= -0.05 {
        grouped.push('−');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// A share of a whole. What is not quite all is never written as all, and what is not nothing never as nothing.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent >= 99.95 && share < 1.0 => ">99.9%".to_owned(),
        percent if percent > 0.0 && percent < 0.05 => "<0.1%".to_owned(),
        percent if percent == 0.0 || (percent - 100.0).abs() < 1e-9 => format!("{percent:.0}%"),
        percent => format!("{percent:.1}%"),
    }
}

/// A time with three digits, in the unit that fits.
pub(super) fn time(time: Duration) -> String {
    let micros = time.as_nanos() as f64 / 1e3;
    let (number, unit) = match micros {
        micros if micros < 999.5 => (micros, "µs"),
        micros if micros < 999.5e3 => (micros / 1e3, "ms"),
        _ => (micros / 1e6, "s"),
    };
    match number {
        0.0 => "0".to_owned(),
        number if number < 9.995 => format!("{number:.2} {unit}"),
        number if number < 99.95 => format!("{number:.1} {unit}"),
        number => format!("{} {unit}", count(number.round())),
    }
}

/// A length of time that somebody has chosen, such as that of a scenario: exact, in the largest unit that it is whole in.
pub(super) fn length(time: Duration) -> String {
    let nanos = time.as_nanos();
    for (unit, name) in [(3_600_000_000_000, "h"), (60_000_000_000, "min"), (1_000_000_000, "s")] {
        // Two minutes are easier to read as 120 s than ninety seconds are as 1.5 min.
        let whole = nanos.is_multiple_of(unit) && (unit == 1_000_000_000 || nanos >= 3 * unit);
        if nanos > 0 && whole {
            return format!("{} {name}", nanos / unit);
        }
    }
    if nanos > 0 && nanos.is_multiple_of(1_000_000) && nanos < 1_000_000_000 {
        return format!("{} ms", nanos / 1_000_000);
    }
    format!("{} s", time.as_secs_f64())
}

/// At most so many characters, with a sign that there were more.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        let counts = [0.0, 7.0, 7.04, 7.25, 99.97, 580.4, 5_990.0, 1_234_567.0, -1234.0];
        assert_eq!(
            counts.map(count),
            ["0", "7", "7", "7.2", "100", "580", "5,990", "1,234,567", "−1,234"].map(str::to_owned)
        );
    }

    #[test]
    fn nearly_all_is_not_all_and_nearly_nothing_not_nothing() {
        let shares = [0.0, 0.000_1, 0.064, 0.5, 0.999, 0.999_9, 1.0, 1.5];
        assert_eq!(
            shares.map(percent),
            ["0%", "<0.1%", "6.4%", "50.0%", "99.9%", ">99.9%", "100%", "150.0%"].map(str::to_owned)
        );
    }

    #[test]
    fn times_have_three_digits() {
        let micros = [0, 7, 412, 999, 1_000, 1_094_000, 12_340, 293_000, 999_900, 600_000_000];
        assert_eq!(
            micros.map(|micros| time(Duration::from_micros(micros))),
            ["0", "7.00 µs", "412 µs", "999 µs", "1.00 ms", "1.09 s", "12.3 ms", "293 ms", "1.00 s", "600 s"]
                .map(str::to_owned)
        );
    }

    #[test]
    fn lengths_are_exact() {
        let millis = [0, 250, 1_500, 60_000, 90_000, 600_000, 7_200_000, 86_400_000];
        assert_eq!(
            millis.map(|millis| length(Duration::from_millis(millis))),
            ["0 s", "250 ms", "1.5 s", "60 s", "90 s", "10 min", "120 min", "24 h"].map(str::to_owned)
        );
        assert_eq!(cut("queue of 100", 8), "queue o…");
    }
}
