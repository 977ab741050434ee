//! tidegate as the benchmarks start it: the release binary with a policy from a file.
//!
//! Each benchmark writes its own policy; what they share is here.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::lab::{self, Lab};
use super::process::Running;
use crate::workspace::{self, cargo};

/// Build the release binary, and say where it is.
pub(crate) fn build() -> Result<PathBuf> {
    workspace::run(&mut cargo(["build", "--release", "--package", "tidegate"]))?;
    Ok(workspace::target_dir().join("release/tidegate"))
}

/// Start it on the gateway's core and wait until its admin address answers, so that nothing is sent through it yet.
pub(crate) fn start(lab: &Lab, binary: &Path, policy: &str, admin: SocketAddr) -> Result<Running> {
    let config = lab.write("tidegate.toml", policy)?;
    let args = ["run".as_ref(), "--config".as_ref(), config.as_os_str()];
    let mut running = Running::start(lab.gateway_core, binary, &args, lab.path("tidegate.log"))?;
    lab::wait_until_it_answers(&mut running, "tidegate", admin)?;
    Ok(running)
}
