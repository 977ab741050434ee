//! The gateways of the proxy benchmark, and the upstream that all share: finding, starting, naming them.
//!
//! What each is told is in [`configs`]; that they end is seen to by [`Running`].

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;
use clap::ValueEnum;

use super::configs;
use super::lab::{self, Lab};
use super::process::Running;
use super::tidegate;
use crate::packages;

/// One of those that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    /// This repository's gateway.
    Tidegate,
    /// As a reverse proxy; `limit_req`.
    Nginx,
    /// As a reverse proxy; a stick table's rate.
    Haproxy,
}

/// What they are told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Forward each request.
    Proxy,
    /// Let one request a second through and answer 429 to all others.
    Reject,
}

/// One that runs.
#[derive(Debug)]
pub(crate) struct Gateway {
    /// Which it is.
    pub(crate) peer: Peer,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Its processes.
    pub(crate) running: Running,
}

impl Peer {
    /// The name it goes by.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tidegate => "tidegate",
            Self::Nginx => "nginx",
            Self::Haproxy => "HAProxy",
        }
    }

    /// Where its program is; builds or installs it when it has to.
    pub(crate) fn program(self) -> Result<PathBuf> {
        match self {
            Self::Tidegate => tidegate::build(),
            Self::Nginx => packages::ensure(packages::NGINX),
            Self::Haproxy => packages::ensure(packages::HAPROXY),
        }
    }

    /// What its program says of its version: a number without it could not be compared later.
    pub(crate) fn version(self, program: &Path) -> String {
        let flag = if self == Self::Tidegate { "--version" } else { "-v" };
        let Ok(output) = Command::new(program).arg(flag).stdin(Stdio::null()).output() else {
            return format!("{}, version unknown", self.name());
        };
        // nginx says it on standard error.
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&said).lines().next().unwrap_or_default().trim().to_owned()
    }

    /// Start it for `task` in front of `upstream`.
    pub(crate) fn start(
        self,
        lab: &Lab,
        program: &Path,
        task: Task,
        upstream: SocketAddr,
    ) -> Result<Gateway> {
        let address = Lab::free_address()?;
        let mut running = match self {
            Self::Tidegate => {
                let admin = Lab::free_address()?;
                tidegate::start(
                    lab,
                    program,
                    &configs::tidegate_policy(task, address, admin, upstream),
                    admin,
                )?
            }
            Self::Nginx => {
                let server = configs::nginx_proxy(task, address, upstream);
                start_nginx(lab, program, "nginx", lab.gateway_core, &server)?
            }
            Self::Haproxy => {
                let config = lab.write("haproxy.cfg", &configs::haproxy_config(task, address, upstream))?;
                let args = ["-db".as_ref(), "-f".as_ref(), config.as_os_str()];
                Running::start(lab.gateway_core, program, &args, lab.path("haproxy.log"))?
            }
        };
        lab::wait_until_it_answers(&mut running, self.name(), address)?;
        Ok(Gateway { peer: self, address, running })
    }
}

/// Start the upstream that all share: nginx, which answers 200 with three bytes, on the core of the load.
pub(crate) fn start_upstream(lab: &Lab, nginx: &Path) -> Result<(Running, SocketAddr)> {
    let address = Lab::free_address()?;
    let server = configs::nginx_upstream(address);
    let mut running = start_nginx(lab, nginx, "upstream", lab.load_core, &server)?;
    lab::wait_until_it_answers(&mut running, "the upstream", address)?;
    Ok((running, address))
}

fn start_nginx(lab: &Lab, program: &Path, name: &str, core: usize, server: &str) -> Result<Running> {
    let folder = lab.path(name);
    std::fs::create_dir_all(&folder)?;
    let config = lab.write(&format!("{name}.conf"), &configs::nginx_config(&folder, server))?;
    let args = ["-p".as_ref(), folder.as_os_str(), "-c".as_ref(), config.as_os_str()];
    Running::start(core, program, &args, lab.path(format!("{name}.log")))
}
