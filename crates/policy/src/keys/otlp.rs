//! What a policy file may say of OpenTelemetry.

use std::time::Duration;

use super::Absent::{Default, Means};
use super::{Form, Key, Kind, Section, Shape};

const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) static OTLP: Section = Section {
    name: "otlp",
    path: "server.otlp",
    shape: Shape::One,
    doc: "Traces and metrics for an OpenTelemetry collector, by OTLP over HTTP in JSON. Without this table nothing is sent, \
          and `traceparent` passes as it came.",
    inner: &[],
    not_yet: &[],
    keys: &[
        Key::new(
            "endpoint",
            Kind::Text(Form::Endpoint),
            Default("\"http://127.0.0.1:4318\""),
            "The collector. `/v1/traces` and `/v1/metrics` are posted to.",
        ),
        Key::new(
            "service_name",
            Kind::Text(Form::ServiceName),
            Default("\"tidegate\""),
            "What the gateway is called there.",
        ),
        Key::new(
            "sample",
            Kind::Share { max: 1.0 },
            Default("1.0"),
            "The share of the requests without a trace of their own that are traced. Whoever comes with one has decided \
             already, and is followed.",
        ),
        Key::new(
            "metrics_interval",
            Kind::Duration { min: Duration::from_secs(1), max: HOUR },
            Default("\"15s\""),
            "How often metrics are sent.",
        ),
        Key::new(
            "headers_file",
            Kind::Text(Form::FilePath),
            Means("no fields of your own are sent"),
            "A file with fields for the collector, such as a token, each on a line as `name: value`. It is read at the start.",
        ),
    ],
};
