//! What a client does: asks, waits as long as it has patience, tries again or gives up.

use std::time::Duration;

use tidegate_engine::{Reason, Timestamp};
use tidegate_workload::Next;

use crate::agenda::Rank;
use crate::call::Answer;
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
        self.crowds[usize::from(crowd)].first_try();
        let task = Task { crowd, kind, who, first: self.now(), attempts: 0, told: false, call: None, work };
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
        wanted.attempts += 1;
        let (crowd, kind, who, work) = (wanted.crowd, wanted.kind, wanted.who, wanted.work);
        self.meter.attempted(who, wanted.told);
        let clients = self.crowds[usize::from(crowd)].clients;
        if let Some(timeout) = clients.timeout {
            self.agenda.plan(now.after(timeout), Rank::Patience, Event::Patience(task));
        }
        let service = clients.mix[usize::from(kind)].service as u16;
        let call = self.new_call(Caller::Client(task), service, (crowd, kind, who), work);
        if let Some(wanted) = self.tasks.get_mut(task) {
            wanted.call = Some(call);
        }
        self.send(call);
    }

    /// The attempt under way was let through.
    pub(crate) fn admitted(&mut self, task: Key) {
        if let Some(Task { told: true, who, .. }) = self.tasks.get_mut(task) {
            self.meter.told_admitted(*who);
        }
    }

    /// The attempt under way has an answer.
    pub(crate) fn answered(&mut self, task: Key, answer: Answer, took: Duration, longest: Duration) {
        let Some(wanted) = self.tasks.get_mut(task) else { return };
        wanted.call = None;
        let (crowd, who, first) = (usize::from(wanted.crowd), wanted.who, wanted.first);
        let (now, elapsed) = (self.now(), self.elapsed());
        self.crowds[crowd].answered(elapsed, answer == Answer::Success);
        match answer {
            Answer::Success => {
                self.meter.served(elapsed, who, now.since(first));
                self.end(task);
            }
            Answer::Broken | Answer::Failed => {
                self.meter.broken(who);
                self.failed(task, None);
            }
            Answer::Refused(rejection) => {
                let reason = rejection.reason;
                self.meter.rejected(elapsed, who, reason, took);
                // The timeout of an upstream says nothing about when to come back.
                let told =
                    (reason != Reason::UpstreamTimeout).then(|| whole_seconds(rejection.told(longest)));
                self.failed(task, told);
            }
        }
    }

    pub(crate) fn patience_ends(&mut self, task: Key) {
        let Some(wanted) = self.tasks.get_mut(task) else { return };
        // Without an attempt under way it is waiting to make the next, and the patience was that of the last.
        let Some(call) = wanted.call.take() else { return };
        self.meter.left(wanted.who);
        self.leave(call);
        self.failed(task, None);
    }

    fn failed(&mut self, task: Key, told: Option<Duration>) {
        // The patience with the attempt that has failed must not end the next one.
        let Some(task) = self.tasks.rename(task) else { return };
        let Some(wanted) = self.tasks.get_mut(task) else { return };
        let (crowd, who, attempts) = (usize::from(wanted.crowd), wanted.who, wanted.attempts);
        match self.crowds[crowd].failed(attempts, told) {
            Next::Again { after, told } => {
                wanted.told = told;
                let at = self.now().after(after);
                self.agenda.plan(at, Rank::Arrival, Event::Retry(task));
            }
            Next::GiveUp => {
                self.meter.gave_up(who);
                self.end(task);
            }
        }
    }

    fn end(&mut self, task: Key) {
        let Some(task) = self.tasks.remove(task) else { return };
        let elapsed = self.elapsed();
        if let Some(at) = self.crowds[usize::from(task.crowd)].asks_again(elapsed) {
            self.agenda.plan(Timestamp::ZERO.after(at), Rank::Arrival, Event::Ask(task.crowd));
        }
    }
}

/// As in the header: rounded up, and at least one.
fn whole_seconds(wait: Duration) -> Duration {
    Duration::from_secs(wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(SECOND)
}
