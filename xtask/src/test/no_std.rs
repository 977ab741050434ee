//! The step `no-std`: link the engine into a program that has no std, and prove that the probe would notice std.
//!
//! The usual way is to build for a target that has no std. Here the host's own target does: the probe defines the
//! panic handler itself, and the language allows only one, so a single dependency that pulls in std fails the build.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::workspace::{self, cargo};

/// The probe's manifest, from the root of the repository.
pub(crate) const MANIFEST: &str = "crates/engine/no-std-probe/Cargo.toml";

/// Build the probe, which must work, then its canary, which must not.
pub(crate) fn run() -> Result<()> {
    use_the_lock_of_the_workspace()?;
    workspace::run(&mut build(&[]))?;
    canary()
}

/// The probe is no member of the workspace, so it would choose versions of its own; it has to link what we ship.
fn use_the_lock_of_the_workspace() -> Result<()> {
    let root = workspace::root();
    let probe: PathBuf = root.join(MANIFEST).with_file_name("Cargo.lock");
    std::fs::copy(root.join("Cargo.lock"), &probe)
        .with_context(|| format!("cannot copy Cargo.lock to {}", probe.display()))?;
    Ok(())
}

/// With its feature `canary` the probe names std itself. Were that to build, the probe would prove nothing.
fn canary() -> Result<()> {
    let mut command = build(&["--features", "canary"]);
    println!("    $ {} (has to fail)", workspace::shown(&command));
    let output = command.output().context("cannot start cargo")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        bail!("the canary built although it uses std: the probe no longer notices std");
    }
    if !stderr.contains("panic_impl") {
        bail!("the canary failed, but not because of a second panic handler:\n{stderr}");
    }
    println!("    the canary failed as it has to: a second panic handler");
    Ok(())
}

fn build(features: &[&str]) -> Command {
    let mut command = cargo(["build", "--manifest-path", MANIFEST]);
    command.arg("--target-dir").arg(workspace::target_dir().join("no-std")).args(features);
    command
}
