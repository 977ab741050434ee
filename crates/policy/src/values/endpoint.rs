//! Endpoints: the part of a URL that says where a server listens, and nothing else of it.

use std::net::IpAddr;

use super::{Wrong, show};
use crate::model::{Endpoint, Host};

/// `http://host:port`; without a port it is 80, as everywhere.
pub(crate) fn endpoint(text: &str) -> Result<Endpoint, Wrong> {
    const HELP: &str = "write it like \"http://127.0.0.1:8103\"";
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(Wrong::new("the scheme is missing", format!("write \"http://{}\"", show(text))));
    };
    if scheme.eq_ignore_ascii_case("https") {
        return Err(Wrong::not_yet("TLS to upstreams", "use http://, on a network that you trust"));
    }
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(Wrong::new(format!("`{}` is not a scheme that tidegate speaks", show(scheme)), HELP));
    }
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', '?', '#']) {
        return Err(Wrong::new(
            "an endpoint has no path",
            "end it after the port; the client's path is passed on",
        ));
    }
    if authority.contains('@') {
        return Err(Wrong::new("an endpoint has no user or password", HELP));
    }
    let (host, port) = split_port(authority);
    let port = match port {
        None => 80,
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_digit()) => digits.parse().unwrap_or(0),
        Some(_) => 0,
    };
    if port == 0 {
        return Err(Wrong::new("the port is not a number from 1 to 65_535", HELP));
    }
    Ok(Endpoint { host: parse_host(host)?, port })
}

/// A host, perhaps with a port, as it stands in the field `Host`.
pub(crate) fn host_field(text: &str) -> Result<String, Wrong> {
    if !text.contains('/') && endpoint(&format!("http://{text}")).is_ok() {
        return Ok(text.to_owned());
    }
    Err(Wrong::new("this is not a host", "write it like \"shop.example\", with a port if it is not 80"))
}

/// A name of a host, in lower case, without a port.
pub(crate) fn host_name(text: &str) -> Result<String, Wrong> {
    match parse_host(text) {
        Ok(Host::Name(name)) => Ok(name),
        Ok(Host::Ip(_)) => {
            Err(Wrong::new("this is an address", "addresses are answered anyway; write names"))
        }
        Err(_) => Err(Wrong::new(
            format!("`{}` is not the name of a host", show(text)),
            "write it like \"gateway.example\", without a port",
        )),
    }
}

/// Splits at the colon before the port; the colons of a bracketed IPv6 address do not count.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

fn parse_host(text: &str) -> Result<Host, Wrong> {
    let wrong = || {
        Wrong::new(
            format!("`{}` is not a host", show(text)),
            "write a name, an IPv4 address, or an IPv6 address in brackets",
        )
    };
    if let Some(inner) = text.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or_else(wrong)?;
        return inner.parse().map(|ip| Host::Ip(IpAddr::V6(ip))).map_err(|_| wrong());
    }
    if let Ok(ip) = text.parse() {
        return Ok(Host::Ip(IpAddr::V4(ip)));
    }
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // RFC 3986 takes `256.1.1.1` for a name; whoever writes it means an address. No top-level domain is a number.
    let numeric = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    if text.len() <= 253 && text.split('.').all(label) && !text.rsplit('.').next().is_some_and(numeric) {
        return Ok(Host::Name(text.to_ascii_lowercase()));
    }
    Err(wrong())
}
