//! The table of layers: the only place that says what a crate may use.
//!
//! Nothing is checked here. A crate that is planned but not written yet has its line already.

/// One crate and what it may use.
#[derive(Debug)]
pub(crate) struct Layer {
    /// The package's name.
    pub(crate) name: &'static str,
    /// What it may use of this workspace.
    pub(crate) workspace: Workspace,
    /// What it may use from outside.
    pub(crate) outside: Outside,
}

/// What a crate may use of this workspace.
#[derive(Debug)]
pub(crate) enum Workspace {
    /// Every crate that comes before it.
    Before,
    /// These only.
    Only(&'static [&'static str]),
}

/// What a crate may use from outside.
#[derive(Debug)]
pub(crate) enum Outside {
    /// Anything.
    Any,
    /// These only, counting what the manifest names.
    Only(&'static [&'static str]),
    /// Anything but these, also when another crate brings them in.
    Never(&'static [&'static str]),
}

/// Each crate may use those that come before it, never those that come after.
pub(crate) const LAYERS: &[Layer] = &[
    // Decisions only. hashbrown and libm replace what core does not have; anything more could hide a clock.
    Layer {
        name: "tidegate-engine",
        workspace: Workspace::Before,
        outside: Outside::Only(&["hashbrown", "libm"]),
    },
    // Text in, policy out. A policy can be checked where no server could run.
    Layer {
        name: "tidegate-policy",
        workspace: Workspace::Before,
        outside: Outside::Never(&["hyper", "tokio"]),
    },
    // Goes into other people's services: no server of ours, no serialization they did not ask for.
    Layer {
        name: "tidegate-tower",
        workspace: Workspace::Before,
        outside: Outside::Never(&["hyper", "serde"]),
    },
    Layer {
        name: "tidegate-client",
        workspace: Workspace::Only(&["tidegate-engine"]),
        outside: Outside::Any,
    },
    // Goes into other people's services too: what its adapters adapt, and nothing else.
    Layer {
        name: "tidegate-flow",
        workspace: Workspace::Only(&["tidegate-engine"]),
        outside: Outside::Only(&["futures-core", "futures-sink", "metrics", "tokio"]),
    },
    Layer { name: "tidegate-workload", workspace: Workspace::Before, outside: Outside::Any },
    Layer { name: "tidegate-sim", workspace: Workspace::Before, outside: Outside::Any },
    Layer { name: "tidegate-load", workspace: Workspace::Before, outside: Outside::Any },
    Layer { name: "tidegate-gateway", workspace: Workspace::Before, outside: Outside::Any },
    Layer { name: "tidegate", workspace: Workspace::Before, outside: Outside::Any },
];

/// Crates of the workspace that ship nothing: they may use anything, and nobody may use them.
pub(crate) const TOOLS: &[&str] = &["xtask"];
