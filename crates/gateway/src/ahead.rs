//! What a client has sent of its request body while it waits in the queue.
//!
//! Nobody reads the body of a request that waits. When it is larger than the kernel's buffer, the close of a client
//! that has left is stuck behind it, and its place would be kept for nobody until the wait ends. So up to a mebibyte
//! of it is read ahead, from a budget that all connections share; when that is spent, the wait budget is what remains.
//! hyper gets these bytes first, as if they had still been in the socket.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::ReadBuf;

/// Read ahead for one connection at most.
const BYTES_MAX: usize = 1024 * 1024 + 64 * 1024;
/// Read ahead for all connections together.
const BUDGET: usize = 64 * 1024 * 1024;
/// Read at once.
pub(crate) const CHUNK: usize = 16 * 1024;

/// How much may still be read ahead, over all connections.
#[derive(Debug)]
pub(crate) struct Budget(AtomicUsize);

impl Default for Budget {
    fn default() -> Self {
        Self(AtomicUsize::new(BUDGET))
    }
}

pub(crate) struct Ahead {
    budget: Arc<Budget>,
    chunks: Mutex<VecDeque<Vec<u8>>>,
    /// Whether there are any chunks: what a read has to know.
    any: AtomicBool,
    /// What has been taken from the budget.
    held: AtomicUsize,
}

impl Ahead {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self { budget, chunks: Mutex::default(), any: AtomicBool::new(false), held: AtomicUsize::new(0) }
    }

    /// Takes a chunk's worth from the budget, if there is still so much for this connection and over all.
    pub(crate) fn reserve(&self) -> bool {
        let spend = |free: usize| free.checked_sub(CHUNK);
        if self.held.load(Relaxed) + CHUNK > BYTES_MAX
            || self.budget.0.fetch_update(Relaxed, Relaxed, spend).is_err()
        {
            return false;
        }
        self.held.fetch_add(CHUNK, Relaxed);
        true
    }

    /// Keeps what was read into a chunk that was reserved, and gives back the rest of it.
    pub(crate) fn keep(&self, mut chunk: Vec<u8>) {
        self.give_back(CHUNK.saturating_sub(chunk.len()));
        if !chunk.is_empty() {
            chunk.shrink_to_fit();
            self.chunks().push_back(chunk);
            self.any.store(true, Relaxed);
        }
    }

    /// Hands out what was read first. Says whether there was anything.
    pub(crate) fn read(&self, buf: &mut ReadBuf<'_>) -> bool {
        if !self.any.load(Relaxed) || buf.remaining() == 0 {
            return false;
        }
        let mut chunks = self.chunks();
        let Some(first) = chunks.front_mut() else { return false };
        let some = first.len().min(buf.remaining());
        buf.put_slice(&first[..some]);
        first.drain(..some);
        if first.is_empty() {
            chunks.pop_front();
        }
        self.any.store(!chunks.is_empty(), Relaxed);
        self.give_back(some);
        true
    }

    fn give_back(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Relaxed);
        self.budget.0.fetch_add(bytes, Relaxed);
    }

    fn chunks(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.budget.0.fetch_add(*self.held.get_mut(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ahead: &Ahead, most: usize) -> Vec<u8> {
        let mut space = vec![0; most];
        let mut buf = ReadBuf::new(&mut space);
        ahead.read(&mut buf);
        buf.filled().to_vec()
    }

    #[test]
    fn what_was_read_first_comes_first() {
        let ahead = Ahead::new(Arc::default());
        for text in ["abc", "", "de"] {
            assert!(ahead.reserve());
            ahead.keep(text.into());
        }
        assert_eq!(
            [read(&ahead, 2), read(&ahead, 9), read(&ahead, 9), read(&ahead, 9)],
            [&b"ab"[..], b"c", b"de", b""]
        );
    }

    /// A connection gets so much and no more, all together get so much and no more, and all of it comes back.
    #[test]
    fn the_budget_holds() {
        let budget = Arc::new(Budget::default());
        let full =
            |ahead: &Ahead| (0..).take_while(|_| ahead.reserve()).map(|_| ahead.keep(vec![0; CHUNK])).count();
        let all: Vec<Ahead> = (0..100).map(|_| Ahead::new(budget.clone())).collect();
        assert_eq!(full(&all[0]), BYTES_MAX / CHUNK);
        assert_eq!(all[1..].iter().map(full).sum::<usize>() + BYTES_MAX / CHUNK, BUDGET / CHUNK);
        read(&all[0], CHUNK);
        drop(all);
        assert_eq!(budget.0.load(Relaxed), BUDGET);
    }
}
