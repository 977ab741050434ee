//! What a class is guaranteed it gets, whatever the more important ones want.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::{
    Admission, AdmissionPolicy, Arrival, Capacity, Decision, Event, LimitPolicy, Outcome, Permit, Priority,
    PriorityPolicy, QueuePolicy, RouteId, Timestamp,
};

const FLOOR: f64 = 0.05;
const SLOTS: u32 = 10;
const WORKS_MS: u64 = 20;

fn policy() -> AdmissionPolicy {
    let queue = QueuePolicy {
        standing_wait: Duration::from_millis(100),
        ..QueuePolicy::of(Duration::from_millis(500), Capacity::Derived)
    };
    let limit = LimitPolicy::Fixed(NonZeroU32::new(SLOTS).unwrap());
    let priorities = [0.0, 0.0, FLOOR].map(|floor| PriorityPolicy { floor }).into();
    AdmissionPolicy { priorities, ..AdmissionPolicy::new(limit, queue) }
}

/// How many of each class begin within ten seconds, after one in which all get used to it, if every millisecond one of the
/// classes comes whose number is in `turns`.
fn begun(turns: &[u8]) -> [u32; 3] {
    let mut admission = Admission::new(policy());
    let mut running: VecDeque<(u64, Permit)> = VecDeque::new();
    let mut classes = Vec::new();
    let mut begun = [0; 3];
    for millis in 0..11_000_u64 {
        let now = Timestamp::from_millis(millis);
        let mut started: Vec<(u8, Permit)> = Vec::new();
        while running.front().is_some_and(|(since, _)| since + WORKS_MS <= millis) {
            let (_, permit) = running.pop_front().unwrap();
            admission.complete(now, permit, Outcome::Success);
            hear(&mut admission, &classes, &mut started);
        }
        admission.handle_timeout(now);
        hear(&mut admission, &classes, &mut started);
        let class = turns[millis as usize % turns.len()];
        let decision = admission.arrive(now, Arrival::new(RouteId(0)).with_priority(Priority(class)));
        hear(&mut admission, &classes, &mut started);
        match decision {
            Decision::Admit(permit) => started.push((class, permit)),
            Decision::Queue(ticket) => {
                let index = ticket.id().index();
                classes.resize(classes.len().max(index + 1), 0);
                classes[index] = class;
            }
            Decision::Reject(_) => {}
        }
        for (class, permit) in started {
            begun[usize::from(class)] += u32::from(millis >= 1000);
            running.push_back((millis, permit));
        }
    }
    begun
}

fn hear(admission: &mut Admission, classes: &[u8], started: &mut Vec<(u8, Permit)>) {
    while let Some(event) = admission.poll_event() {
        if let Event::Granted { ticket, permit } = event {
            started.push((classes[ticket.index()], permit));
        }
    }
}

/// A thousand a second come where 500 can be served, and four fifths of that are more important. Those of the last class
/// who wait have their turn now and then, so whoever joins them is not refused for all who are before them.
#[test]
fn a_class_gets_what_its_floor_says() {
    let [critical, default, background] = begun(&[0, 1, 1, 2, 1]);
    assert!((1990..=2000).contains(&critical), "{critical} of 2000");
    assert!((240..=300).contains(&background), "{background}, where its floor is 250");
    assert!(critical + default + background >= 4950, "{default}: slots were left empty");
}

/// What a class does not use others do.
#[test]
fn a_floor_that_nobody_stands_on_costs_nothing() {
    let [_, default, background] = begun(&[1]);
    assert!(background == 0 && default >= 4990, "{default}");
}
