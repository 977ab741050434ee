//! Plays runs, one alone or many side by side.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use tidegate_workload::{Report, Scenario};

use crate::control::Control;
use crate::world::{TooMany, World};

/// Plays a scenario once.
pub fn play(scenario: &Scenario, control: &Control, seed: u64) -> Result<Report, TooMany> {
    World::new(scenario, control, seed).play()
}

/// How far it has come: runs played, and runs in all.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Plays a scenario against each of these, with each of its seeds, on so many threads, and adds up the runs of each.
/// What comes out does not depend on the number of threads.
pub fn play_all(
    scenario: &Scenario,
    controls: &[Control],
    threads: usize,
    progress: Progress<'_>,
) -> Result<Vec<Report>, TooMany> {
    let runs = scenario.runs as usize;
    let jobs = controls.len() * runs;
    let (next, played) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let reports: Mutex<Vec<Option<Result<Report, TooMany>>>> = Mutex::new(vec![None; jobs]);
    let lock = || reports.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.max(1)) {
            scope.spawn(|| {
                while let job @ 0.. = next.fetch_add(1, Relaxed)
                    && job < jobs
                {
                    let seed = scenario.seed.wrapping_add((job % runs) as u64);
                    let report = play(scenario, &controls[job / runs], seed);
                    lock()[job] = Some(report);
                    progress(played.fetch_add(1, Relaxed) + 1, jobs);
                }
            });
        }
    });
    let mut results = lock().drain(..).flatten().collect::<Vec<_>>().into_iter();
    let mut sums = Vec::with_capacity(controls.len());
    for _ in controls {
        let mut sum: Option<Report> = None;
        for report in results.by_ref().take(runs) {
            let report = report?;
            match &mut sum {
                Some(sum) => sum.add(&report),
                None => sum = Some(report),
            }
        }
        sums.extend(sum);
    }
    Ok(sums)
}
