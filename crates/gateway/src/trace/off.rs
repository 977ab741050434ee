//! What stands for traces in a build without the feature `otlp`: types of which there is no value, so that whatever would be
//! done with them is left out of the program.

use std::io;
use std::sync::Arc;

use http::HeaderMap;
use tidegate_engine::Timestamp;
use tidegate_policy::Server;
use tokio::sync::watch;

use super::{Ended, TraceId};
use crate::gateway::{Shared, Stage};
use crate::upstream::Endpoint;

/// There is none.
pub(crate) enum Tracer {}

/// There is none.
pub(crate) enum Trace {}

/// There is none.
pub(crate) enum Exchange {}

/// There is none.
pub(crate) enum Exporter {}

impl Trace {
    pub(crate) fn begin(_: Option<&Tracer>, _: &HeaderMap) -> Option<Box<Self>> {
        None
    }

    pub(crate) fn id(&self) -> TraceId {
        match *self {}
    }

    pub(crate) fn is_sampled(&self) -> bool {
        match *self {}
    }

    pub(crate) fn waited(&self, _: Timestamp, _: Timestamp) {
        match *self {}
    }

    pub(crate) fn exchange(&self) -> Option<Arc<Exchange>> {
        match *self {}
    }

    pub(crate) fn pass_on(&self, _: &mut HeaderMap) {
        match *self {}
    }

    pub(crate) fn end(self, _: &Shared, _: Ended) {
        match self {}
    }
}

impl Exporter {
    /// A policy that names a collector would have it that this build tells it something.
    pub(crate) fn of(server: &Server) -> io::Result<(Option<Tracer>, Option<Self>)> {
        match server.otlp {
            None => Ok((None, None)),
            Some(_) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "this build is without the feature `otlp`"))
            }
        }
    }

    pub(crate) fn run(self, _: &Arc<Shared>, _: watch::Receiver<Stage>) {
        match self {}
    }
}

impl Exchange {
    pub(crate) fn tries(&self, _: &Arc<Endpoint>) {
        match *self {}
    }
}
