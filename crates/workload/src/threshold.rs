//! Thresholds, as one types them: `p99<300ms`, `goodput>95%`, `checkout:failed<=0.1%`, `lag<5ms`.
//!
//! What is written is read strictly, since a threshold that is misunderstood is one that is never missed.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tidegate_policy::parse_duration;

use crate::report::{Latencies, Report, Totals};

/// A bound for one number of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    text: String,
    class: Option<String>,
    measure: Measure,
    order: Order,
    bound: f64,
}

/// Which number. Times are in seconds, shares from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Measure {
    /// The time that this share of the useful answers did not exceed.
    Quantile(f64),
    Mean,
    Max,
    /// Useful answers of what was offered.
    GoodputShare,
    /// Useful answers each second.
    GoodputRate,
    /// Requests given up.
    FailedShare,
    /// Attempts that were refused.
    RefusedShare,
    /// How late the generator was for 99 in a hundred.
    Lag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// Why something is not a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadThreshold(String);

impl fmt::Display for BadThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for BadThreshold {}

/// A threshold that was missed, and what was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossed {
    threshold: Threshold,
    /// `None` if the report has no such number.
    pub found: Option<f64>,
}

impl Crossed {
    /// Whether it is this one that was missed.
    pub fn is_of(&self, threshold: &Threshold) -> bool {
        self.threshold == *threshold
    }
}

impl fmt::Display for Crossed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.threshold.text)?;
        match (self.found, self.threshold.measure) {
            (None, _) => f.write_str("not known"),
            (Some(share), Measure::GoodputShare | Measure::FailedShare | Measure::RefusedShare) => {
                write!(f, "it is {:.2}%", share * 100.0)
            }
            (Some(rate), Measure::GoodputRate) => write!(f, "it is {rate:.1}/s"),
            (Some(seconds), _) if seconds.is_infinite() => f.write_str("some were never sent"),
            (Some(seconds), _) => write!(f, "it is {:.2} ms", seconds * 1e3),
        }
    }
}

impl Threshold {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, BadThreshold> {
        let form = || {
            BadThreshold(format!(
                "`{text}` is not a threshold; write it as p99<300ms, mean<50ms, goodput>95%, goodput>=400/s, \
                 failed<1%, refused<5% or lag<5ms, for one class as checkout:p99<300ms"
            ))
        };
        let at = text.find(['<', '>']).ok_or_else(form)?;
        let (left, right) = text.split_at(at);
        let (order, value) = match (right.strip_prefix("<="), right.strip_prefix(">=")) {
            (Some(value), _) => (Order::AtMost, value),
            (_, Some(value)) => (Order::AtLeast, value),
            _ if right.starts_with('<') => (Order::Below, &right[1..]),
            _ => (Order::Above, &right[1..]),
        };
        let (class, name) = match left.rsplit_once(':') {
            Some((class, _)) if class.trim().is_empty() => return Err(form()),
            Some((class, name)) => (Some(class.trim().to_owned()), name.trim()),
            None => (None, left.trim()),
        };
        let value = value.trim();
        let (measure, bound) = match name {
            "goodput" if value.ends_with("/s") => {
                (Measure::GoodputRate, number(&value[..value.len() - 2]).ok_or_else(form)?)
            }
            "goodput" => (Measure::GoodputShare, percent(value).ok_or_else(form)?),
            "failed" => (Measure::FailedShare, percent(value).ok_or_else(form)?),
            "refused" => (Measure::RefusedShare, percent(value).ok_or_else(form)?),
            _ => (time(name).ok_or_else(form)?, parse_duration(value).map_err(BadThreshold)?.as_secs_f64()),
        };
        if class.is_some() && measure == Measure::Lag {
            return Err(BadThreshold(format!("`{text}`: the generator's lag is not that of a class")));
        }
        Ok(Self { text: text.trim().to_owned(), class, measure, order, bound })
    }

    /// Compares a report with it.
    pub fn check(&self, report: &Report) -> Result<(), Crossed> {
        let found = self.value(report);
        let met = found.is_some_and(|found| match self.order {
            Order::Below => found < self.bound,
            Order::AtMost => found <= self.bound,
            Order::Above => found > self.bound,
            Order::AtLeast => found >= self.bound,
        });
        if met { Ok(()) } else { Err(Crossed { threshold: self.clone(), found }) }
    }

    /// Whether a report would meet it if its answers had taken so long; `None` if it is about something else than the times of
    /// all answers.
    pub fn check_times(&self, report: &Report, served: &Latencies) -> Option<bool> {
        let of_times = matches!(self.measure, Measure::Quantile(_) | Measure::Mean | Measure::Max);
        if !of_times || self.class.is_some() {
            return None;
        }
        let mut report = report.clone();
        report.all.served = served.clone();
        Some(self.check(&report).is_ok())
    }

    /// The class that it is about, if it is about one.
    pub fn class(&self) -> Option<&str> {
        self.class.as_deref()
    }

    /// The number; `None` if there is none, such as the time of answers of which there were none.
    fn value(&self, report: &Report) -> Option<f64> {
        let totals = match &self.class {
            Some(class) => report.class(class)?,
            None => &report.all,
        };
        let Totals { offered, goodput, failed, attempts, served, .. } = totals;
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let time =
            |of: &dyn Fn(&Latencies) -> Duration| (served.count() > 0).then(|| of(served).as_secs_f64());
        match self.measure {
            Measure::Quantile(quantile) => time(&|served| served.quantile(quantile)),
            Measure::Mean => time(&Latencies::mean),
            Measure::Max => time(&Latencies::max),
            Measure::GoodputShare => share(*goodput, *offered),
            Measure::GoodputRate => {
                let seconds = report.watched.as_secs_f64() * f64::from(report.runs.max(1));
                (seconds > 0.0).then(|| *goodput as f64 / seconds)
            }
            Measure::FailedShare => share(*failed, *offered),
            Measure::RefusedShare => share(totals.refusals(), *attempts),
            Measure::Lag => {
                let lag = report.sending.as_ref()?.lag_p99();
                Some(if lag == Duration::MAX { f64::INFINITY } else { lag.as_secs_f64() })
            }
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn time(name: &str) -> Option<Measure> {
    match name {
        "mean" => Some(Measure::Mean),
        "max" => Some(Measure::Max),
        "lag" => Some(Measure::Lag),
        _ => {
            let share = number(name.strip_prefix('p')?)? / 100.0;
            (share > 0.0 && share < 1.0).then_some(Measure::Quantile(share))
        }
    }
}

fn percent(text: &str) -> Option<f64> {
    let share = number(text.strip_suffix('%')?)? / 100.0;
    (share <= 1.0).then_some(share)
}

/// Digits with at most one point among them: no sign, no exponent, no words.
fn number(text: &str) -> Option<f64> {
    let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    (plain && digit(text.as_bytes().first()) && digit(text.as_bytes().last())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Sending, sample};

    fn parse(text: &str) -> Threshold {
        Threshold::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn what_is_typed_is_read_strictly() {
        let one = parse("checkout:p99.9 <= 300ms");
        assert_eq!((one.class(), one.order, one.bound), (Some("checkout"), Order::AtMost, 0.3));
        assert!(matches!(one.measure, Measure::Quantile(share) if (share - 0.999).abs() < 1e-9));
        assert_eq!(parse("goodput>95%").bound, 0.95);
        assert_eq!(
            (parse("goodput>=400/s").measure, parse("goodput>=400/s").bound),
            (Measure::GoodputRate, 400.0)
        );
        for wrong in [
            "",
            "p99",
            "p99<300",
            "p99=300ms",
            "p0<1s",
            "p100<1s",
            "p-1<1s",
            "p1e1<1s",
            "goodput>95",
            "goodput>950%",
            "goodput>-1%",
            "goodput>NaN%",
            "latency<1s",
            ":p99<1s",
            "a:lag<1ms",
            "goodput>.5%",
            "failed<1/s",
            "p99<<1s",
            "p99<1s<2s",
            "lag<5%",
        ] {
            assert!(Threshold::parse(wrong).is_err(), "{wrong}");
        }
    }

    /// Three hundred requests, two in three of them a search; a gate lets half of them through.
    #[test]
    fn each_number_is_compared() {
        let mut report = sample::reports().remove(1);
        let mut sending = Sending::default();
        sending.lag.record(Duration::from_millis(7));
        report.sending = Some(sending.into());
        for (text, met) in [
            ("goodput>=50%", true),
            ("goodput>50%", false),
            ("goodput>=15/s", true),
            ("goodput>15/s", false),
            ("failed<=50%", true),
            ("failed<50%", false),
            ("refused<51%", true),
            ("refused<49%", false),
            ("p50<255ms", true),
            ("p50<245ms", false),
            ("max<500ms", true),
            ("max<100ms", false),
            ("mean>200ms", true),
            ("search:goodput>=50%", true),
            ("search:p99<390ms", false),
            ("nobody:goodput>=0%", false),
            ("lag<8ms", true),
            ("lag<6ms", false),
        ] {
            assert_eq!(parse(text).check(&report).is_ok(), met, "{text}");
        }
        let crossed = parse("goodput > 95%").check(&report).map_err(|crossed| crossed.to_string());
        assert_eq!(crossed, Err("goodput > 95%: it is 50.00%".to_owned()));
        report.sending = None;
        assert_eq!(
            parse("lag<1s").check(&report).map_err(|it| it.to_string()),
            Err("lag<1s: not known".to_owned())
        );
    }
}
