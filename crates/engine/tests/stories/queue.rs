//! One class, no tenants: a limit, a queue, and time.

use std::num::NonZeroU32;

use expect_test::expect;
use tidegate_engine::*;

use crate::teller::{check, policy};

/// A1. Four slots, a queue of eight, fifty at once: twelve are served in three rounds, and the other 38 are refused
/// before anything has been served. ("Backpressure, Rate Limiting and Load Shedding in an API Gateway")
#[test]
fn bounded_queue() {
    check(
        policy(4, 8, 10_000),
        "0ms arrive w1..w14
         200ms done w1..w4
         400ms done w5..w8
         600ms done w9..w12",
        expect![[r#"
            0ms arrive: w1 goes, w2 goes, w3 goes, w4 goes, w5 waits, w6 waits, w7 waits, w8 waits, w9 waits, w10 waits, w11 waits, w12 waits, w13 queue_full (0 ms), w14 queue_full (0 ms)
            200ms done: w5 goes, w6 goes, w7 goes, w8 goes
            400ms done: w9 goes, w10 goes, w11 goes, w12 goes
            600ms done: nothing
        "#]],
    );
}

#[test]
fn no_queue_hands_over_or_refuses() {
    check(
        policy(4, 0, 500),
        "0ms arrive w1..w6
         200ms done w1
         200ms arrive x y",
        expect![[r#"
            0ms arrive: w1 goes, w2 goes, w3 goes, w4 goes, w5 queue_full (0 ms), w6 queue_full (0 ms)
            200ms done: nothing
            200ms arrive: x goes, y queue_full (100 ms)
        "#]],
    );
}

/// A13. The article's gateway looked at the wait when a worker picked the request up, and refused after 620 ms. Here the
/// timer refuses at 500 while nothing is known, and the next burst is refused on arrival.
#[test]
fn wait_budget_is_kept_by_timer_then_by_forecast() {
    check(
        policy(4, 64, 500),
        "0ms arrive w1..w15
         200ms done w1..w4
         400ms done w5..w8
         499ms tick
         500ms tick
         600ms done w9..w12
         1000ms arrive x1..x15",
        expect![[r#"
            0ms arrive: w1 goes, w2 goes, w3 goes, w4 goes, w5 waits, w6 waits, w7 waits, w8 waits, w9 waits, w10 waits, w11 waits, w12 waits, w13 waits, w14 waits, w15 waits
            200ms done: w5 goes, w6 goes, w7 goes, w8 goes
            400ms done: w9 goes, w10 goes, w11 goes, w12 goes
            499ms tick: nothing
            500ms tick: w13 queue_timeout, w14 queue_timeout, w15 queue_timeout
            600ms done: nothing
            1000ms arrive: x1 goes, x2 goes, x3 goes, x4 goes, x5 waits, x6 waits, x7 waits, x8 waits, x9 waits, x10 waits, x11 waits, x12 waits, x13 wait_too_long (700 ms), x14 wait_too_long (800 ms), x15 wait_too_long (900 ms)
        "#]],
    );
}

/// A timeout frees the client, not the work: the fifth request gets no slot before work has ended.
#[test]
fn an_orphan_keeps_its_slot() {
    check(
        policy(4, 64, 10_000),
        "0ms arrive a..d
         300ms abandon a..d
         400ms arrive e
         1000ms ignore a",
        expect![[r#"
            0ms arrive: a goes, b goes, c goes, d goes
            300ms abandon: nothing
            400ms arrive: e waits
            1000ms ignore: e goes
        "#]],
    );
}

/// A2. Who leaves the queue makes room at once, for those behind and for those to come.
#[test]
fn who_leaves_the_queue_makes_room() {
    check(
        policy(1, 2, 10_000),
        "0ms arrive a..d
         10ms leave b
         10ms arrive e
         20ms done a
         30ms done c",
        expect![[r#"
            0ms arrive: a goes, b waits, c waits, d queue_full (0 ms)
            10ms leave: nothing
            10ms arrive: e waits
            20ms done: c goes
            30ms done: e goes
        "#]],
    );
}

/// A5 (embassy#6964, failsafe#400): of many waiters all but the last leave; the last gets the slot at once.
#[test]
fn the_last_of_many_waiters_is_served() {
    let mut admission = Admission::new(policy(1, 10_000, 60_000));
    let arrival = Arrival::new(RouteId(0));
    let Decision::Admit(first) = admission.arrive(Timestamp::ZERO, arrival) else { panic!("a slot is free") };
    let mut tickets: Vec<Ticket> = (0..10_000)
        .map(|_| match admission.arrive(Timestamp::ZERO, arrival) {
            Decision::Queue(ticket) => ticket,
            other => panic!("there is room to wait: {other:?}"),
        })
        .collect();
    let last = tickets.pop().unwrap();
    for ticket in tickets {
        assert!(admission.cancel(Timestamp::from_millis(1), ticket));
    }
    admission.complete(Timestamp::from_millis(2), first, Outcome::Success);
    match admission.poll_event() {
        Some(Event::Granted { ticket, permit }) => {
            assert_eq!(ticket, last.id());
            admission.complete(Timestamp::from_millis(3), permit, Outcome::Success);
        }
        other => panic!("the last one's turn has come: {other:?}"),
    }
    assert_eq!(admission.snapshot().in_flight, 0);
}

/// A6 (failsafe#400): eight time out on a limit of eight; then the limit is still eight.
#[test]
fn waiters_that_time_out_take_no_slot_with_them() {
    check(
        policy(8, 8, 100),
        "0ms arrive w1..w16
         100ms tick
         200ms done w1..w8
         300ms arrive x1..x8",
        expect![[r#"
            0ms arrive: w1 goes, w2 goes, w3 goes, w4 goes, w5 goes, w6 goes, w7 goes, w8 goes, w9 waits, w10 waits, w11 waits, w12 waits, w13 waits, w14 waits, w15 waits, w16 waits
            100ms tick: w9 queue_timeout, w10 queue_timeout, w11 queue_timeout, w12 queue_timeout, w13 queue_timeout, w14 queue_timeout, w15 queue_timeout, w16 queue_timeout
            200ms done: nothing
            300ms arrive: x1 goes, x2 goes, x3 goes, x4 goes, x5 goes, x6 goes, x7 goes, x8 goes
        "#]],
    );
}

/// A10. A limit that falls below what is in flight drains; raised again, it wakes those who wait.
#[test]
fn a_limit_that_falls_drains() {
    check(
        policy(4, 8, 60_000),
        "0ms arrive a..d
         1ms limit 2
         1ms arrive e f
         2ms done a b
         3ms done c
         4ms limit 4",
        expect![[r#"
            0ms arrive: a goes, b goes, c goes, d goes
            1ms limit: nothing
            1ms arrive: e waits, f waits
            2ms done: nothing
            3ms done: e goes
            4ms limit: f goes
        "#]],
    );
}

/// A bulkhead counts those who wait too, so a slow route cannot fill the queue that all share.
#[test]
fn a_bulkhead_bounds_what_a_route_holds() {
    let mut policy = policy(2, 8, 10_000);
    policy.bulkheads = vec![(RouteId(7), NonZeroU32::new(3).unwrap())];
    check(
        policy,
        "0ms arrive a@7 b@7 c@7 d@7 e@1
         1ms leave c
         1ms arrive f@7 g@7
         2ms done a
         2ms arrive h@7",
        expect![[r#"
            0ms arrive: a goes, b goes, c waits, d route_limit (0 ms), e waits
            1ms leave: nothing
            1ms arrive: f waits, g route_limit (0 ms)
            2ms done: e goes
            2ms arrive: h waits
        "#]],
    );
}

#[test]
fn a_deadline_is_checked_on_arrival_and_while_waiting() {
    check(
        policy(1, 8, 10_000),
        "0ms arrive a
         100ms done a
         100ms arrive b late/100 never/150 soon/350
         249ms tick
         250ms tick",
        expect![[r#"
            0ms arrive: a goes
            100ms done: nothing
            100ms arrive: b goes, late deadline (0 ms), never deadline (0 ms), soon waits
            249ms tick: nothing
            250ms tick: soon deadline
        "#]],
    );
}

/// The clock of a driver may step back; the engine's does not.
#[test]
fn time_that_goes_back_stands_still() {
    check(
        policy(1, 8, 100),
        "1000ms arrive a b
         500ms tick
         0ms arrive c
         1100ms tick",
        expect![[r#"
            1000ms arrive: a goes, b waits
            500ms tick: nothing
            0ms arrive: c waits
            1100ms tick: b queue_timeout, c queue_timeout
        "#]],
    );
}
