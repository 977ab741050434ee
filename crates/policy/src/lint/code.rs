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
    UselessFloor,
    /// TG018
    HighCeiling,
    /// TG019
    ClaimIgnored,
    /// TG020
    ClassUnused,
    /// TG021
    NobodyWaits,
    /// TG022
    TenantsAlike,
    /// TG023
    TenantClaimIgnored,
    /// TG024
    TenantUnused,
    /// TG025
    ShareUnused,
    /// TG026
    RateLimitTenantUnknown,
    /// TG027
    OrderLost,
    /// TG028
    StandingWaitUnused,
    /// TG029
    CostBeyondLimit,
    /// TG030
    HealthCheckOverlaps,
    /// TG031
    HealthCheckAlone,
}

impl LintCode {
    /// Every lint, by code.
    pub const ALL: [Self; 31] = [
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
        Self::UselessFloor,
        Self::HighCeiling,
        Self::ClaimIgnored,
        Self::ClassUnused,
        Self::NobodyWaits,
        Self::TenantsAlike,
        Self::TenantClaimIgnored,
        Self::TenantUnused,
        Self::ShareUnused,
        Self::RateLimitTenantUnknown,
        Self::OrderLost,
        Self::StandingWaitUnused,
        Self::CostBeyondLimit,
        Self::HealthCheckOverlaps,
        Self::HealthCheckAlone,
    ];

    /// The code, such as `TG001`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        ENTRIES[self as usize].0
    }

    /// What the lint warns of, as one sentence.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        ENTRIES[self as usize].1
    }
}

/// Code and summary of every lint, in the order of [`LintCode::ALL`].
const ENTRIES: [(&str, &str); LintCode::ALL.len()] = [
    ("TG001", "Earlier routes take every request that this route is for."),
    (
        "TG002",
        "Even if a request took only a millisecond, the last place in the queue could not be served within `wait`.",
    ),
    ("TG003", "`wait` is longer than ten seconds; few clients wait that long."),
    ("TG004", "`orphan_max` is shorter than `timeout`: slots are given away while the upstream still works."),
    ("TG005", "`orphan_max` has no effect with `cancels_work = true`."),
    ("TG006", "`trusted_proxies` holds every address, so that anybody can forge theirs."),
    ("TG007", "`admin` can be reached from other machines."),
    ("TG008", "`burst` is lower than what `rate` lets through in a second."),
    ("TG009", "No route that is limited has one of the `paths` of this rate limit."),
    ("TG010", "`tolerance` has no effect without `baseline`."),
    ("TG011", "`baseline` times `tolerance` is not below `timeout`: no answer in time is ever slow."),
    ("TG012", "The route's `concurrency` is not below the upstream's limit and queue together."),
    ("TG013", "`connect_timeout` is not below `timeout`, which ends first."),
    ("TG014", "`access_log_file` has no effect with `access_log = \"off\"`."),
    ("TG015", "`drain` is shorter than an upstream's `timeout`: requests in good time are cut off."),
    ("TG016", "No route leads to this upstream."),
    ("TG017", "The most important class has a `floor`, and nothing is ever taken from it anyway."),
    ("TG018", "With `priority_ceiling` anybody may claim a class that is more important than the default."),
    ("TG019", "A header names the class, and nobody is trusted to claim more than the default."),
    ("TG020", "No request is ever in this class."),
    (
        "TG021",
        "`capacity` is 0: nobody waits, so that neither classes nor `discipline` change who goes first.",
    ),
    ("TG022", "`tenant` is the client's address, and behind a proxy on this machine all have the same."),
    ("TG023", "A header names the tenant, and nobody is trusted to do so."),
    ("TG024", "No route takes its tenants from a header, so that this one is never seen."),
    ("TG025", "`tenant_share` has no effect: no route that leads here tells tenants apart."),
    ("TG026", "No route of this rate limit tells tenants apart, so that all share one bucket."),
    ("TG027", "`adaptive-lifo` lets newer requests overtake older ones, also those that change something."),
    ("TG028", "`standing_wait` has no effect with this `discipline`."),
    ("TG029", "The route's `cost` is more than the upstream's limit, and counts as the limit."),
    ("TG030", "A health check's `timeout` is longer than its `interval`."),
    ("TG031", "There is a health check, but no other endpoint that requests could go to."),
];
