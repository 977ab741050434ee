//! Plays requests that were recorded, as they are read, against several policies at once.
//!
//! A log may be larger than the memory, so it is read once: all worlds go on to the moment of the next request together.

use std::time::Duration;

use tidegate_engine::Timestamp;
use tidegate_workload::{Arrivals, Report, Scenario};

use crate::control::Control;
use crate::world::{TooMany, World};

/// A request that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// When it came, from the beginning of the scenario. What comes out of order comes when it is handed in.
    pub at: Duration,
    /// What it asked for: an index into the mix of the first clients of the scenario, whose arrivals are
    /// [`Arrivals::Recorded`].
    pub kind: u16,
    /// How long the service worked on it; drawn from the service's own times if that is not known.
    pub work: Option<Duration>,
}

/// Worlds in which the same recorded requests come.
pub struct Replay<'a> {
    worlds: Vec<World<'a>>,
    kinds: usize,
}

impl<'a> Replay<'a> {
    /// Nobody has come yet. The scenario's `duration` is the end: who comes later does not come.
    pub fn new(scenario: &'a Scenario, controls: &[Control], seed: u64) -> Self {
        let clients = &scenario.clients[0];
        debug_assert_eq!(
            clients.arrivals,
            Arrivals::Recorded,
            "the first clients come as they are handed in"
        );
        let worlds = controls.iter().map(|control| World::new(scenario, control, seed)).collect();
        Self { worlds, kinds: clients.mix.len() }
    }

    /// Somebody comes. A kind that the mix does not have counts as its last.
    pub fn offer(&mut self, request: Recorded) -> Result<(), TooMany> {
        // A log in milliseconds has work that took none, and no two things may happen for ever at the same moment.
        let work = request.work.map(|work| work.max(Duration::from_nanos(1)));
        let kind = usize::from(request.kind).min(self.kinds.saturating_sub(1)) as u16;
        for world in &mut self.worlds {
            if world.play_until(Timestamp::ZERO.after(request.at))? {
                world.want(0, kind, work);
            }
        }
        Ok(())
    }

    /// What came of it under each policy, in their order.
    pub fn finish(self) -> Result<Vec<Report>, TooMany> {
        self.worlds.into_iter().map(World::play).collect()
    }
}
