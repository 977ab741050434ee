//! What a client does: asks, waits as long as it has patience, tries again or gives up.

use std::time::Duration;

use tidegate_engine::{Advice, Attempt, Reason, Rejection, Reply, Timestamp, whole_millis, whole_seconds};
use tidegate_workload::{Course, Failed, Hint, Next, Try};

use crate::agenda::Rank;
use crate::call::{Answer, Asked};
use crate::passage::{self, Says};
use crate::table::Key;
use crate::world::{Caller, Event, Task, World};

/// The shortest and the unit of `Retry-After`, which is in whole seconds.
const SECOND: Duration = Duration::from_secs(1);

impl World<'_> {
    /// Somebody of a crowd wants something.
    pub(crate) fn ask(&mut self, crowd: u16) {
        let kind = self.crowds[usize::from(crowd)].kind() as u16;
        self.want(crowd, kind, None);
    }

    /// Somebody of a crowd wants this. `work` is how long it takes, if that was recorded.
    pub(crate) fn want(&mut self, crowd: u16, kind: u16, work: Option<Duration>) {
        let who = self.meter.offered(self.elapsed(), self.who(crowd, kind));
        let caller = self.crowds[usize::from(crowd)].first_try();
        let tenant = self.crowds[usize::from(crowd)].tenant();
        let name = &self.scenario.clients[usize::from(crowd)].mix[usize::from(kind)].tenant;
        self.wanted += 1;
        let first = self.now();
        let task = Task {
            number: self.wanted,
            crowd,
            kind,
            who,
            first,
            attempts: 0,
            sender: passage::sender(name, tenant),
            caller,
            told: false,
            course: self.crowds[usize::from(crowd)].begin(first),
            call: None,
            work,
        };
        let task = self.tasks.insert(task);
        self.try_now(task, crowd);
    }

    /// It is time for an attempt, unless its crowd holds back.
    fn try_now(&mut self, task: Key, crowd: u16) {
        let elapsed = self.elapsed();
        match self.crowds[usize::from(crowd)].holds_back(elapsed) {
            Some(wait) => {
                let at = self.now().after(wait);
                self.agenda.plan(at, Rank::Arrival, Event::Retry(task));
            }
            None => self.attempt(task),
        }
    }

    pub(crate) fn retry(&mut self, task: Key) {
        if let Some(wanted) = self.tasks.get_mut(task) {
            let crowd = wanted.crowd;
            self.try_now(task, crowd);
        }
    }

    pub(crate) fn attempt(&mut self, task: Key) {
        let now = self.now();
        let Some(wanted) = self.tasks.get_mut(task) else { return };
        let (crowd, kind, who) = (wanted.crowd, wanted.kind, wanted.who);
        if let Some(course) = &mut wanted.course
            && !self.crowds[usize::from(crowd)].sends(now, course)
        {
            self.give_up(task);
            return;
        }
        wanted.attempts += 1;
        let clients = self.crowds[usize::from(crowd)].clients;
        let one = wanted.one();
        // Whoever has our own client waits so long for the call, and all others for each try.
        let deadline = wanted.course.as_ref().map(Course::deadline);
        let patience = clients.timeout.map(|timeout| deadline.unwrap_or_else(|| now.after(timeout)));
        let says = Says {
            sender: wanted.sender,
            deadline: patience.filter(|_| clients.tells_deadline),
            attempt: if one.retry && clients.retry.marked { Attempt::Retry } else { Attempt::Unsaid },
            key: Some(passage::key(wanted.number)),
        };
        let work = wanted.work;
        self.meter.attempted(who, one);
        if let Some(patience) = patience {
            self.agenda.plan(patience, Rank::Patience, Event::Patience(task));
        }
        let service = clients.mix[usize::from(kind)].service as u16;
        let call = self.new_call(Caller::Client(task), service, Asked { crowd, kind, who, says }, work);
        if let Some(wanted) = self.tasks.get_mut(task) {
            wanted.call = Some(call);
        }
        self.send(call);
    }

    /// The attempt under way was let through.
    pub(crate) fn let_in(&mut self, task: Key, overtaken: bool) {
        if let Some(wanted) = self.tasks.get_mut(task) {
            let (who, one) = (wanted.who, wanted.one());
            self.meter.let_in(who, one, overtaken);
        }
    }

    /// The attempt under way has an answer.
    pub(crate) fn answered(&mut self, task: Key, answer: Answer, took: Duration, longest: Duration) {
        let (now, elapsed) = (self.now(), self.elapsed());
        let Some(wanted) = self.tasks.get_mut(task) else { return };
        wanted.call = None;
        let (crowd, who, first) = (usize::from(wanted.crowd), wanted.who, wanted.first);
        let is_ours = wanted.course.is_some();
        self.crowds[crowd].answered(elapsed, wanted.caller, answer == Answer::Success);
        match answer {
            Answer::Success => {
                if let Some(course) = &mut wanted.course {
                    self.crowds[crowd].ended(now, course, (Reply::Success, Advice::Unsaid));
                }
                self.meter.served(elapsed, who, now.since(first));
                self.end(task);
            }
            Answer::Broken => {
                self.meter.broken(who);
                self.failed(task, Reply::Unavailable, Hint::Unsaid);
            }
            Answer::Failed => {
                self.meter.broken(who);
                self.failed(task, Reply::Failed, Hint::Unsaid);
            }
            Answer::Refused(rejection) => {
                self.meter.rejected(elapsed, who, rejection.reason, took);
                let told = rejection.told(longest);
                // Our own client reads what is told to the millisecond, and nobody else does.
                let told = if is_ours { in_millis(told) } else { in_seconds(told) };
                self.failed(task, reply(rejection), Hint::of(rejection.reason, Some(told)));
            }
        }
    }

    pub(crate) fn patience_ends(&mut self, task: Key) {
        let Some(wanted) = self.tasks.get_mut(task) else { return };
        // Without an attempt under way it is waiting to make the next, and the patience was that of the last.
        let Some(call) = wanted.call.take() else { return };
        self.meter.left(wanted.who);
        self.leave(call);
        self.failed(task, Reply::TimedOut, Hint::Unsaid);
    }

    fn failed(&mut self, task: Key, reply: Reply, hint: Hint) {
        // The patience with the attempt that has failed must not end the next one.
        let Some(task) = self.tasks.rename(task) else { return };
        let elapsed = self.elapsed();
        let Some(wanted) = self.tasks.get_mut(task) else { return };
        let crowd = usize::from(wanted.crowd);
        let failed = Failed { caller: wanted.caller, failures: wanted.attempts, hint };
        let next = match &mut wanted.course {
            Some(course) => self.crowds[crowd].ended(self.agenda.now(), course, (reply, hint.advice(reply))),
            None => self.crowds[crowd].failed(elapsed, failed),
        };
        match next {
            Next::Again { after, told } => {
                wanted.told = told;
                let at = self.now().after(after);
                self.agenda.plan(at, Rank::Arrival, Event::Retry(task));
            }
            Next::GiveUp => self.give_up(task),
        }
    }

    fn give_up(&mut self, task: Key) {
        if let Some(wanted) = self.tasks.get_mut(task) {
            self.meter.gave_up(wanted.who);
        }
        self.end(task);
    }

    fn end(&mut self, task: Key) {
        let Some(task) = self.tasks.remove(task) else { return };
        let elapsed = self.elapsed();
        if let Some(at) = self.crowds[usize::from(task.crowd)].asks_again(elapsed) {
            self.agenda.plan(Timestamp::ZERO.after(at), Rank::Arrival, Event::Ask(task.crowd));
        }
    }
}

impl Task {
    /// What there is to say of the attempt under way.
    const fn one(&self) -> Try {
        Try { told: self.told, retry: self.attempts > 1 }
    }
}

/// As our own client reads the status of the answer.
const fn reply(rejection: Rejection) -> Reply {
    match rejection.reason {
        Reason::RateLimited | Reason::TenantLimit | Reason::RouteLimit => Reply::Refused,
        Reason::UpstreamTimeout | Reason::Deadline => Reply::TimedOut,
        _ => Reply::Unavailable,
    }
}

/// As in the header: at least one.
fn in_seconds(wait: Duration) -> Duration {
    Duration::from_secs(whole_seconds(wait)).max(SECOND)
}

/// As in `Retry-After-Ms`. Where nothing is known it says a second.
fn in_millis(wait: Duration) -> Duration {
    if wait.is_zero() { SECOND } else { Duration::from_millis(whole_millis(wait)) }
}
