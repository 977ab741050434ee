//! The hand-written Rust files of the repository, and how a finding in one of them is shown.
//!
//! No rule lives here.

use std::fmt;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Where hand-written Rust lies, from the root.
const FOLDERS: &[&str] = &["crates", "xtask"];

/// The first line of a file that a program wrote. The rules are for people, so such a file is left out.
const GENERATED: &str = "// @generated";

/// One file.
#[derive(Debug)]
pub(crate) struct Source {
    /// From the root of the repository, with `/`.
    pub(crate) path: String,
    /// What is in it.
    pub(crate) text: String,
}

impl Source {
    /// All of them.
    pub(crate) fn all() -> Result<Vec<Self>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the root folder")?;
        let mut sources = Vec::new();
        for folder in FOLDERS {
            collect(root, &root.join(folder), &mut sources)?;
        }
        Ok(sources)
    }

    /// A finding in this file.
    pub(crate) fn finding(&self, line: usize, what: impl Into<String>, remedy: &'static str) -> Finding {
        Finding { path: self.path.clone(), line, what: what.into(), remedy }
    }
}

fn collect(root: &Path, folder: &Path, sources: &mut Vec<Source>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        // A build beside a manifest is not ours.
        if path.is_dir() && !path.ends_with("target") {
            collect(root, &path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            if !text.starts_with(GENERATED) {
                let path = path.strip_prefix(root)?.to_string_lossy().into_owned();
                sources.push(Source { path, text });
            }
        }
    }
    Ok(())
}

/// Something that breaks a rule: where, what, and what to do about it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    /// Counted from one, as editors do.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) what: String,
    remedy: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, what, remedy } = self;
        write!(f, "{path}:{line}: {what}; {remedy}")
    }
}
