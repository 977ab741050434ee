//! Waits for a moment, to some microseconds where the kernel allows it.
//!
//! Tokio's timers count whole milliseconds: at thirty thousand requests a second, thirty of them would be sent together,
//! and each answer would seem half a millisecond late on average.

#[cfg(target_os = "linux")]
mod timer {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    /// A timer of the kernel that is waited for like a socket.
    pub(crate) struct Pacer(AsyncFd<OwnedFd>);

    impl Pacer {
        #[expect(
            deprecated,
            reason = "its replacement is unsafe; an owned descriptor that nobody takes out is sound"
        )]
        pub(crate) fn new() -> io::Result<Self> {
            let timer =
                timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
            AsyncFd::new(timer).map(Self)
        }

        /// Waits for so long. It may be dropped and begun anew.
        pub(crate) async fn wait(&self, longest: Duration) -> io::Result<()> {
            // A timer that is set to nothing never goes off.
            let longest = longest.max(Duration::from_nanos(1));
            let it_value = Timespec {
                tv_sec: i64::try_from(longest.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: longest.subsec_nanos().into(),
            };
            let when = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
            // Setting it forgets that it has gone off before.
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &when)?;
            // That it has gone off is all there is to know: it is set anew before it is waited for again, and a readiness left
            // over from a wait that was given up only ends the next one early.
            self.0.readable().await?.clear_ready();
            Ok(())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod timer {
    use std::io;
    use std::time::Duration;

    /// Tokio's timer, to the millisecond; what that costs is in the report as lag.
    pub(crate) struct Pacer;

    impl Pacer {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        /// Waits for so long. It may be dropped and begun anew.
        pub(crate) async fn wait(&self, longest: Duration) -> io::Result<()> {
            tokio::time::sleep(longest).await;
            Ok(())
        }
    }
}

pub(crate) use timer::Pacer;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Pacer;
    use crate::clock::Clock;

    /// It may be late on a busy machine, and is not early; given up and set anew, it keeps to the new time.
    #[tokio::test]
    async fn it_is_not_early() {
        let pacer = Pacer::new().unwrap();
        let clock = Clock::start();
        pacer.wait(Duration::from_micros(300)).await.unwrap();
        assert!(clock.elapsed() >= Duration::from_micros(300));
        tokio::select! {
            biased;
            _ = pacer.wait(Duration::from_secs(3_600)) => panic!("that was no hour"),
            () = std::future::ready(()) => {}
        }
        let clock = Clock::start();
        pacer.wait(Duration::from_millis(2)).await.unwrap();
        assert!(clock.elapsed() >= Duration::from_millis(2));
    }
}
