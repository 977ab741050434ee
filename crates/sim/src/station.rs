//! A service at work: who is worked on, who waits in it, and when each is done.
//!
//! It knows the work of a job and nothing of what it is for. What it plans it hands out as [`Station::plans`]; a plan
//! may turn out to be early, because the service stood still meanwhile, and is then simply made anew.

use std::collections::VecDeque;
use std::time::Duration;

use slab::Slab;
use tidegate_engine::Timestamp;
use tidegate_workload::Capacity;

use crate::sharing::Sharing;

/// A job of a station: its place there. It is good until the job is [released](Station::release).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub(crate) index: u32,
    /// Tells apart jobs that have had the same index one after the other.
    serial: u32,
}

/// The plan to look at a job, or at all that share the service, at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// At this job.
    Job(Place),
    /// At all that share the service, if this is still the plan.
    Shared(u32),
}

/// The jobs of one service. `J` is what whoever asks calls a job.
#[derive(Debug)]
pub struct Station<J> {
    jobs: Slab<Job<J>>,
    serial: u32,
    /// Jobs that wait for a worker, some of which may have left.
    waiting: VecDeque<Place>,
    waiting_now: u32,
    queue: Option<u32>,
    discipline: Discipline,
    paused_until: Timestamp,
    slowdown: f64,
    /// What has been planned since this was emptied last.
    pub plans: Vec<(Timestamp, Look)>,
}

#[derive(Debug)]
enum Discipline {
    Workers { workers: u32, busy: u32 },
    Elastic { slope: f64 },
    Shared(Sharing),
}

#[derive(Debug)]
struct Job<J> {
    name: J,
    serial: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// For a worker, with so much work.
    Waiting(Duration),
    /// Its work ends at this moment; later if the service stands still before that.
    Working(Timestamp),
    /// It shares the service with the others.
    Sharing,
    /// Its work is done, and it may hold a worker.
    Worked,
}

impl<J: Copy> Station<J> {
    /// Nobody is there yet. `queue` is how many may wait; `None` for no bound.
    pub fn new(capacity: Capacity, queue: Option<u32>) -> Self {
        let discipline = match capacity {
            Capacity::Workers(workers) => Discipline::Workers { workers, busy: 0 },
            Capacity::Elastic { slope } => Discipline::Elastic { slope },
            Capacity::Shared { knee, hard } => Discipline::Shared(Sharing::new(knee, hard)),
        };
        Self {
            jobs: Slab::new(),
            serial: 0,
            waiting: VecDeque::new(),
            waiting_now: 0,
            queue,
            discipline,
            paused_until: Timestamp::ZERO,
            slowdown: 1.0,
            plans: Vec::new(),
        }
    }

    /// Takes on a job; `None` if there is no room for it.
    pub fn accept(&mut self, now: Timestamp, name: J, work: Duration) -> Option<Place> {
        let others = self.jobs.len();
        let begins = match &mut self.discipline {
            Discipline::Workers { workers, busy } if *busy < *workers => {
                *busy += 1;
                Some(work)
            }
            Discipline::Workers { .. } => {
                if self.queue.is_some_and(|most| self.waiting_now >= most) {
                    return None;
                }
                None
            }
            Discipline::Elastic { slope } => Some(work.mul_f64(1.0 + *slope * others as f64)),
            Discipline::Shared(_) => None,
        };
        self.serial = self.serial.wrapping_add(1);
        let serial = self.serial;
        let index = self.jobs.insert(Job { name, serial, state: State::Waiting(work) });
        let place = Place { index: index as u32, serial };
        match (begins, &mut self.discipline) {
            (Some(work), _) => self.begin(now, place, work),
            (None, Discipline::Shared(sharing)) => {
                self.jobs[index].state = State::Sharing;
                sharing.enter(now, place.index, work.mul_f64(self.slowdown));
                self.plan_shared(now);
            }
            (None, _) => {
                self.waiting.push_back(place);
                self.waiting_now += 1;
            }
        }
        Some(place)
    }

    /// Looks at what was planned. Each job in `done` has had all its work now; it keeps its worker until it is released.
    pub fn look(&mut self, now: Timestamp, look: Look, done: &mut Vec<J>) {
        match look {
            Look::Job(place) => {
                let Some(job) = self.jobs.get_mut(place.index as usize) else { return };
                let State::Working(until) = job.state else { return };
                if job.serial != place.serial {
                    return;
                }
                if until > now {
                    self.plans.push((until, look));
                    return;
                }
                job.state = State::Worked;
                done.push(job.name);
            }
            Look::Shared(plan) => {
                let Discipline::Shared(sharing) = &mut self.discipline else { return };
                if !sharing.is_current(plan) {
                    return;
                }
                while let Some(index) = sharing.pop_done(now) {
                    let job = &mut self.jobs[index as usize];
                    job.state = State::Worked;
                    done.push(job.name);
                }
                self.plan_shared(now);
            }
        }
    }

    /// The job is over, be it done or broken off: its worker takes the next.
    pub fn release(&mut self, now: Timestamp, place: Place) {
        let index = place.index as usize;
        if self.jobs.get(index).is_none_or(|job| job.serial != place.serial) {
            return;
        }
        let job = self.jobs.remove(index);
        match (&mut self.discipline, job.state) {
            (_, State::Waiting(_)) => self.waiting_now -= 1,
            (Discipline::Workers { busy, .. }, _) => {
                *busy -= 1;
                self.fill(now);
            }
            (Discipline::Shared(sharing), State::Sharing) => {
                sharing.leave(now, place.index);
                self.plan_shared(now);
            }
            _ => {}
        }
    }

    /// So many workers from now on; those that are busy finish.
    pub fn set_workers(&mut self, now: Timestamp, number: u32) {
        if let Discipline::Workers { workers, .. } = &mut self.discipline {
            *workers = number;
            self.fill(now);
        }
    }

    /// Work that begins from now on takes so many times as long as at first.
    pub fn set_slowdown(&mut self, times: f64) {
        self.slowdown = times;
    }

    /// Nothing is done for so long.
    pub fn pause(&mut self, now: Timestamp, pause: Duration) {
        let (from, until) = (self.paused_until.max(now), self.paused_until.max(now).after(pause));
        for (_, job) in &mut self.jobs {
            if let State::Working(end) = &mut job.state {
                *end = end.after(until.since(from));
            }
        }
        self.paused_until = until;
        if let Discipline::Shared(sharing) = &mut self.discipline {
            sharing.pause(now, until);
            self.plan_shared(now);
        }
    }

    /// Who waits in it.
    pub fn waiting(&self) -> u32 {
        self.waiting_now
    }

    /// Who is in it, waiting or not.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether nobody is.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    fn begin(&mut self, now: Timestamp, place: Place, work: Duration) {
        let until = self.paused_until.max(now).after(work.mul_f64(self.slowdown));
        self.jobs[place.index as usize].state = State::Working(until);
        self.plans.push((until, Look::Job(place)));
    }

    /// Gives free workers to those who wait.
    fn fill(&mut self, now: Timestamp) {
        loop {
            let Discipline::Workers { workers, busy } = &mut self.discipline else { return };
            if *busy >= *workers {
                return;
            }
            let Some(place) = self.waiting.pop_front() else { return };
            let job = self.jobs.get(place.index as usize).filter(|job| job.serial == place.serial);
            let Some(&Job { state: State::Waiting(work), .. }) = job else { continue };
            *busy += 1;
            self.waiting_now -= 1;
            self.begin(now, place, work);
        }
    }

    fn plan_shared(&mut self, now: Timestamp) {
        if let Discipline::Shared(sharing) = &mut self.discipline
            && let Some((at, plan)) = sharing.plan(now)
        {
            self.plans.push((at, Look::Shared(plan)));
        }
    }
}
