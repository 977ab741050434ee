//! Waiting: for sockets and for a moment, whichever comes first.
//!
//! A timer of the kernel rather than the timeout of the wait, which counts whole milliseconds: at five thousand
//! requests a second, five of them would be sent together.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use anyhow::Result;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// How many sockets are told of at once.
const EVENTS_MAX: usize = 256;
/// The timer's own key; no socket has it.
const TIMER: u64 = u64::MAX;

/// See the module.
pub(super) struct Poll {
    epoll: OwnedFd,
    timer: OwnedFd,
    events: Vec<Event>,
}

/// What to watch a socket for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interest {
    /// An answer, or its end.
    Answer,
    /// Also that it stands and can be written to.
    Connect,
}

/// What was seen of the socket with this key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// As given when it was added.
    pub(super) key: usize,
    /// It can be written to, or has failed.
    pub(super) writable: bool,
    /// It can be read from, has been closed, or has failed.
    pub(super) readable: bool,
}

impl Poll {
    /// Watch nothing yet.
    pub(super) fn new() -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, timer, events: Vec::with_capacity(EVENTS_MAX) })
    }

    /// Watch a socket. It is forgotten by itself when it is closed.
    pub(super) fn add(&self, socket: impl AsFd, key: usize, interest: Interest) -> Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(key as u64), flags(interest))?)
    }

    /// Watch it for something else from now on.
    pub(super) fn change(&self, socket: impl AsFd, key: usize, interest: Interest) -> Result<()> {
        Ok(epoll::modify(&self.epoll, socket, EventData::new_u64(key as u64), flags(interest))?)
    }

    /// Wait until something is seen or `longest` has passed. What is seen is put into `seen`.
    pub(super) fn wait(&mut self, longest: Duration, seen: &mut Vec<Seen>) -> Result<()> {
        // A timer that is set to nothing never goes off.
        let longest = longest.max(Duration::from_nanos(1));
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = Timespec {
            tv_sec: i64::try_from(longest.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: longest.subsec_nanos().into(),
        };
        let when = Itimerspec { it_interval: zero, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &when)?;
        self.events.clear();
        seen.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &self.events {
            // In a packed structure: to be copied before it is looked at.
            let (flags, key) = (event.flags, event.data.u64());
            if key == TIMER {
                continue;
            }
            let failed = flags.intersects(EventFlags::ERR | EventFlags::HUP);
            seen.push(Seen {
                key: usize::try_from(key).unwrap_or(usize::MAX),
                writable: failed || flags.contains(EventFlags::OUT),
                readable: failed || flags.intersects(EventFlags::IN | EventFlags::RDHUP),
            });
        }
        Ok(())
    }
}

fn flags(interest: Interest) -> EventFlags {
    let answer = EventFlags::IN | EventFlags::RDHUP;
    match interest {
        Interest::Answer => answer,
        Interest::Connect => answer | EventFlags::OUT,
    }
}
