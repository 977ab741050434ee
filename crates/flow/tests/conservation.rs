//! What must hold whatever comes, in whatever order: submitted = delivered + dropped + buffered, nobody sleeps for whom
//! there is something, nothing is leaked. The publisher checks its own invariants after every input in debug builds; this
//! supplies the inputs, cancellations included, and compares with a model that counts items one by one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use proptest::prelude::*;
use tidegate_flow::{Drops, Policy, Publisher, Refused, Slowest, Submit, Subscription, Why};

/// An item that is missed when it is gone, and knows its weight.
#[derive(Debug)]
struct Item {
    number: u32,
    bytes: u64,
    alive: Arc<Mutex<BTreeMap<u32, u32>>>,
}

impl Item {
    fn new(number: u32, bytes: u64, alive: &Arc<Mutex<BTreeMap<u32, u32>>>) -> Self {
        *alive.lock().unwrap().entry(number).or_default() += 1;
        Self { number, bytes, alive: Arc::clone(alive) }
    }
}

impl Clone for Item {
    fn clone(&self) -> Self {
        Self::new(self.number, self.bytes, &self.alive)
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        let mut alive = self.alive.lock().unwrap();
        let count = alive.get_mut(&self.number).unwrap();
        *count -= 1;
        if *count == 0 {
            alive.remove(&self.number);
        }
    }
}

/// Whether somebody was woken since it last looked.
#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Subscribe,
    /// A producer comes and waits if it has to.
    Submit {
        bytes: u64,
    },
    TrySubmit {
        bytes: u64,
    },
    Offer {
        bytes: u64,
        drops: Drops,
    },
    /// A producer that waits is asked again, whether or not it was woken.
    Poll(prop::sample::Index),
    /// A producer gives up, with or without its item.
    Leave {
        who: prop::sample::Index,
        takes_back: bool,
    },
    Request {
        who: prop::sample::Index,
        more: u64,
    },
    Next(prop::sample::Index),
    Pull(prop::sample::Index),
    Cancel(prop::sample::Index),
    Unsubscribe(prop::sample::Index),
    Complete,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let who = any::<prop::sample::Index>;
    let bytes = || 0..=40_u64;
    let drops = prop_oneof![Just(Drops::Newest), Just(Drops::Oldest)];
    let one = prop_oneof![
        2 => Just(Operation::Subscribe),
        8 => bytes().prop_map(|bytes| Operation::Submit { bytes }),
        4 => bytes().prop_map(|bytes| Operation::TrySubmit { bytes }),
        4 => (bytes(), drops).prop_map(|(bytes, drops)| Operation::Offer { bytes, drops }),
        3 => who().prop_map(Operation::Poll),
        3 => (who(), any::<bool>()).prop_map(|(who, takes_back)| Operation::Leave { who, takes_back }),
        6 => (who(), 1..5_u64).prop_map(|(who, more)| Operation::Request { who, more }),
        8 => who().prop_map(Operation::Next),
        6 => who().prop_map(Operation::Pull),
        1 => who().prop_map(|who| Operation::Request { who, more: 0 }),
        1 => who().prop_map(Operation::Cancel),
        1 => who().prop_map(Operation::Unsubscribe),
    ];
    (prop::collection::vec(one, 1..120), any::<bool>()).prop_map(|(mut all, completes)| {
        all.insert(0, Operation::Subscribe);
        all.extend(completes.then_some(Operation::Complete));
        all
    })
}

struct Waiting<'a> {
    number: u32,
    submit: Pin<Box<Submit<'a, Item>>>,
    bell: Arc<Bell>,
}

struct Subscriber {
    subscription: Subscription<Item>,
    bell: Arc<Bell>,
    /// Its last poll found nothing.
    sleeps: bool,
}

struct World<'a> {
    publisher: &'a Publisher<Item>,
    several: bool,
    alive: Arc<Mutex<BTreeMap<u32, u32>>>,
    next: u32,
    /// Producers, in the order in which they came.
    waiting: Vec<Waiting<'a>>,
    subscribers: Vec<Subscriber>,
}

impl<'a> World<'a> {
    fn item(&mut self, bytes: u64) -> Item {
        self.next += 1;
        Item::new(self.next, bytes, &self.alive)
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Subscribe => {
                if self.several || self.subscribers.is_empty() {
                    let subscription = self.publisher.subscribe();
                    let bell = Arc::default();
                    self.subscribers.push(Subscriber { subscription, bell, sleeps: false });
                }
            }
            Operation::Submit { bytes } => {
                let item = self.item(bytes);
                let number = item.number;
                let waiting =
                    Waiting { number, submit: Box::pin(self.publisher.submit(item)), bell: Arc::default() };
                self.waiting.push(waiting);
                self.poll(self.waiting.len() - 1);
            }
            Operation::TrySubmit { bytes } => {
                let item = self.item(bytes);
                if let Err(Refused { why, item }) = self.publisher.try_submit(item) {
                    assert_eq!(why == Why::TooLarge, item.bytes > BYTES, "{why:?}");
                }
            }
            Operation::Offer { bytes, drops } => {
                let item = self.item(bytes);
                let mut dropped = 0;
                let count = self.publisher.offer_with(item, drops, |_| dropped += 1);
                assert_eq!(count, dropped);
            }
            Operation::Poll(who) => {
                if !self.waiting.is_empty() {
                    self.poll(who.index(self.waiting.len()));
                }
            }
            Operation::Leave { who, takes_back } if !self.waiting.is_empty() => {
                let waiting = self.waiting.remove(who.index(self.waiting.len()));
                if takes_back && let Some(item) = Pin::into_inner(waiting.submit).take_back() {
                    assert_eq!(item.number, waiting.number);
                }
            }
            Operation::Leave { .. } => {}
            Operation::Complete => {
                self.publisher.complete();
            }
            other => self.apply_to_subscriber(other),
        }
    }

    fn apply_to_subscriber(&mut self, operation: Operation) {
        if self.subscribers.is_empty() {
            return;
        }
        let count = self.subscribers.len();
        match operation {
            Operation::Request { who, more } => self.subscribers[who.index(count)].subscription.request(more),
            Operation::Next(who) => self.subscribers[who.index(count)].look(0),
            Operation::Pull(who) => self.subscribers[who.index(count)].look(1),
            Operation::Cancel(who) => self.subscribers[who.index(count)].subscription.cancel(),
            Operation::Unsubscribe(who) => drop(self.subscribers.remove(who.index(count))),
            _ => unreachable!("the others are not for subscribers"),
        }
    }

    fn poll(&mut self, index: usize) {
        let Waiting { number, submit, bell } = &mut self.waiting[index];
        let number = *number;
        let waker = Waker::from(Arc::clone(bell));
        bell.0.store(false, Ordering::SeqCst);
        match submit.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => {}
            Poll::Ready(taken) => {
                if let Err(refused) = taken {
                    assert_eq!(refused.item.number, number);
                    assert!(refused.why != Why::Full, "a submission waits instead");
                }
                drop(self.waiting.remove(index));
            }
        }
    }

    /// Whoever was woken looks; whoever was not woken has nothing to look for.
    fn check(&mut self) {
        let mut index = 0;
        while index < self.waiting.len() {
            let before = self.waiting.len();
            if self.waiting[index].bell.0.load(Ordering::SeqCst) {
                self.poll(index);
            }
            if self.waiting.len() == before {
                index += 1;
            }
        }
        let snapshot = self.publisher.snapshot();
        assert_eq!(snapshot.producers_waiting, self.waiting.len() as u64, "somebody waits who was not woken");
        let counts = snapshot.counts;
        assert_eq!(counts.submitted, counts.delivered + counts.dropped + snapshot.depth);
        for subscriber in &self.subscribers {
            let one = subscriber.subscription.snapshot();
            assert!(one.depth <= u64::from(ITEMS) + 1 && one.bytes <= BYTES);
            let fetchable = one.depth > 0 && subscriber.subscription.demand().outstanding() > 0;
            let woken = subscriber.bell.0.load(Ordering::SeqCst);
            assert!(!(subscriber.sleeps && fetchable && !woken), "a subscriber sleeps beside its item");
        }
        let held: u64 = self.alive.lock().unwrap().values().map(|count| u64::from(*count)).sum();
        // Producers who wait hold a copy for each subscriber at most, and one at least.
        let waiting = self.waiting.len() as u64;
        assert!(held >= snapshot.depth + waiting, "an item was lost");
        assert!(held <= snapshot.depth + waiting * SUBSCRIBERS, "an item was leaked");
    }
}

impl Subscriber {
    fn look(&mut self, ask: u64) {
        let waker = Waker::from(Arc::clone(&self.bell));
        self.bell.0.store(false, Ordering::SeqCst);
        self.sleeps = false;
        match self.subscription.poll_signal(&mut Context::from_waker(&waker), ask) {
            Poll::Pending => self.sleeps = true,
            Poll::Ready(_) => {}
        }
    }
}

const ITEMS: u32 = 3;
const BYTES: u64 = 30 + 2;
const SUBSCRIBERS: u64 = 3;

fn policy() -> Policy<Item> {
    Policy::new(ITEMS).with_bytes(BYTES, |item: &Item| item.bytes)
}

fn play(publisher: Publisher<Item>, several: bool, operations: &[Operation]) {
    let alive = Arc::new(Mutex::new(BTreeMap::new()));
    {
        let mut world = World {
            publisher: &publisher,
            several,
            alive: Arc::clone(&alive),
            next: 0,
            waiting: Vec::new(),
            subscribers: Vec::new(),
        };
        for operation in operations {
            world.apply(*operation);
            world.check();
        }
        // Whoever is left takes all there is, and every producer comes to its end.
        while !world.waiting.is_empty() {
            let before = world.waiting.len();
            for subscriber in &mut world.subscribers {
                subscriber.look(1);
            }
            world.check();
            if world.subscribers.iter().all(|one| one.subscription.snapshot().depth == 0) {
                assert!(world.waiting.len() < before || world.waiting.is_empty(), "producers wait for ever");
            }
        }
    }
    let snapshot = publisher.snapshot();
    assert_eq!((snapshot.depth, snapshot.producers_waiting, snapshot.subscribers), (0, 0, 0));
    drop(publisher);
    assert!(alive.lock().unwrap().is_empty(), "an item outlived everything");
}

proptest! {
    #[test]
    fn nothing_is_lost_or_made_with_one_subscriber(operations in operations()) {
        play(Publisher::new(policy()), false, &operations);
    }

    #[test]
    fn nothing_is_lost_or_made_with_several(operations in operations()) {
        play(Publisher::multicast(policy(), 3.try_into().unwrap()), true, &operations);
    }

    /// With no patience at all nobody ever waits, whatever happens.
    #[test]
    fn nobody_waits_for_those_who_may_be_cut_off(operations in operations()) {
        let policy = policy().with_slowest(Slowest::CutOff { after: std::time::Duration::ZERO });
        let publisher = Publisher::multicast(policy, 3.try_into().unwrap());
        play(publisher.clone(), true, &operations);
        prop_assert_eq!(publisher.snapshot().counts.blocked_for, std::time::Duration::ZERO);
    }

    /// Producers who submit wait in the order in which they came, whoever of them leaves meanwhile, however heavy they are.
    #[test]
    fn producers_are_served_in_the_order_in_which_they_came(
        weights in prop::collection::vec(0..=BYTES, 1..40),
        leavers in prop::collection::btree_set(0..40_usize, 0..20),
    ) {
        let publisher = Publisher::new(policy());
        let mut subscription = publisher.subscribe();
        let alive = Arc::new(Mutex::new(BTreeMap::new()));
        let mut cx = Context::from_waker(Waker::noop());
        let mut submits: Vec<_> = weights
            .iter()
            .enumerate()
            .map(|(number, bytes)| Some(Box::pin(publisher.submit(Item::new(number as u32, *bytes, &alive)))))
            .collect();
        let mut expected = Vec::new();
        for (number, submit) in submits.iter_mut().enumerate() {
            let taken = submit.as_mut().unwrap().as_mut().poll(&mut cx).is_ready();
            if taken || !leavers.contains(&number) {
                expected.push(number as u32);
            }
        }
        // From the back: whoever leaves lets those behind him in, who then cannot leave any more.
        for (number, submit) in submits.iter_mut().enumerate().rev() {
            if !expected.contains(&(number as u32)) {
                *submit = None;
            }
        }
        let mut got = Vec::new();
        while let Poll::Ready(Some(Ok(item))) = subscription.poll_signal(&mut cx, 1) {
            got.push(item.number);
        }
        prop_assert_eq!(got, expected);
    }
}
