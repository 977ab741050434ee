//! House rule: whose types a library's public face may be made of. What is in it is promised, and what is promised of
//! others changes when they do.
//!
//! Read from what rustdoc says as JSON, in which private items are left out. Only names are looked at: whether a type
//! should be there at all is for a person to judge.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The libraries that are looked at, each with the crates whose types it promises. `std`, `core` and `alloc` always may.
const PROMISED: &[(&str, &[&str])] = &[
    (
        "tidegate-client",
        &[
            "bytes",
            "http",
            "http_body",
            // Its policy is the engine's, and so are the counts.
            "tidegate_engine",
            "tower_layer",
            "tower_service",
            // With the feature of that name only.
            "reqwest",
            "reqwest_middleware",
        ],
    ),
    (
        "tidegate-tower",
        &[
            "bytes",
            "http",
            "http_body",
            // Its policy is the engine's, and so are the counts.
            "tidegate_engine",
            // A clock that is handed in says when a timer of tokio's fires.
            "tokio",
            "tower_layer",
            "tower_service",
        ],
    ),
    (
        "tidegate-flow",
        &[
            // What goes in and comes out are streams and sinks.
            "futures_core",
            "futures_sink",
            "tidegate_engine",
            // Adapters from and to its channels.
            "tokio",
        ],
    ),
];

#[test]
fn no_type_of_others_is_promised_by_accident() -> Result<()> {
    for (library, promised) in PROMISED {
        let face = Face::of(&rustdoc(library)?)?;
        // A reader that finds nothing would find nothing wrong.
        assert!(face.crates.contains("tidegate_engine"), "{library}: rustdoc names no types of others");
        let leaked: Vec<_> =
            face.types.iter().filter(|found| !promised.contains(&found.0.as_str())).collect();
        assert!(
            leaked.is_empty(),
            "{library} promises types of others: {leaked:?}; wrap them, or promise them here"
        );
    }
    Ok(())
}

/// What a library's documentation says in JSON, which rustdoc keeps for itself unless it is asked like this. A folder of
/// its own, so that nothing else is built again because of it.
fn rustdoc(library: &str) -> Result<Value> {
    let cargo = std::env::var_os("CARGO").context("tests are run by cargo, which sets CARGO")?;
    let target: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("api");
    let output = Command::new(cargo)
        .args(["rustdoc", "--package", library, "--lib", "--all-features", "--target-dir"])
        .arg(&target)
        .args(["--", "-Z", "unstable-options", "--output-format", "json"])
        .env("RUSTC_BOOTSTRAP", "1")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()?;
    ensure!(output.status.success(), "cargo rustdoc: {}", String::from_utf8_lossy(&output.stderr));
    let file = target.join("doc").join(format!("{}.json", library.replace('-', "_")));
    let text = std::fs::read(&file).with_context(|| format!("rustdoc wrote no {}", file.display()))?;
    Ok(serde_json::from_slice(&text)?)
}

/// The types and traits of others that a public face is made of.
#[derive(Debug, Default)]
struct Face {
    /// By crate and path.
    types: BTreeSet<(String, String)>,
    crates: BTreeSet<String>,
}

impl Face {
    fn of(documentation: &Value) -> Result<Self> {
        let items =
            documentation["index"].as_object().context("rustdoc's JSON has another shape than expected")?;
        let mut face = Self::default();
        for item in items.values().filter(|item| item["crate_id"] == 0) {
            // What holds of every type, or what the compiler finds out, nobody has promised.
            let implementation = &item["inner"]["impl"];
            if implementation["is_synthetic"] == true || !implementation["blanket_impl"].is_null() {
                continue;
            }
            face.look(&item["inner"], documentation);
        }
        Ok(face)
    }

    fn look(&mut self, value: &Value, documentation: &Value) {
        match value {
            Value::Object(fields) => {
                for name in ["resolved_path", "trait"] {
                    if let Some(id) = fields.get(name).and_then(|path| path["id"].as_u64()) {
                        self.found(&documentation["paths"][id.to_string()], documentation);
                    }
                }
                fields.values().for_each(|value| self.look(value, documentation));
            }
            Value::Array(list) => list.iter().for_each(|value| self.look(value, documentation)),
            _ => {}
        }
    }

    fn found(&mut self, path: &Value, documentation: &Value) {
        let Some(crate_id @ 1..) = path["crate_id"].as_u64() else { return };
        let name =
            documentation["external_crates"][crate_id.to_string()]["name"].as_str().unwrap_or_default();
        if ["core", "std", "alloc"].contains(&name) {
            return;
        }
        self.crates.insert(name.to_owned());
        let parts: Vec<_> = path["path"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        // What a macro needs of its own crate in what it writes cannot be named by anybody else.
        if !parts.contains(&"__private") {
            self.types.insert((name.to_owned(), parts.join("::")));
        }
    }
}

#[test]
fn a_type_of_others_is_found_wherever_it_stands() -> Result<()> {
    let documentation = serde_json::json!({
        "index": {
            "1": {"crate_id": 0, "inner": {"function": {"sig": {"inputs": [["a", {"resolved_path": {"id": 7}}]]}}}},
            "2": {"crate_id": 0, "inner": {"impl": {"trait": {"id": 8}, "is_synthetic": false, "blanket_impl": null}}},
            "3": {"crate_id": 0, "inner": {"impl": {"trait": {"id": 9}, "is_synthetic": true, "blanket_impl": null}}},
            "4": {"crate_id": 5, "inner": {"resolved_path": {"id": 9}}},
            "5": {"crate_id": 0, "inner": {"resolved_path": {"id": 10}}},
        },
        "paths": {
            "7": {"crate_id": 5, "path": ["hyper", "body", "Incoming"]},
            "8": {"crate_id": 6, "path": ["tower", "Service"]},
            "9": {"crate_id": 5, "path": ["hyper", "Hidden"]},
            "10": {"crate_id": 6, "path": ["tower", "__private", "Plumbing"]},
        },
        "external_crates": {"5": {"name": "hyper"}, "6": {"name": "tower"}},
    });
    let face = Face::of(&documentation)?;
    let found: Vec<_> = face.types.iter().map(|(_, path)| path.as_str()).collect();
    assert_eq!(found, ["hyper::body::Incoming", "tower::Service"]);
    Ok(())
}
