//! What a service can really do: asked by as many clients as keep it busy, each of which asks again when it is answered.
//!
//! A closed loop, on purpose: it cannot overload, so nothing is late and nothing is refused. Timers round up, so ten
//! workers of 20 ms answer about 471 a second and not 500.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};

use crate::bench::http::Connection;
use crate::bench::lab;
use crate::clock;

/// What is measured, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Where the service is.
    pub(crate) address: SocketAddr,
    /// How many requests it works on at once.
    pub(crate) workers: u32,
    /// How long it is said to work on each.
    pub(crate) service_time: Duration,
    /// The core on which the clients stay; it should not be the service's own.
    pub(crate) core: usize,
}

/// Answers a second. Takes about `length`.
pub(crate) fn measure(service: Measured, length: Duration) -> Result<f64> {
    // Twice as many clients as workers: somebody is always waiting.
    let clients = service.workers.saturating_mul(2).min(64);
    let now = clock::now();
    let end = now + length;
    // One after the other, as requests come in real life. Workers that begin in the same moment end in the same moment,
    // and one late timer would hold up all of them.
    let begin = |client: u32| now + service.service_time * client / service.workers.max(1);
    let answers = |client| {
        let begin = begin(client);
        thread::spawn(move || answers(service, begin, end))
    };
    let threads: Vec<_> = (0..clients).map(answers).collect();
    let mut total = 0.0;
    for thread in threads {
        let moments = thread.join().map_err(|_| anyhow!("a client of the measurement panicked"))??;
        total += rate(&moments).unwrap_or(0.0);
    }
    ensure!(total > 0.0, "the service answered nothing within {} s", length.as_secs());
    Ok(total)
}

fn answers(service: Measured, begin: Instant, end: Instant) -> Result<Vec<Instant>> {
    lab::stay_on(service.core)?;
    let mut connection = Connection::open(service.address)?;
    clock::sleep(begin.saturating_duration_since(clock::now()));
    let mut moments = Vec::new();
    while clock::now() < end {
        let answer = connection.get("/work", &[])?;
        ensure!(answer.status == 200, "the service answered {}", answer.status);
        moments.push(clock::now());
    }
    Ok(moments)
}

/// Between the first answer and the last, so that neither the beginning nor a cut-off end counts.
fn rate(moments: &[Instant]) -> Option<f64> {
    let (first, last) = (moments.first()?, moments.last()?);
    let seconds = last.duration_since(*first).as_secs_f64();
    (seconds > 0.0).then(|| (moments.len() - 1) as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_between_the_first_answer_and_the_last() {
        let start = clock::now();
        let moments = [300, 400, 500, 600].map(|millis| start + Duration::from_millis(millis));
        assert!((rate(&moments).unwrap() - 10.0).abs() < 1e-9);
        assert_eq!(rate(&moments[..1]), None);
        assert_eq!(rate(&[]), None);
    }
}
