//! Frames, as they are on screens of two sizes.

use super::super::follow::News;
use super::*;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

/// An upstream that is overloaded in the later seconds.
fn upstream(second: u64) -> Value {
    let over = second >= 20;
    let refused = if over { 1_020 } else { 0 };
    let (arrivals, goodput) = if over { (1_500, 480) } else { (24 * second, 24 * second) };
    json!({
        "verdict": {
            "kind": if over { "full" } else { "well" }, "level": if over { "bad" } else { "good" }, "weight": 5,
            "arrivals": arrivals, "goodput": goodput, "refused": refused, "failed": 0, "client_left": 0,
            "taken": if over { 10 } else { 4 }, "limit": 10, "waiting": if over { 8 } else { 0 },
            "reason": if over { Some("queue_full") } else { None }, "for_reason": refused * 3 / 4,
        },
        "arrivals": arrivals, "goodput": goodput,
        "completed": 480, "refused": refused, "failed": 0, "client_left": 0,
        "wasted_ms": if over { 350 } else { 0 },
        "rejected": { "queue_full": refused * 3 / 4, "rate_limited": refused / 4, "breaker_open": 0 },
        "limit": 10, "in_flight": if over { 10 } else { 4 }, "in_flight_mean": 9.9, "max_in_flight": 10,
        "orphans": if over { 2 } else { 0 },
        "queue": { "now": if over { 8 } else { 0 }, "mean": 7.9, "most": 8, "max": 8, "capacity": 64, "wait_budget_ms": 500 },
        "priorities": {
            "background": { "arrivals": 300, "goodput": 12.5, "refused": 287, "in_flight": 1, "waiting": 6, "wait_ms": 455.1, "wait_max_ms": 499.5 },
            "critical": { "arrivals": 300, "goodput": 300, "refused": 0, "in_flight": 6, "waiting": 0, "wait_ms": 2.1, "wait_max_ms": 9.5 },
            "default": { "arrivals": 900, "goodput": 168, "refused": 732, "in_flight": 3, "waiting": 2, "wait_ms": null, "wait_max_ms": null },
        },
        "latency_ms": { "second": { "p50": 37, "p90": 390, "p99": 1405.5 }, "minute": { "p50": 37, "p90": 39, "p99": 41 } },
        "upstream_ms": { "second": { "p50": 20, "p90": 21, "p99": 21.5 }, "minute": { "p50": 20, "p90": 21, "p99": null } },
        "breakers": { "closed": 2, "half_open": 1, "open": 0 },
        "retries": { "sent": 3, "refused": 0, "budget": 17, "budget_max": 20 },
        "little": { "lambda": 480, "w_ms": 20.6, "l": 9.9, "service_ms": 20.5, "queue_bound": 243 },
        "routes": {
            "/*": { "arrivals": 1200, "goodput": 180, "refused": 1020, "now": 12, "max": 80, "limit": null },
            "POST /checkout/*": { "arrivals": 300, "goodput": 300, "refused": 0, "now": 6, "max": 21, "limit": 40 },
        },
    })
}

/// A second of an instance with these upstreams.
fn sample(second: u64, upstreams: &[(&str, Value)]) -> News {
    let upstreams: serde_json::Map<String, Value> =
        upstreams.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let text = json!({
        "id": second, "at": 1_780_000_000.0 + second as f64, "seconds": 1.001,
        "gateway": { "goodput": 480, "unrouted": 0, "client_connections": 1234, "upstream_connections": 10, "draining": 0 },
        "upstreams": upstreams,
    })
    .to_string();
    News::Sample(Box::new(Sample::parse(&text).unwrap()), text)
}

fn refused() -> News {
    let key = |by: &str, key: &str, refused| RefusedKey { by: by.into(), key: key.into(), refused };
    News::Refused(vec![key("per-client", "10.0.0.7", 812.4), key("orders", "tenant\u{1b}[31m", 96.0)])
}

/// Sixty seconds of one upstream.
fn overloaded() -> View {
    let mut view = View::new("127.0.0.1:8101".parse().unwrap());
    for second in 0..60 {
        view.hear(sample(second, &[("orders", upstream(second))]));
    }
    view.hear(refused());
    view
}

#[track_caller]
fn check(view: &View, (width, height): (u16, u16), expect: Expect) {
    let text = view.frame(width, height).plain();
    assert!(text.lines().count() <= height.into(), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= width.into()), "{text}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    expect.assert_eq(&text);
}

#[test]
fn at_80_by_24_all_of_it_is_there() {
    check(
        &overloaded(),
        (80, 24),
        expect![[r#"
            tidegate top  127.0.0.1:8101  20:27:39 UTC  connections 1234 in, 10 out
            orders: OVERLOADED: 1020/s of 1500/s are too much; goodput 480/s
            upstream          flight   most  limit  queue   most    cap  arr/s good/s  ref/s
            orders                10     10     10      8      8     64   1500    480   1020
            ── orders ──────────────────────────────────────────────────────────────────────
            in flight       ████████████████████████████  10 of 10  orphans 2
            queue           ████························  8 of 64  budget 500 ms
            arrivals           1500/s  ▁▂▂▂▂▂▂▂▂▃▃▃▃████████████████████████████████████████
            goodput             480/s  ▁▂▂▂▂▂▂▂▂▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃
            refused            1020/s               ▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆
              queue_full        765/s               ▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅
              rate_limited      255/s               ▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂
            class               arr/s   good/s    ref/s   flight  waiting     wait  longest
            background            300       12      287        1        6   455 ms   500 ms
            critical              300      300        0        6        0   2.1 ms   9.5 ms
            default               900      168      732        3        2        –        –
            last second        median     90 %     99 %  minute:   median     90 %     99 %
            latency             37 ms   390 ms  1406 ms             37 ms    39 ms    41 ms
            upstream            20 ms    21 ms    22 ms             20 ms    21 ms        –
            breakers  2 closed, 1 half open   retries  3 sent, 0 refused, budget 17 of 20
            Little    480/s × 21 ms = 9.9 in flight; 243 can wait     wasted 350 ms a second
            refused most    per-client:10.0.0.7 812  orders:tenant\u{1b}[31m 96

            q quit  u next upstream  p pause  ? help
        "#]],
    );
}

#[test]
fn at_120_by_40_there_is_more_of_it() {
    let mut view = overloaded();
    let mut idle = upstream(0);
    idle["in_flight"] = 0.into();
    view.hear(sample(60, &[("billing", idle), ("orders", upstream(60)), ("search", upstream(5))]));
    view.hear(refused());
    view.press(Key::Next);
    check(
        &view,
        (120, 40),
        expect![[r#"
            tidegate top  127.0.0.1:8101  20:27:40 UTC  connections 1234 in, 10 out
            orders: OVERLOADED: 1020/s of 1500/s are too much; goodput 480/s
            upstream                                 flight   most  limit  queue   most    cap  arr/s good/s  ref/s
            billing                                       0     10     10      0      8     64      0      0      0
            > orders                                     10     10     10      8      8     64   1500    480   1020
            search                                        4     10     10      0      8     64    120    120      0
            ── orders ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
            in flight       ████████████████████████████████████████████████████████████  10 of 10  orphans 2
            queue           ████████····················································  8 of 64  budget 500 ms
            arrivals           1500/s                                   ▁▁▁▁▁▁▁▂▂▂▂▂▂▂▂▃▃▃▃█████████████████████████████████████████
            goodput             480/s                                   ▁▁▁▁▁▁▁▂▂▂▂▂▂▂▂▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃
            refused            1020/s                                                      ▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆
              queue_full        765/s                                                      ▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅
              rate_limited      255/s                                                      ▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂
            class               arr/s   good/s    ref/s   flight  waiting     wait  longest
            background            300       12      287        1        6   455 ms   500 ms
            critical              300      300        0        6        0   2.1 ms   9.5 ms
            default               900      168      732        3        2        –        –
            last second        median     90 %     99 %  minute:   median     90 %     99 %
            latency             37 ms   390 ms  1406 ms             37 ms    39 ms    41 ms
            upstream            20 ms    21 ms    22 ms             20 ms    21 ms        –
            breakers  2 closed, 1 half open   retries  3 sent, 0 refused, budget 17 of 20
            Little    480/s × 21 ms = 9.9 in flight; 243 can wait     wasted 350 ms a second
            refused most       lately  key
            per-client            812  10.0.0.7
            orders                 96  tenant\u{1b}[31m
            route                                                                      arr/s  good/s   ref/s     now    most   limit
            /*                                                                          1200     180    1020      12      80       –
            POST /checkout/*                                                             300     300       0       6      21      40










            q quit  u next upstream  p pause  ? help
        "#]],
    );
}

#[test]
fn upstreams_are_gone_through_in_a_ring() {
    let mut view = View::new("127.0.0.1:8101".parse().unwrap());
    let all: Vec<String> = (0..9).map(|number| format!("u{number}")).collect();
    let upstreams: Vec<(&str, Value)> = all.iter().map(|name| (name.as_str(), upstream(5))).collect();
    view.hear(sample(1, &upstreams));
    let chosen = |view: &View| {
        let text = view.frame(80, 24).plain();
        text.lines().find(|line| line.starts_with("> ")).unwrap()[2..4].to_owned()
    };
    let mut seen = vec![chosen(&view)];
    for _ in 0..9 {
        view.press(Key::Next);
        seen.push(chosen(&view));
    }
    assert_eq!(seen, ["u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8", "u0"]);
    view.press(Key::Previous);
    assert_eq!(chosen(&view), "u8");
    // The one that was looked at has gone with a reload.
    view.hear(sample(2, &upstreams[..2]));
    assert_eq!(chosen(&view), "u0");
}

/// What is paused stays, and says so; what has gone says so, and comes back.
#[test]
fn a_pause_holds_and_a_loss_is_told() {
    let mut view = overloaded();
    view.press(Key::Pause);
    let held = view.frame(80, 24).plain();
    view.hear(sample(99, &[("orders", upstream(5))]));
    assert_eq!(view.frame(80, 24).plain(), held);
    assert!(held.contains("PAUSED"), "{held}");
    view.press(Key::Pause);
    view.hear(News::Lost("Connection refused \u{1b}[2J".into()));
    let lost = view.frame(80, 24).plain();
    assert!(lost.contains("GONE, trying again: Connection refused \\u{1b}[2J"), "{lost}");
    view.hear(sample(100, &[("orders", upstream(5))]));
    assert!(view.frame(80, 24).plain().contains("WELL"));
}

/// On no size of screen is anything written beyond it, and on none does it panic.
#[test]
fn every_size_of_screen() {
    let mut view = overloaded();
    for help in [false, true] {
        if help {
            view.press(Key::Help);
        }
        for width in [0, 1, 59, 60, 79, 80, 200, 1_000] {
            for height in [0, 1, 9, 10, 11, 23, 24, 25, 60, 500] {
                let text = view.frame(width, height).plain();
                assert!(
                    text.lines().count() <= height.into()
                        && text.lines().all(|l| l.chars().count() <= width.into())
                );
            }
        }
    }
    let help = view.frame(80, 24).plain();
    assert!(help.contains("Ctrl-C") && help.lines().all(|line| line.chars().count() < 80), "{help}");
    assert!(view.frame(59, 24).plain().contains("too small"));
}

/// The first line about an upstream is the instance's verdict, in words: each kind has its own.
#[test]
fn the_verdict_of_the_instance_in_words() {
    let says = |kind: &str, level: &str, reason: &str| {
        let mut one = upstream(5);
        let verdict = json!({
            "kind": kind, "level": level, "arrivals": 120, "goodput": 90, "refused": 30, "failed": 60,
            "client_left": 7, "taken": 4, "limit": 10, "waiting": 3, "reason": reason, "for_reason": 20,
        });
        one["verdict"] = verdict;
        let mut view = View::new("127.0.0.1:8101".parse().unwrap());
        view.hear(sample(1, &[("a", one)]));
        view.frame(80, 24).plain().lines().nth(1).unwrap().to_owned()
    };
    for (kind, level, reason, line) in [
        ("idle", "good", "", "IDLE"),
        ("well", "good", "", "WELL: 90/s served in time, 6 of 10 slots free"),
        ("just_full", "warn", "", "FULL: 3 wait, the longest did for 500 ms"),
        ("held_back", "warn", "rate_limited", "LIMITED: 20/s are over their callers' limits; goodput 90/s"),
        ("refuses", "warn", "deadline", "REFUSING: 30/s of 120/s, mostly deadline; goodput 90/s"),
        ("full", "bad", "queue_full", "OVERLOADED: 30/s of 120/s are too much; goodput 90/s"),
        ("fails", "bad", "upstream_reset", "FAILING: 60/s of 120/s fail"),
        ("fails", "bad", "upstream_timeout", "FAILING: 60/s of 120/s take too long"),
        ("clients_leave", "bad", "", "LEAVING: 7/s of 120/s give up before their answer"),
        ("down", "bad", "", "DOWN: no endpoint answers; requests are refused at once"),
        ("", "", "", "it is not said how it is: this instance is of another version"),
        ("new", "warn", "", "NEW: goodput 90/s of 120/s"),
    ] {
        assert_eq!(says(kind, level, reason), format!("a: {line}"));
    }
}
