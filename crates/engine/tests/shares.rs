//! Who gets how much of a service that is asked for more than it can do: classes by their floors, retries what is left.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::{
    Admission, AdmissionPolicy, Arrival, Attempt, Capacity, Decision, Event, LimitPolicy, Outcome, Permit,
    Priority, PriorityPolicy, QueuePolicy, RetryPolicy, RouteId, Timestamp,
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
    let retries = Some(RetryPolicy { damp: true, percent: 100, burst: 1_000, per_second: 0 });
    AdmissionPolicy { priorities, retries, ..AdmissionPolicy::new(limit, queue) }
}

fn of_class(class: u8) -> Arrival {
    Arrival::new(RouteId(0)).with_priority(Priority(class))
}

#[derive(Default)]
struct Played {
    /// Which of the turns began.
    begun: Vec<usize>,
    /// How many waited in vain.
    in_vain: u32,
    /// By the index of their tickets.
    waiting: Vec<usize>,
}

impl Played {
    /// Of those ten seconds after one in which all get used to it, how many of a turn began.
    fn of(&self, turn: usize) -> usize {
        self.begun.iter().filter(|begun| **begun == turn).count()
    }

    fn hear(&mut self, admission: &mut Admission, started: &mut Vec<(usize, Permit)>) {
        while let Some(event) = admission.poll_event() {
            match event {
                Event::Granted { ticket, permit } => started.push((self.waiting[ticket.index()], permit)),
                Event::Refused { .. } => self.in_vain += 1,
            }
        }
    }
}

/// Every millisecond somebody comes, in these turns.
fn play(turns: &[Arrival]) -> Played {
    let mut admission = Admission::new(policy());
    let mut running: VecDeque<(u64, Permit)> = VecDeque::new();
    let mut played = Played::default();
    for millis in 0..11_000_u64 {
        let now = Timestamp::from_millis(millis);
        let mut started: Vec<(usize, Permit)> = Vec::new();
        while running.front().is_some_and(|(since, _)| since + WORKS_MS <= millis) {
            let (_, permit) = running.pop_front().unwrap();
            admission.complete(now, permit, Outcome::Success);
            played.hear(&mut admission, &mut started);
        }
        admission.handle_timeout(now);
        played.hear(&mut admission, &mut started);
        let turn = millis as usize % turns.len();
        let decision = admission.arrive(now, turns[turn]);
        played.hear(&mut admission, &mut started);
        match decision {
            Decision::Admit(permit) => started.push((turn, permit)),
            Decision::Queue(ticket) => {
                let index = ticket.id().index();
                played.waiting.resize(played.waiting.len().max(index + 1), 0);
                played.waiting[index] = turn;
            }
            Decision::Reject(_) => {}
        }
        for (turn, permit) in started {
            played.begun.extend((millis >= 1000).then_some(turn));
            running.push_back((millis, permit));
        }
    }
    played
}

/// A floor is a share of the slots, however many of them one request takes.
#[test]
fn a_floor_is_no_larger_for_wide_requests() {
    let wide = of_class(2).with_cost(NonZeroU32::new(5).unwrap());
    let begun = play(&[of_class(0), wide]).of(1);
    // A twentieth of 5,000 slots of 20 ms, by five.
    assert!((35..=65).contains(&begun), "{begun}");
}

/// A thousand a second come where 500 can be served, and four fifths of that are more important. Those of the last class
/// who wait have their turn now and then, so whoever joins them is not refused for all who are before them.
#[test]
fn a_class_gets_what_its_floor_says() {
    let played = play(&[0, 1, 1, 2, 1].map(of_class));
    let (critical, background) = (played.of(0), played.of(3));
    assert!((1990..=2000).contains(&critical), "{critical} of 2000");
    assert!((240..=300).contains(&background), "{background}, where its floor is 250");
    assert!(played.begun.len() >= 4950, "{}: slots were left empty", played.begun.len());
}

/// What a class does not use others do.
#[test]
fn a_floor_that_nobody_stands_on_costs_nothing() {
    let begun = play(&[of_class(1)]).begun.len();
    assert!(begun >= 4990, "{begun}");
}

/// First tries could use twice what there is, so nothing will be left for a retry: that is said at once, and not when its
/// time is up.
#[test]
fn a_retry_does_not_wait_for_what_first_tries_leave_if_they_leave_nothing() {
    let retry = of_class(1).with_attempt(Attempt::Retry);
    let played = play(&[of_class(1), of_class(1), of_class(1), of_class(1), retry]);
    assert!(played.begun.len() >= 4990 && played.of(4) <= 10, "{} of {}", played.of(4), played.begun.len());
    assert!(
        played.in_vain <= 100,
        "{} waited in vain, and those of the first second alone are 71",
        played.in_vain
    );
}

/// Where first tries leave room, retries have it.
#[test]
fn a_retry_has_what_is_left() {
    let retry = of_class(1).with_attempt(Attempt::Retry);
    let nobody = of_class(1).with_deadline(Timestamp::ZERO);
    let played = play(&[of_class(1), nobody, nobody, retry, nobody]);
    assert!(played.of(0) >= 1990 && played.of(3) >= 1990, "{} and {}", played.of(0), played.of(3));
}
