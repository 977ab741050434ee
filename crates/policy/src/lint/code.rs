//! The list of lints. Codes are stable: one that is no longer needed is retired, never given to another.

/// Which lint it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LintCode {
    /// TG001
    UnreachableRoute,
    /// TG002
    QueueBeyondBudget,
    /// TG003
    LongWait,
    /// TG004
    EarlyOrphan,
    /// TG005
    OrphanMaxUnused,
    /// TG006
    EveryoneTrusted,
    /// TG007
    PublicAdmin,
    /// TG008
    SmallBurst,
    /// TG009
    RateLimitUnused,
    /// TG010
    ToleranceUnused,
    /// TG011
    SlowBeyondTimeout,
    /// TG012
    BulkheadUnused,
    /// TG013
    ConnectTimeoutUnused,
    /// TG014
    LogFileUnused,
    /// TG015
    ShortDrain,
    /// TG016
    UpstreamUnused,
    /// TG017
    HealthCheckOverlaps,
    /// TG018
    HealthCheckAlone,
}

impl LintCode {
    /// Every lint, by code.
    pub const ALL: [Self; 18] = [
        Self::UnreachableRoute,
        Self::QueueBeyondBudget,
        Self::LongWait,
        Self::EarlyOrphan,
        Self::OrphanMaxUnused,
        Self::EveryoneTrusted,
        Self::PublicAdmin,
        Self::SmallBurst,
        Self::RateLimitUnused,
        Self::ToleranceUnused,
        Self::SlowBeyondTimeout,
        Self::BulkheadUnused,
        Self::ConnectTimeoutUnused,
        Self::LogFileUnused,
        Self::ShortDrain,
        Self::UpstreamUnused,
        Self::HealthCheckOverlaps,
        Self::HealthCheckAlone,
    ];

    /// The code, such as `TG001`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.entry().0
    }

    /// What the lint warns of, as one sentence.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        self.entry().1
    }

    const fn entry(self) -> (&'static str, &'static str) {
        match self {
            Self::UnreachableRoute => ("TG001", "Earlier routes take every request that this route is for."),
            Self::QueueBeyondBudget => (
                "TG002",
                "Even if a request took only a millisecond, the last place in the queue could not be served within `wait`.",
            ),
            Self::LongWait => ("TG003", "`wait` is longer than ten seconds; few clients wait that long."),
            Self::EarlyOrphan => (
                "TG004",
                "`orphan_max` is shorter than `timeout`: slots are given away while the upstream still works.",
            ),
            Self::OrphanMaxUnused => ("TG005", "`orphan_max` has no effect with `cancels_work = true`."),
            Self::EveryoneTrusted => {
                ("TG006", "`trusted_proxies` holds every address, so that anybody can forge theirs.")
            }
            Self::PublicAdmin => ("TG007", "`admin` can be reached from other machines."),
            Self::SmallBurst => ("TG008", "`burst` is lower than what `rate` lets through in a second."),
            Self::RateLimitUnused => {
                ("TG009", "No route that is limited has one of the `paths` of this rate limit.")
            }
            Self::ToleranceUnused => ("TG010", "`tolerance` has no effect without `baseline`."),
            Self::SlowBeyondTimeout => (
                "TG011",
                "`baseline` times `tolerance` is not below `timeout`: no answer in time is ever slow.",
            ),
            Self::BulkheadUnused => {
                ("TG012", "The route's `concurrency` is not below the upstream's limit and queue together.")
            }
            Self::ConnectTimeoutUnused => {
                ("TG013", "`connect_timeout` is not below `timeout`, which ends first.")
            }
            Self::LogFileUnused => ("TG014", "`access_log_file` has no effect with `access_log = \"off\"`."),
            Self::ShortDrain => (
                "TG015",
                "`drain` is shorter than an upstream's `timeout`: requests in good time are cut off.",
            ),
            Self::UpstreamUnused => ("TG016", "No route leads to this upstream."),
            Self::HealthCheckOverlaps => {
                ("TG017", "A health check's `timeout` is longer than its `interval`.")
            }
            Self::HealthCheckAlone => {
                ("TG018", "There is a health check, but no other endpoint that requests could go to.")
            }
        }
    }
}
