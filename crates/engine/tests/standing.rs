//! A burst may wait as long as the policy says; where there is a queue all the time, hardly anybody may.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::*;

/// One slot of 10 ms, and twice as many arrivals as it can serve: the longest queue in each second.
fn longest_queues(capacity: Capacity, deadline_ms: Option<u64>) -> Vec<u32> {
    let queue = QueuePolicy {
        standing_wait: Duration::from_millis(100),
        ..QueuePolicy::of(Duration::from_millis(500), capacity)
    };
    let limit = LimitPolicy::Fixed(NonZeroU32::MIN);
    let mut admission = Admission::new(AdmissionPolicy::new(limit, queue));
    let (mut permit, mut longest) = (None, vec![0; 4]);
    for millis in 0..4000 {
        let now = Timestamp::from_millis(millis);
        if millis % 10 == 0
            && let Some(permit) = permit.take()
        {
            admission.complete(now, permit, Outcome::Success);
        }
        if millis % 5 == 0 {
            let arrival = Arrival::new(RouteId(0));
            let arrival = deadline_ms
                .map_or(arrival, |left| arrival.with_deadline(now.after(Duration::from_millis(left))));
            match admission.arrive(now, arrival) {
                Decision::Admit(admitted) => permit = Some(admitted),
                Decision::Queue(_) | Decision::Reject(_) => {}
            }
        }
        admission.handle_timeout(now);
        while let Some(event) = admission.poll_event() {
            if let Event::Granted { permit: granted, .. } = event {
                permit = Some(granted);
            }
        }
        let second = &mut longest[millis as usize / 1000];
        *second = admission.snapshot().queue_depth.max(*second);
    }
    longest
}

#[test]
fn a_queue_that_stands_is_kept_short() {
    let longest = longest_queues(Capacity::Derived, None);
    assert!((45..=51).contains(&longest[0]), "at first it may be a burst: {longest:?}");
    assert!((9..=11).contains(&longest[3]), "a tenth of a second is ten of 10 ms: {longest:?}");
}

#[test]
fn whoever_has_less_time_waits_less() {
    let longest = longest_queues(Capacity::Derived, Some(600));
    assert!((5..=7).contains(&longest[3]), "a tenth of 600 ms: {longest:?}");
    let longest = longest_queues(Capacity::Derived, Some(200));
    assert!((4..=5).contains(&longest[3]), "four may always wait: {longest:?}");
}

/// Somebody has said how long the queue is to be.
#[test]
fn a_length_of_ones_own_is_left_alone() {
    let longest = longest_queues(Capacity::Fixed(30), None);
    assert_eq!(longest[3], 30, "{longest:?}");
}
