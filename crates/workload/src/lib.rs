//! What a service is offered: scenarios, arrival processes, client models, access-log readers, the Report.
//!
//! It says what comes and when; it decides nothing, opens no socket and asks no clock. The simulator plays it in virtual
//! time, the load generator on a socket, and both fill in the same Report.
#![forbid(unsafe_code)]

pub mod access_log;

mod arrivals;
pub use arrivals::OpenArrivals;

mod breaker;
pub use breaker::RetryBreaker;

mod crowd;
pub use crowd::Crowd;

mod cubic;
pub use cubic::CubicRate;

mod expect;
pub use expect::{Expectation, Metric, Missed, Part, Quantile};

mod random;
pub use random::{Purpose, Random};

mod report;
pub use report::{
    Bucket, Found, Gauges, KneeReport, Latencies, Limited, MadeBy, Meter, Probe, Report, Sending, Series,
    Totals, Try, Verdict, Who, Window, WireError, judge, page, table,
};

mod resilient;
pub use resilient::{Course, Resilient};

mod retry;
pub use retry::{CallerId, Failed, Hint, Next, Retries, RetryPolicy};

mod scenario;
pub use scenario::{
    Arrivals, BEST_STATIC, Capacity, Change, Clients, Kind, NO_CONTROL, NamedPolicy, Piece, Product,
    Scenario, ScenarioError, Service, ServiceTime, Spacing, check_field,
};

mod threshold;
pub use threshold::{BadThreshold, Crossed, Threshold};
