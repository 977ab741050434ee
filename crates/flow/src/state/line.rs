//! The line of producers: for whom a submission is, whether there is room, and who is in the way.
//!
//! The second half of the state machine, apart from the first only because it is another subject: everything here is
//! about the order of those who wait.

use tidegate_engine::Timestamp;

use super::{Standing, State, Subscriber};
use crate::parcel::{Copies, Key, Parcel};
use crate::policy::Slowest;
use crate::signal::{Failure, Why};
use crate::state::End;

impl<T> State<T> {
    /// Lets those go who have waited for what there is now, first come, first served. A heavy one at the head holds up
    /// lighter ones behind it: were they to pass, it might wait for ever.
    pub(super) fn admit(&mut self, now: Timestamp) {
        while !self.waiters.is_empty() {
            if !self.address_first() {
                let waker = self.take_front(Why::NoSubscriber);
                waker.into_iter().for_each(|waker| self.wakes.push(waker));
                continue;
            }
            self.mark_blockers(now);
            if !self.waiters.first().is_some_and(|first| self.has_room(first)) {
                return;
            }
            let Some((waker, parcel)) = self.waiters.end_front(|parcel| (Ok(()), parcel)) else { return };
            self.counts.blocked += 1;
            self.counts.blocked_for = self.counts.blocked_for.saturating_add(now.since(parcel.since));
            self.wakes.push(waker);
            self.deliver(now, parcel);
        }
        if std::mem::take(&mut self.marked) {
            self.subscribers.iter_mut().flatten().for_each(|one| one.blocking = None);
        }
    }

    /// This subscriber may have more room. Only one that was in the way can let anybody go by that, so a thousand that take
    /// an item each do not look at each other a thousand times.
    pub(super) fn made_room(&mut self, now: Timestamp, key: Key) {
        if self.get(key).is_some_and(|one| one.blocking.is_some()) {
            self.admit(now);
        }
    }

    /// Cuts off whoever has been in the way for longer than there is patience.
    pub(super) fn cut_off_overdue(&mut self, now: Timestamp) {
        let Slowest::CutOff { after } = self.slowest else { return };
        for index in 0..self.subscribers.len() {
            let overdue = |one: &Subscriber<T>| one.blocking.is_some_and(|since| since.after(after) <= now);
            if let Some(missed) = self.at(index).filter(|one| overdue(one)).map(|one| one.buffer.len() as u64)
            {
                self.counts.cut_off += 1;
                // May let the first go, and mark others as being in the way of the next: from now on, and not already.
                self.fail_one(now, index, Failure::TooSlow { missed });
            }
        }
    }

    /// Until when there is patience with whoever is in the way.
    pub(super) fn patience(&self) -> Option<Timestamp> {
        let Slowest::CutOff { after } = self.slowest else { return None };
        self.subscribers.iter().flatten().filter_map(|one| one.blocking).min().map(|since| since.after(after))
    }

    /// A failure of one subscription alone, at once: what is in its buffer is dropped.
    pub(super) fn fail_one(&mut self, now: Timestamp, index: usize, failure: Failure) {
        let Some(one) = self.subscribers.get_mut(index).and_then(Option::as_mut) else { return };
        one.buffer.clear(&mut self.spent);
        one.blocking = None;
        one.standing = Standing::Ending(End::Failed(failure));
        if let Some(waker) = one.waker.take() {
            self.wakes.push(waker);
        }
        self.admit(now);
    }

    /// The first in line is refused.
    pub(super) fn take_front(&mut self, why: Why) -> Option<std::task::Waker> {
        let Self { waiters, spent, counts, .. } = self;
        let end = |parcel: Parcel<T>| (Err((why, parcel.copies.give_back(spent))), ());
        let (waker, ()) = waiters.end_front(end)?;
        counts.refused += 1;
        Some(waker)
    }

    pub(super) fn refuse(&mut self, parcel: Parcel<T>) -> T {
        self.counts.refused += 1;
        parcel.copies.give_back(&mut self.spent)
    }

    /// Whether all have room that it is for.
    pub(super) fn has_room(&self, parcel: &Parcel<T>) -> bool {
        let room = |one: &Subscriber<T>| one.buffer.has_room(parcel.bytes);
        match &parcel.copies {
            Copies::Sole(_) => self.active().all(|(_, one)| room(one)),
            Copies::Each(copies) => copies.iter().filter_map(|(key, _)| self.get(*key)).all(room),
        }
    }

    /// Into the buffers of all whom it is for.
    pub(super) fn deliver(&mut self, now: Timestamp, parcel: Parcel<T>) {
        let bytes = parcel.bytes;
        match parcel.copies {
            Copies::Sole(item) => {
                if let Some(index) = self.sole() {
                    self.deliver_to(now, index, item, bytes);
                }
            }
            Copies::Each(copies) => {
                for (key, item) in copies {
                    self.deliver_to(now, key.index, item, bytes);
                }
            }
        }
    }

    fn deliver_to(&mut self, now: Timestamp, index: usize, item: T, bytes: u64) {
        match self.at(index) {
            Some(one) => one.buffer.push(now, item, bytes),
            None => self.spent.push(item),
        }
        self.told(index);
    }

    /// Puts aside the copies for those who have left. Gives whether anybody is left.
    pub(super) fn address(&mut self, parcel: &mut Parcel<T>) -> bool {
        let Self { subscribers, spent, .. } = self;
        address(subscribers, spent, parcel)
    }

    fn address_first(&mut self) -> bool {
        let Self { subscribers, spent, waiters, .. } = self;
        waiters.first_mut().is_some_and(|parcel| address(subscribers, spent, parcel))
    }

    fn mark_blockers(&mut self, now: Timestamp) {
        let Self { subscribers, waiters, marked, .. } = self;
        let Some(first) = waiters.first() else { return };
        *marked = true;
        for (index, one) in subscribers.iter_mut().enumerate() {
            let Some(one) = one else { continue };
            let is_for = match &first.copies {
                Copies::Sole(_) => one.is_active(),
                // In the order of the table, in which they were made.
                Copies::Each(copies) => copies
                    .binary_search_by_key(&index, |(key, _)| key.index)
                    .is_ok_and(|at| copies[at].0.number == one.number),
            };
            if is_for && !one.buffer.has_room(first.bytes) {
                one.blocking.get_or_insert(now);
            } else {
                one.blocking = None;
            }
        }
    }

    /// The subscriber at `index` may have something to fetch.
    pub(super) fn told(&mut self, index: usize) {
        let Self { subscribers, wakes, .. } = self;
        let Some(one) = subscribers.get_mut(index).and_then(Option::as_mut) else { return };
        let ends = one.buffer.is_empty() && !one.is_active();
        let may_fetch = !one.buffer.is_empty() && one.buffer.demand() > 0;
        if (ends || may_fetch)
            && let Some(waker) = one.waker.take()
        {
            wakes.push(waker);
        }
    }

    pub(super) fn active(&self) -> impl Iterator<Item = (usize, &Subscriber<T>)> {
        let all = self.subscribers.iter().enumerate();
        all.filter_map(|(index, one)| Some((index, one.as_ref()?))).filter(|(_, one)| one.is_active())
    }

    /// The only one, where there may be only one.
    pub(super) fn sole(&self) -> Option<usize> {
        self.active().next().map(|(index, _)| index)
    }

    /// The active one at `index`.
    pub(super) fn at(&mut self, index: usize) -> Option<&mut Subscriber<T>> {
        self.subscribers.get_mut(index)?.as_mut().filter(|one| one.is_active())
    }

    pub(super) fn get(&self, key: Key) -> Option<&Subscriber<T>> {
        self.subscribers.get(key.index)?.as_ref().filter(|one| one.number == key.number)
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut Subscriber<T>> {
        self.subscribers.get_mut(key.index)?.as_mut().filter(|one| one.number == key.number)
    }
}

impl<T> Subscriber<T> {
    pub(super) const fn is_active(&self) -> bool {
        matches!(self.standing, Standing::Active)
    }
}

fn address<T>(subscribers: &[Option<Subscriber<T>>], spent: &mut Vec<T>, parcel: &mut Parcel<T>) -> bool {
    let listens = |key: &Key| {
        let one = subscribers.get(key.index).and_then(Option::as_ref);
        one.is_some_and(|one| one.number == key.number && one.is_active())
    };
    match &mut parcel.copies {
        Copies::Sole(_) => subscribers.iter().flatten().any(Subscriber::is_active),
        Copies::Each(copies) => {
            if !copies.iter().any(|(key, _)| listens(key)) {
                // One copy stays, to be given back.
                return false;
            }
            spent.extend(copies.extract_if(.., |(key, _)| !listens(key)).map(|(_, copy)| copy));
            true
        }
    }
}
