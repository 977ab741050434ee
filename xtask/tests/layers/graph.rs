//! Who uses whom, as plain data, read from `cargo metadata` or made up by a test.
//!
//! Only what ends up in a program counts: normal and build dependencies. A test may use whatever it likes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// Crates by name, each with the crates it uses.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// The crates of this workspace.
    pub(crate) members: BTreeSet<String>,
    uses: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// A graph of these crates.
    pub(crate) const fn new(members: BTreeSet<String>, uses: BTreeMap<String, BTreeSet<String>>) -> Self {
        Self { members, uses }
    }

    /// The graph of this workspace. Read for this machine's platform only, because what other platforms need may never
    /// have been downloaded.
    pub(crate) fn of_workspace() -> Result<Self> {
        let cargo = std::env::var_os("CARGO").context("tests are run by cargo, which sets CARGO")?;
        let host = host(&cargo)?;
        let output = Command::new(&cargo)
            .args(["metadata", "--format-version", "1", "--all-features", "--filter-platform", &host])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()?;
        ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        Self::from_metadata(&serde_json::from_slice(&output.stdout)?)
    }

    fn from_metadata(metadata: &Value) -> Result<Self> {
        let mut names = BTreeMap::new();
        for package in list(&metadata["packages"])? {
            names.insert(text(&package["id"])?, text(&package["name"])?);
        }
        let name_of = |id: &str| names.get(id).cloned().with_context(|| format!("no package {id}"));
        let mut graph = Self::default();
        for id in list(&metadata["workspace_members"])? {
            graph.members.insert(name_of(&text(id)?)?);
        }
        for node in list(&metadata["resolve"]["nodes"])? {
            let uses = graph.uses.entry(name_of(&text(&node["id"])?)?).or_default();
            for dependency in list(&node["deps"])? {
                if list(&dependency["dep_kinds"])?.iter().any(|kind| kind["kind"] != "dev") {
                    uses.insert(name_of(&text(&dependency["pkg"])?)?);
                }
            }
        }
        Ok(graph)
    }

    /// What `name` itself uses.
    pub(crate) fn uses(&self, name: &str) -> impl Iterator<Item = &str> {
        self.uses.get(name).into_iter().flatten().map(String::as_str)
    }

    /// The shortest way from `from` to `to`, both ends included.
    pub(crate) fn path(&self, from: &str, to: &str) -> Option<Vec<String>> {
        let mut paths = VecDeque::from([vec![from.to_owned()]]);
        let mut seen = BTreeSet::from([from.to_owned()]);
        while let Some(path) = paths.pop_front() {
            let end = path.last()?;
            if end == to {
                return Some(path);
            }
            for next in self.uses(end) {
                if seen.insert(next.to_owned()) {
                    paths.push_back(path.iter().cloned().chain([next.to_owned()]).collect());
                }
            }
        }
        None
    }
}

/// The platform cargo builds for here, as in `x86_64-unknown-linux-gnu`.
fn host(cargo: &std::ffi::OsStr) -> Result<String> {
    let output = Command::new(cargo).args(["version", "--verbose"]).output()?;
    let version = String::from_utf8(output.stdout)?;
    let line = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("cargo names no host")?.to_owned())
}

fn list(value: &Value) -> Result<&Vec<Value>> {
    value.as_array().context("cargo metadata has another shape than expected: no list")
}

fn text(value: &Value) -> Result<String> {
    Ok(value.as_str().context("cargo metadata has another shape than expected: no text")?.to_owned())
}

#[test]
fn dev_dependencies_do_not_count() -> Result<()> {
    let graph = Graph::from_metadata(&serde_json::json!({
        "packages": [{"id": "a#1", "name": "a"}, {"id": "b#1", "name": "b"}, {"id": "c#1", "name": "c"}],
        "workspace_members": ["a#1"],
        "resolve": {"nodes": [{"id": "a#1", "deps": [
            {"pkg": "b#1", "dep_kinds": [{"kind": null}, {"kind": "dev"}]},
            {"pkg": "c#1", "dep_kinds": [{"kind": "dev"}]},
        ]}]},
    }))?;
    assert_eq!(graph.uses("a").collect::<Vec<_>>(), ["b"]);
    Ok(())
}
