//! Clients with tidegate's own client: the very state machine that is in the library, once for each of them.
//!
//! A call has one deadline for all its tries, which is what clients with a patience for each try do not have. Nothing is
//! sent here, and nothing is decided: all that is the engine's [`Caller`].

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_engine::{Advice, Caller, CallerPolicy, Ended, Pause, Reply, Sent, Step, Timestamp};

use crate::random::Random;
use crate::retry::Next;

/// So many callers, none of which knows of the others.
#[derive(Debug)]
pub struct Resilient {
    callers: Vec<Caller>,
}

/// One call: whose it is, and how far it is.
#[derive(Debug)]
pub struct Course {
    caller: usize,
    deadline: Timestamp,
    sent: Option<Sent>,
    pause: Option<Pause>,
}

impl Course {
    /// Until when somebody waits for the answer.
    pub const fn deadline(&self) -> Timestamp {
        self.deadline
    }
}

impl Resilient {
    /// Callers who have not asked yet, all under the same policy.
    pub fn new(policy: &CallerPolicy, callers: NonZeroU32) -> Self {
        let callers = (0..callers.get()).map(|_| Caller::new(policy.clone())).collect();
        Self { callers }
    }

    /// One of them, drawn by lot, wants something, and waits for so long.
    pub fn begin(&mut self, now: Timestamp, patience: Option<Duration>, random: &mut Random) -> Course {
        let deadline = patience.map_or(Timestamp::MAX, |patience| now.after(patience));
        Course { caller: random.below(self.callers.len()), deadline, sent: None, pause: None }
    }

    /// It is time for the call's next try. Whether it is sent.
    pub fn send(&mut self, now: Timestamp, course: &mut Course, random: &mut Random) -> bool {
        let (caller, deadline) = (&mut self.callers[course.caller], course.deadline);
        let sent = match course.pause.take() {
            Some(pause) => caller.resume(now, pause, deadline, random.bits()),
            None => caller.arrive(now, deadline, random.bits()).and_then(|()| caller.send(now, deadline)),
        };
        course.sent = sent.ok();
        course.sent.is_some()
    }

    /// The try under way has ended like this.
    pub fn ended(
        &mut self,
        now: Timestamp,
        course: &mut Course,
        (reply, advice): (Reply, Advice),
        random: &mut Random,
    ) -> Next {
        let Some(sent) = course.sent.take() else { return Next::GiveUp };
        let ended = Ended { reply, advice, repeatable: true, deadline: course.deadline };
        match self.callers[course.caller].answered(now, sent, ended, random.bits()) {
            Step::Again(pause) => {
                let after = pause.until().since(now);
                course.pause = Some(pause);
                Next::Again { after, told: matches!(advice, Advice::After(_)) }
            }
            Step::Stop(_) => Next::GiveUp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    const SECOND: Duration = Duration::from_secs(1);

    /// What one of them has spent, the others have not.
    #[test]
    fn each_has_a_budget_of_its_own() {
        let mut random = Random::stream(1, Purpose::Clients, 0);
        let policy = CallerPolicy { breaker: None, throttle: None, ..CallerPolicy::careful(SECOND) };
        let mut many = Resilient::new(&policy, NonZeroU32::new(20).unwrap());
        let mut again = 0;
        for _ in 0..10_000 {
            let mut course = many.begin(Timestamp::ZERO, Some(SECOND), &mut random);
            assert!(many.send(Timestamp::ZERO, &mut course, &mut random));
            let unavailable = (Reply::Unavailable, Advice::Unsaid);
            let next = many.ended(Timestamp::ZERO, &mut course, unavailable, &mut random);
            again += u32::from(next != Next::GiveUp);
        }
        assert_eq!(again, 20 * policy.budget.burst);
    }

    /// The patience is for the call and not for each try.
    #[test]
    fn a_call_has_one_deadline() {
        let mut random = Random::stream(1, Purpose::Clients, 0);
        let mut one = Resilient::new(&CallerPolicy::careful(SECOND), NonZeroU32::MIN);
        let mut course = one.begin(Timestamp::ZERO, Some(SECOND), &mut random);
        assert!(one.send(Timestamp::ZERO, &mut course, &mut random));
        let late = course.deadline();
        assert_eq!(late, Timestamp::from_millis(1_000));
        let next = one.ended(late, &mut course, (Reply::TimedOut, Advice::Unsaid), &mut random);
        assert_eq!(next, Next::GiveUp);
    }
}
