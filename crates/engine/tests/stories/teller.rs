//! The one who tells a story to an admission and writes down what is heard.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::time::Duration;

use expect_test::Expect;
use tidegate_engine::*;

pub(crate) fn policy(limit: u32, capacity: u32, wait_ms: u64) -> AdmissionPolicy {
    AdmissionPolicy::new(
        LimitPolicy::Fixed(NonZeroU32::new(limit).unwrap()),
        QueuePolicy::of(Duration::from_millis(wait_ms), Capacity::Fixed(capacity)),
    )
}

pub(crate) fn check(policy: AdmissionPolicy, story: &str, expect: Expect) {
    let mut teller = Teller {
        admission: Admission::new(policy.clone()),
        policy,
        permits: BTreeMap::new(),
        tickets: BTreeMap::new(),
        log: String::new(),
    };
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        teller.tell(line);
    }
    expect.assert_eq(&teller.log);
}

struct Teller {
    admission: Admission,
    policy: AdmissionPolicy,
    permits: BTreeMap<String, Permit>,
    tickets: BTreeMap<String, Ticket>,
    log: String,
}

impl Teller {
    fn tell(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let millis: u64 = words.next().unwrap().strip_suffix("ms").unwrap().parse().unwrap();
        let verb = words.next().unwrap();
        let rest: Vec<&str> = words.collect();
        let now = Timestamp::from_millis(millis);
        let mut heard: Vec<String> = Vec::new();
        if rest.is_empty() {
            self.act(now, verb, "", &mut heard);
        }
        for name in rest.iter().flat_map(|word| names(word)) {
            self.act(now, verb, &name, &mut heard);
        }
        let heard = if heard.is_empty() { "nothing".to_string() } else { heard.join(", ") };
        writeln!(self.log, "{millis}ms {verb}: {heard}").unwrap();
    }

    fn act(&mut self, now: Timestamp, verb: &str, name: &str, heard: &mut Vec<String>) {
        match verb {
            "arrive" => self.arrive(now, name, heard),
            "done" | "overload" | "fail" | "ignore" => {
                let outcome = match verb {
                    "done" => Outcome::Success,
                    "overload" => Outcome::Overload,
                    "fail" => Outcome::Failure,
                    _ => Outcome::Ignore,
                };
                self.admission.complete(now, self.permits.remove(name).unwrap(), outcome);
            }
            "abandon" => self.admission.abandon(now, self.permits.get_mut(name).unwrap(), Outcome::Overload),
            "leave" => assert!(self.admission.cancel(now, self.tickets.remove(name).unwrap())),
            "tick" => self.admission.handle_timeout(now),
            "limit" => {
                self.policy.limit = LimitPolicy::Fixed(name.parse().unwrap());
                self.admission.reconfigure(now, self.policy.clone());
            }
            _ => panic!("no such verb: {verb}"),
        }
        while let Some(event) = self.admission.poll_event() {
            self.hear(event, heard);
        }
    }

    /// A name, and what is known of the request: `@route`, `/deadline-in-ms`, `!priority`, `:tenant`, `*slots`,
    /// `?` (a retry), `#fingerprint`.
    fn arrive(&mut self, now: Timestamp, asked: &str, heard: &mut Vec<String>) {
        let marks = |c: char| !c.is_ascii_alphanumeric();
        let (name, mut rest) = asked.split_at(asked.find(marks).unwrap_or(asked.len()));
        let mut arrival = Arrival::new(RouteId(0));
        // The route is known from the beginning.
        if let Some((_, route)) = rest.split_once('@') {
            let digits = route.find(marks).unwrap_or(route.len());
            arrival = Arrival::new(RouteId(route[..digits].parse().unwrap()));
        }
        while let Some(mark) = rest.chars().next() {
            let (value, after) = rest[1..].split_at(rest[1..].find(marks).unwrap_or(rest.len() - 1));
            let number = || value.parse::<u32>().unwrap();
            arrival = match mark {
                '@' => arrival,
                '/' => arrival.with_deadline(Timestamp::from_millis(number().into())),
                '!' => arrival.with_priority(Priority(number() as u8)),
                ':' => arrival.with_tenant(Tenant::new(hash(value))),
                '*' => arrival.with_cost(NonZeroU32::new(number()).unwrap()),
                '?' => arrival.with_attempt(Attempt::Retry),
                '#' => arrival.with_fingerprint(hash(value)),
                _ => panic!("no such mark: {mark}"),
            };
            rest = after;
        }
        let name = name.to_string();
        match self.admission.arrive(now, arrival) {
            Decision::Admit(permit) => {
                heard.push(format!("{name} goes"));
                self.permits.insert(name, permit);
            }
            Decision::Queue(ticket) => {
                heard.push(format!("{name} waits"));
                self.tickets.insert(name, ticket);
            }
            Decision::Reject(Rejection { reason, retry_after }) => {
                heard.push(format!("{name} {reason} ({} ms)", retry_after.as_millis()));
            }
        }
    }

    fn hear(&mut self, event: Event, heard: &mut Vec<String>) {
        let (id, text) = match &event {
            Event::Granted { ticket, .. } => (*ticket, "goes".to_string()),
            Event::Refused { ticket, rejection } => (*ticket, rejection.reason.to_string()),
        };
        let found = self.tickets.iter().find(|(_, ticket)| ticket.id() == id);
        let name = found.expect("an event names a waiting ticket").0.clone();
        self.tickets.remove(&name);
        heard.push(format!("{name} {text}"));
        if let Event::Granted { permit, .. } = event {
            self.permits.insert(name, permit);
        }
    }
}

/// Any number that is another for another name.
fn hash(name: &str) -> u64 {
    name.bytes().fold(7, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// `a..d` → a, b, c, d; `w0..w9` → w0, w1 … w9; anything else is itself.
fn names(word: &str) -> Vec<String> {
    let Some((from, to)) = word.split_once("..") else { return vec![word.to_string()] };
    // What is known of the last is known of all.
    let (to, marks) = to.split_at(to.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(to.len()));
    let names = between(from, to).into_iter();
    names.map(|name| name + marks).collect()
}

fn between(from: &str, to: &str) -> Vec<String> {
    let split = |name: &str| {
        let digits = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
        (name[..digits].to_string(), name[digits..].parse::<u32>().ok())
    };
    match (split(from), split(to)) {
        ((prefix, Some(from)), (_, Some(to))) => (from..=to).map(|n| format!("{prefix}{n}")).collect(),
        _ => (from.as_bytes()[0]..=to.as_bytes()[0]).map(|c| char::from(c).to_string()).collect(),
    }
}
