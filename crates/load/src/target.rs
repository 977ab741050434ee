//! Whom to ask: an address of the form `http://host:port/path`. There is no TLS here.

use std::error::Error;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs as _};

use http::Uri;

/// An address to send requests to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What stands in `Host`.
    pub authority: String,
    /// The path, with its query; what a request asks for that does not say.
    pub path: String,
    host: String,
    port: u16,
}

/// Why something is not an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadTarget(String);

impl fmt::Display for BadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for BadTarget {}

impl Target {
    /// Reads an address.
    pub fn parse(text: &str) -> Result<Self, BadTarget> {
        let bad = |what: &str| BadTarget(format!("`{text}` {what}"));
        let uri: Uri =
            text.parse().map_err(|_| bad("is not an address; write it as http://host:port/path"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(bad("asks for TLS, which this generator does not speak")),
            _ => return Err(bad("is not an address; write it as http://host:port/path")),
        }
        let authority = uri.authority().ok_or_else(|| bad("names no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad("has a name and a password; write them into a header"));
        }
        // A host of IPv6 stands in brackets, which belong to the address and not to the name.
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(bad("names no host"));
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            authority: authority.to_string(),
            path: if path.is_empty() { "/" } else { path }.to_owned(),
            host,
            port: authority.port_u16().unwrap_or(80),
        })
    }

    /// An address that is known already.
    pub fn at(address: SocketAddr) -> Self {
        let (host, port) = (address.ip().to_string(), address.port());
        Self { authority: address.to_string(), path: "/".to_owned(), host, port }
    }

    /// Where that is. Of several addresses the first is taken, so that all connections go to the same.
    pub fn resolve(&self) -> Result<SocketAddr, BadTarget> {
        let mut found = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| BadTarget(format!("cannot find {}: {error}", self.host)))?;
        found.next().ok_or_else(|| BadTarget(format!("{} has no address", self.host)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let parse =
            |text| Target::parse(text).map(|it| (it.authority.clone(), it.host.clone(), it.port, it.path));
        let good = |authority: &str, host: &str, port, path: &str| {
            Ok((authority.to_owned(), host.to_owned(), port, path.to_owned()))
        };
        assert_eq!(parse("http://shop:8102/a?b=c"), good("shop:8102", "shop", 8102, "/a?b=c"));
        assert_eq!(parse("http://127.0.0.1"), good("127.0.0.1", "127.0.0.1", 80, "/"));
        assert_eq!(parse("http://[::1]:81/"), good("[::1]:81", "::1", 81, "/"));
        for wrong in
            ["shop:8102", "https://shop/", "ftp://shop/", "http://", "http://me:pw@shop/", "/path", ""]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
