//! Two hundred scenarios that nobody has thought of, each in two acts: first faults, in which nothing wrong may happen,
//! then calm, in which goodput has to come back, in whatever order the queue is kept.
//!
//! A failure prints the scenario and the command that plays it again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use tidegate_sim::{Control, play};
use tidegate_workload::{Purpose, Random, Report, Scenario, Totals, Window};

const SCENARIOS: u64 = 200;
/// The faults end at 20 s; ten seconds later everything has to be as before.
const CALM: Window = Window { from: Duration::from_secs(30), until: Duration::from_secs(40) };

/// Chooses what a scenario is made of.
struct Dice(Random);

impl Dice {
    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.0.below(of.len())]
    }

    fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.0.uniform()
    }

    fn perhaps(&mut self, share: f64) -> bool {
        self.0.uniform() < share
    }
}

/// A scenario as a file, so that a failure can be looked at and played with `tidegate simulate`.
fn scenario(seed: u64) -> String {
    let mut dice = Dice(Random::stream(seed, Purpose::Mix, 0));
    let workers = 1 + dice.0.below(20);
    let millis = dice.between(8.0, 50.0).round();
    // Sometimes it asks another, as fast as itself or faster, and keeps its worker meanwhile.
    let behind = dice.perhaps(0.25).then(|| dice.between(1.0, millis).round());
    let capacity = workers as f64 * 1000.0 / (millis + behind.unwrap_or(0.0));
    let mut text = format!("story = \"Swarm {seed}.\"\nduration = \"40s\"\nseed = {seed}\n");
    if dice.perhaps(0.2) {
        writeln!(text, "gateways = {}", 1 + dice.0.below(workers.min(4))).unwrap();
    }
    let time = match dice.one(&["constant", "exponential", "lognormal"]) {
        "constant" => format!("\"{millis}ms\""),
        "exponential" => format!("{{ exponential = \"{millis}ms\" }}"),
        _ => format!("{{ lognormal = {{ mean = \"{millis}ms\", sigma = 0.7 }} }}"),
    };
    writeln!(text, "[[service]]\nworkers = {workers}\ntime = {time}\ncancels_work = {}", dice.perhaps(0.3))
        .unwrap();
    if dice.perhaps(0.3) {
        writeln!(text, "queue = {}", dice.0.below(300)).unwrap();
    }
    if behind.is_some() {
        text.push_str("name = \"service\"\ncalls = [\"behind\"]\n");
    }
    faults(&mut text, &mut dice, workers);
    if let Some(millis) = behind {
        writeln!(text, "[[service]]\nname = \"behind\"\nworkers = {workers}\ntime = \"{millis}ms\"").unwrap();
    }
    clients(&mut text, &mut dice, capacity);
    policy(&mut text, &mut dice, workers, millis);
    text
}

fn faults(text: &mut String, dice: &mut Dice, workers: usize) {
    text.push_str("change = [\n");
    for _ in 0..dice.0.below(4) {
        let at = dice.between(2.0, 14.0);
        match dice.one(&["pause", "slow", "fewer"]) {
            "pause" => {
                writeln!(text, "  {{ at = \"{at:.2}s\", pause = \"{:.2}s\" }},", dice.between(0.1, 4.0))
            }
            "slow" => writeln!(text, "  {{ at = \"{at:.2}s\", slowdown = {:.1} }},", dice.between(1.5, 30.0)),
            _ => writeln!(text, "  {{ at = \"{at:.2}s\", workers = {} }},", 1 + dice.0.below(workers)),
        }
        .unwrap();
    }
    writeln!(text, "  {{ at = \"20s\", slowdown = 1.0 }},\n  {{ at = \"20s\", workers = {workers} }},\n]")
        .unwrap();
}

fn clients(text: &mut String, dice: &mut Dice, capacity: f64) {
    let crowds = 1 + dice.0.below(3);
    // In calm, seven tenths of what the service can do, whoever it comes from.
    let calm = 0.7 * capacity / crowds as f64;
    for crowd in 0..crowds {
        let flood = calm * dice.between(0.5, 12.0);
        let from = dice.between(3.0, 12.0);
        asking(text, dice);
        write!(
            text,
            "name = \"crowd {crowd}\"\nrate = \"{calm:.2}/s\"\nspacing = \"{}\"\n\
             change = [{{ at = \"{from:.2}s\", rate = \"{flood:.2}/s\", ramp = {} }}, {{ at = \"20s\", rate = \"{calm:.2}/s\" }}]\n\
             timeout = \"1500ms\"\n\
             retry = {{ attempts = {}, backoff = \"{}\", base = \"{:.0}ms\", honours_retry_after = {}, marked = {}{} }}\n",
            dice.one(&["even", "poisson"]),
            dice.perhaps(0.5),
            1 + dice.0.below(4),
            dice.one(&["none", "fixed", "exponential", "full-jitter"]),
            dice.between(10.0, 500.0),
            dice.perhaps(0.5),
            dice.perhaps(0.5),
            dice.one(&[
                "",
                "",
                ", budget_percent = 10",
                ", budget_percent = 10, callers = 300",
                ", breaker_percent = 10, callers = 30",
            ]),
        )
        .unwrap();
    }
}

/// Who they are, and what they say of themselves.
fn asking(text: &mut String, dice: &mut Dice) {
    let class = dice.one(&["critical", "default", "background", "unheard-of"]);
    let tenant = dice.one(&["ann", "ben", "cleo"]);
    let (tenants, path) = (dice.one(&["1", "1", "3", "2000"]), dice.one(&["/", "/", "/wide"]));
    let (identified, tells) = (dice.perhaps(0.5), dice.perhaps(0.5));
    write!(
        text,
        "[[clients]]\nclass = \"{class}\"\ntenant = \"{tenant}\"\ntenants = {tenants}\npath = \"{path}\"\n\
         identified = {identified}\ntells_deadline = {tells}\n",
    )
    .unwrap();
}

fn policy(text: &mut String, dice: &mut Dice, workers: usize, millis: f64) {
    // Enough slots for all workers, also if each request takes two, and a budget that chance alone seldom uses up and that
    // leaves time to be served.
    let wide = 1 + usize::from(dice.perhaps(0.3));
    let limit = wide * (workers + dice.0.below(workers + 1));
    let wait = dice.between(12.0 * millis, 1000.0);
    write!(
        text,
        "[[policy]]\nname = \"tidegate\"\ntext = '''\n[[upstream]]\nname = \"service\"\n\
         endpoints = [\"http://127.0.0.1:8103\"]\ntimeout = \"{}ms\"\ncancels_work = {}\n\
         [upstream.concurrency]\nlimit = {limit}\n[upstream.queue]\nwait = \"{wait:.0}ms\"\ndiscipline = \"{}\"\n",
        dice.one(&["800", "1400", "5000"]),
        // To say that it does what it does not would be a wrong policy.
        text.contains("cancels_work = true") && dice.perhaps(0.7),
        dice.one(&["forecast", "forecast", "forecast", "fifo", "adaptive-lifo", "codel"]),
    )
    .unwrap();
    if dice.perhaps(0.3) {
        text.push_str("[upstream.retries]\ndamp = false\n");
    }
    if text.contains("name = \"behind\"") && dice.perhaps(0.5) {
        write!(
            text,
            "[[upstream]]\nname = \"behind\"\nendpoints = [\"http://127.0.0.1:8103\"]\ntimeout = \"1s\"\n\
             [upstream.concurrency]\nlimit = {workers}\n[upstream.queue]\nwait = \"{wait:.0}ms\"\n"
        )
        .unwrap();
    }
    if dice.perhaps(0.7) {
        let floors = [0.0, 0.0, dice.between(0.0, 0.2), dice.between(0.0, 0.3)];
        for (name, floor) in ["critical", "default", "lesser", "background"].iter().zip(floors) {
            writeln!(text, "[[priority]]\nname = \"{name}\"\nfloor = {floor:.2}").unwrap();
        }
    }
    text.push_str("[[tenant]]\nname = \"ann\"\nweight = 3\n");
    for (path, cost) in [("/wide", wide), ("/*", 1)] {
        writeln!(
            text,
            "[[route]]\nupstream = \"service\"\npath = \"{path}\"\ncost = {cost}\npriority = \"header:x-priority\"\n{}\n{}",
            dice.one(&["", "tenant = \"header:x-tenant\"", "tenant = \"client-ip\""]),
            dice.one(&["", "", "deadline = \"1200ms\""]),
        )
        .unwrap();
    }
    // Without a proxy to trust, nobody may claim more than the default.
    let trusted = dice.one(&["", "\"10.0.0.0/8\""]);
    writeln!(text, "[server]\ntrusted_proxies = [{trusted}]\n'''").unwrap();
}

/// Says whether goodput came back without any control, too.
fn check(seed: u64) -> Result<bool, String> {
    let text = scenario(seed);
    let scenario =
        Scenario::parse(&text, Path::new("swarm.toml")).map_err(|error| format!("{error}\n{text}"))?;
    let tell = |what: String| {
        format!("{what}\n\n{text}\nAgain: SWARM_SEED={seed} cargo test -p tidegate-sim --test swarm\n")
    };
    let mut by_itself = true;
    for control in Control::all(&scenario) {
        let report = play(&scenario, &control, seed).map_err(|error| tell(error.to_string()))?;
        safe(&report).map_err(tell)?;
        match control {
            Control::Nothing => by_itself = recovered(&report).is_ok(),
            Control::Policy(_) | Control::Model(..) => {
                recovered(&report).map_err(tell)?;
                let again = play(&scenario, &control, seed).map_err(|error| tell(error.to_string()))?;
                if again.to_json() != report.to_json() {
                    return Err(tell(format!("{}: the same seed gave another run", report.policy)));
                }
            }
            // Its wait budget is for calm, and is not what is looked at here.
            Control::BestStatic | Control::BestStaticBehind(_) => {}
        }
    }
    Ok(by_itself)
}

/// What must hold whatever happens. (What must hold at every moment is asserted by the engine itself.)
fn safe(report: &Report) -> Result<(), String> {
    for (name, totals) in [("all", &report.all)]
        .into_iter()
        .chain(report.classes.iter().map(|(name, totals)| (name.as_str(), totals)))
    {
        let Totals {
            offered, goodput, failed, attempts, left, broken, rejected, told, told_admitted, ..
        } = totals;
        let ended = goodput + left + broken + rejected.iter().sum::<u64>();
        let under_way = attempts.checked_sub(ended);
        if goodput + failed > *offered
            || under_way.is_none_or(|some| some > totals.pending())
            || told_admitted > told
        {
            return Err(format!("{}: the counts of {name} do not add up: {totals:?}", report.policy));
        }
    }
    Ok(())
}

fn recovered(report: &Report) -> Result<(), String> {
    let calm = report.series.sum(CALM);
    let share = calm.goodput as f64 / calm.offered.max(1) as f64;
    if share < 0.9 {
        let Totals { offered, goodput, .. } = report.all;
        return Err(format!(
            "{}: ten seconds after the faults {:.1} % of the requests have a useful answer ({goodput} of {offered} in all)",
            report.policy,
            share * 100.0
        ));
    }
    Ok(())
}

#[test]
fn nothing_wrong_happens_and_goodput_comes_back() {
    let seeds: Vec<u64> = match std::env::var("SWARM_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..SCENARIOS).collect(),
    };
    let results: Vec<Result<bool, String>> = std::thread::scope(|scope| {
        let halves = seeds.chunks(seeds.len().div_ceil(2));
        let threads: Vec<_> = halves
            .map(|seeds| scope.spawn(|| seeds.iter().map(|seed| check(*seed)).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let by_itself = results.iter().filter(|result| **result == Ok(true)).count();
    let failures: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(failures.is_empty(), "{} of {} failed; the first:\n{}", failures.len(), seeds.len(), failures[0]);
    // Otherwise the faults would be too mild to show anything.
    assert!(by_itself <= seeds.len() / 2 || seeds.len() == 1, "{by_itself} recover without any control");
}
