//! The formats that are known by name: what they are called, what their times mean, and how their lines are laid out.

use std::fmt;
use std::str::FromStr;

use super::json;
use super::layout::Layout;
use super::role::{Clock, Role};
use super::template::{Field, Meaning, Part, Template};
use super::value::{Escape, Unit};

/// A format of access logs that is known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The Common Log Format of Apache and everybody since.
    /// <https://httpd.apache.org/docs/current/mod/mod_log_config.html#examples>
    Common,
    /// The same with referrer and user agent: the default of nginx, and Apache's `combined`.
    /// <https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format>
    Combined,
    /// ingress-nginx, the controller of Kubernetes.
    /// <https://kubernetes.github.io/ingress-nginx/user-guide/nginx-configuration/log-format/>
    IngressNginx,
    /// HAProxy's `option httplog`, of all versions, with or without what syslog puts before it.
    /// <https://docs.haproxy.org/2.6/configuration.html#8.2.3>
    Haproxy,
    /// Envoy's default text.
    /// <https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage#default-format-string>
    EnvoyText,
    /// Istio's default text.
    /// <https://istio.io/latest/docs/tasks/observability/logs/access-log/#default-access-log-format>
    IstioText,
    /// JSON of Envoy, Istio or Envoy Gateway.
    EnvoyJson,
    /// AWS Application Load Balancer.
    /// <https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html>
    AwsAlb,
    /// Traefik's default text. <https://doc.traefik.io/traefik/observability/access-logs/>
    TraefikText,
    /// Traefik's JSON.
    TraefikJson,
    /// Caddy's JSON. <https://caddyserver.com/docs/logging>
    CaddyJson,
    /// The gateway's own log.
    TidegateJson,
}

/// The name of a format that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
        write!(f, "{:?} is no format of access logs; there are {}", self.0, known.join(", "))
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;

    /// Reads a name as [`Format::name`] gives it; `nginx` and `apache` are `combined`.
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let name = match text {
            "nginx" | "apache" => "combined",
            "clf" => "common",
            name => name,
        };
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| UnknownFormat(text.chars().take(64).collect()))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Common,
        Self::Combined,
        Self::IngressNginx,
        Self::Haproxy,
        Self::EnvoyText,
        Self::IstioText,
        Self::EnvoyJson,
        Self::AwsAlb,
        Self::TraefikText,
        Self::TraefikJson,
        Self::CaddyJson,
        Self::TidegateJson,
    ];

    /// Its name, for flags and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Common => "common",
            Self::Combined => "combined",
            Self::IngressNginx => "ingress-nginx",
            Self::Haproxy => "haproxy",
            Self::EnvoyText => "envoy",
            Self::IstioText => "istio",
            Self::EnvoyJson => "envoy-json",
            Self::AwsAlb => "alb",
            Self::TraefikText => "traefik",
            Self::TraefikJson => "traefik-json",
            Self::CaddyJson => "caddy",
            Self::TidegateJson => "tidegate",
        }
    }

    /// What its times are taken to be, as a sentence.
    #[must_use]
    pub const fn time(self) -> &'static str {
        match self {
            Self::Common | Self::Combined => {
                "Apache writes when a request came, nginx when it ended; without a duration in the log, what is written \
                 counts as the arrival."
            }
            Self::IngressNginx => "The time is the end of a request; the arrival is that less $request_time.",
            Self::Haproxy => {
                "The time is the start of a request; the arrival is when its head was complete, one TR (or Tq) later."
            }
            Self::EnvoyText | Self::IstioText | Self::EnvoyJson => {
                "The time is the start of a request, and the arrival."
            }
            Self::AwsAlb => {
                "The arrival is the request's creation time; the other time is that of the answer."
            }
            Self::TraefikText | Self::TraefikJson => "The time is the start of a request, and the arrival.",
            Self::CaddyJson => "The time is the end of a request; the arrival is that less its duration.",
            Self::TidegateJson => "The time is the end of a request; the arrival is that less `total_ms`.",
        }
    }

    /// How its lines are read.
    pub(crate) fn layout(self) -> Layout {
        match self {
            Self::Common => template(&[COMMON], Escape::Backslash),
            Self::Combined => template(&[COMMON, COMBINED_TAIL], Escape::Backslash),
            Self::IngressNginx => template(&[COMMON, COMBINED_TAIL, INGRESS_TAIL], Escape::Backslash),
            Self::Haproxy => Layout::Haproxy,
            Self::EnvoyText => template(&[ENVOY_HEAD, ENVOY_TAIL], Escape::None),
            Self::IstioText => template(&[ENVOY_HEAD, ISTIO_DETAILS, ENVOY_TAIL, ISTIO_TAIL], Escape::None),
            Self::EnvoyJson => Layout::Json(&json::ENVOY),
            Self::AwsAlb => Layout::Alb,
            Self::TraefikText => template(&[TRAEFIK_HEAD, COMBINED_TAIL, TRAEFIK_TAIL], Escape::Backslash),
            Self::TraefikJson => Layout::Json(&json::TRAEFIK),
            Self::CaddyJson => Layout::Json(&json::CADDY),
            Self::TidegateJson => Layout::Json(&json::TIDEGATE),
        }
    }
}

// The layouts, with a name in angle brackets for each field, which messages show. `role` says what they mean.
const COMMON: &str = "<client> <identity> <user> [<time>] \"<request>\" <status> <bytes>";
const COMBINED_TAIL: &str = " \"<referrer>\" \"<user agent>\"";
/// The list of addresses and what follows has spaces, which is why the roles have a say in where a field ends.
const INGRESS_TAIL: &str = " <request length> <request time> [<route>] [<alternative>] <upstream> <lengths> \
                            <upstream times> <statuses> <request id>";
const TRAEFIK_HEAD: &str = "<client> <identity> <user> [<start time>] \"<request>\" <status> <bytes>";
const TRAEFIK_TAIL: &str = " <count> \"<route>\" \"<served by>\" <duration>ms";
const ENVOY_HEAD: &str = "[<ISO start time>] \"<method> <target> <protocol>\" <status> <flags>";
const ISTIO_DETAILS: &str = " <code details> <termination details> \"<transport failure>\"";
const ENVOY_TAIL: &str = " <received> <bytes> <duration> <upstream time> \"<forwarded for>\" \"<user agent>\" \
                          \"<request id>\" \"<host>\" \"<served by>\"";
const ISTIO_TAIL: &str = " <route> <upstream local> <local> <client> <server name> <route name>";

fn template(pieces: &[&'static str], escape: Escape) -> Layout {
    let parts = pieces.iter().flat_map(|piece| parts(piece)).fold(Vec::new(), join);
    Layout::Template(Template { parts, escape, open_ended: true })
}

fn role(name: &str) -> Option<Role> {
    Some(match name {
        "client" => Role::Client,
        "time" => Role::End(Clock::Common),
        "start time" => Role::Start(Clock::Common),
        "ISO start time" => Role::Start(Clock::Iso),
        "request" => Role::Request,
        "method" => Role::Method,
        "target" => Role::Target,
        "status" => Role::Status,
        "bytes" => Role::Bytes,
        "received" | "request length" | "count" => Role::Number,
        "request time" => Role::Total(Unit::Seconds),
        "duration" => Role::Total(Unit::Millis),
        "upstream time" => Role::Service(Unit::Millis),
        "upstream times" => Role::ServiceList(Unit::Seconds),
        "upstream" | "served by" => Role::Upstream,
        "identity" => Role::Word,
        "flags" => Role::Flags,
        "route" => Role::Route,
        "host" => Role::Host,
        "forwarded for" => Role::ForwardedFor,
        _ => return None,
    })
}

fn parts(layout: &'static str) -> impl Iterator<Item = Part> {
    layout.split_inclusive('>').flat_map(|piece| {
        let (text, name) =
            piece.strip_suffix('>').and_then(|piece| piece.split_once('<')).unwrap_or((piece, ""));
        let field = (!name.is_empty()).then(|| {
            let role = role(name).map_or(Meaning::Ignored, Meaning::One);
            Part::Field(Field { name: name.into(), role })
        });
        let text = (!text.is_empty()).then(|| Part::Text(text.into()));
        text.into_iter().chain(field)
    })
}

/// Adds a part; the texts at the ends of two pieces become one.
fn join(mut parts: Vec<Part>, part: Part) -> Vec<Part> {
    match (parts.last_mut(), part) {
        (Some(Part::Text(before)), Part::Text(text)) => *before = format!("{before}{text}").into(),
        (_, part) => parts.push(part),
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_name_of_its_own() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        assert_eq!("nginx".parse(), Ok(Format::Combined));
        let error = "iis".parse::<Format>().unwrap_err().to_string();
        assert!(
            error.starts_with("\"iis\" is no format of access logs; there are common, combined,"),
            "{error}"
        );
    }

    #[test]
    fn layouts_alternate_between_texts_and_fields() {
        for format in Format::ALL {
            let Layout::Template(template) = format.layout() else { continue };
            for pair in template.parts.windows(2) {
                let differ =
                    matches!(pair, [Part::Text(_), Part::Field(_)] | [Part::Field(_), Part::Text(_)]);
                assert!(differ, "{format}: {pair:?}");
            }
        }
    }
}
