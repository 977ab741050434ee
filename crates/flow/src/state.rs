//! Who is subscribed, what is in their buffers, and who waits: the state machine behind a publisher's lock.
//!
//! # The three states of a subscription
//!
//! | state | gets items | what ends it |
//! |---|---|---|
//! | active | yes | `cancel`; a failure of its own, at once; the publisher's end |
//! | ending | no more; those in the buffer are still delivered | the buffer is empty: its last signal is fetched |
//! | ended | no | the drop of its handle frees the place in the table |
//!
//! It has no clock, takes no lock, wakes nobody and runs nothing of the user's: items that are done with are put aside
//! ([`State::spent`]) and dropped by whoever holds the lock after releasing it, and so are wakers.
//!
//! What never happens: room for the first in line and somebody in line, after an input; an item in two places or in
//! none; a signal after the last one.

use std::task::{Context, Poll, Waker};

use tidegate_engine::Timestamp;

use crate::buffer::Buffer;
use crate::parcel::{Copies, Key, Parcel};
use crate::policy::{Drops, Slowest};
use crate::signal::{Failure, Why};
use crate::snapshot::{Counts, Snapshot};
use crate::waiters::{Closed, Ticket, Waiters, Wakes};

mod line;

/// What the next signal of a subscription is, if there is one.
pub(crate) type Signal<T> = Option<Result<T, Failure>>;

/// How a publisher ends.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Complete,
    Failed(Failure),
}

/// How a wait for room ended.
pub(crate) type Waited<T> = Result<(), (Why, T)>;

/// Everything about one publisher.
#[derive(Debug)]
pub(crate) struct State<T> {
    items_max: u32,
    bytes_max: u64,
    slowest: Slowest,
    subscribers_max: u32,
    subscribers: Vec<Option<Subscriber<T>>>,
    /// The next subscription's number.
    number: u64,
    waiters: Waiters<Parcel<T>, Waited<T>>,
    /// Whether some subscribers are marked as being in the way.
    marked: bool,
    /// Handles of the publisher.
    publishers: usize,
    end: Option<End>,
    /// What is counted for no subscriber that is there.
    counts: Counts,
    depth_max: usize,
    pub(crate) wakes: Wakes,
    pub(crate) spent: Vec<T>,
}

#[derive(Debug)]
struct Subscriber<T> {
    number: u64,
    buffer: Buffer<T>,
    standing: Standing,
    waker: Option<Waker>,
    /// Since when the first in line waits for this one.
    blocking: Option<Timestamp>,
}

#[derive(Debug)]
enum Standing {
    Active,
    Ending(End),
    Ended,
}

/// What became of a submission.
#[derive(Debug)]
pub(crate) enum Entry<T> {
    Accepted,
    Refused(Why, T),
    Waiting(Ticket),
}

impl<T> State<T> {
    pub(crate) fn new(items_max: u32, bytes_max: u64, slowest: Slowest, subscribers_max: u32) -> Self {
        Self {
            items_max,
            bytes_max,
            slowest,
            subscribers_max,
            subscribers: Vec::new(),
            number: 0,
            waiters: Waiters::default(),
            marked: false,
            publishers: 1,
            end: None,
            counts: Counts::default(),
            depth_max: 0,
            wakes: Wakes::default(),
            spent: Vec::new(),
        }
    }

    /// One more subscriber. There is always a subscription; whoever cannot have one is told so by it (rule 1.9).
    pub(crate) fn subscribe(&mut self) -> Key {
        let standing = match &self.end {
            Some(end) => Standing::Ending(end.clone()),
            None if self.active().count() >= self.subscribers_max as usize => {
                Standing::Ending(End::Failed(Failure::NoPlace))
            }
            None => Standing::Active,
        };
        let key = Key {
            index: self.subscribers.iter().position(Option::is_none).unwrap_or(self.subscribers.len()),
            number: self.number,
        };
        self.number += 1;
        let buffer = Buffer::new(self.items_max, self.bytes_max);
        let subscriber =
            Some(Subscriber { number: key.number, buffer, standing, waker: None, blocking: None });
        match self.subscribers.get_mut(key.index) {
            Some(vacant) => *vacant = subscriber,
            None => self.subscribers.push(subscriber),
        }
        key
    }

    /// Those who get what is submitted now; with `bytes`, only if something of this weight would be taken at once.
    pub(crate) fn audience(&self, bytes: Option<u64>) -> Result<Vec<Key>, Why> {
        let all: Vec<_> =
            self.active().map(|(index, subscriber)| Key { index, number: subscriber.number }).collect();
        let room = |bytes| {
            self.waiters.is_empty() && self.active().all(|(_, subscriber)| subscriber.buffer.has_room(bytes))
        };
        match bytes {
            _ if self.end.is_some() => Err(Why::Closed),
            Some(bytes) if !all.is_empty() && !room(bytes) => Err(Why::Full),
            _ => Ok(all),
        }
    }

    /// Something is submitted. With `cx` it waits if it has to; nobody overtakes those who wait.
    pub(crate) fn enter(
        &mut self,
        now: Timestamp,
        mut parcel: Parcel<T>,
        cx: Option<&Context<'_>>,
    ) -> Entry<T> {
        let why = if self.end.is_some() {
            Why::Closed
        } else if !self.address(&mut parcel) {
            Why::NoSubscriber
        } else if self.waiters.is_empty() && self.has_room(&parcel) {
            self.deliver(now, parcel);
            return Entry::Accepted;
        } else if let Some(cx) = cx {
            parcel.since = now;
            let ticket = self.waiters.open(parcel, cx);
            self.admit(now);
            // At once, where there is no patience at all.
            self.cut_off_overdue(now);
            return Entry::Waiting(ticket);
        } else {
            Why::Full
        };
        Entry::Refused(why, self.refuse(parcel))
    }

    /// Something is refused before it came here.
    pub(crate) const fn count_refusal(&mut self) {
        self.counts.refused += 1;
    }

    /// Something is dropped before it came here.
    pub(crate) const fn count_drop(&mut self) {
        self.counts.submitted += 1;
        self.counts.dropped += 1;
    }

    /// Something is offered, and never waits; what was dropped is in `dropped`.
    pub(crate) fn offer(
        &mut self,
        now: Timestamp,
        mut parcel: Parcel<T>,
        drops: Drops,
        dropped: &mut Vec<T>,
    ) {
        if self.end.is_some() || !self.address(&mut parcel) {
            self.count_drop();
            dropped.push(parcel.copies.give_back(&mut self.spent));
            return;
        }
        let bytes = parcel.bytes;
        match parcel.copies {
            Copies::Sole(item) => {
                if let Some(index) = self.sole() {
                    self.offer_to(now, index, item, bytes, drops, dropped);
                }
            }
            Copies::Each(copies) => {
                for (key, item) in copies {
                    self.offer_to(now, key.index, item, bytes, drops, dropped);
                }
            }
        }
        // A heavier one may have made way for a lighter one.
        self.admit(now);
    }

    fn offer_to(
        &mut self,
        now: Timestamp,
        index: usize,
        item: T,
        bytes: u64,
        drops: Drops,
        dropped: &mut Vec<T>,
    ) {
        // What room there is belongs to those who wait. The oldest's place is nobody's but its own, so the newest may
        // have it.
        let others_wait = !self.waiters.is_empty() && drops == Drops::Newest;
        let Some(one) = self.at(index) else { return };
        if others_wait {
            one.buffer.turn_away(item, dropped);
        } else if one.buffer.offer(now, item, bytes, drops, dropped) {
            self.told(index);
        }
    }

    /// Fetches how a wait ended; if it has not, gives until when there is patience with whoever is in the way.
    pub(crate) fn poll_waiter(
        &mut self,
        now: Timestamp,
        ticket: Ticket,
        cx: &Context<'_>,
    ) -> Result<Waited<T>, Option<Timestamp>> {
        self.cut_off_overdue(now);
        match self.waiters.poll(ticket, cx, &mut self.wakes) {
            Some(end) => Ok(end),
            None => Err(self.patience()),
        }
    }

    /// A producer waits no longer. Gives its item back if it has not been taken.
    pub(crate) fn leave(&mut self, now: Timestamp, ticket: Ticket) -> Option<T> {
        let item = match self.waiters.close(ticket, &mut self.wakes) {
            Closed::Waiting(parcel) => Some(parcel.copies.give_back(&mut self.spent)),
            Closed::Ended(Err((_, item))) => Some(item),
            Closed::Ended(Ok(())) | Closed::Gone => None,
        };
        // Those behind may be lighter, or for others.
        self.admit(now);
        item
    }

    /// The next signal. When nothing is asked for any more, asks for `ask` first.
    pub(crate) fn poll_next(
        &mut self,
        now: Timestamp,
        key: Key,
        ask: u64,
        cx: &Context<'_>,
    ) -> Poll<Signal<T>> {
        let Some(one) = self.get_mut(key) else { return Poll::Ready(None) };
        // Not to be woken by what this very call does.
        let known = one.waker.take();
        if ask > 0 && one.buffer.demand() == 0 {
            one.buffer.request(ask);
            self.made_room(now, key);
        }
        let Self { subscribers, wakes, .. } = self;
        let Some(one) = subscribers.get_mut(key.index).and_then(Option::as_mut) else {
            return Poll::Ready(None);
        };
        let signal = if let Some(item) = one.buffer.pop(now) {
            Some(Ok(item))
        } else if one.buffer.is_empty() && !one.is_active() {
            // Completion and failure need no demand (rules 2.9 and 2.10), and are told once (rule 1.7).
            match std::mem::replace(&mut one.standing, Standing::Ended) {
                Standing::Ending(End::Failed(failure)) => Some(Err(failure)),
                _ => None,
            }
        } else {
            let mut waker = known.unwrap_or_else(|| cx.waker().clone());
            wakes.replace(&mut waker, cx);
            one.waker = Some(waker);
            return Poll::Pending;
        };
        known.into_iter().for_each(|known| wakes.retire(known));
        self.made_room(now, key);
        Poll::Ready(signal)
    }

    /// Asks for `more` items; for none, the subscription fails (rule 3.9).
    pub(crate) fn request(&mut self, now: Timestamp, key: Key, more: u64) {
        let Some(one) = self.get_mut(key) else { return };
        match one.standing {
            // After the last signal nothing has an effect (rule 3.6). What is in the buffer still has to be asked for, so
            // until it is empty the last signal has not been given, and a mistake is one (rule 3.9).
            Standing::Ended => return,
            Standing::Ending(_) if one.buffer.is_empty() => return,
            _ if more == 0 => return self.fail_one(now, key.index, Failure::AskedForNothing),
            Standing::Active | Standing::Ending(_) => one.buffer.request(more),
        }
        self.told(key.index);
        self.made_room(now, key);
    }

    /// The subscriber wants nothing any more (rules 3.5 to 3.7).
    pub(crate) fn cancel(&mut self, now: Timestamp, key: Key) {
        let Self { subscribers, spent, wakes, .. } = self;
        let Some(one) = subscribers.get_mut(key.index).and_then(Option::as_mut) else { return };
        if one.number != key.number {
            return;
        }
        one.standing = Standing::Ended;
        one.buffer.clear(spent);
        one.waker.take().into_iter().for_each(|waker| wakes.push(waker));
        self.admit(now);
    }

    /// The handle of a subscription is dropped: so is all that is known of it.
    pub(crate) fn forget(&mut self, now: Timestamp, key: Key) {
        self.cancel(now, key);
        if self.get(key).is_some()
            && let Some(one) = self.subscribers[key.index].take()
        {
            self.counts.add(&one.buffer.counts);
            self.depth_max = self.depth_max.max(one.buffer.depth_max());
        }
    }

    /// One more handle of the publisher.
    pub(crate) const fn add_publisher(&mut self) {
        self.publishers += 1;
    }

    /// One handle less. A producer that vanishes without a word has not finished.
    pub(crate) fn remove_publisher(&mut self) {
        self.publishers -= 1;
        if self.publishers == 0 {
            self.finish(End::Failed(Failure::Abandoned));
        }
    }

    /// No more items. Gives whether this was the first to say so: the first counts, and it is told once (rule 1.7).
    pub(crate) fn finish(&mut self, end: End) -> bool {
        if self.end.is_some() {
            return false;
        }
        for index in 0..self.subscribers.len() {
            if let Some(one) = self.at(index) {
                one.standing = Standing::Ending(end.clone());
                one.blocking = None;
                self.told(index);
            }
        }
        self.end = Some(end);
        while let Some(waker) = self.take_front(Why::Closed) {
            self.wakes.push(waker);
        }
        true
    }

    /// Whether there will be no more items.
    pub(crate) const fn is_closed(&self) -> bool {
        self.end.is_some()
    }

    /// How all of it stands.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut all = Snapshot {
            subscribers: u32::try_from(self.active().count()).unwrap_or(u32::MAX),
            depth_max: self.depth_max as u64,
            producers_waiting: self.waiters.len() as u64,
            counts: self.counts,
            ..Snapshot::default()
        };
        for one in self.subscribers.iter().flatten() {
            all.depth += one.buffer.len() as u64;
            all.depth_max = all.depth_max.max(one.buffer.depth_max() as u64);
            all.bytes = all.bytes.saturating_add(one.buffer.bytes());
            all.counts.add(&one.buffer.counts);
        }
        all
    }

    /// How one subscription stands.
    pub(crate) fn snapshot_of(&self, key: Key) -> Snapshot {
        let Some(one) = self.get(key) else { return Snapshot::default() };
        Snapshot {
            subscribers: u32::from(one.is_active()),
            depth: one.buffer.len() as u64,
            depth_max: one.buffer.depth_max() as u64,
            bytes: one.buffer.bytes(),
            producers_waiting: if one.blocking.is_some() { self.waiters.len() as u64 } else { 0 },
            counts: one.buffer.counts,
        }
    }

    /// What one subscription has asked for and not got.
    pub(crate) fn demand_of(&self, key: Key) -> u64 {
        self.get(key).map_or(0, |one| one.buffer.demand())
    }

    /// What must hold after every input; called after each in debug builds.
    pub(crate) fn check_invariants(&self) {
        for one in self.subscribers.iter().flatten() {
            one.buffer.check_invariants();
            assert!(!matches!(one.standing, Standing::Ended) || one.buffer.is_empty(), "items for nobody");
        }
        assert!(self.active().count() <= self.subscribers_max as usize, "more subscribers than may be");
        assert!(self.end.is_none() || self.waiters.is_empty(), "somebody waits for what has ended");
        if let Some(first) = self.waiters.first() {
            assert!(!self.has_room(first), "room, and somebody who waits for it");
        }
    }
}
