//! Those that are compared, and how each is started before the service.
//!
//! What each is told is in [`configs`] and [`envoy`].

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;

use super::case::Story;
use super::configs;
use super::envoy::{self, Filter};
use crate::bench::lab::{self, Lab};
use crate::bench::process::Running;
use crate::packages;

/// One of those that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Contender {
    /// This repository's gateway, told no number.
    Tidegate,
    /// Envoy with its adaptive concurrency filter, the defaults as far as there are any.
    EnvoyAdaptive,
    /// Envoy with its adaptive concurrency filter as in the example of its documentation.
    EnvoyExample,
    /// Envoy with its admission control filter.
    EnvoyAdmission,
    /// HAProxy, its limit and queue set by hand.
    Haproxy,
    /// nginx, its limit set by hand.
    Nginx,
    /// The service by itself.
    Nothing,
}

/// What whoever sets a gateway up knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Where the service is.
    pub(crate) upstream: SocketAddr,
    /// How many requests it works on at once: for those whose limit is set by hand.
    pub(crate) workers: u32,
    /// How many it answers a second on an ordinary day: for those whose queue is bounded by hand.
    pub(crate) capacity: f64,
    /// How long clients wait: for all but tidegate.
    pub(crate) timeout: Duration,
    /// Which clients are which.
    pub(crate) story: Story,
}

/// One that runs.
#[derive(Debug)]
pub(crate) struct Gateway {
    /// Where clients go.
    pub(crate) address: SocketAddr,
    /// Its processes; none when clients go to the service itself.
    pub(crate) running: Option<Running>,
}

impl Contender {
    /// All of them, in the order of the table.
    pub(crate) const ALL: [Self; 7] = [
        Self::Tidegate,
        Self::EnvoyAdaptive,
        Self::EnvoyExample,
        Self::EnvoyAdmission,
        Self::Haproxy,
        Self::Nginx,
        Self::Nothing,
    ];

    /// The heading of its column, in two lines.
    pub(crate) const fn heading(self) -> [&'static str; 2] {
        match self {
            Self::Tidegate => ["tidegate", "no number"],
            Self::EnvoyAdaptive => ["Envoy", "adaptive"],
            Self::EnvoyExample => ["Envoy", "example"],
            Self::EnvoyAdmission => ["Envoy", "admission"],
            Self::Haproxy => ["HAProxy", "by hand"],
            Self::Nginx => ["nginx", "by hand"],
            Self::Nothing => ["no", "control"],
        }
    }

    /// Where its program is; installs it when it has to. tidegate's own has been built before: `binary`.
    pub(crate) fn program(self, binary: &Path) -> Result<PathBuf> {
        match self {
            Self::Tidegate | Self::Nothing => Ok(binary.to_owned()),
            Self::EnvoyAdaptive | Self::EnvoyExample | Self::EnvoyAdmission => envoy::install(),
            Self::Haproxy => packages::ensure(packages::HAPROXY),
            Self::Nginx => packages::ensure(packages::NGINX),
        }
    }

    /// What its program says of its version; `None` when it has none.
    pub(crate) fn version(self, program: &Path) -> Option<String> {
        let flag = match self {
            Self::Tidegate | Self::EnvoyAdaptive => "--version",
            Self::Haproxy | Self::Nginx => "-v",
            Self::EnvoyExample | Self::EnvoyAdmission | Self::Nothing => return None,
        };
        let output = Command::new(program).arg(flag).stdin(Stdio::null()).output().ok()?;
        // nginx says it on standard error.
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let line = said.lines().map(str::trim).find(|line| !line.is_empty())?;
        // Envoy begins with the path of its program, which says nothing to anybody else.
        Some(line.replace(&*program.to_string_lossy(), "envoy"))
    }

    const fn envoy_filter(self) -> Filter {
        match self {
            Self::EnvoyExample => Filter::AdaptiveExample,
            Self::EnvoyAdmission => Filter::Admission,
            _ => Filter::Adaptive,
        }
    }

    /// Start it, cold.
    pub(crate) fn start(self, lab: &Lab, program: &Path, known: &Known) -> Result<Gateway> {
        let address = Lab::free_address()?;
        let admin = Lab::free_address()?;
        let log = lab.path(format!("{self:?}.log"));
        let core = lab.gateway_core;
        // Who has an admin address is asked there, so that the first request is one of the load.
        let (mut running, asked) = match self {
            Self::Nothing => return Ok(Gateway { address: known.upstream, running: None }),
            Self::Tidegate => {
                let args = match configs::tidegate(known, address, admin) {
                    None => vec![
                        "run".to_owned(),
                        format!("--upstream=http://{}", known.upstream),
                        format!("--listen={address}"),
                        format!("--admin={admin}"),
                    ],
                    Some(policy) => {
                        let file = lab.write("tidegate.toml", &policy)?;
                        vec!["run".to_owned(), format!("--config={}", file.display())]
                    }
                };
                (Running::start(core, program, &args, log)?, admin)
            }
            Self::EnvoyAdaptive | Self::EnvoyExample | Self::EnvoyAdmission => {
                let config =
                    lab.write("envoy.yaml", &envoy::config(self.envoy_filter(), known, address, admin))?;
                (Running::start(core, program, &envoy::args(&config), log)?, admin)
            }
            Self::Haproxy => {
                let config = lab.write("haproxy.cfg", &configs::haproxy(known, address))?;
                let args = ["-db".as_ref(), "-f".as_ref(), config.as_os_str()];
                (Running::start(core, program, &args, log)?, address)
            }
            Self::Nginx => {
                let folder = lab.path("nginx");
                std::fs::create_dir_all(&folder)?;
                let config = lab.write("nginx.conf", &configs::nginx(known, address, &folder))?;
                let args = ["-p".as_ref(), folder.as_os_str(), "-c".as_ref(), config.as_os_str()];
                (Running::start(core, program, &args, log)?, address)
            }
        };
        lab::wait_until_it_answers(&mut running, &self.heading().join(" "), asked)?;
        Ok(Gateway { address, running: Some(running) })
    }
}
