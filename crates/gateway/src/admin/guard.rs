//! Who may ask for what. Whoever reaches the admin address may read; only whoever knows the token may change.
//!
//! A browser on an operator's machine reaches the address too, with whatever page it has open. Three things keep that page
//! out: the token is sent in a field that no browser adds by itself, so a page cannot use one that it does not know; what is
//! sent with a body has to be JSON, which a page of another origin may not send unasked; and where the admin side listens on the
//! loopback interface, be it alone or with all others, it answers to no name but `localhost` and those that the policy has,
//! so that a name of somebody else's that is made to point here does not make that page one of ours (DNS rebinding, as in
//! CVE-2018-5702).

use std::fs::File;
use std::hint::black_box;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderMap, StatusCode};

/// A token has at least so many characters: it can be guessed at as fast as the admin side answers.
const TOKEN_MIN: usize = 16;
const TOKEN_MAX: usize = 256;

/// Why somebody may not, and what they can do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    pub(super) why: String,
}

impl Refused {
    pub(super) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: why.into() }
    }
}

/// Whether the request names us by a name that only we can have.
pub(super) fn names_us(headers: &HeaderMap, admin: SocketAddr, hosts: &[String]) -> Result<(), Refused> {
    let listens_on = admin.ip().to_canonical();
    if !listens_on.is_loopback() && !listens_on.is_unspecified() && hosts.is_empty() {
        // It may be reached by any name that somebody has given it.
        return Ok(());
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = without_port(host);
    if is_address_or_localhost(name) || hosts.iter().any(|known| is_name(name, known)) {
        return Ok(());
    }
    let why = "the admin side is not known by that name: ask for it by its address or as localhost, or put the name into \
               `admin_hosts` in [server] of the policy\n";
    Err(Refused::new(StatusCode::MISDIRECTED_REQUEST, why))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    }
}

/// A dot at the end is the root of all names.
fn is_name(host: &str, name: &str) -> bool {
    host.strip_suffix('.').unwrap_or(host).eq_ignore_ascii_case(name)
}

/// A name can be made to point here; an address cannot.
fn is_address_or_localhost(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    is_name(host, "localhost")
        || host.parse::<std::net::Ipv4Addr>().is_ok()
        || bare.is_some_and(|address| matches!(address.parse(), Ok(IpAddr::V6(_))))
}

/// Whether what comes with a body was sent by us or by a program: a page of another origin may not send JSON unasked.
pub(super) fn is_json(headers: &HeaderMap) -> Result<(), Refused> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return same_origin(headers);
    }
    Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send it as application/json\n"))
}

/// Whether whoever asks may change something.
pub(super) fn may_change(headers: &HeaderMap, token_file: Option<&Path>) -> Result<(), Refused> {
    let Some(file) = token_file else {
        let why = "nothing can be changed here: the policy has no `admin_token_file` in [server], a file with one \
                   line of 16 characters or more, which are then sent as `Authorization: Bearer`\n";
        return Err(Refused::new(StatusCode::FORBIDDEN, why));
    };
    let token = read(file)?;
    same_origin(headers)?;
    let said = headers.get(AUTHORIZATION).map(|value| value.as_bytes()).unwrap_or_default();
    let said = match said.split_at_checked("Bearer ".len()) {
        Some((scheme, said)) if scheme.eq_ignore_ascii_case(b"Bearer ") => said,
        _ => {
            let why = "say the token: `Authorization: Bearer …`\n";
            return Err(Refused::new(StatusCode::UNAUTHORIZED, why));
        }
    };
    if is_equal(said, token.as_bytes()) {
        return Ok(());
    }
    Err(Refused::new(StatusCode::FORBIDDEN, "that is not the token\n"))
}

/// A browser says which page asks; a program does not.
fn same_origin(headers: &HeaderMap) -> Result<(), Refused> {
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let host = headers.get(HOST).map(|host| host.as_bytes()).unwrap_or_default();
    let origin = origin.as_bytes();
    let of = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    if of.is_some_and(|of| of.eq_ignore_ascii_case(host)) {
        return Ok(());
    }
    Err(Refused::new(StatusCode::FORBIDDEN, "a page of another origin may not ask this\n"))
}

/// Read each time, so that it can be exchanged at any time.
fn read(file: &Path) -> Result<String, Refused> {
    let unusable = |why: String| {
        let why = format!("the token file {} cannot be used: {why}\n", file.display());
        Refused::new(StatusCode::SERVICE_UNAVAILABLE, why)
    };
    // Anything else, such as a pipe, could keep us waiting for ever.
    if !file.is_file() {
        return Err(unusable("it is no file that can be read".to_owned()));
    }
    let mut text = String::new();
    File::open(file)
        .and_then(|file| file.take(TOKEN_MAX as u64 + 3).read_to_string(&mut text))
        .map_err(|error| unusable(error.to_string()))?;
    let token = text.trim_end_matches(['\n', '\r']);
    let plain = token.bytes().all(|byte| byte.is_ascii_graphic());
    if !plain || !(TOKEN_MIN..=TOKEN_MAX).contains(&token.len()) {
        return Err(unusable(format!("it has to have one line of {TOKEN_MIN} to {TOKEN_MAX} characters")));
    }
    Ok(token.to_owned())
}

/// Takes as long wherever the two differ, so that the time does not tell how much was right.
fn is_equal(said: &[u8], token: &[u8]) -> bool {
    let mut differences = u8::from(said.len() != token.len());
    for (index, byte) in token.iter().enumerate() {
        differences |= byte ^ said.get(index).copied().unwrap_or(!byte);
        differences = black_box(differences);
    }
    differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K9, CVE-2018-5702: a name can be made to point anywhere.
    #[test]
    fn where_a_browser_comes_by_loopback_only_addresses_and_known_names_are_us() {
        let asked = |host: &str, admin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            names_us(&headers, admin.parse().unwrap(), &["gateway.internal".to_owned()]).is_ok()
        };
        let reached_by_loopback =
            ["127.0.0.1:8101", "[::1]:8101", "0.0.0.0:8101", "[::]:8101", "[::ffff:127.0.0.1]:8101"];
        for host in [
            "localhost",
            "localhost:8101",
            "LOCALHOST.:1",
            "127.0.0.1:8101",
            "10.1.2.3",
            "[::1]:8101",
            "Gateway.Internal.:1",
        ] {
            for admin in reached_by_loopback {
                assert!(asked(host, admin), "{host} at {admin}");
            }
        }
        for host in
            ["", "evil.example", "localhost.evil.example:8101", "127.0.0.1.evil.example", "[evil]:1", ":8101"]
        {
            for admin in reached_by_loopback {
                assert!(!asked(host, admin), "{host} at {admin}");
            }
        }
        let elsewhere = "10.0.0.1:8101".parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "any.example".parse().unwrap());
        assert!(names_us(&headers, elsewhere, &[]).is_ok());
        assert!(names_us(&headers, elsewhere, &["gateway.internal".to_owned()]).is_err());
        assert!(names_us(&HeaderMap::new(), "127.0.0.1:8101".parse().unwrap(), &[]).is_err());
    }

    #[test]
    fn a_token_is_equal_to_itself_alone() {
        let token = b"0123456789abcdef";
        assert!(is_equal(token, token));
        for said in
            [&b""[..], b"0123456789abcdeF", b"0123456789abcde", b"0123456789abcdef0", b"X123456789abcdef"]
        {
            assert!(!is_equal(said, token), "{said:?}");
        }
    }

    /// K9: what a page of another origin can make a browser send is not enough.
    #[test]
    fn a_page_of_another_origin_is_refused() {
        let with = |origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "127.0.0.1:8101".parse().unwrap());
            headers.insert(CONTENT_TYPE, "application/json; charset=utf-8".parse().unwrap());
            if !origin.is_empty() {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            headers
        };
        assert!(is_json(&with("")).is_ok() && is_json(&with("http://127.0.0.1:8101")).is_ok());
        for origin in
            ["http://evil.example", "null", "http://127.0.0.1:8102", "http://127.0.0.1:8101.evil.example"]
        {
            assert_eq!(is_json(&with(origin)).unwrap_err().status, StatusCode::FORBIDDEN, "{origin}");
        }
        let mut plain = with("");
        plain.insert(CONTENT_TYPE, "text/plain".parse().unwrap());
        assert_eq!(is_json(&plain).unwrap_err().status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
}
