//! The sums: exact, in whole nanoseconds, and saturating. Nothing is put into words here but times and rates.

use std::time::Duration;

use tidegate_policy::parse_duration;

/// One service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) workers: u32,
    pub(crate) service_time: Duration,
}

/// How many requests come: so many in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) count: u32,
    pub(crate) period: Duration,
}

/// `4x200ms`.
pub(crate) fn parse_hop(text: &str) -> Result<Hop, String> {
    let wrong = || format!("write a hop as WORKERSxTIME, such as 4x200ms, not {text:?}");
    let (workers, service_time) = text.split_once('x').ok_or_else(wrong)?;
    let workers = workers.parse().ok().filter(|workers| *workers > 0).ok_or_else(wrong)?;
    Ok(Hop { workers, service_time: parse_duration(service_time)? })
}

/// `150/s`, `600/min` or `5000/h`.
pub(crate) fn parse_rate(text: &str) -> Result<Rate, String> {
    let wrong = || format!("write a rate as a count, `/` and s, min or h, such as 150/s, not {text:?}");
    let (count, period) = text.split_once('/').ok_or_else(wrong)?;
    let count = count.parse().ok().filter(|count| *count > 0).ok_or_else(wrong)?;
    let seconds = match period {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3_600,
        _ => return Err(wrong()),
    };
    Ok(Rate { count, period: Duration::from_secs(seconds) })
}

impl Rate {
    /// How many come in a second.
    pub(crate) fn per_second(self) -> f64 {
        f64::from(self.count) / self.period.as_secs_f64()
    }
}

impl Hop {
    /// How many it answers in a second.
    pub(crate) fn per_second(self) -> f64 {
        f64::from(self.workers) / self.service_time.as_secs_f64()
    }

    /// How many may wait if nobody may wait longer than this: Q ≤ W · B / S.
    pub(crate) fn places(self, wait: Duration) -> u128 {
        // A time has fewer than 2⁹⁴ nanoseconds, and there are fewer than 2³² workers.
        u128::from(self.workers) * wait.as_nanos() / self.service_time.as_nanos().max(1)
    }

    /// How long the last of so many waits: Q · S / W.
    pub(crate) fn waited(self, queue: u64) -> Duration {
        let nanos =
            u128::from(queue).saturating_mul(self.service_time.as_nanos()) / u128::from(self.workers.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How long it takes to answer so many that come at once: they are worked on in rounds of W.
    pub(crate) fn rounds(self, requests: u64) -> (u64, Duration) {
        let rounds = requests.div_ceil(u64::from(self.workers.max(1)));
        let nanos = u128::from(rounds).saturating_mul(self.service_time.as_nanos());
        (rounds, Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }
}

/// A time as policy files write it. They have no nanoseconds, and zero needs a unit that they have.
pub(crate) fn time(time: Duration) -> String {
    match time.as_nanos() {
        0 => "0s".to_owned(),
        nanos @ 1..1_000 => format!("0.{nanos:03}us"),
        _ => format!("{time:?}").replace('µ', "u"),
    }
}

/// A time in seconds, which may be any number.
pub(crate) fn seconds(seconds: f64) -> String {
    Duration::try_from_secs_f64(seconds).map_or_else(
        |_| "for ever".to_owned(),
        |exact| match exact {
            exact if exact < Duration::from_secs(1) => {
                time(Duration::from_micros(u64::try_from(exact.as_micros()).unwrap_or(u64::MAX)))
            }
            exact => time(Duration::from_millis(u64::try_from(exact.as_millis()).unwrap_or(u64::MAX))),
        },
    )
}

/// A number with at most one decimal, which nobody needs for large ones.
pub(crate) fn number(number: f64) -> String {
    if number.fract().abs() < 0.05 { format!("{number:.0}") } else { format!("{number:.1}") }
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: Hop = Hop { workers: 4, service_time: Duration::from_millis(200) };

    #[test]
    fn the_articles_numbers() {
        assert_eq!(FOUR.places(Duration::from_millis(500)), 10);
        assert_eq!(FOUR.waited(10), Duration::from_millis(500));
        // "Four in flight plus eight waiting is twelve served, in three rounds of about 200, 400 and 600 ms."
        assert_eq!(FOUR.rounds(12), (3, Duration::from_millis(600)));
        // "50 requests through 4 workers is 13 rounds, … the last client waited 2.7 s."
        assert_eq!(FOUR.rounds(50), (13, Duration::from_millis(2_600)));
        // "200 requests/s … 450 ms … 90": ten workers of 50 ms.
        let hop = Hop { workers: 10, service_time: Duration::from_millis(50) };
        assert_eq!(hop.places(Duration::from_millis(450)), 90);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let hop = Hop { workers: u32::MAX, service_time: Duration::from_nanos(1) };
        assert_eq!(hop.places(Duration::MAX), u128::from(u32::MAX) * Duration::MAX.as_nanos());
        let slow = Hop { workers: 1, service_time: Duration::MAX };
        assert!(slow.waited(u64::MAX) > Duration::ZERO && slow.rounds(u64::MAX).1 > Duration::ZERO);
        assert_eq!(seconds(f64::INFINITY), "for ever");
    }

    #[test]
    fn what_is_typed() {
        assert!(parse_hop("0x1ms").is_err() && parse_hop("4").is_err() && parse_hop("4x9").is_err());
        assert_eq!(parse_rate("600/min").map(Rate::per_second), Ok(10.0));
        for wrong in ["150", "0/s", "-1/s", "1/day", "/s", "1.5/s"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
    }
}
