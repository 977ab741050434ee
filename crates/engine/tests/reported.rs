//! What an upstream says of its own load, seen from an admission.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::*;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn admit(admission: &mut Admission, now: Timestamp) -> Option<Permit> {
    match admission.arrive(now, Arrival::new(RouteId(0))) {
        Decision::Admit(permit) => Some(permit),
        _ => None,
    }
}

/// At twice the load that it should have, half of what is in flight is too much: nothing is cancelled, nothing new gets in
/// until it is below, and when reports stop so does the ceiling.
#[test]
fn a_busy_upstream_gets_less_until_it_stops_to_say_so() {
    let limit = LimitPolicy::Fixed(NonZeroU32::new(10).unwrap());
    let queue = QueuePolicy::of(Duration::ZERO, Capacity::Fixed(0));
    let mut admission = Admission::new(AdmissionPolicy::new(limit, queue));
    let mut permits: Vec<Permit> = (0..10).map(|_| admit(&mut admission, at(0)).unwrap()).collect();
    admission.on_load(at(10), 2.0);
    assert_eq!((admission.snapshot().limit, admission.snapshot().in_flight), (5, 10));
    for in_flight in [9, 8, 7, 6, 5] {
        assert!(admit(&mut admission, at(20)).is_none());
        admission.complete(at(20), permits.pop().unwrap(), Outcome::Success);
        assert_eq!(admission.snapshot().in_flight, in_flight);
    }
    assert!(admit(&mut admission, at(30)).is_none(), "five are in flight");
    admission.complete(at(40), permits.pop().unwrap(), Outcome::Success);
    permits.push(admit(&mut admission, at(40)).unwrap());
    // Five seconds after the report it is forgotten.
    assert!(admit(&mut admission, at(5_009)).is_none());
    permits.push(admit(&mut admission, at(5_010)).unwrap());
    assert_eq!(admission.snapshot().limit, 10);
    for nonsense in [f64::NAN, -1.0, f64::INFINITY] {
        admission.on_load(at(5_020), nonsense);
        assert_eq!(admission.snapshot().limit, 10, "{nonsense}");
    }
    for permit in permits {
        admission.complete(at(6_000), permit, Outcome::Success);
    }
}
