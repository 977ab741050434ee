//! Idle connections of one worker, the most recently used on top, so that surplus ones grow old and are closed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_engine::Timestamp;

use super::connection::Connection;

#[derive(Default)]
pub(crate) struct Pool {
    /// By endpoint. Only this worker's thread ever takes the lock.
    idle: Mutex<HashMap<u64, Vec<Idle>>>,
}

struct Idle {
    connection: Connection,
    until: Timestamp,
}

impl Pool {
    /// A connection to this endpoint that can carry an exchange.
    pub(super) fn take(&self, endpoint: u64) -> Option<Connection> {
        let mut idle = self.lock();
        let stack = idle.get_mut(&endpoint)?;
        while let Some(Idle { mut connection, .. }) = stack.pop() {
            if connection.is_ready() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection for later, unless `max` are kept already. Whether it is good for another exchange is seen
    /// when it is taken, since much can happen until then.
    pub(super) fn put(&self, endpoint: u64, mut connection: Connection, until: Timestamp, max: u32) {
        connection.reused = true;
        let mut idle = self.lock();
        let stack = idle.entry(endpoint).or_default();
        if stack.len() < max as usize {
            stack.push(Idle { connection, until });
        }
    }

    /// Closes those whose time is up or whose other end has closed, and forgets endpoints without any.
    pub(crate) fn reap(&self, now: Timestamp) {
        self.lock().retain(|_, stack| {
            stack.retain_mut(|idle| idle.until > now && idle.connection.is_ready());
            !stack.is_empty()
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Vec<Idle>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
