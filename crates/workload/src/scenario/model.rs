//! The products whose limiters the simulator has models of, by the names that scenarios call them. What the models do is
//! the simulator's business, and none of them is in the engine.

use serde::Deserialize;

/// A product whose limiter is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Product {
    /// Adaptive Request Concurrency, of Vector.
    Arc,
    /// The gradient controller of Envoy's adaptive concurrency filter.
    Envoy,
}

impl Product {
    /// Every product there is a model of.
    pub const ALL: [Self; 2] = [Self::Arc, Self::Envoy];

    /// What a scenario has to call it, so that no table calls a model by another's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arc => "ARC",
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
