//! Debian packages whose programs tests and benchmarks call or whose files they read, and how they are installed when
//! missing.
//!
//! Crates are cargo's business and do not appear here. Nothing is installed that is there already, and nothing at all
//! without being root: then the message says what to install.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::workspace;

/// A program, the package that brings it, and what it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// The name it is called by.
    pub(crate) command: &'static str,
    /// The Debian package.
    pub(crate) package: &'static str,
    /// Why it is needed, for the message.
    pub(crate) purpose: &'static str,
}

/// A file that a test reads, the package that brings it, and what it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataFile {
    /// Where the package puts it.
    pub(crate) path: &'static str,
    /// The Debian package.
    pub(crate) package: &'static str,
    /// Why it is needed, for the message.
    pub(crate) purpose: &'static str,
}

/// What the tests read. It is not ours to copy, so it is read where its package puts it.
pub(crate) const FILES_FOR_TESTS: &[DataFile] = &[DataFile {
    path: "/usr/lib/python3/dist-packages/haproxy/tests/files/huge.log",
    package: "python3-haproxy-log-analysis",
    purpose: "a real hour of an overloaded HAProxy, to compare the simulator with",
}];

/// What the tests call. This is the only list: add a line here and `cargo xtask test` installs it.
pub(crate) const FOR_TESTS: &[Program] = &[
    Program { command: "cc", package: "gcc", purpose: "the linker of every Rust program" },
    UTIL_LINUX[0],
    UTIL_LINUX[1],
    Program {
        command: "chromium",
        package: "chromium",
        purpose: "opens the dashboard and reads it as a person would",
    },
    Program {
        command: "promtool",
        package: "prometheus",
        purpose: "scrapes a running gateway, and reads its metrics, rules and dashboard",
    },
];

/// The peers of `cargo xtask bench proxy`, its load generator and what pins a program to a core.
pub(crate) const NGINX: Program = Program {
    command: "nginx",
    package: "nginx",
    purpose: "the common upstream, and a peer to compare with",
};
/// See [`NGINX`].
pub(crate) const HAPROXY: Program =
    Program { command: "haproxy", package: "haproxy", purpose: "a peer to compare with" };
/// See [`NGINX`].
pub(crate) const WRK: Program = Program { command: "wrk", package: "wrk", purpose: "the load generator" };
/// The generators that `cargo xtask bench load` compares with, besides [`WRK`].
pub(crate) const HEY: Program =
    Program { command: "hey", package: "hey", purpose: "a load generator to compare with" };
/// Makes the virtual environment from which `cargo xtask peers` runs Envoy.
pub(crate) const PYTHON: Program = Program {
    command: "python3",
    package: "python3-venv",
    purpose: "installs Envoy, a peer to compare with, below the build folder",
};
/// See [`NGINX`].
pub(crate) const UTIL_LINUX: [Program; 2] = [
    Program { command: "taskset", package: "util-linux", purpose: "pins a program to a core" },
    Program { command: "setpriv", package: "util-linux", purpose: "ends a program when its parent dies" },
];

/// See to it that `program` is there, and say where. Installs its package when it is missing and we may.
pub(crate) fn ensure(program: Program) -> Result<PathBuf> {
    if let Some(path) = find(program.command) {
        return Ok(path);
    }
    let Program { command, package, purpose } = program;
    install(command, package, purpose)?;
    find(command).with_context(|| format!("{package} is installed but brought no {command}"))
}

/// See to it that a file is there. Installs its package when it is missing and we may.
pub(crate) fn ensure_file(file: DataFile) -> Result<PathBuf> {
    let DataFile { path, package, purpose } = file;
    if !Path::new(path).exists() {
        install(path, package, purpose)?;
    }
    if !Path::new(path).exists() {
        bail!("{package} is installed but brought no {path}");
    }
    Ok(path.into())
}

fn install(missing: &str, package: &str, purpose: &str) -> Result<()> {
    eprintln!("    {missing} is missing ({purpose})");
    if !rustix::process::geteuid().is_root() || find("apt-get").is_none() {
        bail!(
            "{missing} is missing; install the Debian package {package}, as root: apt-get install {package}"
        );
    }
    let _quiet = NoServices::while_installing();
    workspace::run(apt(&["update", "-qq"]).stdout(Stdio::null()))
        .and_then(|()| {
            workspace::run(
                apt(&["install", "-y", "-qq", "--no-install-recommends", package]).stdout(Stdio::null()),
            )
        })
        .with_context(|| format!("cannot install {package}"))
}

/// Where a program lies, as `command -v` would say; the system folders are looked in even when PATH leaves them out.
pub(crate) fn find(command: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(command))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Keeps Debian from starting the services that come with a package, which would take their ports: Prometheus' 9090,
/// nginx's 80. A policy that somebody has made stays as it is.
struct NoServices {
    ours: bool,
}

/// What Debian asks before it starts a service; 101 means no (`policy-rc.d(8)`).
const POLICY: &str = "/usr/sbin/policy-rc.d";

impl NoServices {
    fn while_installing() -> Self {
        use std::io::Write as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(POLICY);
        // Without it the worst is a service that runs.
        let ours = file.is_ok_and(|mut file| file.write_all(b"#!/bin/sh\nexit 101\n").is_ok());
        Self { ours }
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.ours {
            let _ = std::fs::remove_file(POLICY);
        }
    }
}

fn apt(args: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).args(args);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_there_and_only_that() {
        assert!(find("sh").is_some());
        assert_eq!(find("no-such-program-anywhere"), None);
    }

    #[test]
    fn a_file_that_is_there_is_not_installed() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let file = DataFile { path, package: "no-such-package-anywhere", purpose: "a test" };
        assert_eq!(ensure_file(file).unwrap(), Path::new(path));
    }
}
