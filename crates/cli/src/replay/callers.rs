//! Who asks, told apart as far as rate limits need it, under numbers that say nothing of who it is.
//!
//! The simulator wants to know all callers before it begins, and a log may have millions. But a caller whose bucket is
//! full again is like one who never came. So a fixed number of seats is handed on, each time the one that was not used
//! for the longest: if that is longer ago than a bucket takes to fill, nothing is lost.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use tidegate_engine::Timestamp;
use tidegate_policy::{RateKey, RateLimit};
use tidegate_workload::NamedPolicy;
use tidegate_workload::access_log::Entry;

/// Gives each caller a seat.
#[derive(Clone, Debug)]
pub(crate) struct Callers {
    seats_max: usize,
    /// How long the slowest bucket takes to fill, in the log's time.
    refill: Duration,
    by_name: HashMap<Box<str>, u32>,
    seats: Vec<Seat>,
    /// Seats by their last use.
    by_use: BTreeSet<(u64, u32)>,
    uses: u64,
    /// How often a seat was handed on too early: the new caller found a bucket that was not full.
    pub(crate) too_early: u64,
}

#[derive(Clone, Debug)]
struct Seat {
    name: Box<str>,
    /// Which use it was used for last, and when.
    used: u64,
    at: Timestamp,
}

impl Callers {
    /// Nobody has come yet. `None` if no rate limit counts callers.
    pub(crate) fn new(policies: &[NamedPolicy], seats_max: usize, speed: f64) -> Option<Self> {
        let limits = policies.iter().flat_map(|named| &named.policy.rate_limits);
        let refill = limits.filter(|limit| is_per_caller(limit)).map(fills_in).max()?;
        Some(Self {
            seats_max: seats_max.max(1),
            refill: Duration::try_from_secs_f64(refill.as_secs_f64() * speed).unwrap_or(Duration::MAX),
            by_name: HashMap::new(),
            seats: Vec::new(),
            by_use: BTreeSet::new(),
            uses: 0,
            too_early: 0,
        })
    }

    /// The seat of whoever sent a request. Requests come in the order of their arrival.
    pub(crate) fn seat(&mut self, entry: &Entry) -> u32 {
        let name = name(entry);
        self.uses += 1;
        let number = match self.by_name.get(&name) {
            Some(number) => *number,
            None => self.sit_down(name, entry.arrived),
        };
        let seat = &mut self.seats[number as usize];
        self.by_use.remove(&(seat.used, number));
        (seat.used, seat.at) = (self.uses, entry.arrived);
        self.by_use.insert((seat.used, number));
        number
    }

    fn sit_down(&mut self, name: Box<str>, now: Timestamp) -> u32 {
        if self.seats.len() < self.seats_max {
            let number = self.seats.len() as u32;
            self.seats.push(Seat { name: name.clone(), used: self.uses, at: now });
            self.by_name.insert(name, number);
            return number;
        }
        // There is at least one seat, and all of them have been used.
        let number = self.by_use.first().map_or(0, |(_, number)| *number);
        let seat = &mut self.seats[number as usize];
        self.too_early += u64::from(now.since(seat.at) < self.refill);
        let before = std::mem::replace(&mut seat.name, name.clone());
        self.by_name.remove(&before);
        self.by_name.insert(name, number);
        number
    }
}

/// The tenant, if the log has one; else the address. As the gateway does it, IPv6 counts by /64.
fn name(entry: &Entry) -> Box<str> {
    if let Some(tenant) = &entry.tenant {
        return tenant.clone();
    }
    let client = entry.client.as_deref().unwrap_or_default();
    match client.parse() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_none() => {
            address.segments()[..4].iter().map(|part| format!("{part:x}:")).collect::<String>().into()
        }
        _ => client.into(),
    }
}

const fn is_per_caller(limit: &RateLimit) -> bool {
    matches!(limit.key, RateKey::ClientIp | RateKey::Header(_))
}

/// How long an empty bucket takes to fill.
fn fills_in(limit: &RateLimit) -> Duration {
    let quota = &limit.quota;
    quota.period().saturating_mul(quota.burst().get()) / quota.count().get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_policy::Policy;
    use tidegate_workload::access_log::{AccessLog, Choice, Options};

    /// The seats of these callers, who come at these seconds, and how often one was handed on too early.
    fn seats(seats: usize, requests: &[(u64, &str)]) -> (Vec<u32>, u64) {
        let text = "[[upstream]]\nname = \"a\"\nendpoints = [\"http://127.0.0.1:1\"]\n\
                    [[rate_limit]]\nname = \"each\"\nkey = \"client-ip\"\nrate = \"1/s\"\nburst = 10\n";
        let policy = Policy::parse(text, "a.toml").unwrap().policy;
        let policies = [NamedPolicy { name: "a".to_owned(), policy, model: None }];
        let mut callers = Callers::new(&policies, seats, 1.0).unwrap();
        let log: String =
            requests.iter().map(|(at, who)| format!("{{\"t\":{at}.0,\"c\":\"{who}\"}}\n")).collect();
        let format = Choice::Mapped("arrival=t:s,client=c".parse().unwrap());
        let log =
            AccessLog::open(std::io::Cursor::new(log), Options { format, ..Options::default() }).unwrap();
        let found = log.map(|entry| callers.seat(&entry)).collect();
        (found, callers.too_early)
    }

    #[test]
    fn a_seat_is_handed_on_when_its_bucket_is_full_again() {
        let requests = [(1, "x"), (2, "y"), (3, "x"), (12, "z"), (13, "x"), (24, "y"), (25, "z")];
        assert_eq!(seats(9, &requests), (vec![0, 1, 0, 2, 0, 1, 2], 0));
        // y leaves its seat to z after exactly ten seconds; y and z then take those of z and x in turn.
        assert_eq!(seats(2, &requests), (vec![0, 1, 0, 1, 0, 1, 0], 0));
        let hurried = [(1, "x"), (2, "y"), (3, "z")];
        assert_eq!(seats(2, &hurried), (vec![0, 1, 0], 1), "x's bucket is not full after two seconds");
    }

    #[test]
    fn an_address_of_ipv6_counts_by_its_network() {
        let requests = [
            (1, "2001:db8::1"),
            (1, "2001:db8::2"),
            (1, "2001:db8:0:1::1"),
            (1, "192.0.2.1"),
            (1, "192.0.2.2"),
        ];
        assert_eq!(seats(9, &requests).0, [0, 0, 1, 2, 3]);
    }
}
