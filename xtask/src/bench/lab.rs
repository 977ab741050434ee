//! Where a benchmark runs: a temporary folder, free ports on loopback, one core for the gateway and one for the load.
//!
//! Everything a benchmark sends goes to 127.0.0.1.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::thread::{CpuSet, sched_setaffinity};
use tempfile::TempDir;

use super::http::Connection;
use super::process::{self, Running};
use crate::{clock, workspace};

/// How long a program may take until it answers its first request.
const START_LIMIT: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub(crate) struct Lab {
    folder: TempDir,
    /// The core of the gateway that is measured.
    pub(crate) gateway_core: usize,
    /// The core of the load generator and the upstream.
    pub(crate) load_core: usize,
}

impl Lab {
    /// Make the folder, below the build folder, and see to it that it goes when the benchmark is interrupted.
    pub(crate) fn open() -> Result<Self> {
        let folder = TempDir::with_prefix_in("tidegate-bench-", workspace::target_dir())
            .context("cannot make a temporary folder")?;
        process::clean_up_when_interrupted(folder.path())?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if cores < 2 {
            eprintln!("    only one core: gateway and load share it, so the gateway is never fully busy");
        }
        Ok(Self { folder, gateway_core: 0, load_core: usize::from(cores > 1) })
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Write a file into the folder, and say where it is.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// An address on loopback that was free a moment ago.
    pub(crate) fn free_address() -> Result<SocketAddr> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on loopback")?;
        Ok(listener.local_addr()?)
    }
}

/// Keep the calling thread on one core: for a load that is sent from this process.
pub(crate) fn stay_on(core: usize) -> Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).context("cannot choose a core")
}

/// Wait until `running`, called `name`, answers an HTTP request at `address`. The error has the last line it printed.
pub(crate) fn wait_until_it_answers(running: &mut Running, name: &str, address: SocketAddr) -> Result<()> {
    let answered = clock::wait_for("its first answer", START_LIMIT, || {
        if let Some(status) = running.ended()? {
            bail!("it ended before it answered ({status})");
        }
        let answer = Connection::open(address).and_then(|mut connection| connection.get("/", &[]));
        Ok(answer.ok().map(|_| ()))
    });
    answered.map_err(|error| {
        let printed = running.printed();
        let last_line = printed.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
        error.context(format!("{name} does not start (it printed last: {last_line})"))
    })
}
