//! Runs of the command to their end, and the files that they are given.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::gateway::{TIDEGATE, fresh_path};

/// A run of the command to its end.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// What it printed, of a run that was to succeed.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{}", self.err);
        serde_json::from_str(&self.out).unwrap()
    }
}

pub(crate) fn run(arguments: &[&str]) -> Ran {
    run_with_input(arguments, b"")
}

pub(crate) fn run_with_input(arguments: &[&str], input: &[u8]) -> Ran {
    let mut command = Command::new(TIDEGATE);
    command.args(arguments).env_remove("TIDEGATE_CONFIG");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that fails early reads nothing.
    let _ = stdin.write_all(input);
    drop(stdin);
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: status.code().unwrap(), out: text(stdout), err: text(stderr) }
}

/// A file, removed at the end.
pub(crate) struct File(PathBuf);

impl File {
    /// A policy or a scenario.
    pub(crate) fn with(text: &str) -> Self {
        Self::of_kind("toml", text)
    }

    pub(crate) fn of_kind(kind: &str, text: impl AsRef<[u8]>) -> Self {
        let path = fresh_path(kind);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
