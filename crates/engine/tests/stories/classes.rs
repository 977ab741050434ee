//! Classes with floors, tenants, costs, retries, and the order in which the queue is served.

use std::time::Duration;

use expect_test::expect;
use tidegate_engine::*;

use crate::teller::{check, policy};

/// One slot and three classes, the last of which has so much guaranteed.
fn classes(capacity: u32, floor: f64) -> AdmissionPolicy {
    let priorities = [0.0, 0.0, floor].map(|floor| PriorityPolicy { floor }).to_vec();
    AdmissionPolicy { priorities, ..policy(1, capacity, 10_000) }
}

#[test]
fn the_more_important_go_first_and_in_their_class_whoever_came_first() {
    check(
        classes(9, 0.0),
        "
        0ms arrive a low!2 mid!1 high!0 low2!2 high2!0 unknown!9
        10ms done a
        20ms done high
        30ms done high2
        40ms done mid
        50ms done low
        60ms done low2
        ",
        expect![[r#"
            0ms arrive: a goes, low waits, mid waits, high waits, low2 waits, high2 waits, unknown waits
            10ms done: high goes
            20ms done: high2 goes
            30ms done: mid goes
            40ms done: low goes
            50ms done: low2 goes
            60ms done: unknown goes
        "#]],
    );
}

/// A quarter of the slot time is the least class's, however much the others want; what it does not ask for, they have.
#[test]
fn a_floor_is_kept_and_what_is_not_used_is_given_on() {
    check(
        classes(99, 0.25),
        "
        0ms arrive a h0..h9!0 l0..l3!2
        10ms done a
        20ms done h0
        30ms done h1
        40ms done h2
        50ms done h3
        60ms done l0
        70ms done h4
        80ms done h5
        ",
        expect![[r#"
            0ms arrive: a goes, h0 waits, h1 waits, h2 waits, h3 waits, h4 waits, h5 waits, h6 waits, h7 waits, h8 waits, h9 waits, l0 waits, l1 waits, l2 waits, l3 waits
            10ms done: h0 goes
            20ms done: h1 goes
            30ms done: h2 goes
            40ms done: h3 goes
            50ms done: l0 goes
            60ms done: h4 goes
            70ms done: h5 goes
            80ms done: h6 goes
        "#]],
    );
}

/// The last of the least important class goes when somebody more important finds the queue full; but not those whom its
/// floor keeps a place for, and nobody goes for an equal.
#[test]
fn the_important_push_out_the_least() {
    check(
        classes(4, 0.5),
        "
        0ms arrive a l0..l3!2
        1ms arrive m0!1
        2ms arrive h0!0
        3ms arrive h1!0
        4ms arrive l4!2
        5ms arrive h2!0
        ",
        expect![[r#"
            0ms arrive: a goes, l0 waits, l1 waits, l2 waits, l3 waits
            1ms arrive: m0 waits, l3 pushed_out
            2ms arrive: h0 waits, l2 pushed_out
            3ms arrive: h1 waits, m0 pushed_out
            4ms arrive: l4 queue_full (0 ms)
            5ms arrive: h2 queue_full (0 ms)
        "#]],
    );
}

/// One tenant fills the queue. Another that asks for little is served next, and finds a place although there is none.
#[test]
fn tenants_take_turns() {
    check(
        policy(1, 4, 10_000),
        "
        0ms arrive a:big b0..b3:big
        1ms arrive small:small
        2ms arrive b4:big
        10ms done a
        20ms done small
        21ms arrive small2:small
        30ms done b0
        40ms done small2
        ",
        expect![[r#"
            0ms arrive: a goes, b0 waits, b1 waits, b2 waits, b3 waits
            1ms arrive: small waits, b3 pushed_out
            2ms arrive: b4 queue_full (0 ms)
            10ms done: small goes
            20ms done: b0 goes
            21ms arrive: small2 waits
            30ms done: small2 goes
            40ms done: b1 goes
        "#]],
    );
}

/// A tenant whose requests take long has had its part when they are done, and the other catches up.
#[test]
fn a_request_that_took_long_is_charged_for_it() {
    check(
        policy(1, 9, 10_000),
        "
        0ms arrive a:slow s0..s2:slow f0..f3:fast
        100ms done a
        110ms done f0
        120ms done f1
        130ms done f2
        ",
        expect![[r#"
            0ms arrive: a goes, s0 waits, s1 waits, s2 waits, f0 waits, f1 waits, f2 waits, f3 waits
            100ms done: f0 goes
            110ms done: f1 goes
            120ms done: f2 goes
            130ms done: f3 goes
        "#]],
    );
}

/// No tenant has more than its share while others would find no slot; alone it may have all.
#[test]
fn a_tenant_has_its_share_at_most() {
    let shared = AdmissionPolicy { tenant_share: Some(0.5), ..policy(4, 9, 10_000) };
    check(
        shared,
        "
        0ms arrive a0..a3:big
        1ms arrive a4:big other:small
        2ms done a0
        3ms done a1..a2
        4ms arrive a5:big
        5ms arrive a6:big
        ",
        expect![[r#"
            0ms arrive: a0 goes, a1 goes, a2 goes, a3 goes
            1ms arrive: a4 tenant_limit (0 ms), other waits
            2ms done: other goes
            3ms done: nothing
            4ms arrive: a5 goes
            5ms arrive: a6 goes
        "#]],
    );
}

/// A request that takes three slots waits for three, and nobody overtakes it; one that takes more than there are takes
/// all of them.
#[test]
fn a_wide_request_waits_for_as_many_slots_as_it_takes() {
    check(
        policy(4, 9, 10_000),
        "
        0ms arrive a b wide*3 c
        10ms done a
        20ms done b
        30ms arrive all*9
        40ms done wide c
        50ms done all
        ",
        expect![[r#"
            0ms arrive: a goes, b goes, wide waits, c waits
            10ms done: wide goes
            20ms done: c goes
            30ms arrive: all waits
            40ms done: all goes
            50ms done: nothing
        "#]],
    );
}

/// However wide requests say that they are, all of them have their turn.
#[test]
fn widths_do_not_overflow() {
    check(
        policy(4, 9, 10_000),
        "
        0ms arrive a b*4294967295 c*4294967295 d:one*4294967295 e:one*4294967295
        10ms done a
        20ms done d
        30ms leave c
        30ms arrive f:one
        40ms done b
        50ms done e
        ",
        expect![[r#"
            0ms arrive: a goes, b waits, c waits, d waits, e waits
            10ms done: d goes
            20ms done: b goes
            30ms leave: nothing
            30ms arrive: f wait_too_long (7 ms)
            40ms done: e goes
            50ms done: nothing
        "#]],
    );
}

/// Retries go behind first tries, of whatever tenant, and give them their place; they are let in as far as the budget
/// pays for them, which is one at first and one for every second first try.
#[test]
fn retries_rank_below_first_tries_and_have_a_budget() {
    let retries = RetryPolicy { damp: true, percent: 50, burst: 1, per_second: 0 };
    check(
        AdmissionPolicy { retries: Some(retries), ..policy(1, 3, 10_000) },
        "
        0ms arrive a again? b
        1ms arrive again2?
        2ms arrive c d
        3ms arrive e
        10ms done a
        ",
        expect![[r#"
            0ms arrive: a goes, again waits, b waits
            1ms arrive: again2 retry_budget (0 ms)
            2ms arrive: c waits, d waits, again pushed_out
            3ms arrive: e queue_full (0 ms)
            10ms done: b goes
        "#]],
    );
}

/// Whoever was refused and comes at once is taken for a retry; whoever comes when told to, for what it is.
#[test]
fn coming_back_as_told_is_no_retry() {
    let retries = RetryPolicy { damp: true, percent: 0, burst: 0, per_second: 0 };
    check(
        AdmissionPolicy { retries: Some(retries), ..policy(1, 2, 10_000) },
        "
        0ms arrive a#a
        100ms done a
        100ms arrive b c#c d#d e#e
        150ms arrive e#e
        200ms done b
        201ms arrive e2#e
        210ms arrive x
        500ms arrive e3?#e
        2200ms arrive e4?#e
        ",
        expect![[r#"
            0ms arrive: a goes
            100ms done: nothing
            100ms arrive: b goes, c waits, d waits, e queue_full (500 ms)
            150ms arrive: e queue_full (450 ms)
            200ms done: c goes
            201ms arrive: e2 waits
            210ms arrive: x waits, e2 pushed_out
            500ms arrive: e3 retry_budget (0 ms)
            2200ms arrive: e4 queue_full (2300 ms)
        "#]],
    );
}

/// While the queue comes and goes, in order; when somebody has waited for most of the last second, the last first.
#[test]
fn adaptive_lifo() {
    let policy = policy(1, 9, 10_000);
    let queue = QueuePolicy { discipline: Discipline::AdaptiveLifo, ..policy.queue };
    check(
        AdmissionPolicy { queue, ..policy },
        "
        0ms arrive a b c d e
        10ms done a
        1100ms tick
        1500ms tick
        2000ms arrive f
        2010ms done b
        2020ms done f
        ",
        expect![[r#"
            0ms arrive: a goes, b waits, c waits, d waits, e waits
            10ms done: b goes
            1100ms tick: nothing
            1500ms tick: nothing
            2000ms arrive: f waits
            2010ms done: f goes
            2020ms done: e goes
        "#]],
    );
}

/// Who is pushed out is who would be served last, whichever end of the line that is.
#[test]
fn adaptive_lifo_pushes_out_the_oldest() {
    let classes = classes(4, 0.0);
    let queue = QueuePolicy { discipline: Discipline::AdaptiveLifo, ..classes.queue };
    check(
        AdmissionPolicy { queue, ..classes },
        "
        0ms arrive a l0..l3!2
        1ms arrive m0!1
        1100ms tick
        1500ms tick
        2000ms arrive m1!1
        2010ms done a
        2020ms done m1
        2030ms done m0
        2040ms done l2
        ",
        expect![[r#"
            0ms arrive: a goes, l0 waits, l1 waits, l2 waits, l3 waits
            1ms arrive: m0 waits, l3 pushed_out
            1100ms tick: nothing
            1500ms tick: nothing
            2000ms arrive: m1 waits, l0 pushed_out
            2010ms done: m1 goes
            2020ms done: m0 goes
            2030ms done: l2 goes
            2040ms done: l1 goes
        "#]],
    );
}

/// If nobody got through quickly for a while, whoever has waited long is sent away when its turn comes.
#[test]
fn codel() {
    let policy = policy(1, 9, 10_000);
    let queue = QueuePolicy {
        discipline: Discipline::Codel,
        standing_wait: Duration::from_millis(40),
        ..policy.queue
    };
    check(
        AdmissionPolicy { queue, ..policy },
        "
        0ms arrive a b c d e f
        30ms done a
        60ms done b
        110ms done c
        140ms arrive g
        150ms done d
        ",
        expect![[r#"
            0ms arrive: a goes, b waits, c waits, d waits, e waits, f waits
            30ms done: b goes
            60ms done: c goes
            110ms done: d goes
            140ms arrive: g waits
            150ms done: e queue_timeout, f queue_timeout, g goes
        "#]],
    );
}

/// When everything fails, nobody is let in any more, and whoever waits is told so; a second later a few may see how it is.
#[test]
fn a_breaker() {
    let breaker = BreakerPolicy {
        min_requests: std::num::NonZeroU32::new(2).unwrap(),
        probes: std::num::NonZeroU32::MIN,
        ..BreakerPolicy::careful(Duration::from_secs(2))
    };
    check(
        AdmissionPolicy { breaker: Some(breaker), ..policy(2, 9, 10_000) },
        "
        0ms arrive a b c d
        10ms fail a
        20ms fail b
        30ms arrive e
        1100ms arrive f g
        1120ms done f
        1130ms arrive h
        ",
        expect![[r#"
            0ms arrive: a goes, b goes, c waits, d waits
            10ms fail: c goes
            20ms fail: d breaker_open
            30ms arrive: e breaker_open (346 ms)
            1100ms arrive: f goes, g breaker_open (2011 ms)
            1120ms done: nothing
            1130ms arrive: h goes
        "#]],
    );
}
