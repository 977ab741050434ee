//! The CPU time that a program has used, as the kernel counts it, for a whole process group.
//!
//! The sum of both parts is exact on Linux; how it is divided between user and system is sampled at the clock tick, so
//! the split is good to about a hundredth of the interval.

use std::fs;
use std::ops::Sub;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Pid;

/// CPU time since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    /// In the program itself.
    pub(crate) user: Duration,
    /// In the kernel, on its behalf.
    pub(crate) system: Duration,
}

impl CpuTime {
    /// What the group, the head and all its children, has used so far. A child that ended before is counted by the
    /// parent that waited for it.
    pub(crate) fn of_group(group: Pid) -> Result<Self> {
        let mut total = Self::default();
        let mut members = 0;
        for entry in fs::read_dir("/proc").context("cannot read /proc")? {
            let path = entry?.path().join("stat");
            // A process may end between the listing and the reading.
            let Ok(line) = fs::read_to_string(path) else { continue };
            if let Some(stat) = parse(&line).filter(|stat| stat.group == group.as_raw_nonzero().get()) {
                total.user += ticks(stat.user);
                total.system += ticks(stat.system);
                members += 1;
            }
        }
        ensure!(members > 0, "no process is left in group {}", group.as_raw_nonzero());
        Ok(total)
    }

    /// Both parts.
    pub(crate) fn total(self) -> Duration {
        self.user + self.system
    }
}

impl Sub for CpuTime {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

/// What is needed of `/proc/PID/stat`: proc_pid_stat(5).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    group: i32,
    user: u64,
    system: u64,
}

/// The name in brackets may hold blanks and brackets itself, so the fields are counted from the last bracket.
fn parse(line: &str) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(')')?;
    let fields: Vec<_> = rest.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Stat {
        group: fields.get(2)?.parse().ok()?,
        user: number(11)? + number(13)?,
        system: number(12)? + number(14)?,
    })
}

fn ticks(count: u64) -> Duration {
    Duration::from_nanos(count.saturating_mul(1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_fields_of_a_process_with_an_odd_name() {
        let line = "42 (a) b (c)) S 1 40 40 0 -1 4194304 98 0 0 0 700 30 5 6 20 0 1 0 101648";
        assert_eq!(parse(line), Some(Stat { group: 40, user: 705, system: 36 }));
        assert_eq!(parse("42 (cut off) S 1"), None);
    }

    #[test]
    fn this_group_has_used_some_time() {
        let group = rustix::process::getpgrp();
        let before = CpuTime::of_group(group).unwrap();
        let mut sum = 0_u64;
        while (CpuTime::of_group(group).unwrap() - before).total() < Duration::from_millis(20) {
            sum = std::hint::black_box((0..100_000_u64).fold(sum, u64::wrapping_add));
        }
    }
}
