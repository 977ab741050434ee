//! The products whose limiters the simulator has models of, by the names that scenarios call them, and CoDel. What the
//! models do is the simulator's business, and none of them is in the engine.

use serde::Deserialize;

/// Another's limiter, or discipline of the queue, that is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Product {
    /// Adaptive Request Concurrency, of Vector.
    Arc,
    /// The discipline of the queue of RFC 8289, before the policy's own limit.
    Codel,
    /// The gradient controller of Envoy's adaptive concurrency filter.
    Envoy,
}

impl Product {
    /// Those that say a limit.
    pub const LIMITERS: [Self; 2] = [Self::Arc, Self::Envoy];

    /// What a scenario has to call it, so that no table calls a model by another's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arc => "ARC",
            Self::Codel => "CoDel",
            Self::Envoy => "Envoy",
        }
    }

    /// Its name in tables, where a reader has to see that it is not the product itself that was measured.
    pub fn shown(self) -> String {
        format!("{SHOWN}{}", self.name())
    }
}

/// No other policy of a scenario has a name that begins with this.
pub(super) const SHOWN: &str = "model: ";
