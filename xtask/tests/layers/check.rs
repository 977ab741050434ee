//! Holds a graph against the table of layers and says, for each arrow that breaks it, what to do.
//!
//! Knows no cargo: the graph is plain data.

use crate::graph::Graph;
use crate::table::{LAYERS, Layer, Outside, TOOLS, Workspace};

/// Everything in `graph` that the table does not allow, as messages for a person.
pub(crate) fn violations(graph: &Graph) -> Vec<String> {
    let mut found = Vec::new();
    for name in &graph.members {
        match LAYERS.iter().position(|layer| layer.name == name) {
            Some(position) => {
                in_workspace(graph, position, &mut found);
                from_outside(graph, &LAYERS[position], &mut found);
            }
            None if TOOLS.contains(&name.as_str()) => {}
            None => found.push(format!(
                "{name} has no place in the table: add it to LAYERS in xtask/tests/layers/table.rs, or to TOOLS if it \
                 ships nothing"
            )),
        }
    }
    found
}

fn in_workspace(graph: &Graph, position: usize, found: &mut Vec<String>) {
    let Layer { name, workspace, .. } = &LAYERS[position];
    for used in graph.uses(name).filter(|used| graph.members.contains(*used)) {
        if TOOLS.contains(&used) {
            found.push(format!(
                "{name} uses {used}, which is a tool: move what it needs into a crate of its own"
            ));
            continue;
        }
        let comes_later = !LAYERS[..position].iter().any(|layer| layer.name == used);
        match workspace {
            _ if comes_later => found.push(format!(
                "{name} uses {used}, which comes after it in the table: move what both need into a crate that comes before both"
            )),
            Workspace::Only(allowed) if !allowed.contains(&used) => found.push(format!(
                "{name} uses {used}, but of this workspace it may use only: {}",
                allowed.join(", ")
            )),
            Workspace::Before | Workspace::Only(_) => {}
        }
    }
}

fn from_outside(graph: &Graph, layer: &Layer, found: &mut Vec<String>) {
    let name = layer.name;
    match layer.outside {
        Outside::Any => {}
        Outside::Only(allowed) => {
            for used in
                graph.uses(name).filter(|used| !graph.members.contains(*used) && !allowed.contains(used))
            {
                found.push(format!(
                    "{name} uses {used}, but from outside it may use only: {}; do without, or do it in a crate that comes after it",
                    allowed.join(", ")
                ));
            }
        }
        Outside::Never(banned) => {
            for (used, path) in banned.iter().filter_map(|used| Some((used, graph.path(name, used)?))) {
                found.push(format!(
                    "{name} brings in {used} ({}); move the code that needs it into a crate that comes after it",
                    path.join(" -> ")
                ));
            }
        }
    }
}
