//! The programs that a benchmark starts, and that none of them outlives it.
//!
//! Each is the head of a process group of its own, which is killed as a whole: when its [`Running`] is dropped, and when
//! the benchmark is interrupted. Should the benchmark itself be killed, the kernel asks the head to end (`setpriv`).

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process_group};

/// What has to go when the benchmark is interrupted: nothing is dropped then.
static LEFT_BEHIND: Mutex<LeftBehind> = Mutex::new(LeftBehind { groups: Vec::new(), folder: None });

struct LeftBehind {
    groups: Vec<Pid>,
    folder: Option<PathBuf>,
}

fn left_behind<T>(change: impl FnOnce(&mut LeftBehind) -> T) -> T {
    change(&mut LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner))
}

/// On Ctrl-C, SIGTERM and SIGHUP: kill what was started, remove `folder`, and end. To be called once, at the start.
pub(crate) fn clean_up_when_interrupted(folder: &Path) -> Result<()> {
    left_behind(|left| left.folder = Some(folder.to_owned()));
    ctrlc::set_handler(|| {
        // The lock is kept, so that no further program is started before the end.
        left_behind(|left| {
            left.groups.iter().for_each(|group| kill(*group));
            let _ = left.folder.as_ref().map(fs::remove_dir_all);
            eprintln!("\ninterrupted");
            std::process::exit(130);
        });
    })
    .context("cannot catch Ctrl-C")
}

/// A program that was started, and ends at the latest when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    group: Pid,
    log: PathBuf,
}

impl Running {
    /// Start `program` on `core`; what it prints goes to the file `log`.
    pub(crate) fn start<S: AsRef<OsStr>>(
        core: usize,
        program: &Path,
        args: &[S],
        log: PathBuf,
    ) -> Result<Self> {
        let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "TERM", "taskset", "--cpu-list", &core.to_string()])
            .arg(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0);
        left_behind(|left| {
            let child = command.spawn().context("cannot start setpriv (Debian package util-linux)")?;
            let group = Pid::from_child(&child);
            left.groups.push(group);
            Ok(Self { child, group, log })
        })
    }

    /// Its process group, which is also the process id of its head.
    pub(crate) const fn group(&self) -> Pid {
        self.group
    }

    /// How it ended, or `None` while it runs.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// What it printed so far.
    pub(crate) fn printed(&self) -> String {
        fs::read(&self.log)
            .map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        left_behind(|left| {
            kill(self.group);
            // Only now may the number be given to another process, so only now it has to be forgotten.
            let _ = self.child.wait();
            left.groups.retain(|group| *group != self.group);
        });
    }
}

/// A group that has ended already is no error: that is what was wanted.
fn kill(group: Pid) {
    let _ = kill_process_group(group, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::find;
    use rustix::process::test_kill_process_group;

    #[test]
    fn nothing_outlives_its_guard() {
        let folder = tempfile::tempdir().unwrap();
        let shell = find("sh").unwrap();
        // A child that ignores the polite signals, as a worker of a killed master would.
        let script = "trap '' TERM HUP; sleep 60 & wait";
        let running = Running::start(0, &shell, &["-c", script], folder.path().join("log")).unwrap();
        let group = running.group();
        assert!(test_kill_process_group(group).is_ok());
        drop(running);
        let gone = || Ok(test_kill_process_group(group).is_err().then_some(()));
        crate::clock::wait_for("the group to end", std::time::Duration::from_secs(5), gone).unwrap();
    }
}
