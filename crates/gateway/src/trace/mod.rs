//! Traces: which one a request belongs to, and, where a collector is told of it, what the gateway did with it.
//!
//! `context.rs` reads and writes the fields of W3C Trace Context. The rest is there with the feature `otlp` only: `span.rs`
//! has what is noted of a request on its way, `ids.rs` the names of spans, and `export` what is sent to a collector, on a
//! thread of its own. Without the feature, or without `[server.otlp]`, nothing is noted and the fields pass as they came.

mod context;
pub(crate) use context::{Context, TraceId};

mod ended;
pub(crate) use ended::Ended;

#[cfg(feature = "otlp")]
mod ids;

#[cfg(feature = "otlp")]
mod span;
#[cfg(feature = "otlp")]
pub(crate) use span::{Exchange, Trace, Tracer};

#[cfg(feature = "otlp")]
mod export;
#[cfg(feature = "otlp")]
pub(crate) use export::{Exporter, Families};

#[cfg(not(feature = "otlp"))]
mod off;
#[cfg(not(feature = "otlp"))]
pub(crate) use off::{Exchange, Exporter, Trace, Tracer};
