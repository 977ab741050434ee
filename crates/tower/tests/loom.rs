//! A12. Every interleaving of a few threads at one gate, explored by loom:
//! `RUSTFLAGS="--cfg tidegate_loom" cargo test -p tidegate-tower --release --test loom`.
#![cfg(tidegate_loom)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::num::NonZeroU32;
use std::time::Duration;

use loom::future::block_on;
use loom::thread;
use tidegate_tower::engine::*;
use tidegate_tower::{Entry, Gate};

fn policy(limit: u32) -> AdmissionPolicy {
    AdmissionPolicy::new(
        LimitPolicy::Fixed(NonZeroU32::new(limit).unwrap()),
        QueuePolicy::of(Duration::from_secs(3600), Capacity::Fixed(8)),
    )
}

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn work(gate: &Gate) {
    let admitted = block_on(gate.admit(Arrival::new(RouteId(0)))).unwrap();
    let snapshot = gate.snapshot();
    assert!(snapshot.in_flight <= snapshot.limit);
    admitted.complete(Outcome::Success);
}

#[test]
fn no_wake_up_is_lost() {
    explore(|| {
        let gate = Gate::new(policy(1));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let gate = gate.clone();
                thread::spawn(move || work(&gate))
            })
            .collect();
        work(&gate);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(gate.snapshot().counts.completed, 3);
    });
}

#[test]
fn a_waiter_that_leaves_while_it_is_granted_loses_no_slot() {
    explore(|| {
        let gate = Gate::new(policy(1));
        let Entry::Admitted(held) = gate.enter(Arrival::new(RouteId(0))) else { panic!() };
        let Entry::Waiting(leaver) = gate.enter(Arrival::new(RouteId(0))) else { panic!() };
        let Entry::Waiting(stayer) = gate.enter(Arrival::new(RouteId(0))) else { panic!() };
        let leaves = thread::spawn(move || drop(leaver));
        let completes = thread::spawn(move || held.complete(Outcome::Success));
        block_on(stayer).unwrap().complete(Outcome::Success);
        leaves.join().unwrap();
        completes.join().unwrap();
        assert_eq!((gate.snapshot().in_flight, gate.snapshot().queue_depth), (0, 0));
    });
}

#[test]
fn a_limit_that_is_raised_meanwhile_wakes_the_waiter() {
    explore(|| {
        let gate = Gate::new(policy(1));
        let Entry::Admitted(held) = gate.enter(Arrival::new(RouteId(0))) else { panic!() };
        let other = gate.clone();
        let raises = thread::spawn(move || other.reconfigure(policy(2)));
        work(&gate);
        raises.join().unwrap();
        held.complete(Outcome::Success);
        assert_eq!(gate.snapshot().in_flight, 0);
    });
}
