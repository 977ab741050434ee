//! Who is refused most: the keys of rate limits and the tenants, in bounded memory, however many there are.
//!
//! It is the space-saving sketch of A. Metwally, D. Agrawal and A. El Abbadi ("Efficient Computation of Frequent and Top-k
//! Elements in Data Streams", 2005): of those that are counted the least gives its place to whoever is new, together with
//! its count, which is then the most that the newcomer is overrated by. Whoever has more than one in [`KEYS_MAX`] of all
//! refusals that are counted is among them; those that come while another is being counted are not, so in a flood that is
//! nearly always so, and not for certain. Counts are halved every minute, so that the list is of now.
//!
//! Only a refusal touches it, so who is served pays nothing.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use tidegate_engine::Timestamp;

/// So many are told apart.
pub(crate) const KEYS_MAX: usize = 128;
/// Names come from requests, and are cut after so many characters.
pub(crate) const NAME_MAX: usize = 64;
const HALVED_EVERY: Duration = Duration::from_secs(60);

/// A list of whoever is refused most.
#[derive(Debug, Default)]
pub(crate) struct Top {
    /// Secret, so that nobody can choose names that collide.
    seed: RandomState,
    state: Mutex<State>,
}

/// The same number in each list is the same key. Hashes and counts stand apart from the names, since every refusal looks
/// through them.
#[derive(Debug, Default)]
struct State {
    hashes: Vec<u64>,
    counts: Vec<f64>,
    named: Vec<Named>,
    halved: Timestamp,
}

#[derive(Clone, Debug)]
struct Named {
    group: String,
    name: String,
    overrated: f64,
}

/// One of the list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The rate limit, or the upstream.
    pub(crate) group: String,
    /// The key in words, cut off and without control characters.
    pub(crate) name: String,
    /// Refusals, the older the less they count.
    pub(crate) refused: f64,
    /// At most so many of them may be somebody else's.
    pub(crate) overrated: f64,
}

impl Top {
    /// One more refusal of this key. Its name is asked for only if it is not on the list, and put together while nobody else
    /// is kept out.
    ///
    /// Nobody waits here: what is refused while another refusal is being counted is not counted. In a flood that is some of
    /// all, whosever they are, and the list says who, not how many.
    pub(crate) fn refused(&self, now: Timestamp, group: &str, key: impl Hash, name: impl FnOnce() -> String) {
        let hash = self.seed.hash_one((group, key));
        let Some(mut state) = self.free() else { return };
        if state.counted(now, hash) {
            return;
        }
        drop(state);
        let named = Named { group: group.to_owned(), name: plain(&name()), overrated: 0.0 };
        // It may have come onto the list meanwhile.
        if let Some(mut state) = self.free()
            && !state.counted(now, hash)
        {
            state.add(hash, named);
        }
    }

    fn free(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The list, whoever is refused most first.
    pub(crate) fn list(&self, now: Timestamp) -> Vec<Entry> {
        let (named, counts) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.halve(now);
            (state.named.clone(), state.counts.clone())
        };
        let entry = |(Named { group, name, overrated }, refused)| Entry { group, name, refused, overrated };
        let mut entries: Vec<Entry> = named.into_iter().zip(counts).map(entry).collect();
        entries.sort_by(|a, b| b.refused.total_cmp(&a.refused).then_with(|| a.name.cmp(&b.name)));
        entries
    }
}

impl State {
    /// Counts one more of whoever is on the list; says whether they are.
    fn counted(&mut self, now: Timestamp, hash: u64) -> bool {
        self.halve(now);
        let place = self.hashes.iter().position(|known| *known == hash);
        if let Some(place) = place {
            self.counts[place] += 1.0;
        }
        place.is_some()
    }

    /// The first of whoever is not on the list.
    fn add(&mut self, hash: u64, named: Named) {
        if self.hashes.len() < KEYS_MAX {
            self.hashes.push(hash);
            self.counts.push(1.0);
            self.named.push(named);
            return;
        }
        let least = self.counts.iter().enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b));
        if let Some((place, &count)) = least {
            self.hashes[place] = hash;
            self.counts[place] = count + 1.0;
            self.named[place] = Named { overrated: count, ..named };
        }
    }

    fn halve(&mut self, now: Timestamp) {
        let mut halvings = 0;
        while now.since(self.halved) >= HALVED_EVERY && halvings < 64 {
            self.halved = self.halved.after(HALVED_EVERY);
            halvings += 1;
        }
        if halvings == 0 {
            return;
        }
        if halvings == 64 {
            self.halved = now;
        }
        let part = 0.5_f64.powi(halvings);
        for place in (0..self.counts.len()).rev() {
            self.counts[place] *= part;
            self.named[place].overrated *= part;
            // Whoever has not been refused for long is of no interest, and makes room.
            if self.counts[place] < 0.5 {
                self.hashes.swap_remove(place);
                self.counts.swap_remove(place);
                self.named.swap_remove(place);
            }
        }
    }
}

/// Short, and without anything that a terminal would obey or that would look like something else.
fn plain(name: &str) -> String {
    let mut text: String =
        name.chars().take(NAME_MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if name.chars().nth(NAME_MAX).is_some() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(top: &Top, now: Timestamp) -> Vec<String> {
        top.list(now).into_iter().map(|entry| entry.name).collect()
    }

    /// C6: callers choose their keys, and there may be any number of them. Whoever is refused often is still found.
    #[test]
    fn the_list_is_bounded_and_finds_the_frequent() {
        let top = Top::default();
        for round in 0..20_000_u32 {
            top.refused(Timestamp::ZERO, "limit", round, || format!("stray {round}"));
            if round % 10 == 0 {
                top.refused(Timestamp::ZERO, "limit", "frequent", || "frequent".into());
            }
        }
        let list = top.list(Timestamp::ZERO);
        assert_eq!(list.len(), KEYS_MAX);
        assert_eq!(list[0].name, "frequent");
        assert!(list[0].refused >= 2_000.0 && list[0].refused - list[0].overrated <= 2_000.0);
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let top = Top::default();
        let at = Timestamp::from_millis;
        (0..4).for_each(|_| top.refused(at(0), "limit", 1, || "old".into()));
        top.refused(at(61_000), "limit", 2, || "new".into());
        top.refused(at(61_000), "limit", 2, || unreachable!("it is known"));
        top.refused(at(61_000), "limit", 2, || unreachable!("it is known"));
        assert_eq!(names(&top, at(61_000)), ["new", "old"]);
        assert_eq!(names(&top, at(10_000_000)), Vec::<String>::new());
        assert_eq!(names(&top, at(u64::MAX)), Vec::<String>::new());
    }

    /// Whoever looks at the list, or counts another, holds nobody up who is being refused.
    #[test]
    fn nobody_waits_to_be_counted() {
        let top = Top::default();
        let held = top.state.lock().unwrap();
        top.refused(Timestamp::ZERO, "limit", 1, || "a".into());
        drop(held);
        assert_eq!(names(&top, Timestamp::ZERO), Vec::<String>::new());
    }

    /// Strings are made while others can be counted; whoever came onto the list meanwhile is on it once.
    #[test]
    fn a_name_is_put_together_outside_the_lock() {
        let top = Top::default();
        let name = || {
            assert!(top.state.try_lock().is_ok());
            top.refused(Timestamp::ZERO, "limit", 1, || "the same".into());
            "the same".to_owned()
        };
        top.refused(Timestamp::ZERO, "limit", 1, name);
        let list = top.list(Timestamp::ZERO);
        assert_eq!((list.len(), list[0].refused), (1, 2.0));
    }

    #[test]
    fn names_are_cut_and_obey_nothing() {
        let top = Top::default();
        top.refused(Timestamp::ZERO, "limit", 1, || "\u{1b}[2J".repeat(100));
        let name = names(&top, Timestamp::ZERO).remove(0);
        assert_eq!(name.chars().count(), NAME_MAX + 1);
        assert!(!name.contains('\u{1b}') && name.ends_with('…'), "{name}");
    }
}
