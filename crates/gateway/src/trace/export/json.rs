//! Words that traces and metrics share in OTLP's JSON: attributes, times, and who speaks.
//!
//! Whole numbers of 64 bits are strings there, since JSON's own numbers cannot hold them
//! (<https://protobuf.dev/programming-guides/json/>).

use std::hash::{BuildHasher as _, RandomState};

use serde_json::{Value, json};
use tidegate_engine::Timestamp;

pub(super) fn text(key: &str, value: impl Into<String>) -> Value {
    json!({ "key": key, "value": { "stringValue": value.into() } })
}

pub(super) fn number(key: &str, value: impl Into<i64>) -> Value {
    json!({ "key": key, "value": { "intValue": value.into().to_string() } })
}

/// A time of the gateway's clock, which began so many nanoseconds after 1970.
pub(super) fn time(at: Timestamp, epoch_nanos: u64) -> Value {
    Value::String(epoch_nanos.saturating_add(at.as_nanos()).to_string())
}

/// Who speaks.
pub(super) fn resource(service_name: &str) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    // The hash of nothing, by keys of chance.
    let instance = format!("{:016x}", RandomState::new().hash_one(()));
    json!({ "attributes": [
        text("service.name", service_name),
        text("service.version", version),
        text("service.instance.id", instance),
        text("telemetry.sdk.language", "rust"),
        text("telemetry.sdk.name", "tidegate"),
        text("telemetry.sdk.version", version),
    ] })
}

/// What speaks.
pub(super) fn scope() -> Value {
    json!({ "name": "tidegate", "version": env!("CARGO_PKG_VERSION") })
}
