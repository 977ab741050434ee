//! Looks at the counters, and keeps what it sees. Here, and not where requests are served, so that they pay nothing for it.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::{Admin, live};
use crate::history::{LOOKS, Sampler};

/// Looks until the future is dropped.
pub(super) async fn watch(admin: &Admin) {
    let mut sampler = Sampler::new(&admin.shared);
    let mut clock = interval(Duration::from_secs(1) / LOOKS);
    // A thread that was held up has nothing to catch up with: a sample knows how long it is.
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first is at once.
    clock.tick().await;
    loop {
        for _ in 0..LOOKS {
            clock.tick().await;
            sampler.look();
            admin.arrivals().look(admin.shared.clock.now(), &admin.shared.live());
        }
        let sample = sampler.sample(&admin.shared);
        admin.newest.send_replace(live::event(&sample));
        admin.history().push(sample);
    }
}
