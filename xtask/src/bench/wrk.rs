//! The load generator of the proxy benchmark: one run of `wrk`, and what it counted.
//!
//! wrk is closed-loop: each connection sends when it was answered. That is wrong for judging overload, and right here,
//! where only the cost of a request is asked for.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::lab::Lab;
use super::process::Running;
use crate::clock;

/// How many connections wrk keeps busy. Fewer than tidegate's limit in the benchmark's policy, so that none is queued.
pub(crate) const CONNECTIONS: u32 = 64;

/// What wrk counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    /// Answers.
    pub(crate) requests: u64,
    /// Those of them with a status other than 2xx and 3xx.
    pub(crate) refused: u64,
    /// Connections that failed or timed out.
    pub(crate) errors: u64,
}

/// Load `target` for `seconds`, from the core of the load. Never takes much longer, whatever the target does.
pub(crate) fn load(lab: &Lab, wrk: &Path, target: SocketAddr, seconds: u32) -> Result<Count> {
    let args = [
        "--threads=1".to_owned(),
        format!("--connections={CONNECTIONS}"),
        format!("--duration={seconds}s"),
        "--timeout=2s".to_owned(),
        format!("http://{target}/"),
    ];
    let mut running = Running::start(lab.load_core, wrk, &args, lab.path("wrk.log"))?;
    let limit = Duration::from_secs(u64::from(seconds) + 10);
    let status = clock::wait_for("wrk to end", limit, || running.ended())?;
    let printed = running.printed();
    if !status.success() {
        bail!("wrk failed ({status}): {printed}");
    }
    parse(&printed).with_context(|| format!("wrk printed something else than expected:\n{printed}"))
}

fn parse(printed: &str) -> Option<Count> {
    let line = |part: &str| printed.lines().find(|line| line.contains(part));
    let requests = line(" requests in ")?.split_whitespace().next()?.parse().ok()?;
    // wrk leaves these lines out when there is nothing to count.
    let refused = match line("Non-2xx or 3xx responses:") {
        Some(line) => line.rsplit(':').next()?.trim().parse().ok()?,
        None => 0,
    };
    let errors = match line("Socket errors:") {
        Some(line) => {
            line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<u64>().ok()).sum()
        }
        None => 0,
    };
    Some(Count { requests, refused, errors })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_wrk_prints() {
        let printed = "Running 1s test @ http://127.0.0.1:1/\n  1 threads and 64 connections\n\
            \x20 51234 requests in 1.00s, 8.91MB read\n  Socket errors: connect 0, read 3, write 0, timeout 4\n\
            \x20 Non-2xx or 3xx responses: 51233\nRequests/sec:  51121.99\nTransfer/sec:      8.89MB\n";
        assert_eq!(parse(printed), Some(Count { requests: 51_234, refused: 51_233, errors: 7 }));
    }

    #[test]
    fn lines_that_wrk_leaves_out_count_as_none() {
        assert_eq!(
            parse("  7 requests in 1.00s, 1KB read\n"),
            Some(Count { requests: 7, refused: 0, errors: 0 })
        );
        assert_eq!(parse("unable to connect to 127.0.0.1:1 Connection refused\n"), None);
    }
}
