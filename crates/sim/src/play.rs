//! Plays runs, one alone or many side by side.

use std::ops::Range;
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

/// So many runs are played for each thread before their reports, each of a megabyte, are added up.
const WAVE: usize = 4;

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
    let threads = threads.clamp(1, jobs.max(1));
    let played = AtomicUsize::new(0);
    let run = |job: usize| {
        let seed = scenario.seed.wrapping_add((job % runs) as u64);
        let report = play(scenario, &controls[job / runs], seed);
        progress(played.fetch_add(1, Relaxed) + 1, jobs);
        report
    };
    let mut sums: Vec<Report> = Vec::with_capacity(controls.len());
    let mut done = 0;
    while done < jobs {
        let wave = done..jobs.min(done + threads * WAVE);
        for (job, report) in wave.clone().zip(side_by_side(wave.clone(), threads, &run)) {
            let report = report?;
            match sums.get_mut(job / runs) {
                Some(sum) => sum.add(&report),
                None => sums.push(report),
            }
        }
        done = wave.end;
    }
    Ok(sums)
}

/// Runs jobs on so many threads and gives their results in the order of the jobs.
fn side_by_side<T: Send>(jobs: Range<usize>, threads: usize, run: &(impl Fn(usize) -> T + Sync)) -> Vec<T> {
    let next = AtomicUsize::new(jobs.start);
    let results = Mutex::new(Vec::with_capacity(jobs.len()));
    let lock = || results.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let job = next.fetch_add(1, Relaxed);
                    if job >= jobs.end {
                        return;
                    }
                    let result = run(job);
                    lock().push((job, result));
                }
            });
        }
    });
    let mut results = std::mem::take(&mut *lock());
    results.sort_by_key(|(job, _)| *job);
    results.into_iter().map(|(_, result)| result).collect()
}
