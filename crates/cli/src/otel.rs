//! What the environment says of a collector, in the variables that all exporters of OpenTelemetry know
//! (<https://opentelemetry.io/docs/specs/otel/protocol/exporter/>).
//!
//! What stands in the policy goes before it. A variable that cannot be used is told of and left out, since it may be meant
//! for others, and a gateway that does not start is worse than one that is not watched.

use std::io::{self, Write as _};

use tidegate_policy::{Otlp, Parsed, Setting, ValueSource};

/// Adds it to a policy.
pub(crate) fn add(parsed: &mut Parsed) {
    add_from(parsed, |name| std::env::var(name).ok().filter(|value| !value.is_empty()));
}

fn add_from(parsed: &mut Parsed, variable: impl Fn(&str) -> Option<String>) {
    let otlp = &mut parsed.policy.server.otlp;
    if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        *otlp = None;
        return;
    }
    let is_said = |key: &str| is_said(&parsed.settings, key);
    if let Some(endpoint) = variable("OTEL_EXPORTER_OTLP_ENDPOINT")
        && !is_said("endpoint")
    {
        match Otlp::at(&endpoint) {
            Ok(at) => match otlp {
                Some(otlp) => otlp.endpoint = at.endpoint,
                None => *otlp = Some(at),
            },
            Err(what) => warn("OTEL_EXPORTER_OTLP_ENDPOINT", &what),
        }
    }
    // Nothing else makes a collector of itself.
    let Some(otlp) = otlp else { return };
    if let Some(name) = variable("OTEL_SERVICE_NAME")
        && !is_said("service_name")
    {
        otlp.service_name = name;
    }
    if let Some(share) = variable("OTEL_TRACES_SAMPLER_ARG")
        && !is_said("sample")
    {
        match share.parse() {
            Ok(share) if (0.0..=1.0).contains(&share) => otlp.sample = share,
            _ => warn("OTEL_TRACES_SAMPLER_ARG", "it is no number from 0 to 1"),
        }
    }
    if let Some(fields) = variable("OTEL_EXPORTER_OTLP_HEADERS") {
        for field in fields.split(',') {
            match field.split_once('=') {
                Some((name, value)) => {
                    otlp.headers.push((name.trim().to_owned(), decoded(value.trim())));
                }
                None => warn("OTEL_EXPORTER_OTLP_HEADERS", "a part of it is not `name=value`"),
            }
        }
    }
}

/// Whether somebody has written this key of `[server.otlp]`.
fn is_said(settings: &[Setting], key: &str) -> bool {
    let found = settings.iter().find(|setting| setting.section == "[server.otlp]" && setting.key == key);
    found.is_some_and(|setting| !matches!(setting.from, ValueSource::Default | ValueSource::LeftOut))
}

fn warn(variable: &str, what: &str) {
    let _ = writeln!(io::stderr(), "tidegate: {variable} is not used: {what}");
}

/// Without percent signs: values are written as in W3C Baggage.
fn decoded(value: &str) -> String {
    let bytes = value.as_bytes();
    let mut text = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let code = (byte == b'%').then(|| value.get(at + 1..at + 3)).flatten();
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(code) => {
                text.push(code);
                at += 3;
            }
            None => {
                text.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_policy::Policy;

    fn with(server: &str, environment: &[(&str, &str)]) -> Option<Otlp> {
        let text = format!("{server}\n[[upstream]]\nname = \"a\"\nendpoints = [\"http://127.0.0.1:1\"]\n");
        let mut parsed = Policy::parse(&text, "p.toml").unwrap();
        add_from(&mut parsed, |name| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        });
        parsed.policy.server.otlp
    }

    #[test]
    fn the_environment_says_what_the_policy_does_not() {
        assert_eq!(with("", &[("OTEL_SERVICE_NAME", "edge")]), None, "a name is no collector");
        let environment = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
            ("OTEL_SERVICE_NAME", "Edge Proxy"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.5"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x%2, b = 2"),
        ];
        let from_there = with("", &environment).unwrap();
        assert_eq!(from_there.endpoint, Otlp::at("http://collector:4318").unwrap().endpoint);
        assert_eq!((from_there.service_name.as_str(), from_there.sample), ("Edge Proxy", 0.5));
        assert_eq!(
            from_there.headers,
            [("authorization".into(), "Bearer x%2".into()), ("b".into(), "2".into())]
        );
        let written = "[server.otlp]\nendpoint = \"http://written:1\"\nsample = 0.25\n";
        let both = with(written, &environment).unwrap();
        assert_eq!(both.endpoint, Otlp::at("http://written:1").unwrap().endpoint);
        assert_eq!((both.service_name.as_str(), both.sample), ("Edge Proxy", 0.25));
        let off = [environment[0], ("OTEL_SDK_DISABLED", "TRUE")];
        assert_eq!(with(written, &off), None);
    }

    #[test]
    fn what_cannot_be_used_is_left_out() {
        assert_eq!(with("", &[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector:4318")]), None);
        let nonsense = [("OTEL_TRACES_SAMPLER_ARG", "7"), ("OTEL_EXPORTER_OTLP_HEADERS", "nonsense")];
        let plain = with("[server.otlp]\n", &nonsense).unwrap();
        assert_eq!((plain.sample, plain.headers.len()), (1.0, 0));
    }
}
