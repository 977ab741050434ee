//! What a head loses and gains on its way through: hop-by-hop fields off, our own fields on.
//!
//! The order matters. Fields that the client lists in `Connection` are removed first and ours are set afterwards, so
//! that a client cannot have them removed (CVE-2024-45410).

use std::net::IpAddr;

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, FORWARDED, HOST, HeaderName,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::{HeaderMap, HeaderValue, Request, Version, request};

use crate::client_addr::X_FORWARDED_FOR;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");

/// Who sent a request, in the words of the fields that tell the upstream. Made once for each connection.
pub(crate) struct Sender {
    /// For `X-Forwarded-For`.
    address: HeaderValue,
    /// For `Forwarded`. The host is not in it: it is passed on unchanged in its own field.
    forwarded: HeaderValue,
    /// The port that the client connected to.
    port: HeaderValue,
}

impl Sender {
    pub(crate) fn new(peer: IpAddr, port: u16) -> Self {
        let peer = peer.to_canonical();
        let forwarded = match peer {
            IpAddr::V4(address) => format!("for={address};proto=http"),
            // RFC 7239 section 6: an IPv6 address is bracketed, and with its colons it has to be quoted.
            IpAddr::V6(address) => format!("for=\"[{address}]\";proto=http"),
        };
        let value = |text: String| HeaderValue::try_from(text).expect("addresses are plain ASCII");
        Self { address: value(peer.to_string()), forwarded: value(forwarded), port: HeaderValue::from(port) }
    }
}

/// Makes a client's request head into the one that the upstream gets. What a `trusted` peer, a proxy, says about those
/// before it is passed on. `upgrade` is the protocol to switch to, if that is what the request is for.
pub(crate) fn for_upstream(
    head: &mut request::Parts,
    sender: &Sender,
    trusted: bool,
    upgrade: Option<HeaderValue>,
) {
    let headers = &mut head.headers;
    let found = Found::in_headers(headers);
    let trailers = found.hop_by_hop && asks_for_trailers(headers);
    // Room for what is added here, so that the map grows once.
    headers.reserve(8);
    remove_hop_by_hop(headers, found);
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if found.expect {
        // We have answered the expectation ourselves by the time the body is read (RFC 9110 section 10.1.1).
        headers.remove(EXPECT);
    }
    if let Some(protocol) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol);
    }
    if found.forwarded && !trusted {
        // Claims of somebody we have no reason to believe.
        for name in [&X_FORWARDED_FOR, &X_FORWARDED_PROTO, &X_FORWARDED_HOST, &X_FORWARDED_PORT, &FORWARDED] {
            headers.remove(name);
        }
    }
    let via = match head.version {
        Version::HTTP_2 => "2 tidegate",
        Version::HTTP_10 => "1.0 tidegate",
        _ => "1.1 tidegate",
    };
    headers.append(VIA, HeaderValue::from_static(via));
    if head.version == Version::HTTP_2 {
        join_cookies(headers);
    }
    set_host(head);
    set_forwarded(&mut head.headers, sender, found.forwarded && trusted);
    head.version = Version::HTTP_11;
}

/// The request that goes to the upstream. What the head says is taken out of it.
pub(crate) fn request<B>(head: &mut request::Parts, body: B) -> Request<B> {
    let mut request = Request::new(body);
    *request.method_mut() = std::mem::take(&mut head.method);
    *request.uri_mut() = std::mem::take(&mut head.uri);
    *request.headers_mut() = std::mem::take(&mut head.headers);
    *request.version_mut() = head.version;
    request
}

/// Makes the upstream's response head into the one that the client gets. `false` if its body cannot be passed on: hyper
/// undoes `chunked`, but what lies beneath it would reach the client without its name.
pub(crate) fn for_client(headers: &mut HeaderMap) -> bool {
    let found = Found::in_headers(headers);
    if found.hop_by_hop && headers.contains_key(TRANSFER_ENCODING) {
        let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
        let chunked = codings.next().is_some_and(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
        if !chunked || codings.next().is_some() {
            return false;
        }
        // Chunks count, whatever length is stated beside them (RFC 9112 section 6.3).
        headers.remove(CONTENT_LENGTH);
    }
    remove_hop_by_hop(headers, found);
    true
}

/// Whether a list field has this element.
pub(crate) fn lists(value: &[u8], element: &[u8]) -> bool {
    value.split(|&byte| byte == b',').any(|name| name.trim_ascii().eq_ignore_ascii_case(element))
}

/// Which fields that need work are there, found in one pass: most heads have none, and looking for each by its name
/// would hash a dozen names for nothing.
#[derive(Clone, Copy, Default)]
struct Found {
    connection: bool,
    hop_by_hop: bool,
    forwarded: bool,
    expect: bool,
}

impl Found {
    fn in_headers(headers: &HeaderMap) -> Self {
        let mut found = Self::default();
        for name in headers.keys() {
            match name.as_str() {
                "connection" => found.connection = true,
                "te"
                | "transfer-encoding"
                | "upgrade"
                | "keep-alive"
                | "proxy-connection"
                | "proxy-authenticate"
                | "proxy-authorization" => found.hop_by_hop = true,
                "forwarded" | "x-forwarded-for" | "x-forwarded-proto" | "x-forwarded-host"
                | "x-forwarded-port" => {
                    found.forwarded = true;
                }
                "expect" => found.expect = true,
                _ => {}
            }
        }
        found
    }
}

/// RFC 9110 section 7.6.1. hyper derives a message's length from what it parsed, not from what is left here.
fn remove_hop_by_hop(headers: &mut HeaderMap, found: Found) {
    // Alone, it lists nothing: the usual case.
    let lists_none = |value: &HeaderValue| {
        value.as_bytes().eq_ignore_ascii_case(b"keep-alive")
            || value.as_bytes().eq_ignore_ascii_case(b"close")
    };
    if found.connection && headers.get_all(CONNECTION).iter().all(lists_none) {
        headers.remove(CONNECTION);
    } else if found.connection {
        let listed: Vec<HeaderName> = headers
            .get_all(CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .filter(|name| !name.eq_ignore_ascii_case("close") && !name.eq_ignore_ascii_case("keep-alive"))
            .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
            // End-to-end fields that somebody lists to be rid of them stay.
            .filter(|name| ![HOST, CONTENT_LENGTH, AUTHORIZATION].contains(name))
            .collect();
        for name in listed {
            headers.remove(name);
        }
        headers.remove(CONNECTION);
    }
    if found.hop_by_hop {
        let names = [
            TE,
            TRANSFER_ENCODING,
            UPGRADE,
            KEEP_ALIVE,
            PROXY_CONNECTION,
            PROXY_AUTHENTICATE,
            PROXY_AUTHORIZATION,
        ];
        for name in names {
            headers.remove(name);
        }
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
    // HTTP/1.0 may come without one, HTTP/1.1 may not go without one: it is empty if there is none to name.
    head.headers.entry(HOST).or_insert(const { HeaderValue::from_static("") });
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

/// Says who the client is; `after_others`, if a trusted proxy has said who was before it.
fn set_forwarded(headers: &mut HeaderMap, sender: &Sender, after_others: bool) {
    if after_others {
        append_to_list(headers, X_FORWARDED_FOR, &sender.address);
        append_to_list(headers, FORWARDED, &sender.forwarded);
    } else {
        headers.insert(X_FORWARDED_FOR, sender.address.clone());
        headers.insert(FORWARDED, sender.forwarded.clone());
    }
    headers.entry(X_FORWARDED_PROTO).or_insert_with(|| HeaderValue::from_static("http"));
    headers.entry(X_FORWARDED_PORT).or_insert_with(|| sender.port.clone());
    if let Some(host) = headers.get(HOST).filter(|host| !host.is_empty()).cloned() {
        headers.entry(X_FORWARDED_HOST).or_insert(host);
    }
}

/// Appends an element to a list field, on the one line it then has.
fn append_to_list(headers: &mut HeaderMap, name: HeaderName, element: &HeaderValue) {
    let lines = headers.get_all(&name);
    let joined =
        lines.iter().chain([element]).map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b", "[..]);
    if let Ok(joined) = HeaderValue::from_bytes(&joined) {
        headers.insert(name, joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn forward(request: request::Builder, trusted: bool) -> Vec<String> {
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        let sender = Sender::new("9.9.9.9".parse().unwrap(), 8102);
        for_upstream(&mut head, &sender, trusted, None);
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
                "forwarded: for=9.9.9.9;proto=http",
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
            .version(Version::HTTP_2)
            .header("cookie", "a=1")
            .header("cookie", "b=2");
        let mut sent = forward(request, true);
        sent.sort();
        expect_test::expect![[r#"
            [
                "cookie: a=1; b=2",
                "forwarded: for=1.2.3.4;proto=https, for=9.9.9.9;proto=http",
                "host: shop.example",
                "via: 2 front",
                "via: 2 tidegate",
                "x-forwarded-for: 1.2.3.4, 9.9.9.9",
                "x-forwarded-host: shop.example",
                "x-forwarded-port: 8102",
                "x-forwarded-proto: https",
            ]
        "#]]
        .assert_debug_eq(&sent);
    }
}
