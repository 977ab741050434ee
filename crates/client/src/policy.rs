//! How calls are made: the numbers, and the names of the fields. Plain data, with a bound for everything.

use std::time::Duration;

use http::header::HeaderName;
use tidegate_engine::CallerPolicy;

use crate::deadline::DeadlineField;
use crate::room::RoomPolicy;

/// How calls are made.
///
/// ```
/// use std::time::Duration;
/// use tidegate_client::Policy;
/// use tidegate_client::engine::*;
///
/// let mut policy = Policy::careful(Duration::from_millis(800));
/// policy.room.calls = 20;
/// policy.caller.hedge = Some(HedgePolicy { percentile: 95, least: Duration::from_millis(10) });
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Whether to ask, whether to ask again, and when.
    pub caller: CallerPolicy,
    /// The longest that a call takes with all its tries and pauses, if neither the request nor the request that is being
    /// served says less. To the end of the answer's body, if `covers_body`.
    pub timeout: Duration,
    /// The longest that one try takes to the head of its answer. `None`: as long as the call.
    pub try_timeout: Option<Duration>,
    /// Whether `timeout` and deadlines end the body of an answer too. Not for endless streams.
    pub covers_body: bool,
    /// How many calls to one upstream are under way at once.
    pub room: RoomPolicy,
    /// A body of at most so many bytes is kept, so that it can be sent again. Longer ones are sent once.
    pub replay_bytes: usize,
    /// The fields that tell the upstream what is left of the deadline.
    pub deadline_fields: Vec<DeadlineField>,
    /// The field that counts the tries, the first being 1; sent, and looked at in requests that are passed on.
    pub attempt_field: HeaderName,
    /// With one of these fields a request may be made twice whatever its method.
    pub idempotency_fields: Vec<HeaderName>,
    /// Whether whoever is called tries again by itself, as a mesh may do. Then nothing is tried again here.
    pub upstream_retries: bool,
    /// So many upstreams, by the authority in the URI, are told apart. What is beyond shares one state, so that made-up
    /// names cannot fill the memory.
    pub upstreams_max: usize,
}

impl Policy {
    /// [`CallerPolicy::careful`], 100 calls at once with as many waiting for at most a tenth of the timeout, bodies of up
    /// to 64 KiB sent again, the deadline told as gRPC and Envoy do.
    pub fn careful(timeout: Duration) -> Self {
        Self {
            caller: CallerPolicy::careful(timeout),
            timeout,
            try_timeout: None,
            covers_body: true,
            room: RoomPolicy { calls: 100, waiting: 100, wait: timeout / 10 },
            replay_bytes: 64 * 1024,
            deadline_fields: vec![DeadlineField::GRPC, DeadlineField::ENVOY],
            attempt_field: HeaderName::from_static("x-envoy-attempt-count"),
            idempotency_fields: vec![HeaderName::from_static("idempotency-key")],
            upstream_retries: false,
            upstreams_max: 256,
        }
    }
}

impl Default for Policy {
    /// [`Policy::careful`] with ten seconds.
    fn default() -> Self {
        Self::careful(Duration::from_secs(10))
    }
}
