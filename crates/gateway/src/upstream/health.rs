//! Active health checks: every endpoint of an upstream that asks for them is asked now and then, whether or not there
//! are requests.
//!
//! They are asked on the operators' thread, so once for all workers and however busy those are, and not through the
//! gate, whose limit is for requests. What is found is a mark at the endpoint; `choice` says what follows from it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tidegate_policy::HealthCheck;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Endpoint;
use crate::gateway::Shared;

/// As much of an answer as is needed to know its status.
const STATUS_LINE_BYTES: usize = "HTTP/1.1 200".len();
/// As much more is read, so that an endpoint is not cut off in the middle of a short answer.
const REST_BYTES_MAX: u64 = 64 * 1024;

/// Asks, by the policy in force, until the future is dropped. A reload ends what was asked by the policy before.
pub(crate) async fn watch(shared: Arc<Shared>, mut reloads: watch::Receiver<u64>) {
    loop {
        // Seen before the policy is read, so that no reload is missed between the two.
        reloads.mark_unchanged();
        let mut checks = JoinSet::new();
        for upstream in &shared.live().upstreams {
            let Some(policy) = &upstream.policy.health_check else { continue };
            let endpoints = &upstream.endpoints;
            for (index, endpoint) in endpoints.iter().enumerate() {
                // All are asked at once, since it has to be known, and then spread over the interval.
                let apart = policy.interval * (index as u32) / (endpoints.len() as u32);
                let (shared, endpoint, policy) = (shared.clone(), endpoint.clone(), policy.clone());
                checks.spawn(async move { ask_again_and_again(&shared, &endpoint, &policy, apart).await });
            }
        }
        if reloads.changed().await.is_err() {
            return;
        }
    }
}

async fn ask_again_and_again(shared: &Shared, endpoint: &Endpoint, policy: &HealthCheck, apart: Duration) {
    let mut streak = Streak::default();
    let mut apart = Some(apart);
    loop {
        let began = shared.clock.now();
        let is_well = matches!(timeout(policy.timeout, ask(endpoint, policy)).await, Ok(Ok(true)));
        let first = !endpoint.is_checked();
        // As long as nothing is known, one answer is more than none.
        if let Some(healthy) = streak.then(is_well, policy).or_else(|| first.then_some(is_well)) {
            endpoint.found(shared.clock.now(), healthy);
        }
        let wait = policy.interval.saturating_add(apart.take().unwrap_or_default());
        sleep(wait.saturating_sub(shared.clock.now().since(began))).await;
    }
}

/// Answers of the same kind in a row.
#[derive(Debug, Default)]
struct Streak {
    is_well: bool,
    length: u32,
}

impl Streak {
    /// One more. What that makes the endpoint, if it is enough of a kind to say.
    fn then(&mut self, is_well: bool, policy: &HealthCheck) -> Option<bool> {
        self.length = if is_well == self.is_well { self.length.saturating_add(1) } else { 1 };
        self.is_well = is_well;
        let enough = if is_well { policy.healthy_after } else { policy.unhealthy_after };
        (self.length >= enough.get()).then_some(is_well)
    }
}

/// Asks once, on a connection of its own, and says whether the answer has a status 2xx.
async fn ask(endpoint: &Endpoint, policy: &HealthCheck) -> io::Result<bool> {
    let mut stream = endpoint.connect().await?;
    let path = &policy.path;
    let host = policy.host.clone().unwrap_or_else(|| endpoint.to_string());
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: tidegate-health-check\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut line = [0; STATUS_LINE_BYTES];
    stream.read_exact(&mut line).await?;
    let is_well =
        line.starts_with(b"HTTP/1.") && &line[8..10] == b" 2" && line[10..].iter().all(u8::is_ascii_digit);
    // However the rest ends, it says nothing more; and it may end too late, which the status must not depend on.
    if is_well {
        let rest = async { tokio::io::copy(&mut stream.take(REST_BYTES_MAX), &mut tokio::io::sink()).await };
        let _ = timeout(Duration::from_millis(100), rest).await;
    }
    Ok(is_well)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    #[test]
    fn it_takes_enough_of_a_kind_in_a_row() {
        let policy = HealthCheck {
            path: "/".into(),
            host: None,
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            healthy_after: NonZeroU32::new(2).unwrap(),
            unhealthy_after: NonZeroU32::new(3).unwrap(),
        };
        let mut streak = Streak::default();
        let found: String = "++--+---++-+++"
            .chars()
            .map(|answer| match streak.then(answer == '+', &policy) {
                Some(true) => 'h',
                Some(false) => 'u',
                None => '.',
            })
            .collect();
        assert_eq!(found, ".h.....u.h..hh");
    }
}
