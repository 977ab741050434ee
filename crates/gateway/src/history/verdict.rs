//! How an upstream is, in one word, from its last few seconds: what matters most is what is said.
//!
//! Decided here once, for everybody who reads samples. The dashboard and `tidegate top` put it into their own words and
//! decide nothing. It says what is so, and guesses at no cause.

use tidegate_engine::Reason;

/// So many seconds together make a verdict, so that one request is none.
pub(super) const SECONDS: usize = 5;
/// One in twenty is lost.
const MUCH: f64 = 0.05;
/// One in a hundred is refused.
const SOME: f64 = 0.01;
/// Fewer in a second are an accident.
const FEW: f64 = 0.5;
/// Less in a second is nothing.
const NOTHING: f64 = 0.05;
/// As good as all of the slots.
const NEARLY_ALL: f64 = 0.85;

/// What is so of an upstream, from what matters least to what matters most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Nobody asks it for anything.
    Idle,
    /// None of the others.
    Well,
    /// Nearly all slots are taken and somebody waits, but nobody is refused.
    JustFull,
    /// Most refusals are of what the policy allows a caller, and not of load.
    HeldBack,
    /// Some are refused with slots free.
    Refuses,
    /// Nearly all slots are taken, and some are refused.
    Full,
    /// More than one in twenty get no answer from it.
    Fails,
    /// More leave by themselves than are refused, and more than one in twenty.
    ClientsLeave,
    /// The breaker of every endpoint is open.
    Down,
}

impl Kind {
    /// Their names, in their order.
    pub(super) const NAMES: &[&str] =
        &["idle", "well", "just_full", "held_back", "refuses", "full", "fails", "clients_leave", "down"];

    pub(super) const fn level(self) -> Level {
        match self {
            Self::Idle | Self::Well => Level::Good,
            Self::JustFull | Self::HeldBack | Self::Refuses => Level::Warn,
            Self::Full | Self::Fails | Self::ClientsLeave | Self::Down => Level::Bad,
        }
    }
}

/// How bad that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Good,
    Warn,
    Bad,
}

impl Level {
    /// Their names, in their order.
    pub(super) const NAMES: &[&str] = &["good", "warn", "bad"];
}

/// What an upstream did in a second, or on average in one of several: all but `taken`, `limit` and `waiting` for each second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Second {
    pub(super) arrivals: f64,
    pub(super) goodput: f64,
    pub(super) refused: f64,
    pub(super) failed: f64,
    pub(super) client_left: f64,
    pub(super) taken: f64,
    pub(super) limit: f64,
    pub(super) waiting: f64,
    pub(super) rejected: [f64; Reason::ALL.len()],
}

impl Second {
    /// The most frequent reason for which somebody had no answer, but for clients that left; and how often.
    pub(super) fn reason(&self) -> Option<(Reason, f64)> {
        let reasons = Reason::ALL.into_iter().filter(|reason| *reason != Reason::ClientLeft);
        let counted = reasons.map(|reason| (reason, self.rejected[reason as usize]));
        counted.filter(|(_, count)| *count > 0.0).max_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// What is so, where `all_open` says that there are endpoints and the breaker of each is open.
    pub(super) fn judge(&self, all_open: bool) -> Kind {
        let &Self { arrivals, refused, failed, client_left, taken, limit, waiting, .. } = self;
        let is_full = taken > NEARLY_ALL * limit;
        if all_open {
            return Kind::Down;
        }
        if arrivals < NOTHING && taken < NOTHING {
            return Kind::Idle;
        }
        if client_left > MUCH * arrivals && client_left > refused && client_left >= FEW {
            return Kind::ClientsLeave;
        }
        if failed > MUCH * arrivals {
            return Kind::Fails;
        }
        if refused >= FEW && refused > SOME * arrivals {
            return match self.reason() {
                Some((reason, count)) if is_by_policy(reason) && count > refused / 2.0 => Kind::HeldBack,
                _ if is_full => Kind::Full,
                _ => Kind::Refuses,
            };
        }
        if is_full && waiting >= FEW { Kind::JustFull } else { Kind::Well }
    }
}

/// What one caller may have, and not what the upstream can do.
const fn is_by_policy(reason: Reason) -> bool {
    matches!(reason, Reason::RateLimited | Reason::RouteLimit | Reason::TenantLimit | Reason::RetryBudget)
}

/// The last [`SECONDS`] of an upstream.
#[derive(Debug, Default)]
pub(super) struct Lately {
    seconds: [Second; SECONDS],
    /// So many are known.
    known: usize,
    next: usize,
}

impl Lately {
    pub(super) fn push(&mut self, second: Second) {
        self.seconds[self.next] = second;
        self.next = (self.next + 1) % SECONDS;
        self.known = (self.known + 1).min(SECONDS);
    }

    /// Their mean; of none it is nothing.
    pub(super) fn mean(&self) -> Second {
        let seconds = &self.seconds[..self.known];
        let of = |pick: &dyn Fn(&Second) -> f64| {
            seconds.iter().map(pick).sum::<f64>() / seconds.len().max(1) as f64
        };
        Second {
            arrivals: of(&|one| one.arrivals),
            goodput: of(&|one| one.goodput),
            refused: of(&|one| one.refused),
            failed: of(&|one| one.failed),
            client_left: of(&|one| one.client_left),
            taken: of(&|one| one.taken),
            limit: of(&|one| one.limit),
            waiting: of(&|one| one.waiting),
            rejected: std::array::from_fn(|reason| of(&|one| one.rejected[reason])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred a second come and are answered, with four of ten slots.
    const WELL: Second = Second {
        arrivals: 100.0,
        goodput: 100.0,
        refused: 0.0,
        failed: 0.0,
        client_left: 0.0,
        taken: 4.0,
        limit: 10.0,
        waiting: 0.0,
        rejected: [0.0; Reason::ALL.len()],
    };

    fn refusing(reasons: &[(Reason, f64)]) -> Second {
        let mut second = WELL;
        for (reason, count) in reasons {
            second.rejected[*reason as usize] = *count;
            second.refused += count;
        }
        second
    }

    fn check(cases: &[(Second, Kind)]) {
        for (second, kind) in cases {
            assert_eq!(second.judge(false), *kind, "{second:?}");
        }
    }

    /// Each line of the table in docs/dashboard.md, on both sides of its bound.
    #[test]
    fn clients_give_up() {
        let leaving = |client_left| Second { client_left, ..WELL };
        check(&[
            (leaving(5.0), Kind::Well),
            (leaving(5.1), Kind::ClientsLeave),
            (Second { client_left: 20.0, ..refusing(&[(Reason::QueueFull, 20.0)]) }, Kind::Refuses),
            (Second { client_left: 20.1, ..refusing(&[(Reason::QueueFull, 20.0)]) }, Kind::ClientsLeave),
            // One who leaves in three seconds is nobody's fault.
            (Second { arrivals: 1.0, client_left: 0.4, ..WELL }, Kind::Well),
            (Second { failed: 50.0, ..leaving(50.0) }, Kind::ClientsLeave),
        ]);
    }

    #[test]
    fn down_fails_and_idle() {
        let failing = |failed| Second { failed, ..WELL };
        assert_eq!(Second { client_left: 90.0, ..WELL }.judge(true), Kind::Down);
        assert_eq!(Second::default().judge(true), Kind::Down);
        check(&[
            (failing(5.0), Kind::Well),
            (failing(5.1), Kind::Fails),
            (Second { failed: 5.1, taken: 10.0, ..refusing(&[(Reason::QueueFull, 60.0)]) }, Kind::Fails),
            (Second::default(), Kind::Idle),
            (Second { arrivals: 0.04, taken: 0.04, ..WELL }, Kind::Idle),
            (Second { arrivals: 0.04, ..WELL }, Kind::Well),
        ]);
    }

    #[test]
    fn full_refuses_and_held_back() {
        let full = |second: Second| Second { taken: 8.6, ..second };
        let queue_full = refusing(&[(Reason::QueueFull, 60.0)]);
        check(&[
            (full(queue_full), Kind::Full),
            (Second { taken: 8.5, ..queue_full }, Kind::Refuses),
            (refusing(&[(Reason::Deadline, 60.0)]), Kind::Refuses),
            (full(refusing(&[(Reason::RateLimited, 31.0), (Reason::QueueFull, 29.0)])), Kind::HeldBack),
            (full(refusing(&[(Reason::RateLimited, 30.0), (Reason::QueueFull, 30.0)])), Kind::Full),
        ]);
        for reason in [Reason::RouteLimit, Reason::TenantLimit, Reason::RetryBudget] {
            check(&[(refusing(&[(reason, 60.0)]), Kind::HeldBack)]);
        }
    }

    /// One that is pushed out among a thousand is not worth a word, and neither is one in three seconds.
    #[test]
    fn a_few_refusals_are_none() {
        let thousand = Second { arrivals: 1_000.0, ..refusing(&[(Reason::PushedOut, 1.0)]) };
        check(&[
            (thousand, Kind::Well),
            (Second { arrivals: 100.0, ..thousand }, Kind::Well),
            (Second { arrivals: 99.0, ..thousand }, Kind::Refuses),
            (Second { arrivals: 1.0, ..refusing(&[(Reason::PushedOut, 0.4)]) }, Kind::Well),
        ]);
    }

    #[test]
    fn just_full_and_well() {
        check(&[
            (WELL, Kind::Well),
            (Second { taken: 10.0, ..WELL }, Kind::Well),
            (Second { taken: 8.6, waiting: 0.5, ..WELL }, Kind::JustFull),
            (Second { taken: 8.5, waiting: 9.0, ..WELL }, Kind::Well),
            (Second { taken: 10.0, waiting: 0.4, ..WELL }, Kind::Well),
        ]);
    }

    /// Names have their kinds' order, which is that of what matters.
    #[test]
    fn names_are_in_order() {
        for (kind, name, level) in [
            (Kind::Idle, "idle", "good"),
            (Kind::JustFull, "just_full", "warn"),
            (Kind::Full, "full", "bad"),
            (Kind::Down, "down", "bad"),
        ] {
            assert_eq!(Kind::NAMES[kind as usize], name);
            assert_eq!(Level::NAMES[kind.level() as usize], level);
        }
        assert_eq!(Kind::NAMES.len(), Kind::Down as usize + 1);
    }

    #[test]
    fn the_mean_is_of_what_is_known_and_forgets() {
        let mut lately = Lately::default();
        assert_eq!(lately.mean(), Second::default());
        let mut second = Second { arrivals: 10.0, ..Second::default() };
        second.rejected[0] = 5.0;
        lately.push(second);
        assert_eq!((lately.mean().arrivals, lately.mean().rejected[0]), (10.0, 5.0));
        lately.push(Second::default());
        assert_eq!(lately.mean().arrivals, 5.0);
        (0..SECONDS).for_each(|_| lately.push(WELL));
        assert_eq!(lately.mean(), WELL);
    }
}
