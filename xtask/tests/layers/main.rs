//! House rule: which crate may use which, and what each may bring in from outside.
//!
//! The rule is one table ([`table`]); the checker ([`check`]) works on plain data ([`graph`]), so that it is tried on
//! made-up bad graphs here and on the real one from `cargo metadata`.

mod check;
mod graph;
mod table;

use check::violations;
use graph::Graph;

#[test]
fn the_workspace_keeps_its_layers() -> anyhow::Result<()> {
    let graph = Graph::of_workspace()?;
    // A reader that finds nothing would pass every check.
    assert!(graph.members.contains("tidegate-engine"), "cargo metadata named no engine: {:?}", graph.members);
    let found = violations(&graph);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
    Ok(())
}

/// A graph of `members`, each with what it uses; everything named only on the right comes from outside.
fn graph(members: &[(&str, &[&str])], outside: &[(&str, &[&str])]) -> Graph {
    Graph::new(
        members.iter().map(|(name, _)| (*name).to_owned()).collect(),
        members
            .iter()
            .chain(outside)
            .map(|(name, uses)| ((*name).to_owned(), uses.iter().map(|used| (*used).to_owned()).collect()))
            .collect(),
    )
}

#[track_caller]
fn check_finds(members: &[(&str, &[&str])], outside: &[(&str, &[&str])], expected: &[&str]) {
    let found = violations(&graph(members, outside));
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (message, part) in found.iter().zip(expected) {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

#[test]
fn a_sound_graph_passes() {
    check_finds(
        &[
            ("tidegate-engine", &["hashbrown", "libm"]),
            ("tidegate-policy", &["tidegate-engine", "toml"]),
            ("tidegate-tower", &["tidegate-engine", "tokio"]),
            ("tidegate-gateway", &["tidegate-tower", "tidegate-policy", "hyper"]),
            ("tidegate", &["tidegate-gateway"]),
            ("xtask", &["anyhow"]),
        ],
        &[("hyper", &["tokio"]), ("toml", &["serde"])],
        &[],
    );
}

#[test]
fn an_arrow_to_a_later_crate_is_found() {
    check_finds(
        &[("tidegate-policy", &["tidegate-gateway"]), ("tidegate-gateway", &[])],
        &[],
        &["tidegate-policy uses tidegate-gateway, which comes after it in the table"],
    );
}

#[test]
fn the_client_may_use_the_engine_and_no_other_crate_of_ours() {
    check_finds(
        &[
            ("tidegate-client", &["tidegate-engine", "tidegate-tower"]),
            ("tidegate-engine", &[]),
            ("tidegate-tower", &[]),
        ],
        &[],
        &["tidegate-client uses tidegate-tower, but of this workspace it may use only: tidegate-engine"],
    );
}

#[test]
fn an_engine_with_one_more_dependency_is_found() {
    check_finds(
        &[("tidegate-engine", &["hashbrown", "rand"])],
        &[],
        &["tidegate-engine uses rand, but from outside it may use only: hashbrown, libm"],
    );
}

#[test]
fn a_forbidden_crate_is_found_behind_others() {
    check_finds(
        &[("tidegate-tower", &["neat"])],
        &[("neat", &["neater"]), ("neater", &["serde"])],
        &["tidegate-tower brings in serde (tidegate-tower -> neat -> neater -> serde)"],
    );
    check_finds(
        &[("tidegate-policy", &["hyper"])],
        &[("hyper", &["tokio"])],
        &[
            "tidegate-policy brings in hyper",
            "tidegate-policy brings in tokio (tidegate-policy -> hyper -> tokio)",
        ],
    );
}

#[test]
fn a_crate_without_a_place_is_found() {
    check_finds(&[("tidegate-misc", &[])], &[], &["tidegate-misc has no place in the table"]);
}

#[test]
fn a_tool_is_used_by_nobody() {
    check_finds(&[("tidegate", &["xtask"]), ("xtask", &[])], &[], &["tidegate uses xtask, which is a tool"]);
}

#[test]
fn a_cycle_from_outside_ends_the_search() {
    check_finds(&[("tidegate-tower", &["a"])], &[("a", &["b"]), ("b", &["a"])], &[]);
}
