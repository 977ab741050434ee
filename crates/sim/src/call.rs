//! What becomes of a call: through the gateway, into the service, from there to the services that it asks, and back.
//!
//! As in the gateway: who leaves while queued gives up the place; a call whose caller has left or was told that it is
//! overdue goes on as an orphan and keeps its slot, unless the policy says that closing the connection stops the work.

use std::time::Duration;

use tidegate_engine::{Attempt, Reason, Rejection};
use tidegate_workload::Who;

use crate::agenda::Rank;
use crate::ending::Ending;
use crate::gate::{Entry, Heard, Slot};
use crate::passage::{self, Says};
use crate::table::Key;
use crate::world::{Call, Caller, Event, State, World};

/// The answer to a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Answer {
    Success,
    /// By a gateway.
    Refused(Rejection),
    /// The service had no room, or one that it asks was overloaded.
    Broken,
    /// The service has an error, which says nothing about its load.
    Failed,
}

/// What is asked for, by whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) crowd: u16,
    pub(crate) kind: u16,
    /// What it is counted under.
    pub(crate) who: Who,
    pub(crate) says: Says,
}

impl World<'_> {
    /// A call of what this kind of request needs.
    pub(crate) fn new_call(
        &mut self,
        caller: Caller,
        service: u16,
        Asked { crowd, kind, who, says }: Asked,
        work: Option<Duration>,
    ) -> Key {
        let gate = match self.gates[usize::from(service)].len() {
            0 => None,
            1 => Some(0),
            several => Some(self.balancing.below(several) as u16),
        };
        let began = self.now();
        self.calls.insert(Call {
            caller,
            service,
            gate,
            crowd,
            kind,
            who,
            says,
            began,
            work,
            state: State::New,
            slot: None,
        })
    }

    /// Sends a call on its way.
    pub(crate) fn send(&mut self, key: Key) {
        let now = self.now();
        let Some(call) = self.calls.get_mut(key) else { return };
        let Some(number) = call.gate else { return self.start(key, None) };
        let service = call.service;
        let gate = &mut self.gates[usize::from(service)][usize::from(number)];
        match gate.enter(now, key, (call.crowd, call.kind), call.says) {
            Entry::Passed(slot) => self.start(key, slot),
            Entry::Waiting(ticket) => call.state = State::Queued(ticket),
            Entry::Refused(rejection) => self.finish(key, Answer::Refused(rejection)),
        }
        self.settle(service, number);
    }

    /// Hears what became of those who waited, and plans when the gateway has to be woken.
    pub(crate) fn settle(&mut self, service: u16, number: u16) {
        loop {
            let gate = &mut self.gates[usize::from(service)][usize::from(number)];
            if gate.heard.is_empty() {
                if let Some(at) = gate.plan() {
                    self.agenda.plan(at, Rank::Work, Event::Wake(service, number));
                }
                return;
            }
            let mut heard = std::mem::take(&mut gate.heard);
            for one in heard.drain(..) {
                match one {
                    Heard::Granted(call, slot) => self.start(call, Some(slot)),
                    Heard::Refused(call, rejection) => self.finish(call, Answer::Refused(rejection)),
                }
            }
            // What they did may have been heard in there already; if not, the memory is good for the next time.
            let gate = &mut self.gates[usize::from(service)][usize::from(number)];
            if gate.heard.is_empty() {
                gate.heard = heard;
            }
        }
    }

    /// It has a slot, or needs none: it goes to the service.
    fn start(&mut self, key: Key, slot: Option<Slot>) {
        let now = self.now();
        let Some(call) = self.calls.get_mut(key) else {
            debug_assert!(slot.is_none(), "a slot was granted to a call that has ended");
            return;
        };
        let waited = slot.is_some().then(|| now.since(call.began));
        call.slot = slot;
        let (service, caller, who, began) = (call.service, call.caller, call.who, call.began);
        let (crowd, kind, recorded) = (call.crowd, call.kind, call.work);
        let gate = call.gate.map(|gate| &mut self.gates[usize::from(service)][usize::from(gate)]);
        let overtaken = gate.is_some_and(|gate| waited.is_some() && gate.is_overtaken((crowd, kind), began));
        let cost = self.scenario.clients[usize::from(crowd)].mix[usize::from(kind)].cost;
        let work = self.work(service, cost, recorded);
        if let Caller::Client(task) = caller {
            self.let_in(task, overtaken);
            if let Some(waited) = waited {
                self.meter.waited(who, waited);
            }
        }
        self.watch_over(key);
        let Some(call) = self.calls.get_mut(key) else { return };
        call.state = State::Going(work);
        let delay = self.scenario.services[usize::from(service)].delay;
        if delay.is_zero() {
            self.reach(key);
        } else {
            self.agenda.plan(now.after(delay), Rank::Work, Event::Reach(key));
        }
    }

    /// It leaves its gateway, which waits for the answer until it is overdue: by the policy, or by the deadline, of which
    /// the service is told what is left.
    fn watch_over(&mut self, key: Key) {
        let now = self.now();
        let Some(call) = self.calls.get_mut(key) else { return };
        let Some(number) = call.gate else { return };
        let gate = &self.gates[usize::from(call.service)][usize::from(number)];
        let timeout = now.after(gate.setup.timeout);
        let deadline = gate.passage(call.crowd, call.kind).deadline(call.began, call.says);
        if let (Some(told), Some(deadline)) = (call.says.deadline, deadline) {
            let left = passage::passed_on(now, deadline);
            debug_assert!(left <= told.max(now), "a service is told of more time than its gateway was");
            call.says.deadline = Some(left);
        }
        let (at, reason) = match deadline {
            Some(deadline) if deadline < timeout => (deadline, Reason::Deadline),
            _ => (timeout, Reason::UpstreamTimeout),
        };
        self.agenda.plan(at, Rank::Work, Event::Overdue(key, reason));
    }

    /// The service gets it.
    pub(crate) fn reach(&mut self, key: Key) {
        let now = self.now();
        let Some(&mut Call { state: State::Going(work), service, .. }) = self.calls.get_mut(key) else {
            return;
        };
        let place = self.stations[usize::from(service)].accept(now, key, work);
        self.plan_looks(service);
        match (place, self.calls.get_mut(key)) {
            (Some(place), Some(call)) => call.state = State::Working { place, next: 0, child: None },
            // Never in here: whoever comes next in line would be in here again, and so on.
            (None, _) => self.send_back(key, Answer::Broken),
            (Some(_), None) => {}
        }
    }

    /// Its answer goes back to whoever asked.
    fn send_back(&mut self, key: Key, answer: Answer) {
        let now = self.now();
        let Some(call) = self.calls.get_mut(key) else { return };
        call.state = State::Returning(answer);
        let delay = self.scenario.services[usize::from(call.service)].delay;
        self.agenda.plan(now.after(delay), Rank::Work, Event::Return(key));
    }

    /// Its answer is back.
    pub(crate) fn back(&mut self, key: Key) {
        if let Some(&mut Call { state: State::Returning(answer), .. }) = self.calls.get_mut(key) {
            self.finish(key, answer);
        }
    }

    /// The service has done its own work on a call: now it asks others, or answers.
    pub(crate) fn worked(&mut self, key: Key) {
        let Some(call) = self.calls.get_mut(key) else { return };
        let State::Working { next, child, .. } = &mut call.state else { return };
        let asks = &self.scenario.services[usize::from(call.service)].calls;
        let Some(asked) = asks.get(usize::from(*next)) else {
            let service = usize::from(call.service);
            let failing = self.failing[service];
            let fails = failing > 0.0 && self.working[service].uniform() < failing;
            return self.worked_to_the_end(key, if fails { Answer::Failed } else { Answer::Success });
        };
        *next += 1;
        *child = None;
        // What the service was told it tells those whom it asks; but that is another request, and a first try.
        let says = Says { attempt: Attempt::Unsaid, key: None, ..call.says };
        let wanted = Asked { crowd: call.crowd, kind: call.kind, who: call.who, says };
        let asked = self.new_call(Caller::Service(key), *asked as u16, wanted, None);
        if let Some(Call { state: State::Working { child, .. }, .. }) = self.calls.get_mut(key) {
            *child = Some(asked);
        }
        self.send(asked);
    }

    /// The service has nothing left to do for it.
    fn worked_to_the_end(&mut self, key: Key, answer: Answer) {
        let Some(call) = self.calls.get_mut(key) else { return };
        let service = call.service;
        if self.scenario.services[usize::from(service)].delay.is_zero() {
            return self.finish(key, answer);
        }
        if let State::Working { place, .. } = call.state {
            let now = self.now();
            self.stations[usize::from(service)].release(now, place);
            self.plan_looks(service);
        }
        self.send_back(key, answer);
    }

    /// A call has its answer: slot and worker are free, and whoever waits for it hears of it.
    fn finish(&mut self, key: Key, answer: Answer) {
        let Some(call) = self.calls.remove(key) else { return };
        let took = self.now().since(call.began);
        let longest = call.gate.map_or(Duration::ZERO, |gate| {
            self.gates[usize::from(call.service)][usize::from(gate)].setup.retry_after_max
        });
        let caller = call.caller;
        let who = call.who;
        if caller == Caller::Nobody && answer == Answer::Success {
            self.meter.late(self.elapsed(), who);
        }
        let ending = match answer {
            Answer::Success => Ending::Answered,
            Answer::Broken => Ending::Broken,
            Answer::Refused(_) | Answer::Failed => Ending::Failed,
        };
        self.give_back(call, ending);
        match caller {
            Caller::Client(task) => self.answered(task, answer, took, longest),
            // A failure fails the call that asked; that it is one of overload is passed on.
            Caller::Service(asking) if answer == Answer::Failed => self.finish(asking, Answer::Failed),
            Caller::Service(asking) if answer != Answer::Success => self.finish(asking, Answer::Broken),
            Caller::Service(asking) => self.worked(asking),
            Caller::Nobody => {}
        }
    }

    /// Frees what a call holds: its worker first, so that the next one finds it free.
    fn give_back(&mut self, call: Call, ending: Ending) {
        let now = self.now();
        let service = call.service;
        if let State::Working { place, child, .. } = call.state {
            if let Some(child) = child {
                self.leave(child);
            }
            self.stations[usize::from(service)].release(now, place);
            self.plan_looks(service);
        }
        if let (Some(gate), Some(slot)) = (call.gate, call.slot) {
            self.gates[usize::from(service)][usize::from(gate)].complete(now, slot, ending);
            self.settle(service, gate);
        }
    }

    /// Whoever waits for a call has left.
    pub(crate) fn leave(&mut self, key: Key) {
        let now = self.now();
        let Some(call) = self.calls.get_mut(key) else { return };
        call.caller = Caller::Nobody;
        let service = call.service;
        if !matches!(call.state, State::Queued(_)) {
            return self.abandon(key, Ending::Left);
        }
        let Some(Call { state: State::Queued(ticket), gate: Some(gate), .. }) = self.calls.remove(key) else {
            return;
        };
        self.gates[usize::from(service)][usize::from(gate)].cancel(now, ticket);
        self.settle(service, gate);
    }

    pub(crate) fn overdue(&mut self, key: Key, reason: Reason) {
        let now = self.now();
        let Some(call) = self.calls.get_mut(key) else { return };
        let caller = std::mem::replace(&mut call.caller, Caller::Nobody);
        let took = now.since(call.began);
        if caller == Caller::Nobody {
            return;
        }
        // How little time a client has says nothing about the service.
        self.abandon(key, if reason == Reason::Deadline { Ending::Left } else { Ending::Overdue });
        let late = Rejection { reason, retry_after: Duration::ZERO };
        match caller {
            Caller::Client(task) => self.answered(task, Answer::Refused(late), took, Duration::ZERO),
            Caller::Service(asking) => self.finish(asking, Answer::Broken),
            Caller::Nobody => {}
        }
    }

    /// Nobody waits for a call any more that is in the service.
    fn abandon(&mut self, key: Key, ending: Ending) {
        let now = self.now();
        let Some(call) = self.calls.get_mut(key) else { return };
        let service = call.service;
        let stops = self.scenario.services[usize::from(service)].cancels_work;
        let Some(number) = call.gate else {
            if stops && let Some(call) = self.calls.remove(key) {
                self.give_back(call, ending);
            }
            return;
        };
        let gate = &mut self.gates[usize::from(service)][usize::from(number)];
        if gate.setup.cancels_work {
            // The connection is closed and the slot is free, whether or not that stops the work.
            if let Some(mut slot) = call.slot.take() {
                gate.abandon(now, &mut slot, ending);
                gate.complete(now, slot, ending);
            }
            if stops && let Some(call) = self.calls.remove(key) {
                self.give_back(call, ending);
            }
        } else if let Some(slot) = &mut call.slot {
            gate.abandon(now, slot, ending);
            let most = gate.setup.orphan_max;
            self.agenda.plan(now.after(most), Rank::Work, Event::OrphanEnds(key));
        }
        self.settle(service, number);
    }

    /// An orphan has had its time: its slot is free, whatever the service still does.
    pub(crate) fn orphan_ends(&mut self, key: Key) {
        let now = self.now();
        let Some(call) = self.calls.get_mut(key) else { return };
        let (service, gate, slot) = (call.service, call.gate, call.slot.take());
        if let (Some(gate), Some(slot)) = (gate, slot) {
            self.gates[usize::from(service)][usize::from(gate)].complete(now, slot, Ending::Left);
            self.settle(service, gate);
        }
    }
}
