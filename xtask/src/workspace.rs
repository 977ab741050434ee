//! Where the repository lies and how its cargo is called.
//!
//! Not a model of the workspace: which crate may use which is kept by `tests/layers`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The root of the repository: the folder above this crate.
///
/// Cargo names the crate's folder when it runs us; the path from build time would be wrong for a second checkout that
/// shares a target directory with the first.
pub(crate) fn root() -> PathBuf {
    let xtask =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| OsString::from(env!("CARGO_MANIFEST_DIR")));
    Path::new(&xtask).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Where builds go: what the caller set, else `target/`.
pub(crate) fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => std::path::absolute(&dir).unwrap_or_else(|_| PathBuf::from(dir)),
        None => root().join("target"),
    }
}

/// A call of the cargo that runs us, from the root, without standard input.
pub(crate) fn cargo<I, S>(args: I) -> Command
where
    I: IntoIterator<Item = S>,
    S: AsRef<std::ffi::OsStr>,
{
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    // Absolute, because the child starts in another folder than we did.
    command.current_dir(root()).env("CARGO_TARGET_DIR", target_dir()).stdin(Stdio::null()).args(args);
    command
}

/// Say what is run, run it, and fail when it fails. Its output goes straight through; what is said goes where cargo says
/// what it does, to standard error, so that standard output holds results only.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("    $ {}", shown(command));
    let status = command.status().with_context(|| format!("cannot start {}", name(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", shown(command));
    }
    Ok(())
}

/// The command as a person would type it, with the variables that matter.
pub(crate) fn shown(command: &Command) -> String {
    let mut words = Vec::new();
    for (key, value) in command.get_envs() {
        if let Some(value) = value.filter(|_| key != "CARGO_TARGET_DIR") {
            words.push(format!("{}={:?}", key.to_string_lossy(), value.to_string_lossy()));
        }
    }
    words.push(name(command));
    words.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    words.join(" ")
}

fn name(command: &Command) -> String {
    let program = Path::new(command.get_program());
    program.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("Cargo.lock").is_file());
        assert!(root().join("xtask/src/main.rs").is_file());
    }

    #[test]
    fn a_command_is_shown_as_it_is_typed() {
        let command = cargo(["doc", "--no-deps"]);
        let mut strict = cargo(["doc"]);
        strict.env("RUSTDOCFLAGS", "-D warnings");
        assert!(shown(&command).ends_with("cargo doc --no-deps"), "{}", shown(&command));
        assert_eq!(shown(&strict), r#"RUSTDOCFLAGS="-D warnings" cargo doc"#);
    }
}
