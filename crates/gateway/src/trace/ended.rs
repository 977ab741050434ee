//! What a collector may want to know of a request that has ended.

use std::net::IpAddr;
use std::sync::Arc;

use http::{Method, StatusCode, Version};
use tidegate_engine::{Priority, Reason, Timestamp};

use crate::live::Live;

/// The longest path that the collector is told.
const PATH_MAX: usize = 1_024;

/// What became of a request.
#[cfg_attr(not(feature = "otlp"), expect(dead_code, reason = "nobody is told"))]
pub(crate) struct Ended {
    pub(crate) live: Arc<Live>,
    pub(crate) route: Option<usize>,
    pub(crate) priority: Priority,
    pub(crate) method: Method,
    /// A copy, and cut: what is a part of the head would keep all of it, and thousands may wait to be told of.
    pub(crate) path: String,
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

impl Ended {
    /// As much of a path as is told.
    pub(crate) fn cut(path: &str) -> String {
        let end = path.char_indices().find(|(at, _)| *at >= PATH_MAX).map_or(path.len(), |(at, _)| at);
        path[..end].to_owned()
    }
}
