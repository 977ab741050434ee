//! The locks, from std or from loom, which explores every interleaving of them.

#[cfg(not(tidegate_loom))]
pub(crate) use std::sync::{Arc, Mutex, MutexGuard};

#[cfg(tidegate_loom)]
pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};

/// Locks, whether or not somebody panicked with the lock held. No code of the user's runs under the lock, and the state
/// is whole after every input, so a panic elsewhere must not stop the flow for ever.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
