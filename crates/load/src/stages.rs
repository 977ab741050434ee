//! How much is sent when, as one types it: `500`, `100..5000:60s`, or several stages one after the other,
//! `100:10s,100..5000:60s,0:5s`.

use std::error::Error;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_policy::parse_duration;
use tidegate_workload::{
    Arrivals, Capacity, Clients, Kind, Piece, RetryPolicy, Scenario, Service, ServiceTime, Spacing,
};

use crate::target::Target;

/// Whoever asks for more than this in a second has mistaken the unit.
const RATE_MAX: f64 = 10_000_000.0;
const STAGES_MAX: usize = 100;
/// All stages together.
const DURATION_MAX: Duration = Duration::from_secs(31 * 24 * 3600);
/// The last stage, when nobody says how long it is.
const DURATION_DEFAULT: Duration = Duration::from_secs(10);

/// A rate over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    pieces: Vec<Piece>,
    duration: Duration,
}

/// Why something is not a rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRate(String);

impl fmt::Display for BadRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for BadRate {}

fn bad<T>(what: impl Into<String>) -> Result<T, BadRate> {
    Err(BadRate(what.into()))
}

impl Stages {
    /// Reads stages. `duration` is that of a single stage which does not say how long it is.
    pub fn parse(text: &str, duration: Option<Duration>) -> Result<Self, BadRate> {
        let list: Vec<&str> = text.split(',').map(str::trim).collect();
        if list.len() > STAGES_MAX {
            return bad(format!("more than {STAGES_MAX} stages"));
        }
        let mut stages = Self { pieces: Vec::with_capacity(list.len()), duration: Duration::ZERO };
        for stage in &list {
            let (rates, length) = match stage.split_once(':') {
                Some(_) if duration.is_some() => {
                    return bad(format!("`{stage}` says how long it is, and so does --duration"));
                }
                Some((rates, length)) => (rates, parse_duration(length.trim()).map_err(BadRate)?),
                None if list.len() > 1 => {
                    return bad(format!(
                        "`{stage}` is one of several stages; say how long it is, as in {stage}:10s"
                    ));
                }
                None => (*stage, duration.unwrap_or(DURATION_DEFAULT)),
            };
            let (from, to) = match rates.split_once("..") {
                Some((from, to)) => (rate(from)?, rate(to)?),
                None => (rate(rates)?, rate(rates)?),
            };
            stages.add(from, to, length)?;
        }
        Ok(stages)
    }

    /// The same rate all the time.
    pub fn constant(rate: f64, duration: Duration) -> Self {
        let piece = Piece { from: Duration::ZERO, until: duration, rate, rate_at_end: rate };
        Self { pieces: vec![piece], duration }
    }

    fn add(&mut self, rate: f64, rate_at_end: f64, length: Duration) -> Result<(), BadRate> {
        let from = self.duration;
        let until = from.saturating_add(length);
        if length.is_zero() || until > DURATION_MAX {
            return bad("a stage is longer than nothing, and all of them together at most 31 days");
        }
        self.pieces.push(Piece { from, until, rate, rate_at_end });
        self.duration = until;
        Ok(())
    }

    /// How long it takes.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// The lowest and the highest rate.
    pub fn bounds(&self) -> (f64, f64) {
        let rates = || self.pieces.iter().flat_map(|piece| [piece.rate, piece.rate_at_end]);
        (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max))
    }

    /// A scenario of one sort of clients that come at this rate and ask for the target's path, once and without an end to
    /// their patience. What else they do is for the caller to say.
    pub fn scenario(&self, target: &Target) -> Scenario {
        let kind = Kind {
            share: 1.0,
            class: "everybody".to_owned(),
            tenant: "everybody".to_owned(),
            method: "GET".to_owned(),
            path: target.path.clone(),
            headers: Vec::new(),
            body: String::new(),
            cost: 1.0,
            service: 0,
        };
        let clients = Clients {
            name: "everybody".to_owned(),
            arrivals: Arrivals::Open {
                spacing: Spacing::Even,
                together: NonZeroU32::MIN,
                pieces: self.pieces.clone(),
            },
            timeout: None,
            tells_deadline: false,
            identified: false,
            tenants: NonZeroU32::MIN,
            retry: RetryPolicy::NONE,
            mix: vec![kind],
        };
        // What the service is like nobody knows who only sends to it.
        let service = Service {
            name: "service".to_owned(),
            capacity: Capacity::Elastic { slope: 0.0 },
            time: ServiceTime::Constant(Duration::ZERO),
            queue: None,
            delay: Duration::ZERO,
            best: None,
            fails: 0.0,
            cancels_work: false,
            calls: Vec::new(),
            changes: Vec::new(),
        };
        Scenario {
            name: target.authority.clone(),
            story: String::new(),
            seed: 1,
            runs: 1,
            duration: self.duration,
            warmup: Duration::ZERO,
            gateways: 1,
            services: vec![service],
            clients: vec![clients],
            policies: Vec::new(),
            expectations: Vec::new(),
        }
    }
}

/// Requests a second; the unit may be said.
fn rate(text: &str) -> Result<f64, BadRate> {
    let text = text.trim();
    let number = text.strip_suffix("/s").unwrap_or(text);
    // A sign, an exponent or a word such as `inf` is not what somebody means who types a rate.
    let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let plain = digit(number.as_bytes().first())
        && digit(number.as_bytes().last())
        && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'_');
    match number.replace('_', "").parse::<f64>() {
        Ok(rate) if plain && rate <= RATE_MAX => Ok(rate),
        Ok(rate) if plain => bad(format!("{rate} a second is more than {RATE_MAX}")),
        _ => bad(format!(
            "`{text}` is not a rate; write it as 500, as 100..5000:60s or as 100:10s,100..5000:60s"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<(u64, u64, f64, f64)> {
        let stages = Stages::parse(text, None).unwrap_or_else(|error| panic!("{text}: {error}"));
        let piece = |piece: &Piece| {
            let millis = |time: Duration| time.as_millis() as u64;
            (millis(piece.from), millis(piece.until), piece.rate, piece.rate_at_end)
        };
        stages.pieces.iter().map(piece).collect()
    }

    #[test]
    fn rates_ramps_and_stages() {
        assert_eq!(pieces("500"), [(0, 10_000, 500.0, 500.0)]);
        assert_eq!(pieces("0.5/s:500ms"), [(0, 500, 0.5, 0.5)]);
        assert_eq!(pieces("100..5_000:60s"), [(0, 60_000, 100.0, 5_000.0)]);
        assert_eq!(
            pieces("100:10s, 100..5000:60s, 0:5s"),
            [(0, 10_000, 100.0, 100.0), (10_000, 70_000, 100.0, 5_000.0), (70_000, 75_000, 0.0, 0.0)]
        );
        let typed = Stages::parse("7", Some(Duration::from_secs(3)));
        assert_eq!(typed, Ok(Stages::constant(7.0, Duration::from_secs(3))));
        let stages = Stages::parse("20:1s,50..5:1s", None);
        assert_eq!(stages.map(|stages| (stages.bounds(), stages.duration().as_secs())), Ok(((5.0, 50.0), 2)));
    }

    #[test]
    fn what_is_not_a_rate_is_refused() {
        for wrong in [
            "",
            "x",
            "-1",
            "1e9",
            "inf",
            "NaN",
            "500/min",
            "100..",
            "..5",
            "1...2",
            "100:10",
            "100:0s",
            "100:",
            "100,200",
            "100:10s,",
            "99999999",
            "100:40000000s",
            "1:1s;2:1s",
        ] {
            assert!(Stages::parse(wrong, None).is_err(), "{wrong}");
        }
        let both = Stages::parse("100:10s", Some(Duration::from_secs(3)));
        assert!(both.is_err_and(|error| error.to_string().contains("--duration")));
        assert!(Stages::parse(&["1:1s"; 101].join(","), None).is_err());
    }
}
