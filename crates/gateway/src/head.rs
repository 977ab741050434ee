//! What a head loses and gains on its way through: hop-by-hop fields off, our own fields on.
//!
//! The order matters. Fields that the client lists in `Connection` are removed first and ours are set afterwards, so
//! that a client cannot have them removed (CVE-2024-45410).

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use http::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, FORWARDED, HOST, HeaderName, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::{HeaderMap, HeaderValue, Version, request};

use crate::client_addr::X_FORWARDED_FOR;
use crate::connection::Client;
use crate::live::Live;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");

/// Who sent a request, for the fields that tell the upstream.
pub(crate) struct Sender {
    pub(crate) peer: SocketAddr,
    /// The peer is a trusted proxy: what it says about those before it is passed on.
    pub(crate) trusted: bool,
    /// The port that the client connected to.
    pub(crate) port: u16,
}

impl Sender {
    pub(crate) fn of(client: &Client, live: &Live) -> Self {
        let address = client.peer.ip().to_canonical();
        let trusted = live.policy.server.trusted_proxies.iter().any(|net| net.contains(&address));
        Self { peer: client.peer, trusted, port: client.worker.shared.port }
    }
}

/// Makes a client's request head into the one that the upstream gets. `upgrade` is the protocol to switch to, if that
/// is what the request is for.
pub(crate) fn for_upstream(head: &mut request::Parts, sender: &Sender, upgrade: Option<HeaderValue>) {
    let trailers = asks_for_trailers(&head.headers);
    remove_hop_by_hop(&mut head.headers);
    if trailers {
        head.headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    // We have answered the expectation ourselves by the time the body is read (RFC 9110 section 10.1.1).
    head.headers.remove(EXPECT);
    if let Some(protocol) = upgrade {
        head.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        head.headers.insert(UPGRADE, protocol);
    }
    set_host(head);
    join_cookies(&mut head.headers);
    set_forwarded(&mut head.headers, sender);
    let via = match head.version {
        Version::HTTP_2 => "2 tidegate",
        Version::HTTP_10 => "1.0 tidegate",
        _ => "1.1 tidegate",
    };
    head.headers.append(VIA, HeaderValue::from_static(via));
    head.version = Version::HTTP_11;
}

/// Makes the upstream's response head into the one that the client gets.
pub(crate) fn for_client(headers: &mut HeaderMap) {
    remove_hop_by_hop(headers);
}

/// RFC 9110 section 7.6.1. Framing fields stay where hyper needs them: it derives the message's length from what it
/// parsed, not from what is listed here.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        let listed: Vec<HeaderName> = headers
            .get_all(CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
            // End-to-end fields that somebody lists to be rid of them stay.
            .filter(|name| !matches!(*name, HOST | CONTENT_LENGTH | http::header::AUTHORIZATION))
            .collect();
        for name in listed {
            headers.remove(name);
        }
        headers.remove(CONNECTION);
    }
    for name in [
        &KEEP_ALIVE,
        &PROXY_CONNECTION,
        &TE,
        &TRANSFER_ENCODING,
        &UPGRADE,
        &PROXY_AUTHENTICATE,
        &PROXY_AUTHORIZATION,
    ] {
        headers.remove(name);
    }
}

/// `TE: trailers` is the one value that a gateway passes on, since gRPC insists on it.
fn asks_for_trailers(headers: &HeaderMap) -> bool {
    let values = headers.get_all(TE);
    values.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|coding| {
        coding.split(';').next().is_some_and(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
    })
}

/// The target's authority counts, if it has one, whatever `Host` says (RFC 9112 section 3.2.2); HTTP/2 has only that.
fn set_host(head: &mut request::Parts) {
    if let Some(authority) = head.uri.authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        head.headers.insert(HOST, host);
    }
}

/// HTTP/2 may split cookies, HTTP/1.1 may not (RFC 9113 section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let cookies = headers.get_all(COOKIE);
    if cookies.iter().nth(1).is_none() {
        return;
    }
    let joined = cookies.iter().map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b"; "[..]);
    if let Ok(joined) = HeaderValue::from_bytes(&joined) {
        headers.insert(COOKIE, joined);
    }
}

fn set_forwarded(headers: &mut HeaderMap, sender: &Sender) {
    let peer = sender.peer.ip().to_canonical();
    if !sender.trusted {
        // Claims of somebody we have no reason to believe.
        for name in [&X_FORWARDED_FOR, &X_FORWARDED_PROTO, &X_FORWARDED_HOST, &X_FORWARDED_PORT, &FORWARDED] {
            headers.remove(name);
        }
    }
    let mut text = String::with_capacity(64);
    append_to_list(headers, X_FORWARDED_FOR, &mut text, |text| write!(text, "{peer}"));
    if !headers.contains_key(X_FORWARDED_PROTO) {
        headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static("http"));
    }
    let host = headers.get(HOST).cloned();
    if let Some(host) = &host
        && !headers.contains_key(X_FORWARDED_HOST)
    {
        headers.insert(X_FORWARDED_HOST, host.clone());
    }
    if !headers.contains_key(X_FORWARDED_PORT) {
        headers.insert(X_FORWARDED_PORT, HeaderValue::from(sender.port));
    }
    append_to_list(headers, FORWARDED, &mut text, |text| {
        // RFC 7239 section 6: an IPv6 address is bracketed, and with its colons it has to be quoted.
        match peer {
            IpAddr::V4(address) => write!(text, "for={address}")?,
            IpAddr::V6(address) => write!(text, "for=\"[{address}]\"")?,
        }
        match host.as_ref().and_then(|host| host.to_str().ok()) {
            Some(host) if !host.contains(['"', '\\']) => write!(text, ";host=\"{host}\";proto=http"),
            _ => write!(text, ";proto=http"),
        }
    });
}

/// Appends an element to a list field, on the one line it then has.
fn append_to_list(
    headers: &mut HeaderMap,
    name: HeaderName,
    text: &mut String,
    element: impl FnOnce(&mut String) -> std::fmt::Result,
) {
    text.clear();
    for value in headers.get_all(&name).iter().filter_map(|value| value.to_str().ok()) {
        text.push_str(value);
        text.push_str(", ");
    }
    if element(text).is_ok()
        && let Ok(value) = HeaderValue::from_str(text)
    {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn forward(request: request::Builder, trusted: bool) -> Vec<String> {
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        let sender = Sender { peer: "9.9.9.9:1234".parse().unwrap(), trusted, port: 8102 };
        for_upstream(&mut head, &sender, None);
        head.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn a_client_cannot_strip_or_forge_what_we_say() {
        let request = Request::get("/")
            .header("host", "shop.example")
            .header("connection", "close, X-Forwarded-For, X-Secret, Host, Authorization")
            .header("x-forwarded-for", "6.6.6.6")
            .header("forwarded", "for=6.6.6.6")
            .header("x-forwarded-proto", "https")
            .header("x-secret", "1")
            .header("authorization", "Bearer t")
            .header("proxy-connection", "keep-alive")
            .header("te", "gzip, trailers;q=0.5")
            .header("expect", "100-continue");
        let mut sent = forward(request, false);
        sent.sort();
        expect_test::expect![[r#"
            [
                "authorization: Bearer t",
                "forwarded: for=9.9.9.9;host=\"shop.example\";proto=http",
                "host: shop.example",
                "te: trailers",
                "via: 1.1 tidegate",
                "x-forwarded-for: 9.9.9.9",
                "x-forwarded-host: shop.example",
                "x-forwarded-port: 8102",
                "x-forwarded-proto: http",
            ]
        "#]]
        .assert_debug_eq(&sent);
    }

    #[test]
    fn a_trusted_proxy_is_passed_on() {
        let request = Request::get("http://shop.example/")
            .header("host", "other.example")
            .header("x-forwarded-for", "1.2.3.4")
            .header("x-forwarded-proto", "https")
            .header("forwarded", "for=1.2.3.4;proto=https")
            .header("via", "2 front")
            .header("cookie", "a=1")
            .header("cookie", "b=2");
        let mut sent = forward(request, true);
        sent.sort();
        expect_test::expect![[r#"
            [
                "cookie: a=1; b=2",
                "forwarded: for=1.2.3.4;proto=https, for=9.9.9.9;host=\"shop.example\";proto=http",
                "host: shop.example",
                "via: 1.1 tidegate",
                "via: 2 front",
                "x-forwarded-for: 1.2.3.4, 9.9.9.9",
                "x-forwarded-host: shop.example",
                "x-forwarded-port: 8102",
                "x-forwarded-proto: https",
            ]
        "#]]
        .assert_debug_eq(&sent);
    }
}
