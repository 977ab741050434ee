//! The resident memory of a process, as the kernel counts it.
//!
//! Socket buffers are the kernel's and not in it: this is what the program itself keeps.

use anyhow::{Context as _, Result};
use rustix::process::Pid;

/// Bytes of memory that the process holds.
pub(crate) fn of_process(process: Pid) -> Result<u64> {
    let path = format!("/proc/{}/status", process.as_raw_nonzero());
    let status = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    parse(&status).with_context(|| format!("no VmRSS in {path}"))
}

fn parse(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_kibibytes() {
        assert_eq!(parse("Name:\tx\nVmRSS:\t    2048 kB\nRssAnon:\t 1 kB\n"), Some(2 * 1024 * 1024));
        assert_eq!(parse("Name:\tkthread\n"), None);
    }

    #[test]
    fn this_process_has_memory() {
        assert!(of_process(rustix::process::getpid()).unwrap() > 0);
    }
}
