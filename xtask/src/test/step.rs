//! The steps of `cargo xtask test`: what each runs and why it is there.
//!
//! Every command here is one that a person can type; the step prints it first. The house rules (layers, tidy,
//! advisories) are tests of this crate and so part of the step `tests`.

use anyhow::Result;
use clap::ValueEnum;

use super::no_std;
use crate::packages;
use crate::workspace::{self, cargo};

/// One step. The order of the variants is the order of a full run: the quick ones that fail most often come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// Install the Debian packages that the tests call or read, when they are missing
    Install,
    /// cargo fmt --check
    Fmt,
    /// cargo clippy on everything, warnings are errors
    Clippy,
    /// cargo doc with private items, warnings are errors
    Doc,
    /// The engine linked into a program without std
    NoStd,
    /// cargo test: unit tests, wire tests, doctests, and the house rules (layers, tidy, advisories)
    Tests,
    /// The waiters of gate and flow under every interleaving, with loom
    Loom,
}

/// How a step ended that did not fail.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It ran and found nothing wrong.
    Passed,
    /// There was nothing to run, for this reason.
    Skipped(String),
}

impl Step {
    /// The name it is chosen by.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::Doc => "doc",
            Self::NoStd => "no-std",
            Self::Tests => "tests",
            Self::Loom => "loom",
        }
    }

    /// What it does.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Install => "install the Debian packages that the tests call or read, when they are missing",
            Self::Fmt => "check that the code is formatted",
            Self::Clippy => "lint everything; a warning is an error",
            Self::Doc => "build the documentation, private items too; a warning is an error",
            Self::NoStd => "link the engine into a program that has no std",
            Self::Tests => "run all tests: unit, wire, doctests, and the house rules",
            Self::Loom => "run the waiters of gate and flow under every interleaving of their threads",
        }
    }

    /// Why it is there.
    pub(crate) const fn why(self) -> &'static str {
        match self {
            Self::Install => "a fresh machine passes the same tests as an old one",
            Self::Fmt => "a diff shows what changed and nothing else",
            Self::Clippy => {
                "clippy.toml bans unbounded queues, clock reads and blocking sleeps; the lints ban guesses"
            }
            Self::Doc => "a broken link in a comment is a wrong comment",
            Self::NoStd => "without std the engine cannot read a clock, open a socket or start a thread",
            Self::Tests => "the behaviour is what the tests say",
            Self::Loom => "a lost wake-up shows once in a million runs, and in every loom run",
        }
    }

    /// Do it.
    pub(crate) fn run(self) -> Result<Outcome> {
        match self {
            Self::Install => install(),
            Self::Fmt => fmt(),
            Self::Clippy => clippy(),
            Self::Doc => {
                let args = ["doc", "--workspace", "--no-deps", "--all-features", "--document-private-items"];
                passed(workspace::run(cargo(args).env("RUSTDOCFLAGS", "-D warnings")))
            }
            Self::NoStd => passed(no_std::run()),
            Self::Tests => tests(),
            Self::Loom => loom(),
        }
    }
}

fn passed(result: Result<()>) -> Result<Outcome> {
    result.map(|()| Outcome::Passed)
}

fn install() -> Result<Outcome> {
    for program in packages::FOR_TESTS {
        let path = packages::ensure(*program)?;
        println!("    {}: {}", program.command, path.display());
    }
    for file in packages::FILES_FOR_TESTS {
        let path = packages::ensure_file(*file)?;
        println!("    {}: {}", file.package, path.display());
    }
    Ok(Outcome::Passed)
}

/// All results are wanted, so one failing test binary does not keep the others from running. What is in features that are
/// off by default has tests too.
fn tests() -> Result<Outcome> {
    passed(workspace::run(&mut cargo(["test", "--workspace", "--all-features", "--no-fail-fast"])))
}

fn clippy() -> Result<Outcome> {
    let all = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    workspace::run(&mut cargo(all))?;
    // Without their features some crates are others, which nothing else here builds.
    let bare = ["clippy", "--workspace", "--lib", "--bins", "--no-default-features", "--", "-D", "warnings"];
    passed(workspace::run(&mut cargo(bare)))
}

/// The probe lies outside the workspace, so it is formatted on its own.
fn fmt() -> Result<Outcome> {
    workspace::run(&mut cargo(["fmt", "--all", "--check"]))?;
    passed(workspace::run(&mut cargo(["fmt", "--manifest-path", no_std::MANIFEST, "--check"])))
}

/// Loom replaces the atomics and the scheduler at compile time, which changes every crate below it: hence a target
/// directory of its own. Three preemptions a schedule find nearly every bug and keep the run bounded.
fn loom() -> Result<Outcome> {
    const CRATES: [&str; 2] = ["tower", "flow"];
    for name in CRATES {
        let suite = format!("crates/{name}/tests/loom.rs");
        if !workspace::root().join(&suite).exists() {
            return Ok(Outcome::Skipped(format!("{suite} does not exist yet")));
        }
        let package = format!("tidegate-{name}");
        let mut command = cargo(["test", "-p", &package, "--release", "--test", "loom"]);
        command
            .arg("--target-dir")
            .arg(workspace::target_dir().join("loom"))
            .env("RUSTFLAGS", "--cfg tidegate_loom");
        if std::env::var_os("LOOM_MAX_PREEMPTIONS").is_none() {
            command.env("LOOM_MAX_PREEMPTIONS", "3");
        }
        workspace::run(&mut command)?;
    }
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_chosen_by_the_name_it_prints() {
        for step in Step::value_variants() {
            assert_eq!(Step::from_str(step.name(), false), Ok(*step));
        }
    }
}
