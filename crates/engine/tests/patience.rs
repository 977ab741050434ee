//! After how long clients leave that do not say how long they wait is learned of each class by itself.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::*;

/// One slot, a wait budget of half a second, and two classes.
fn policy() -> AdmissionPolicy {
    let queue = QueuePolicy::of(Duration::from_millis(500), Capacity::Derived);
    let limit = LimitPolicy::Fixed(NonZeroU32::MIN);
    AdmissionPolicy { priorities: vec![PriorityPolicy::default(); 2], ..AdmissionPolicy::new(limit, queue) }
}

fn of_class(class: u8) -> Arrival {
    Arrival::new(RouteId(0)).with_priority(Priority(class))
}

fn queued(decision: Decision) -> Ticket {
    match decision {
        Decision::Queue(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

/// How long somebody of a class may wait after a hundred of one class have left after 100 ms each, while others were served.
fn wait_after_leaving(leaves: u8, waits: u8) -> Duration {
    let mut admission = Admission::new(policy());
    let mut now = Timestamp::ZERO;
    for _ in 0..100 {
        let Decision::Admit(permit) = admission.arrive(now, of_class(1 - leaves)) else {
            panic!("it is free")
        };
        now = now.after(Duration::from_millis(20));
        admission.complete(now, permit, Outcome::Success);
        let Decision::Admit(permit) = admission.arrive(now, of_class(1 - leaves)) else {
            panic!("it is free")
        };
        let decision = admission.arrive(now, of_class(leaves));
        now = now.after(Duration::from_millis(100));
        // Once that is known, it is refused before it leaves.
        if let Decision::Queue(ticket) = decision {
            admission.cancel(now, ticket);
        }
        admission.complete(now, permit, Outcome::Ignore);
        while admission.poll_event().is_some() {}
    }
    // There is no queue any more.
    now = now.after(Duration::from_secs(3));
    admission.handle_timeout(now);
    let Decision::Admit(_permit) = admission.arrive(now, of_class(0)) else { panic!("it is free") };
    queued(admission.arrive(now, of_class(waits))).until().since(now)
}

#[test]
fn an_impatient_class_shortens_nobody_elses_wait() {
    for class in [0, 1] {
        let (own, other) = (wait_after_leaving(class, class), wait_after_leaving(class, 1 - class));
        assert!(
            own <= Duration::from_millis(80),
            "at most half of what clients wait, or four turns: {own:?}"
        );
        assert_eq!(other, Duration::from_millis(500));
    }
}

/// And those whom a slot was given to teach something of their own class alone.
#[test]
fn nor_do_those_who_leave_while_they_are_served() {
    let mut admission = Admission::new(policy());
    let mut now = Timestamp::ZERO;
    for _ in 0..100 {
        for (class, outcome) in [(0, Outcome::Success), (1, Outcome::Ignore)] {
            let Decision::Admit(mut permit) = admission.arrive(now, of_class(class)) else { panic!("free") };
            let took = if class == 0 { 20 } else { 100 };
            now = now.after(Duration::from_millis(took));
            if class == 1 {
                admission.abandon(now, &mut permit, outcome);
            }
            admission.complete(now, permit, outcome);
        }
    }
    let Decision::Admit(_permit) = admission.arrive(now, of_class(0)) else { panic!("it is free") };
    let [own, other] = [1, 0].map(|class| queued(admission.arrive(now, of_class(class))).until().since(now));
    assert!(own <= Duration::from_millis(80), "{own:?}");
    assert_eq!(other, Duration::from_millis(500));
}
