//! What a collector may want to know of a request that has ended.

use std::net::IpAddr;
use std::sync::Arc;

use http::{Method, StatusCode, Uri, Version};
use tidegate_engine::{Priority, Reason, Timestamp};

use crate::live::Live;

/// What became of a request.
#[cfg_attr(not(feature = "otlp"), expect(dead_code, reason = "nobody is told"))]
pub(crate) struct Ended {
    pub(crate) live: Arc<Live>,
    pub(crate) route: Option<usize>,
    pub(crate) priority: Priority,
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) version: Version,
    pub(crate) client: IpAddr,
    /// What the client was told; what it would have been told, if it has left.
    pub(crate) status: StatusCode,
    pub(crate) reason: Option<Reason>,
    pub(crate) began: Timestamp,
    pub(crate) dispatched: Option<Timestamp>,
    /// Whether the upstream has answered, so that the status is its own.
    pub(crate) answered: bool,
    pub(crate) at: Timestamp,
}
