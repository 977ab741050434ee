//! What the environment says of a collector, in the variables that all exporters of OpenTelemetry know
//! (<https://opentelemetry.io/docs/specs/otel/protocol/exporter/>).
//!
//! What stands in the policy goes before it. A variable that cannot be used is told of and left out, since it may be meant
//! for others, and a gateway that does not start is worse than one that is not watched.

use std::io::{self, Write as _};

use http::{HeaderName, HeaderValue};
use tidegate_policy::{Otlp, Parsed, Setting, ValueSource, set_by_environment};

const SECTION: &str = "[server.otlp]";
const DISABLED: &str = "OTEL_SDK_DISABLED";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const SAMPLE: &str = "OTEL_TRACES_SAMPLER_ARG";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Adds it to a policy.
pub(crate) fn add(parsed: &mut Parsed) {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    add_from(parsed, variable, cfg!(feature = "otlp"));
}

/// `can_tell` is whether this build can tell a collector anything.
fn add_from(parsed: &mut Parsed, variable: impl Fn(&str) -> Option<String>, can_tell: bool) {
    if variable(DISABLED).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        parsed.policy.server.otlp = None;
        // What is not in force is not shown as if it were.
        parsed.settings.retain(|setting| setting.section != SECTION);
        return;
    }
    if let Some(endpoint) = variable(ENDPOINT) {
        if can_tell {
            add_endpoint(parsed, &endpoint);
        } else {
            warn(ENDPOINT, "this build is without the feature `otlp`");
        }
    }
    // Nothing else makes a collector of itself.
    let Some(otlp) = &mut parsed.policy.server.otlp else { return };
    let settings = &mut parsed.settings;
    if let Some(name) = variable(SERVICE_NAME)
        && !is_said(settings, "service_name")
    {
        set_by_environment(settings, SECTION, "service_name", &format!("{name:?}"), SERVICE_NAME);
        otlp.service_name = name;
    }
    if let Some(share) = variable(SAMPLE)
        && !is_said(settings, "sample")
    {
        match share.parse() {
            Ok(share) if (0.0..=1.0).contains(&share) => {
                set_by_environment(settings, SECTION, "sample", &format!("{share:?}"), SAMPLE);
                otlp.sample = share;
            }
            _ => warn(SAMPLE, "it is no number from 0 to 1"),
        }
    }
    if let Some(fields) = variable(HEADERS) {
        add_headers(otlp, &fields);
    }
}

fn add_endpoint(parsed: &mut Parsed, endpoint: &str) {
    if is_said(&parsed.settings, "endpoint") {
        return;
    }
    let at = match Otlp::at(endpoint) {
        Ok(at) => at,
        Err(what) => return warn(ENDPOINT, &what),
    };
    match &mut parsed.policy.server.otlp {
        Some(otlp) => otlp.endpoint = at.endpoint,
        otlp => *otlp = Some(at),
    }
    set_by_environment(&mut parsed.settings, SECTION, "endpoint", &format!("{endpoint:?}"), ENDPOINT);
}

/// What is wrong with a part is said without the part, which may be a secret; the others are used.
fn add_headers(otlp: &mut Otlp, fields: &str) {
    for field in fields.split(',').filter(|field| !field.trim().is_empty()) {
        let Some((name, value)) = field.split_once('=') else {
            warn(HEADERS, "a part of it is not `name=value`");
            continue;
        };
        let (name, value) = (name.trim(), decoded(value.trim()));
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            warn(HEADERS, "a part of it has a name that no field can have");
        } else if HeaderValue::from_str(&value).is_err() {
            warn(HEADERS, &format!("the value of `{name}` cannot stand in a field"));
        } else {
            otlp.headers.push((name.to_owned(), value));
        }
    }
}

/// Whether somebody has written this key of `[server.otlp]`.
fn is_said(settings: &[Setting], key: &str) -> bool {
    let found = settings.iter().find(|setting| setting.section == SECTION && setting.key == key);
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
        parsed_with(server, environment, true).policy.server.otlp
    }

    fn parsed_with(server: &str, environment: &[(&str, &str)], can_tell: bool) -> Parsed {
        let text = format!("{server}\n[[upstream]]\nname = \"a\"\nendpoints = [\"http://127.0.0.1:1\"]\n");
        let mut parsed = Policy::parse(&text, "p.toml").unwrap();
        let variable = |name: &str| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        add_from(&mut parsed, variable, can_tell);
        parsed
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
    /// A variable that is meant for others does not keep the gateway from starting; only the policy's own word does.
    #[test]
    fn a_build_that_cannot_tell_goes_without() {
        let environment = [(ENDPOINT, "http://collector:4318"), (HEADERS, "a=1")];
        assert_eq!(parsed_with("", &environment, false).policy.server.otlp, None);
        let written = parsed_with("[server.otlp]\n", &environment, false);
        assert!(written.policy.server.otlp.is_some(), "the gateway refuses that by itself");
    }

    #[test]
    fn a_field_that_could_not_be_sent_is_left_out() {
        let fields = "x y=1,good=a%20b,line=a%0Ab,=1,also=2,";
        let otlp = with("[server.otlp]\n", &[(HEADERS, fields)]).unwrap();
        assert_eq!(otlp.headers, [("good".into(), "a b".into()), ("also".into(), "2".into())]);
    }

    /// What the environment has set is shown as that, and what it has turned off is not shown as if it were in force.
    #[test]
    fn the_policy_in_force_says_what_comes_from_the_environment() {
        let shown = |server: &str, environment: &[(&str, &str)]| -> Vec<String> {
            let settings = parsed_with(server, environment, true).settings;
            let otlp = settings.into_iter().filter(|setting| setting.section == SECTION);
            otlp.map(|it| format!("{} = {} ({:?})", it.key, it.value, it.from)).collect()
        };
        let environment = [(ENDPOINT, "http://collector:4318"), (SERVICE_NAME, "a \"b\""), (SAMPLE, "0.50")];
        let all = shown("", &environment);
        for line in [
            "endpoint = \"http://collector:4318\" (Environment(\"OTEL_EXPORTER_OTLP_ENDPOINT\"))",
            "service_name = \"a \\\"b\\\"\" (Environment(\"OTEL_SERVICE_NAME\"))",
            "sample = 0.5 (Environment(\"OTEL_TRACES_SAMPLER_ARG\"))",
            "metrics_interval = \"15s\" (Default)",
        ] {
            assert!(all.iter().any(|shown| shown == line), "no {line} in {all:#?}");
        }
        let written = shown("[server.otlp]\nsample = 0.25\n", &environment);
        assert!(written.iter().any(|shown| shown.starts_with("sample = 0.25 (Line")), "{written:#?}");
        assert_eq!(shown("[server.otlp]\n", &[(DISABLED, "true")]), Vec::<String>::new());
    }
}
