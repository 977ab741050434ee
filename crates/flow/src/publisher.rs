//! [`Publisher`]: where items come in, at the pace of those who take them.
//!
//! A shell: it weighs and copies items before the lock is taken, reads the clock inside it, and wakes and drops after it
//! is released. All that is decided is decided in `state.rs`.

use std::error::Error;
use std::fmt;
use std::num::NonZeroU32;
use std::task::Context;

use tidegate_engine::Timestamp;

use crate::clock::Clock;
use crate::parcel::{Copies, Parcel};
use crate::policy::{Drops, Policy};
use crate::signal::{Failure, Refused, Why};
use crate::snapshot::Snapshot;
use crate::state::{End, Entry, State};
use crate::submit::Submit;
use crate::subscription::Subscription;
use crate::sync::{Arc, Mutex, lock};

/// Where items come in. Cloning gives another handle, for another producer.
///
/// Each item goes to everybody who is subscribed when it is submitted. A publisher ends with [`complete`](Self::complete)
/// or [`fail`](Self::fail); when the last handle is dropped without either, its subscribers are told
/// [`Failure::Abandoned`].
pub struct Publisher<T> {
    pub(crate) shared: Arc<Shared<T>>,
}

/// What both sides hold.
pub(crate) struct Shared<T> {
    pub(crate) clock: Clock,
    pub(crate) policy: Policy<T>,
    /// How to make a copy for each of several subscribers; `None` where there may be only one.
    copy: Option<fn(&T) -> T>,
    state: Mutex<State<T>>,
}

impl<T> Publisher<T> {
    /// A publisher for one subscriber at a time. Items are moved, never copied.
    pub fn new(policy: Policy<T>) -> Self {
        Self::of(policy, NonZeroU32::MIN, None)
    }

    /// A publisher for up to so many subscribers at a time, who each get a copy of each item. Wrap items that are large
    /// in an [`Arc`].
    pub fn multicast(policy: Policy<T>, subscribers_max: NonZeroU32) -> Self
    where
        T: Clone,
    {
        Self::of(policy, subscribers_max, Some(T::clone))
    }

    fn of(policy: Policy<T>, subscribers_max: NonZeroU32, copy: Option<fn(&T) -> T>) -> Self {
        let state = State::new(policy.items, policy.bytes, policy.slowest, subscribers_max.get());
        Self { shared: Arc::new(Shared { clock: Clock::start(), policy, copy, state: Mutex::new(state) }) }
    }

    /// One more subscriber, who gets what is submitted from now on and has asked for nothing yet.
    ///
    /// There is always a subscription: where there is no place for it, its only signal is [`Failure::NoPlace`]; when the
    /// publisher has ended, how it ended.
    pub fn subscribe(&self) -> Subscription<T> {
        let key = self.shared.input(|state, _| state.subscribe());
        Subscription::new(Arc::clone(&self.shared), key)
    }

    /// Hands an item over as soon as every subscriber has room for it; those who wait go in the order in which they were
    /// first polled.
    ///
    /// Waits for as long as it takes; bound it with a timeout, or with [`Slowest::CutOff`](crate::Slowest::CutOff).
    /// Dropping the future gives the place in line up and hands nothing over; [`Submit::take_back`] gives the item.
    ///
    /// # Errors
    ///
    /// The item comes back when it never fits ([`Why::TooLarge`]), when nobody is subscribed ([`Why::NoSubscriber`]), or
    /// when the publisher has ended ([`Why::Closed`]); also while it waits.
    pub const fn submit(&self, item: T) -> Submit<'_, T> {
        Submit::new(self, item)
    }

    /// Hands an item over if every subscriber has room for it now and nobody waits.
    ///
    /// # Errors
    ///
    /// The item comes back, with [`Why::Full`] or one of the reasons of [`submit`](Self::submit).
    pub fn try_submit(&self, item: T) -> Result<(), Refused<T>> {
        match self.shared.enter(item, None) {
            Entry::Accepted => Ok(()),
            Entry::Refused(why, item) => Err(Refused { why, item }),
            Entry::Waiting(_) => unreachable!("nobody waits who has nothing to be woken by"),
        }
    }

    /// Hands an item over or drops what `drops` says, for each subscriber on its own; never waits, never fails. Gives how
    /// many items were dropped: with nobody subscribed, or after the end, this one.
    pub fn offer(&self, item: T, drops: Drops) -> u64 {
        let mut dropped = Vec::new();
        self.shared.offer(item, drops, &mut dropped);
        dropped.len() as u64
    }

    /// The same, with what was dropped handed to `on_drop`, the oldest first.
    pub fn offer_with(&self, item: T, drops: Drops, on_drop: impl FnMut(T)) -> u64 {
        let mut dropped = Vec::new();
        self.shared.offer(item, drops, &mut dropped);
        let count = dropped.len() as u64;
        dropped.into_iter().for_each(on_drop);
        count
    }

    /// There are no more items. Subscribers are told after they have fetched what they have; producers who wait get
    /// their items back. Gives whether this was the publisher's end: only the first counts.
    pub fn complete(&self) -> bool {
        self.shared.input(|state, _| state.finish(End::Complete))
    }

    /// The same, because something went wrong: subscribers get `error` as [`Failure::Failed`].
    pub fn fail(&self, error: impl Into<Box<dyn Error + Send + Sync>>) -> bool {
        let failure = Failure::of(error.into());
        self.shared.input(|state, _| state.finish(End::Failed(failure)))
    }

    /// Whether it has ended.
    pub fn is_closed(&self) -> bool {
        lock(&self.shared.state).is_closed()
    }

    /// How it stands.
    pub fn snapshot(&self) -> Snapshot {
        lock(&self.shared.state).snapshot()
    }
}

impl<T> Shared<T> {
    /// One input: then, without the lock, wakers are called and what is done with is dropped. None of the user's code
    /// runs with the lock held, whatever it may do or call.
    pub(crate) fn input<R>(&self, act: impl FnOnce(&mut State<T>, Timestamp) -> R) -> R {
        let (value, wakes, spent);
        {
            let mut state = lock(&self.state);
            // The clock is read inside the lock, so that the state sees times in order.
            value = act(&mut state, self.clock.now());
            if cfg!(any(debug_assertions, tidegate_loom)) {
                state.check_invariants();
            }
            wakes = std::mem::take(&mut state.wakes);
            spent = std::mem::take(&mut state.spent);
        }
        wakes.wake();
        drop(spent);
        value
    }

    /// A submission, which waits if there is a `cx` to be woken by.
    pub(crate) fn enter(&self, item: T, cx: Option<&Context<'_>>) -> Entry<T> {
        let bytes = (self.policy.weigh)(&item);
        if bytes > self.policy.bytes {
            self.input(|state, _| state.count_refusal());
            return Entry::Refused(Why::TooLarge, item);
        }
        match self.parcel(item, bytes, cx.is_none()) {
            Ok(parcel) => self.input(|state, now| state.enter(now, parcel, cx)),
            Err((why, item)) => {
                self.input(|state, _| state.count_refusal());
                Entry::Refused(why, item)
            }
        }
    }

    fn offer(&self, item: T, drops: Drops, dropped: &mut Vec<T>) {
        let bytes = (self.policy.weigh)(&item);
        match self.parcel(item, bytes, false) {
            Ok(parcel) => self.input(|state, now| state.offer(now, parcel, drops, dropped)),
            Err((_, item)) => {
                self.input(|state, _| state.count_drop());
                dropped.push(item);
            }
        }
    }

    /// Makes a copy for each of those who are there now: a submission is for them and for nobody who comes later. Whoever
    /// does not wait and has no room needs no copies.
    fn parcel(&self, item: T, bytes: u64, only_if_room: bool) -> Result<Parcel<T>, (Why, T)> {
        let since = Timestamp::ZERO;
        let Some(copy) = self.copy else {
            return Ok(Parcel { copies: Copies::Sole(item), bytes, since });
        };
        let audience = self.input(|state, _| state.audience(only_if_room.then_some(bytes)));
        let audience = match audience {
            Ok(audience) => audience,
            Err(why) => return Err((why, item)),
        };
        let Some((last, others)) = audience.split_last() else { return Err((Why::NoSubscriber, item)) };
        let mut copies: Vec<_> = others.iter().map(|key| (*key, copy(&item))).collect();
        copies.push((*last, item));
        Ok(Parcel { copies: Copies::Each(copies), bytes, since })
    }
}

impl<T> Clone for Publisher<T> {
    fn clone(&self) -> Self {
        self.shared.input(|state, _| state.add_publisher());
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Drop for Publisher<T> {
    fn drop(&mut self) {
        self.shared.input(|state, _| state.remove_publisher());
    }
}

impl<T> fmt::Debug for Publisher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Publisher").field(&self.snapshot()).finish()
    }
}
