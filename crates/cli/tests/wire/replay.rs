//! `replay`: what it makes of logs of every kind, and that it plays them as they were.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tidegate_policy::Policy;
use tidegate_sim::{Control, Recorded, Replay};
use tidegate_workload::access_log::{AccessLog, Entry, Options};
use tidegate_workload::{Arrivals, Capacity, Kind, NamedPolicy, Scenario, Totals};

use crate::ran::{File, run, run_with_input};

/// A log of the reader's own tests.
fn fixture(name: &str) -> String {
    format!("{}/../workload/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A policy with a fixed limit, and more of the file.
fn policy(limit: u32, wait: &str, more: &str) -> File {
    File::of_kind("toml", policy_text(limit, wait, more))
}

fn policy_text(limit: u32, wait: &str, more: &str) -> String {
    format!(
        "[[upstream]]\nname = \"service\"\nendpoints = [\"http://127.0.0.1:8103\"]\ntimeout = \"10m\"\n\
         [upstream.concurrency]\nlimit = {limit}\n[upstream.queue]\nwait = \"{wait}\"\ncapacity = 100000\n{more}"
    )
}

const MAP: &str = "arrival=t,duration=d:ms,path=p,client=c,queued=q:ms";

/// JSON lines for [`MAP`]: seconds, milliseconds, path, client.
fn lines(requests: impl IntoIterator<Item = (f64, u32, &'static str, &'static str)>) -> String {
    let line = |(at, took, path, client): (f64, u32, &str, &str)| {
        format!("{{\"t\":{:.3},\"d\":{took},\"p\":\"{path}\",\"c\":\"{client}\"}}\n", 1_700_000_000.0 + at)
    };
    requests.into_iter().map(line).collect()
}

/// The layout of nginx-timed.log, as its nginx.conf has it.
const TIMED: &str = r#"$remote_addr [$msec] "$request_method $host$request_uri" $status rt=$request_time uct="$upstream_connect_time" urt="$upstream_response_time" ua="$upstream_addr" t=$http_x_tenant"#;

/// Recognised, said by nginx's own words, mapped: every way in leads to reports, and nobody's address comes out.
#[test]
fn logs_of_every_kind() {
    let policy = policy(2, "100ms", "");
    let conf = fixture("made-by/nginx.conf:timed");
    let mapping = "end=ts,duration=request_time:s,request=request,status=status,client=remote";
    for (log, how, taken_for) in [
        ("haproxy.log", &[][..], "recognised as haproxy"),
        ("haproxy-rfc3164.log", &[], "recognised as haproxy"),
        ("haproxy.log", &["--format", "haproxy"], "read as haproxy"),
        ("nginx-timed.log", &["--log-format", TIMED], "read as log_format unnamed"),
        ("nginx-timed.log", &["--nginx-conf", &conf], "read as log_format timed"),
        ("nginx-json.log", &["--map", mapping], "read as mapped JSON lines"),
        ("envoy.log", &[], "recognised as envoy"),
        ("tidegate.log", &[], "recognised as tidegate"),
        ("caddy.log", &[], "recognised as caddy"),
        ("alb.log", &[], "recognised as alb"),
        ("ingress-nginx.log", &[], "recognised as ingress-nginx"),
    ] {
        let log = fixture(log);
        let ran = run(&[&["replay", &log, "--policy", policy.path()], how].concat());
        assert_eq!(ran.code, 0, "{log} {how:?}: {}", ran.err);
        assert!(ran.err.contains(taken_for), "{log} {how:?}: {}", ran.err);
        for expected in
            ["no control", "Beside the log", "as logged", "A log shows what the old system let in."]
        {
            assert!(ran.out.contains(expected), "{log}: {expected}: {}", ran.out);
        }
        let json_ran = run(&[&["replay", &log, "--policy", policy.path(), "--json"], how].concat());
        let value = json_ran.json();
        let (offered, requests) = (&value["reports"][1]["offered"], &value["log"]["requests"]);
        assert!(offered == requests && requests.as_u64().unwrap() > 2, "{log}: {offered} {requests}");
        for text in [&ran.out, &ran.err, &json_ran.out] {
            for address in ["127.0.0.1", "::1", "192.0.2.", "198.51.100."] {
                assert!(!text.contains(address), "{log}: {address}: {text}");
            }
        }
    }
}

/// What comes through a pipe is kept while it is read twice; gzip is recognised wherever it comes from.
#[test]
fn pipes_and_gzip() {
    let policy = policy(2, "100ms", "");
    let plain = std::fs::read(fixture("haproxy.log")).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&plain).unwrap();
    let packed = encoder.finish().unwrap();
    let file = File::of_kind("gz", &packed);
    let reports = |log: &str, input: &[u8]| {
        let command = ["replay", log, "--policy", policy.path(), "--json"];
        run_with_input(&command, input).json()["reports"].clone()
    };
    let expected = reports(&fixture("haproxy.log"), b"");
    assert_eq!(expected, reports(file.path(), b""));
    assert_eq!(expected, reports("-", &plain));
    assert_eq!(expected, reports("-", &packed));
    assert_eq!(expected, reports("/dev/stdin", &plain));

    // A file that breaks off: what is there is played, and that it was not all is a failure.
    let cut = File::of_kind("gz", &packed[..packed.len() / 2]);
    let ran = run(&["replay", cut.path(), "--policy", policy.path()]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("cannot be read beyond line") && ran.out.contains("no control"), "{}", ran.err);
}

/// A line that cannot be read is named with its number and the reason, and the rest is played.
#[test]
fn unreadable_lines_are_named() {
    let policy = policy(2, "100ms", "");
    let mut log = lines([(0.0, 50, "/a", "192.0.2.1"), (1.0, 50, "/a", "192.0.2.1")]);
    log.push_str("{\"t\":1700000002.000,\"d\":\"soon\",\"p\":\"/a\",\"c\":\"192.0.2.77\"}\n{\"t\":1700\n");
    let file = File::of_kind("jsonl", log);
    let ran = run(&["replay", file.path(), "--map", MAP, "--policy", policy.path()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("line 3: ") && ran.err.contains("line 4"), "{}", ran.err);
    assert!(ran.err.contains("2 of 4 lines could not be read."), "{}", ran.err);
    assert!(!ran.err.contains("192.0.2"), "{}", ran.err);
    let value = run(&["replay", file.path(), "--map", MAP, "--policy", policy.path(), "--json"]).json();
    assert_eq!((&value["log"]["unreadable"], &value["log"]["requests"]), (&2.into(), &2.into()));
}

/// What cannot be played is said, with 1 for the log, 78 for a policy and 2 for what was typed.
#[test]
fn what_cannot_be_played() {
    let good = policy(2, "100ms", "");
    let bad = File::of_kind("toml", "[[upstream]]\nname = 1\n");
    let prose = File::of_kind("log", "It was a dark and stormy night.\n".repeat(10));
    let empty = File::of_kind("log", "");
    let (combined, haproxy) = (fixture("nginx-combined.log"), fixture("haproxy.log"));
    for (arguments, code, message) in [
        (&[prose.path(), "--policy", good.path()][..], 1, "no known format fits half of the first 10 lines"),
        (&[empty.path(), "--policy", good.path()], 1, "the log is empty"),
        (&["/nonexistent/access.log", "--policy", good.path()], 1, "cannot read /nonexistent/access.log"),
        (&["/tmp", "--policy", good.path()], 1, "is a directory"),
        (&[&combined, "--policy", good.path()], 1, "say it with --service-time"),
        (&[&haproxy, "--policy", good.path(), "--path", "/nowhere"], 1, "no request is left to play"),
        (&[&haproxy, "--policy", good.path(), "--format", "envoy"], 1, "is of the format envoy"),
        (&[&haproxy, "--policy", good.path(), "--nginx-conf", "/nonexistent"], 1, "cannot read /nonexistent"),
        // The policy is looked at first.
        (&["/nonexistent/access.log", "--policy", bad.path()], 78, "`name`"),
        (&[&haproxy, "--policy", "/nonexistent.toml"], 78, "cannot read /nonexistent.toml"),
        (&[&haproxy], 2, "--policy"),
        (&["--policy", good.path()], 2, "LOG"),
        (&[&haproxy, "--policy", good.path(), "--format", "haproxy", "--map", MAP], 2, "cannot be used with"),
        (&[&haproxy, "--policy", good.path(), "--format", "iis"], 2, "is no format of access logs"),
        (&[&haproxy, "--policy", good.path(), "--status", "bad"], 2, "write a status as"),
        (&[&haproxy, "--policy", good.path(), "--speed", "0"], 2, "write a number from"),
        (&[&haproxy, "--policy", good.path(), "--from", "noon"], 2, "write a moment as"),
        (&[&haproxy, "--policy", good.path(), "--zone", "Mars"], 2, "is not a time zone"),
    ] {
        let ran = run(&[&["replay"], arguments].concat());
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(message), "{arguments:?}: {}", ran.err);
    }
    // The log says when they came, and --service-time how long they took.
    let ran = run(&["replay", &combined, "--policy", good.path(), "--service-time", "20ms"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("as --service-time says"), "{}", ran.out);
}

/// Faster, more, fewer; the same seed gives the same bytes.
#[test]
fn speed_scale_and_seed() {
    let policy = policy(2, "100ms", "");
    let every_second = (0..1_000).map(|second| (f64::from(second), 50, "/a", "192.0.2.1"));
    let log = File::of_kind("jsonl", lines(every_second));
    let play = |more: &[&str]| {
        let command = ["replay", log.path(), "--map", MAP, "--policy", policy.path(), "--json"];
        run(&[&command, more].concat())
    };
    let offered = |more: &[&str]| play(more).json()["reports"][0]["offered"].as_u64().unwrap();
    assert_eq!(offered(&[]), 1_000);
    assert_eq!(offered(&["--scale", "2"]), 2_000);
    assert!((450..550).contains(&offered(&["--scale", "0.5"])));
    assert!((1_450..1_550).contains(&offered(&["--scale", "1.5"])));
    let watched = |more: &[&str]| play(more).json()["reports"][0]["watched_s"].as_f64().unwrap();
    assert!((999.0..1_005.0).contains(&watched(&[])) && (499.0..505.0).contains(&watched(&["--speed", "2"])));
    assert_eq!(play(&["--scale", "1.5"]).out, play(&["--scale", "1.5"]).out);
    let trace = |seed| play(&["--scale", "1.5", "--seed", seed]).json()["reports"][0]["trace"].clone();
    assert_ne!(trace("1"), trace("2"));
}

/// Which requests: by path, status, method, route and time, in the log's zone.
#[test]
fn only_some_of_them() {
    let policy = policy(2, "100ms", "");
    let hours =
        (0..10).map(|hour| (f64::from(hour) * 3_600.0, 50, if hour % 2 == 0 { "/a/x" } else { "/b" }, "x"));
    // 1,700,000,000 is 2023-11-14T22:13:20Z.
    let log = File::of_kind("jsonl", lines(hours));
    let requests = |more: &[&str]| {
        let command = ["replay", log.path(), "--map", MAP, "--policy", policy.path(), "--json"];
        let value = run(&[&command, more].concat()).json();
        let log = &value["log"];
        assert_eq!(log["requests"].as_u64().unwrap() + log["not_wanted"].as_u64().unwrap(), 10);
        log["requests"].as_u64().unwrap()
    };
    assert_eq!(requests(&["--path", "/a/*"]), 5);
    assert_eq!(requests(&["--without-path", "/b"]), 5);
    assert_eq!(requests(&["--from", "2023-11-15T00:13:20Z"]), 8);
    assert_eq!(requests(&["--from", "2023-11-15T01:13:20", "--zone", "+01:00"]), 8);
    assert_eq!(requests(&["--from", "2023-11-15T01:13:20", "--zone", "Europe/Paris"]), 8);
    assert_eq!(requests(&["--from", "2023-11-15T00:13:20", "--until", "2023-11-15T02:13:20"]), 2);
}

/// Ten at once of 100 ms each, one worker or one slot: the last has its answer after a second.
#[test]
fn workers_and_limits_make_them_wait() {
    let log = File::of_kind("jsonl", lines((0..10).map(|_| (0.0, 100, "/a", "192.0.2.1"))));
    let one = policy(1, "10s", "");
    let served = |more: &[&str], report: usize| {
        let command = ["replay", log.path(), "--map", MAP, "--policy", one.path(), "--json"];
        let value = run(&[&command, more].concat()).json();
        (value["reports"][report]["served_ms"]["max"].as_f64().unwrap().round(), value)
    };
    // Without --workers nothing waits in the service, and one slot makes them wait before it.
    assert_eq!(served(&[], 0).0, 100.0);
    let (longest, value) = served(&[], 1);
    assert_eq!(longest, 1_000.0);
    assert_eq!(value["waits"][0]["waited_ms"], Value::Null, "nothing stands before it");
    assert_eq!(value["waits"][1]["waited_ms"]["max"].as_f64().unwrap().round(), 900.0);
    assert_eq!(served(&["--workers", "1"], 0).0, 1_000.0);
    assert_eq!(served(&["--workers", "2"], 0).0, 500.0);
    let patient = run(&[
        "replay",
        log.path(),
        "--map",
        MAP,
        "--policy",
        one.path(),
        "--json",
        "--workers",
        "1",
        "--timeout",
        "550ms",
    ])
    .json();
    assert_eq!((&patient["reports"][0]["goodput"], &patient["reports"][0]["late"]), (&5.into(), &5.into()));
}

/// Rate limits count callers, whom the report does not name; routes are classes; a 404 is told apart.
#[test]
fn routes_and_rate_limits() {
    let limited = policy(
        100,
        "1s",
        "[[route]]\npath = \"/a/*\"\n[[route]]\npath = \"/b\"\nmethods = [\"GET\"]\n\
         [[rate_limit]]\nname = \"each\"\nkey = \"client-ip\"\nrate = \"1/h\"\nburst = 5\npaths = [\"/a/*\"]\n",
    );
    let mut requests = vec![(0.0, 10, "/a/1", "192.0.2.1"); 8];
    // Three of one /64, which is one caller, and one of another.
    requests.extend(vec![(1.0, 10, "/a/2", "2001:db8::1"); 3]);
    requests.extend(vec![(1.0, 10, "/a/2", "2001:db8::2"); 3]);
    requests.push((1.0, 10, "/a/2", "2001:db8:1::1"));
    requests.extend(vec![(2.0, 10, "/b", "192.0.2.1"); 10]);
    requests.extend(vec![(3.0, 10, "/c", "192.0.2.1"); 2]);
    let log = File::of_kind("jsonl", lines(requests));
    let ran = run(&["replay", log.path(), "--map", MAP, "--policy", limited.path(), "--json"]);
    let value = ran.json();
    let report = &value["reports"][1];
    assert_eq!(report["rejected"], serde_json::json!({ "rate_limited": 3 + 1 }), "{report:#}");
    let classes = report["classes"].as_object().unwrap();
    let offered: Vec<_> =
        classes.iter().map(|(name, class)| (name.as_str(), class["offered"].as_u64().unwrap())).collect();
    assert_eq!(offered.len(), 3, "{offered:?}");
    assert!(offered.contains(&("/a/*", 15)) && offered.contains(&("(no route)", 2)), "{offered:?}");
    assert!(ran.out.contains("2 requests have no route in"), "{}", ran.out);
    assert!(!ran.out.contains("192.0.2") && !ran.out.contains("2001:db8"), "{}", ran.out);
}

/// Two upstreams are two services; policies that send the same request elsewhere cannot be compared.
#[test]
fn several_upstreams() {
    let upstream = |name| {
        format!(
            "[[upstream]]\nname = \"{name}\"\nendpoints = [\"http://127.0.0.1:1\"]\n[upstream.concurrency]\nlimit = 1\n\
             [upstream.queue]\nwait = \"10s\"\n"
        )
    };
    let two = |a: &str, b: &str| {
        let routes = format!(
            "[[route]]\npath = \"/a\"\nupstream = \"{a}\"\n[[route]]\npath = \"/b\"\nupstream = \"{b}\"\n"
        );
        File::of_kind("toml", upstream("one") + &upstream("two") + &routes)
    };
    let (good, other) = (two("one", "two"), two("two", "one"));
    let log = File::of_kind(
        "jsonl",
        lines((0..10).map(|number| (0.0, 100, if number % 2 == 0 { "/a" } else { "/b" }, "x"))),
    );
    let value = run(&["replay", log.path(), "--map", MAP, "--policy", good.path(), "--json"]).json();
    // Five each, one after the other.
    assert_eq!(value["reports"][1]["served_ms"]["max"].as_f64().unwrap().round(), 500.0);
    let ran = run(&["replay", log.path(), "--map", MAP, "--policy", good.path(), "--policy", other.path()]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("the policies do not send"), "{}", ran.err);
}

/// One file that can be passed on.
#[test]
fn a_page() {
    let (policy, page) = (policy(2, "100ms", ""), File::of_kind("html", ""));
    let log = fixture("haproxy.log");
    let ran = run(&["replay", &log, "--policy", policy.path(), "--html", page.path()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let text = std::fs::read_to_string(page.path()).unwrap();
    assert!(text.contains("tidegate replay") && !text.contains("127.0.0.1"), "{text}");
    let ran = run(&["replay", &log, "--policy", policy.path(), "--html", "/nonexistent/page.html"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("cannot write /nonexistent/page.html"), "{}", ran.err);
}

/// The log of a real hour under overload, from the Debian package `python3-haproxy-log-analysis`, which
/// `cargo xtask test` installs. Eleven servers took two requests each at once, and the rest waited in one queue.
const REAL: &str = "/usr/lib/python3/dist-packages/haproxy/tests/files/huge.log";

fn there_is_a_real_log() -> bool {
    let is_there = Path::new(REAL).exists();
    if !is_there {
        eprintln!("skipped: {REAL} is missing; apt-get install python3-haproxy-log-analysis");
    }
    is_there
}

/// The simulated waits under the limit of that HAProxy are those that it logged: each percentile within 0.5 %.
#[test]
fn a_real_hour_is_played_as_it_was() {
    if !there_is_a_real_log() {
        return;
    }
    let (as_it_was, short) = (policy(22, "10m", ""), policy(22, "2s", ""));
    let value = run(&[
        "replay",
        REAL,
        "--policy",
        as_it_was.path(),
        "--policy",
        short.path(),
        "--workers",
        "22",
        "--json",
    ])
    .json();
    let log = &value["log"];
    assert_eq!((&log["requests"], &log["limit"]["at_work"]), (&4_610.into(), &22.into()));
    assert!(log["limit"]["share"].as_f64().unwrap() > 0.99, "{log:#}");
    let waits = &value["waits"];
    for percentile in ["p50", "p95", "p99", "max", "mean"] {
        let number = |value: &Value| value[percentile].as_f64().unwrap();
        let (logged, played) = (number(&log["waited_ms"]), number(&waits[1]["waited_ms"]));
        assert!((played / logged - 1.0).abs() < 0.005, "{percentile}: logged {logged}, played {played}");
    }
    // With nothing before it, the same happens in the service.
    for percentile in ["p50", "p99", "max", "mean"] {
        let number = |value: &Value| value[percentile].as_f64().unwrap();
        let (logged, played) = (number(&log["answered_ms"]), number(&value["reports"][0]["served_ms"]));
        assert!((played / logged - 1.0).abs() < 0.005, "{percentile}: logged {logged}, played {played}");
    }
    // A wait budget of two seconds: nobody waits longer, and most are served.
    assert!(waits[2]["waited_ms"]["max"].as_f64().unwrap() <= 2_002.0);
    let short = &value["reports"][2];
    let goodput = short["goodput"].as_u64().unwrap();
    let refused: u64 =
        short["rejected"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(goodput + refused, 4_610);
    assert!(goodput > 3_900, "{goodput}");
}

/// Not only the percentiles agree: request by request, the simulated wait is the one that was logged. `docs/replaying.md`
/// has the numbers that this prints.
#[test]
fn each_request_of_a_real_hour_waits_as_it_did() {
    if !there_is_a_real_log() {
        return;
    }
    let log = AccessLog::open(std::fs::File::open(REAL).unwrap(), Options::default()).unwrap();
    let entries: Vec<Entry> = log.collect();
    let logged: Vec<f64> = entries.iter().map(|entry| entry.queued.unwrap().as_secs_f64()).collect();
    let to_the_end = played(&entries, |entry| entry.total.unwrap() - entry.queued.unwrap());
    let correlation = correlation(&logged, &to_the_end);
    let apart: Vec<f64> =
        logged.iter().zip(&to_the_end).map(|(logged, played)| (logged - played).abs()).collect();
    let [half, most, worst] = [0.5, 0.95, 1.0].map(|share| percentile(&apart, share));
    let far = apart.iter().filter(|apart| **apart > 0.2).count();
    eprintln!(
        "correlation {correlation:.6}; apart p50 {half:.3} s, p95 {most:.3} s, max {worst:.3} s; {far} by 0.2 s"
    );
    assert!(correlation > 0.9999, "{correlation}");
    assert!(most < 0.1 && worst < 1.0 && far < 40, "p95 {most}, max {worst}, {far} far apart");

    // A place is busy to the end of the answer. Taken to its head only, waits are too short.
    let to_the_head = played(&entries, |entry| entry.service.unwrap());
    let short = [0.5, 0.95, 0.99].map(|share| percentile(&to_the_head, share) / percentile(&logged, share));
    eprintln!("to the head only, p50, p95 and p99 of the wait are {short:.3?} of those that were logged");
    assert!(short[0] < 0.98, "{short:?}");
}

/// The waits of these requests, one by one, under the limit that they had.
fn played(entries: &[Entry], work: impl Fn(&Entry) -> Duration) -> Vec<f64> {
    let first = entries[0].arrived;
    let policy = Policy::parse(&policy_text(22, "10m", ""), "as it was").unwrap().policy;
    let policy = NamedPolicy { name: "as it was".to_owned(), policy, model: None };
    // Each request is a class of its own, whose only time to an answer is that request's.
    let scenario = scenario_of_classes(entries.len(), entries[entries.len() - 1].arrived.since(first));
    let mut replay = Replay::new(&scenario, &[Control::Policy(Box::new(policy))], 1);
    for (index, entry) in entries.iter().enumerate() {
        let request =
            Recorded { at: entry.arrived.since(first), kind: index as u16, work: Some(work(entry)) };
        replay.offer(request).unwrap();
    }
    let reports = replay.finish().unwrap();
    let waited = |((_, totals), entry): (&(String, Totals), &Entry)| {
        (totals.served.mean().as_secs_f64() - work(entry).as_secs_f64()).max(0.0)
    };
    reports[0].classes.iter().zip(entries).map(waited).collect()
}

fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

fn scenario_of_classes(count: usize, span: Duration) -> Scenario {
    let kind = |index: usize| Kind {
        share: 1.0,
        class: index.to_string(),
        tenant: "anybody".to_owned(),
        method: "GET".to_owned(),
        path: "/".to_owned(),
        headers: Vec::new(),
        body: String::new(),
        cost: 1.0,
        service: 0,
    };
    let text = "story = \"\"\nduration = \"1s\"\n[[service]]\nworkers = 1\ntime = \"1ms\"\n\
                [[clients]]\nname = \"as logged\"\nrate = \"1/s\"\n";
    let mut scenario = Scenario::parse(text, Path::new("replay.toml")).unwrap();
    scenario.duration = span + Duration::from_secs(600);
    scenario.services[0].capacity = Capacity::Elastic { slope: 0.0 };
    scenario.clients[0].arrivals = Arrivals::Recorded;
    scenario.clients[0].mix = (0..count).map(kind).collect();
    scenario
}

/// Pearson's.
fn correlation(one: &[f64], other: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_one, mean_other) = (mean(one), mean(other));
    let products = |left: &[f64], left_mean: f64, right: &[f64], right_mean: f64| -> f64 {
        left.iter().zip(right).map(|(left, right)| (left - left_mean) * (right - right_mean)).sum()
    };
    products(one, mean_one, other, mean_other)
        / (products(one, mean_one, one, mean_one) * products(other, mean_other, other, mean_other)).sqrt()
}
