//! `cargo xtask bench memory`: what one waiting request and one rate-limit key cost in resident memory.
//!
//! Many are made, the process is read before and after, and the difference is divided. The allocator's slack is in the
//! number, as it is in the machine's memory.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use super::http::Connection;
use super::lab::Lab;
use super::process::Running;
use super::upstream::{self, Manner};
use super::{rss, tidegate};
use crate::{clock, packages};

/// What `bench memory` takes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many requests wait, each on a connection of its own.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=25_000))]
    queued: u32,
    /// How many rate-limit keys are seen.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    keys: u32,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Resident memory before and after `count` items were made.
struct Measured {
    item: &'static str,
    count: u32,
    before: u64,
    after: u64,
}

impl Measured {
    /// Negative when memory was given back meanwhile, which is a reason to measure more items.
    fn bytes_each(&self) -> f64 {
        (self.after as f64 - self.before as f64) / f64::from(self.count)
    }
}

/// Measure both and print them.
pub(crate) fn run(args: &Args) -> Result<()> {
    for program in packages::UTIL_LINUX {
        packages::ensure(program)?;
    }
    let binary = tidegate::build()?;
    // Ours and the gateway's, which inherits the limit: a descriptor for each waiting connection, and some to spare.
    raise_open_files(u64::from(args.queued) + 1000)?;
    let lab = Lab::open()?;
    let measured = [queued_requests(args, &lab, &binary)?, rate_limit_keys(args, &lab, &binary)?];
    if args.json {
        println!("{:#}", measured.iter().map(to_json).collect::<Value>());
    } else {
        print_table(&measured);
    }
    Ok(())
}

fn print_table(measured: &[Measured]) {
    println!("\nresident memory of tidegate, in KiB");
    println!("{:<36}{:>9}{:>9}{:>9}{:>14}", "", "before", "after", "grown", "bytes each");
    for row in measured {
        let (before, after) = (row.before / 1024, row.after / 1024);
        let title = format!("{} {}", row.count, row.item);
        let grown = after as i64 - before as i64;
        println!("{title:<36}{before:>9}{after:>9}{grown:>9}{:>14.0}", row.bytes_each());
    }
}

fn to_json(row: &Measured) -> Value {
    json!({
        "item": row.item,
        "count": row.count,
        "rss_before_bytes": row.before,
        "rss_after_bytes": row.after,
        "bytes_each": row.bytes_each(),
    })
}

/// One request is in flight and never answered, so all others wait. Each has its own connection, as a browser would.
fn queued_requests(args: &Args, lab: &Lab, binary: &Path) -> Result<Measured> {
    let gateway = Gateway::start(lab, binary, Manner::Holds, args.queued, None)?;
    let before = gateway.settled_memory()?;
    let mut connections = Vec::new();
    for number in 0..args.queued {
        let mut connection = Connection::open(gateway.listen)?;
        connection.send_get("/", &[])?;
        connections.push(connection);
        if number % 2000 == 1999 {
            eprintln!("    {} of {} requests sent", number + 1, args.queued);
        }
    }
    let expected = u64::from(args.queued) - 1;
    clock::wait_for(&format!("{expected} requests in the queue"), Duration::from_secs(30), || {
        Ok(Some(gateway.queue_depth()?).filter(|depth| *depth >= expected))
    })?;
    let after = gateway.settled_memory()?;
    Ok(Measured { item: "queued requests with connection", count: args.queued, before, after })
}

/// Each request has a key that was never seen, and all of them go through. The table may be allocated at the start, so
/// the memory before is that of a second gateway, whose table has one place.
fn rate_limit_keys(args: &Args, lab: &Lab, binary: &Path) -> Result<Measured> {
    let before = {
        let gateway = Gateway::start(lab, binary, Manner::Answers, 1, Some(1))?;
        gateway.warmed_up()?;
        gateway.settled_memory()?
    };
    let gateway = Gateway::start(lab, binary, Manner::Answers, 1, Some(args.keys + 1))?;
    let mut connection = gateway.warmed_up()?;
    for number in 0..args.keys {
        let status = connection.get("/", &[("x-key", &format!("client-{number}"))])?.status;
        ensure!(status == 200, "key {number} was answered {status}");
    }
    let after = gateway.settled_memory()?;
    Ok(Measured { item: "rate-limit keys", count: args.keys, before, after })
}

/// tidegate with an upstream inside this process.
struct Gateway {
    running: Running,
    listen: SocketAddr,
    admin: SocketAddr,
}

impl Gateway {
    /// With room for `queued` requests to wait, and a rate limit that tells `max_keys` callers apart, if any.
    fn start(lab: &Lab, binary: &Path, manner: Manner, queued: u32, max_keys: Option<u32>) -> Result<Self> {
        let (listen, admin) = (Lab::free_address()?, Lab::free_address()?);
        let rate_limit = max_keys.map_or_else(String::new, rate_limit);
        let policy = policy(listen, admin, upstream::start(manner)?, queued) + &rate_limit;
        Ok(Self { running: tidegate::start(lab, binary, &policy, admin)?, listen, admin })
    }

    /// A connection over which a thousand requests went, all with one key: connections are open and pools filled, which
    /// would be taken for the keys' memory.
    fn warmed_up(&self) -> Result<Connection> {
        let mut connection = Connection::open(self.listen)?;
        for _ in 0..1000 {
            let status = connection.get("/", &[("x-key", "warm-up")])?.status;
            ensure!(status == 200, "a request of the warm-up was answered {status}");
        }
        Ok(connection)
    }

    /// Resident memory, once it is the same twice in half a second.
    fn settled_memory(&self) -> Result<u64> {
        let mut last = 0;
        clock::wait_for("the memory to settle", Duration::from_secs(20), || {
            clock::sleep(Duration::from_millis(500));
            let now = rss::of_process(self.running.group())?;
            let settled = now == last;
            last = now;
            Ok(settled.then_some(now))
        })
    }

    fn queue_depth(&self) -> Result<u64> {
        let answer = Connection::open(self.admin)?.get("/api/stats", &[])?;
        let stats = serde_json::from_slice(&answer.body).context("/api/stats is no JSON")?;
        queue_depth(&stats).context("/api/stats names no queue_depth")
    }
}

/// The largest number called `queue_depth`, wherever in the statistics it stands.
fn queue_depth(stats: &Value) -> Option<u64> {
    match stats {
        Value::Object(members) => {
            let own = members.get("queue_depth").and_then(Value::as_u64);
            own.max(members.values().filter_map(queue_depth).max())
        }
        Value::Array(items) => items.iter().filter_map(queue_depth).max(),
        _ => None,
    }
}

fn policy(listen: SocketAddr, admin: SocketAddr, upstream: SocketAddr, queued: u32) -> String {
    let (connections, capacity) = (queued + 500, queued * 2);
    format!(
        r#"[server]
listen = "{listen}"
admin = "{admin}"
workers = 1
max_connections = {connections}
access_log = "off"
[[upstream]]
name = "bench"
endpoints = ["http://{upstream}"]
timeout = "300s"
[upstream.concurrency]
limit = 1
[upstream.queue]
wait = "300s"
capacity = {capacity}
[[route]]
path = "/*"
upstream = "bench"
"#
    )
}

/// The rate is so low that a key seen once has to be remembered to the end: a bucket that is full again may be forgotten.
/// The burst lets the warm-up through.
fn rate_limit(max_keys: u32) -> String {
    format!(
        r#"[[rate_limit]]
name = "bench"
key = "header:x-key"
rate = "10/h"
burst = 2000
max_keys = {max_keys}
"#
    )
}

/// Let this process, and what it starts, open `wanted` files. Only root may go beyond the hard limit.
fn raise_open_files(wanted: u64) -> Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let maximum = maximum.map(|maximum| maximum.max(wanted));
    if setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_err() {
        bail!(
            "{wanted} open files are needed; raise the hard limit (ulimit -Hn), or measure fewer with --queued"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_queue_depth_wherever_it_stands() {
        let stats = json!({"upstreams": [{"name": "bench", "queue_depth": 7, "max": 9}, {"queue_depth": 3}]});
        assert_eq!(queue_depth(&stats), Some(7));
        assert_eq!(queue_depth(&json!({"queue": 1})), None);
    }

    #[test]
    fn the_policy_is_toml() {
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        let text = policy(address, address, address, 10) + &rate_limit(20);
        let policy: toml::Table = text.parse().unwrap();
        assert_eq!(policy["rate_limit"][0]["max_keys"].as_integer(), Some(20));
        assert_eq!(policy["upstream"][0]["queue"]["capacity"].as_integer(), Some(20));
    }

    #[test]
    fn bytes_are_divided_by_items() {
        let row = Measured { item: "keys", count: 10, before: 1000, after: 3000 };
        assert_eq!(row.bytes_each(), 200.0);
    }
}
