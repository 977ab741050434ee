//! What a caller does, and what holds whatever happens to it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use tidegate_engine::*;

const SECOND: Duration = Duration::from_secs(1);
const NEVER: Timestamp = Timestamp::MAX;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn careful() -> CallerPolicy {
    CallerPolicy::careful(SECOND)
}

/// Retries and nothing else.
fn plain(percent: u32, burst: u32) -> CallerPolicy {
    let budget = BudgetPolicy { percent, burst, per_minute: 0 };
    CallerPolicy { budget, breaker: None, throttle: None, ..careful() }
}

fn ended(reply: Reply, advice: Advice, deadline: Timestamp) -> Ended {
    Ended { reply, advice, repeatable: true, deadline }
}

/// One call with one answer.
fn one(caller: &mut Caller, now: u64, reply: Reply) -> Result<Step, Declined> {
    caller.arrive(at(now), NEVER, u64::MAX)?;
    let sent = caller.send(at(now), NEVER)?;
    Ok(caller.answered(at(now), sent, ended(reply, Advice::Unsaid, NEVER), 0))
}

fn stopped(step: Step) -> Stop {
    match step {
        Step::Stop(stop) => stop,
        Step::Again(pause) => panic!("it is tried again at {:?}", pause.until()),
    }
}

fn again(step: Step) -> Pause {
    match step {
        Step::Again(pause) => pause,
        Step::Stop(stop) => panic!("{stop:?}"),
    }
}

/// H6, H7, H8. What is not tried again, and why.
#[test]
fn what_is_not_tried_again() {
    let unavailable = ended(Reply::Unavailable, Advice::Unsaid, NEVER);
    for (end, reason) in [
        (Ended { reply: Reply::Success, ..unavailable }, Stop::Answered),
        (Ended { reply: Reply::Failed, ..unavailable }, Stop::Answered),
        (Ended { repeatable: false, ..unavailable }, Stop::NotRepeatable),
        (Ended { advice: Advice::Never, ..unavailable }, Stop::Told),
        (Ended { deadline: at(100), ..unavailable }, Stop::Deadline),
        (Ended { advice: Advice::After(SECOND), deadline: at(1_000), ..unavailable }, Stop::Deadline),
        (Ended { advice: Advice::After(Duration::MAX), ..unavailable }, Stop::Deadline),
    ] {
        let mut caller = Caller::new(plain(10, 10));
        let sent = caller.send(at(0), NEVER).unwrap();
        assert_eq!(stopped(caller.answered(at(0), sent, end, u64::MAX)), reason, "{end:?}");
        assert_eq!(caller.snapshot(at(0)).budget, 10, "nothing is paid for what is not done");
    }
}

#[test]
fn tries_are_counted_and_pauses_grow() {
    let mut caller = Caller::new(plain(10, 10));
    let mut sent = caller.send(at(0), NEVER).unwrap();
    for (number, longest) in [(1, 100), (2, 200)] {
        assert_eq!(sent.number(), number);
        let step = caller.answered(at(0), sent, ended(Reply::NoConnection, Advice::Unsaid, NEVER), u64::MAX);
        let pause = again(step);
        assert_eq!(pause.until(), at(longest));
        sent = caller.resume(at(0), pause, NEVER, 0).unwrap();
    }
    let step = caller.answered(at(0), sent, ended(Reply::NoConnection, Advice::Unsaid, NEVER), 0);
    assert_eq!(stopped(step), Stop::Attempts);
}

/// H10. Two hundred callers that are told two seconds: nobody comes earlier, and no tenth of a second has more than its
/// share and half of that again.
#[test]
fn those_who_are_told_the_same_come_back_spread() {
    let mut tenths = [0; 10];
    for number in 0..200_u64 {
        let mut caller = Caller::new(careful());
        let sent = caller.send(at(0), NEVER).unwrap();
        // Weyl's sequence stands in for chance.
        let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let told = Advice::After(2 * SECOND);
        let pause = again(caller.answered(at(0), sent, ended(Reply::Refused, told, NEVER), random));
        let late = pause.until().since(at(2_000));
        assert!(pause.until() >= at(2_000), "{:?}", pause.until());
        tenths[(late.as_millis() / 100) as usize] += 1;
    }
    assert!(tenths.iter().all(|count| (10..=30).contains(count)), "{tenths:?}");
}

/// H5. In an outage the budget drains, and then there is one retry for each ten seconds.
#[test]
fn a_full_outage_is_hardly_asked_more_than_once() {
    let mut caller = Caller::new(CallerPolicy { breaker: None, throttle: None, ..careful() });
    (0..1_000).for_each(|call| {
        let _step = one(&mut caller, call * 10, Reply::Success).unwrap();
    });
    let before = caller.snapshot(at(10_000)).counts;
    for call in 0..=1_000 {
        if let Step::Again(pause) = one(&mut caller, 10_000 + call * 10, Reply::Unavailable).unwrap() {
            let sent = caller.resume(at(10_000 + call * 10), pause, NEVER, 0).unwrap();
            caller.noted(at(10_000 + call * 10), sent, Reply::Unavailable);
        }
    }
    let after = caller.snapshot(at(20_000)).counts;
    let retries = after.retries - before.retries;
    assert_eq!(retries, 10 + 1, "what was saved up, and one for ten seconds");
    assert_eq!(after.sent - before.sent, 1_001 + retries);
}

/// envoy#30205. A hundred calls fail together: those whose retries still wait have paid for them.
#[test]
fn retries_that_wait_are_counted() {
    let mut caller = Caller::new(plain(10, 5));
    let sent: Vec<Sent> = (0..100).map(|_| caller.send(at(0), NEVER).unwrap()).collect();
    let steps = sent
        .into_iter()
        .map(|sent| caller.answered(at(0), sent, ended(Reply::Unavailable, Advice::Unsaid, NEVER), 0));
    assert_eq!(steps.filter(|step| matches!(step, Step::Again(_))).count(), 5);
}

#[test]
fn what_is_not_sent_is_given_back() {
    let mut caller = Caller::new(plain(0, 1));
    let pause = again(one(&mut caller, 0, Reply::Unavailable).unwrap());
    assert_eq!(caller.snapshot(at(0)).budget, 0);
    caller.give_up(at(0), pause);
    let pause = again(one(&mut caller, 0, Reply::Unavailable).unwrap());
    assert_eq!(caller.resume(at(50), pause, at(50), 0).unwrap_err(), Declined::Deadline);
    let snapshot = caller.snapshot(at(50));
    assert_eq!((snapshot.budget, snapshot.counts.given_up, snapshot.counts.retries), (1, 2, 2));
    assert_eq!(snapshot.counts.stopped(Stop::Declined), 1, "whoever gave up did not wait for an end");
    let pause = again(one(&mut caller, 50, Reply::Unavailable).unwrap());
    caller.decline(at(50), pause);
    let snapshot = caller.snapshot(at(50));
    assert_eq!((snapshot.budget, snapshot.counts.stopped(Stop::Declined)), (1, 2));
}

/// aws-sdk-go-v2#3550. After a night without a call there is a retry again.
#[test]
fn the_budget_refills_in_a_quiet_night() {
    let mut caller = Caller::new(CallerPolicy { breaker: None, throttle: None, ..careful() });
    while let Step::Again(_) = one(&mut caller, 0, Reply::Unavailable).unwrap() {}
    assert_eq!(caller.snapshot(at(9_999)).budget, 0);
    assert_eq!(caller.snapshot(at(8 * 3_600_000)).budget, 10);
    let _pause = again(one(&mut caller, 8 * 3_600_000, Reply::Unavailable).unwrap());
}

/// The breaker opens on 503 and on missing connections, and not on 429 or an error that is an answer.
#[test]
fn what_opens_the_breaker() {
    let unthrottled = || Caller::new(CallerPolicy { throttle: None, ..careful() });
    for (reply, opens) in [
        (Reply::Unavailable, true),
        (Reply::NoConnection, true),
        (Reply::Broken, true),
        (Reply::TimedOut, true),
        (Reply::Refused, false),
        (Reply::Failed, false),
        (Reply::Success, false),
    ] {
        let mut caller = unthrottled();
        let declined = (0..100).find_map(|call| one(&mut caller, call, reply).err());
        assert_eq!(matches!(declined, Some(Declined::BreakerOpen(_))), opens, "{reply:?}");
    }
}

/// H9. A half-open breaker whose probes are all cancelled lets others through at once.
#[test]
fn a_cancelled_probe_does_not_keep_it_shut() {
    let mut caller = Caller::new(careful());
    (0..5).for_each(|_| {
        let _step = one(&mut caller, 0, Reply::NoConnection).unwrap();
    });
    assert!(matches!(caller.arrive(at(100), NEVER, 0), Err(Declined::BreakerOpen(_))));
    for _ in 0..10 {
        let probes: Vec<Sent> = (0..3).map(|_| caller.send(at(300), NEVER).unwrap()).collect();
        assert!(matches!(caller.send(at(300), NEVER), Err(Declined::BreakerOpen(_))));
        probes.into_iter().for_each(|probe| caller.abandoned(at(300), probe));
    }
    (0..3).for_each(|_| {
        let _step = one(&mut caller, 300, Reply::Success).unwrap();
    });
    assert_eq!(caller.snapshot(at(300)).breaker, BreakerState::Closed);
}

/// An upstream that serves a quarter of what it is asked: the throttle comes to send twice what is served, and the breaker
/// stays closed, so that nothing of the quarter is lost.
#[test]
fn load_is_for_the_throttle_and_not_for_the_breaker() {
    let mut caller = Caller::new(CallerPolicy { attempts: NonZeroU32::MIN, ..careful() });
    let (mut sent, mut served) = (0_u32, 0_u32);
    for call in 0..60_000_u64 {
        let now = at(call);
        let random = call.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if caller.arrive(now, NEVER, random).is_err() {
            continue;
        }
        let try_now = caller.send(now, NEVER).unwrap();
        // The upstream has room for 250 a second: one each 4 ms, and none is saved up.
        let fits = u64::from(served) < call / 4;
        served = if fits { (call / 4) as u32 } else { served };
        let reply = if fits { Reply::Success } else { Reply::Unavailable };
        sent += 1;
        caller.noted(now, try_now, reply);
    }
    let counts = caller.snapshot(at(60_000)).counts;
    assert_eq!(counts.breaker_open, 0);
    let successes = counts.replied(Reply::Success);
    assert!(successes > 13_500, "{successes} of 15,000");
    let share = f64::from(sent) / successes as f64;
    assert!((1.8..2.4).contains(&share), "sent {share} times what was served");
}

/// Two hundred calls at once to an upstream that is slow and well: what is still under way has not been refused, so nobody
/// is held back.
#[test]
fn what_is_under_way_is_no_refusal() {
    let mut caller = Caller::new(careful());
    let sent: Vec<Sent> = (0..200)
        .map(|_| {
            // The number that is held back if anybody is.
            caller.arrive(at(0), NEVER, 0).unwrap();
            caller.send(at(0), NEVER).unwrap()
        })
        .collect();
    for sent in sent {
        let success = ended(Reply::Success, Advice::Unsaid, NEVER);
        assert_eq!(stopped(caller.answered(at(900), sent, success, 0)), Stop::Answered);
    }
    caller.arrive(at(900), NEVER, 0).unwrap();
}

/// An upstream that serves a quarter and takes a fifth of a second to say so: twice what is served is sent, as it is where
/// answers come at once.
#[test]
fn the_throttle_follows_answers_that_come_late() {
    let mut caller = Caller::new(CallerPolicy { attempts: NonZeroU32::MIN, ..careful() });
    let (mut sent, mut served) = (0_u32, 0_u32);
    let mut under_way: std::collections::VecDeque<(u64, Reply, Sent)> = std::collections::VecDeque::new();
    for call in 0..60_000_u64 {
        let now = at(call);
        while under_way.front().is_some_and(|(end, ..)| *end <= call) {
            let (_, reply, flight) = under_way.pop_front().unwrap();
            caller.noted(now, flight, reply);
        }
        if caller.arrive(now, NEVER, call.wrapping_mul(0x9e37_79b9_7f4a_7c15)).is_err() {
            continue;
        }
        let fits = u64::from(served) < call / 4;
        served = if fits { (call / 4) as u32 } else { served };
        let reply = if fits { Reply::Success } else { Reply::Unavailable };
        under_way.push_back((call + 200, reply, caller.send(now, NEVER).unwrap()));
        sent += 1;
    }
    let counts = caller.snapshot(at(60_000)).counts;
    assert_eq!(counts.breaker_open, 0);
    let successes = counts.replied(Reply::Success);
    assert!(successes > 13_500, "{successes} of 15,000");
    let share = f64::from(sent) / successes as f64;
    assert!((1.8..2.4).contains(&share), "sent {share} times what was served");
}

/// After an outage the throttle still holds nearly everything back, but not the probes that would see its end.
#[test]
fn probes_are_not_held_back() {
    let mut caller = Caller::new(careful());
    while one(&mut caller, 0, Reply::Unavailable).is_ok() {}
    assert_eq!(caller.snapshot(at(300)).throttle, 0.9);
    for _ in 0..3 {
        caller.arrive(at(300), NEVER, 0).unwrap();
        let probe = caller.send(at(300), NEVER).unwrap();
        caller.noted(at(300), probe, Reply::Success);
    }
    assert_eq!(caller.snapshot(at(300)).breaker, BreakerState::Closed);
    assert_eq!(caller.arrive(at(300), NEVER, 0), Err(Declined::Throttled));
}

fn hedging() -> CallerPolicy {
    let hedge = HedgePolicy { percentile: 95, least: Duration::from_millis(5) };
    CallerPolicy { hedge: Some(hedge), ..careful() }
}

#[test]
fn a_hedge_is_paid_for_and_is_the_only_one() {
    let mut caller = Caller::new(hedging());
    assert_eq!(caller.hedge_after(), None, "nothing is known");
    for call in 0..20 {
        let sent = caller.send(at(call * 100), NEVER).unwrap();
        let answered = ended(Reply::Success, Advice::Unsaid, NEVER);
        stopped(caller.answered(at(call * 100 + call), sent, answered, 0));
    }
    assert_eq!(caller.hedge_after(), Some(Duration::from_millis(18)));
    let budget = caller.snapshot(at(2_000)).budget;
    let mut first = caller.send(at(2_000), NEVER).unwrap();
    let mut second = caller.hedge(at(2_018), &mut first).unwrap();
    assert!(caller.hedge(at(2_018), &mut first).is_none() && caller.hedge(at(2_018), &mut second).is_none());
    assert_eq!((second.number(), caller.snapshot(at(2_018)).budget), (2, budget - 1));
    caller.abandoned(at(2_020), first);
    stopped(caller.answered(at(2_020), second, ended(Reply::Success, Advice::Unsaid, NEVER), 0));
    for spent in 1..budget {
        let mut first = caller.send(at(2_020), NEVER).unwrap();
        assert!(caller.hedge(at(2_020), &mut first).is_some(), "{spent}");
    }
    let mut first = caller.send(at(2_020), NEVER).unwrap();
    assert!(caller.hedge(at(2_020), &mut first).is_none(), "the budget is spent");
}

#[test]
fn nobody_hedges_against_an_upstream_that_is_not_well() {
    let mut caller = Caller::new(hedging());
    let mut first = caller.send(at(0), NEVER).unwrap();
    (0..5).for_each(|_| {
        let _step = one(&mut caller, 0, Reply::NoConnection).unwrap();
    });
    assert!(caller.hedge(at(10), &mut first).is_none());
    // Half open: probes are for those who need an answer.
    assert!(caller.hedge(at(300), &mut first).is_none());
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Call { deadline: Option<u16> },
    Answer { which: prop::sample::Index, reply: Reply, told: Option<u64>, repeatable: bool },
    Resume(prop::sample::Index),
    GiveUp(prop::sample::Index),
    Abandon(prop::sample::Index),
    Hedge(prop::sample::Index),
}

fn operations() -> impl Strategy<Value = Vec<(u16, u64, Operation)>> {
    let index = any::<prop::sample::Index>;
    let reply = prop::sample::select(Reply::ALL.to_vec()).prop_map(|(reply, _)| reply);
    let told = prop::option::of(prop_oneof![4 => 0..5_000_u64, 1 => any::<u64>()]);
    let operation = prop_oneof![
        6 => prop::option::of(0..5_000_u16).prop_map(|deadline| Operation::Call { deadline }),
        6 => (index(), reply, told, any::<bool>()).prop_map(|(which, reply, told, repeatable)| {
            Operation::Answer { which, reply, told, repeatable }
        }),
        3 => index().prop_map(Operation::Resume),
        1 => index().prop_map(Operation::GiveUp),
        1 => index().prop_map(Operation::Abandon),
        1 => index().prop_map(Operation::Hedge),
    ];
    prop::collection::vec((0..300_u16, any::<u64>(), operation), 1..300)
}

/// A driver that does to a caller whatever it is told, and keeps its own books.
struct Driver {
    caller: Caller,
    budget: BudgetPolicy,
    now: Timestamp,
    sent: Vec<(Sent, Timestamp)>,
    pauses: Vec<(Pause, Timestamp)>,
    successes: u64,
    /// Retries and hedges, less what was given back.
    extra: u64,
}

impl Driver {
    fn new() -> Self {
        let policy = CallerPolicy { attempts: NonZeroU32::new(4).unwrap(), ..hedging() };
        Self {
            budget: policy.budget,
            caller: Caller::new(policy),
            now: Timestamp::ZERO,
            sent: Vec::new(),
            pauses: Vec::new(),
            successes: 0,
            extra: 0,
        }
    }

    fn apply(&mut self, operation: Operation, random: u64) {
        match operation {
            Operation::Call { deadline } => {
                let deadline =
                    deadline.map_or(NEVER, |millis| self.now.after(Duration::from_millis(millis.into())));
                if self.caller.arrive(self.now, deadline, random).is_ok()
                    && let Ok(sent) = self.caller.send(self.now, deadline)
                {
                    assert!(self.now < deadline);
                    self.sent.push((sent, deadline));
                }
            }
            Operation::Answer { which, reply, told, repeatable } if !self.sent.is_empty() => {
                let (sent, deadline) = self.sent.swap_remove(which.index(self.sent.len()));
                self.answer(sent, deadline, reply, told, repeatable, random);
            }
            Operation::Resume(which) if !self.pauses.is_empty() => {
                let (pause, deadline) = self.pauses.swap_remove(which.index(self.pauses.len()));
                self.now = self.now.max(pause.until());
                match self.caller.resume(self.now, pause, deadline, random) {
                    Ok(sent) => self.sent.push((sent, deadline)),
                    Err(_) => self.extra -= 1,
                }
            }
            Operation::GiveUp(which) if !self.pauses.is_empty() => {
                let (pause, _) = self.pauses.swap_remove(which.index(self.pauses.len()));
                self.caller.give_up(self.now, pause);
                self.extra -= 1;
            }
            Operation::Abandon(which) if !self.sent.is_empty() => {
                let (sent, _) = self.sent.swap_remove(which.index(self.sent.len()));
                self.caller.abandoned(self.now, sent);
            }
            Operation::Hedge(which) if !self.sent.is_empty() => {
                let at = which.index(self.sent.len());
                let (first, deadline) = &mut self.sent[at];
                let deadline = *deadline;
                if let Some(second) = self.caller.hedge(self.now, first) {
                    self.extra += 1;
                    self.sent.push((second, deadline));
                }
            }
            _ => {}
        }
    }

    fn answer(
        &mut self,
        sent: Sent,
        deadline: Timestamp,
        reply: Reply,
        told: Option<u64>,
        repeatable: bool,
        random: u64,
    ) {
        let number = sent.number();
        let told = told.map(Duration::from_millis);
        let advice = told.map_or(Advice::Unsaid, Advice::After);
        self.successes += u64::from(reply == Reply::Success);
        let end = Ended { reply, advice, repeatable, deadline };
        if let Step::Again(pause) = self.caller.answered(self.now, sent, end, random) {
            assert!(repeatable && reply.is_passing() && number < 4);
            assert!(pause.until() < deadline, "it would come too late");
            assert!(
                pause.until() >= self.now.after(told.unwrap_or_default()),
                "it comes before it was told to"
            );
            self.extra += 1;
            self.pauses.push((pause, deadline));
        }
    }

    /// What may have been spent since the beginning, to a thousandth each for rounding.
    fn check(&mut self) {
        let earned = self.successes * u64::from(self.budget.percent) * 10
            + u64::from(self.budget.burst) * 1_000
            + self.now.as_nanos() / 1_000_000 * u64::from(self.budget.per_minute) / 60
            + 1;
        assert!(self.extra * 1_000 <= earned, "{} retries, {earned} thousandths earned", self.extra);
        let snapshot = self.caller.snapshot(self.now);
        assert!((0.0..=0.9).contains(&snapshot.throttle));
        let counts = snapshot.counts;
        let under_way = self.sent.len() as u64;
        assert_eq!(counts.sent, under_way + counts.abandoned + counts.replies.iter().sum::<u64>());
        assert_eq!(counts.retries + counts.hedges, self.extra + counts.given_up);
    }
}

/// One call as a driver makes it: tries that fail, a second beside the one under way, and which of the two ends first.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Hedge,
    FirstFails,
    LatestFails,
    FirstIsLeft,
}

/// How many tries, and how many hedges, such a call has become.
fn turns_of_a_call(caller: &mut Caller, attempts: u32, turns: &[Turn]) -> (u32, u32) {
    let mut under_way = vec![caller.send(at(0), NEVER).unwrap()];
    let (mut sends, mut hedges) = (1, 0);
    for turn in turns {
        let ended = match turn {
            Turn::Hedge => {
                let second = caller.hedge(at(0), under_way.last_mut().unwrap());
                hedges += u32::from(second.is_some());
                sends += u32::from(second.is_some());
                under_way.extend(second);
                continue;
            }
            Turn::FirstIsLeft if under_way.len() == 1 => continue,
            Turn::FirstIsLeft => {
                caller.abandoned(at(0), under_way.remove(0));
                continue;
            }
            Turn::FirstFails => under_way.remove(0),
            Turn::LatestFails => under_way.pop().unwrap(),
        };
        if !under_way.is_empty() {
            caller.noted(at(0), ended, Reply::Unavailable);
            continue;
        }
        match caller.answered(at(0), ended, self::ended(Reply::Unavailable, Advice::Unsaid, NEVER), 0) {
            Step::Again(pause) => {
                assert_eq!(pause.failures(), sends, "each try counts");
                under_way.push(caller.resume(at(0), pause, NEVER, 0).unwrap());
                sends += 1;
                assert_eq!(under_way[0].number(), sends);
            }
            Step::Stop(stop) => {
                assert!(stop == Stop::Attempts && sends == attempts, "{stop:?} after {sends}");
                break;
            }
        }
    }
    (sends, hedges)
}

proptest! {
    /// H5. A hedge is one of the tries of its call, whichever of the two ends first.
    #[test]
    fn a_call_has_its_tries_and_one_hedge(
        attempts in 1..6_u32,
        turns in prop::collection::vec(
            prop::sample::select(vec![Turn::Hedge, Turn::FirstFails, Turn::LatestFails, Turn::FirstIsLeft]),
            0..20,
        ),
    ) {
        let budget = BudgetPolicy { percent: 100, burst: 1_000, per_minute: 0 };
        let attempts = NonZeroU32::new(attempts).unwrap();
        let mut caller =
            Caller::new(CallerPolicy { attempts, budget, breaker: None, throttle: None, ..hedging() });
        let (sends, hedges) = turns_of_a_call(&mut caller, attempts.get(), &turns);
        prop_assert!(sends <= attempts.get() && hedges <= 1, "{sends} tries, {hedges} hedges");
    }

    #[test]
    fn retries_are_paid_for_in_time_and_never_early(operations in operations()) {
        let mut driver = Driver::new();
        for (passed, random, operation) in operations {
            driver.now = driver.now.after(Duration::from_millis(passed.into()));
            driver.apply(operation, random);
            driver.check();
        }
        // Whatever has happened: when all of it is over, somebody gets through.
        let later = driver.now.after(Duration::from_secs(60));
        driver.sent.clear();
        prop_assert!((0..100).any(|_| driver.caller.arrive(later, NEVER, u64::MAX).is_ok()));
        prop_assert!(driver.caller.send(later, NEVER).is_ok());
    }

    /// Every pause is between nothing and the bound, and the bound doubles to the cap.
    #[test]
    fn a_pause_is_within_its_bounds(
        base in any::<u64>(), cap in any::<u64>(), failures in any::<u32>(), random in any::<u64>(),
    ) {
        let (base, cap) = (Duration::from_nanos(base), Duration::from_nanos(cap));
        let bound = Backoff::Exponential { base, cap }.wait(failures, 0);
        let wait = Backoff::FullJitter { base, cap }.wait(failures, random);
        prop_assert!(wait <= bound && bound <= cap);
        prop_assert_eq!(Backoff::FullJitter { base, cap }.wait(failures, u64::MAX), bound);
        let next = Backoff::Exponential { base, cap }.wait(failures.saturating_add(1), 0);
        prop_assert!(next >= bound);
    }
}
