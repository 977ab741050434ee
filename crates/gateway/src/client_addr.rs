//! Who the client is, when proxies that we trust stand between.
//!
//! `X-Forwarded-For` is written by whoever sends the request. It is believed only as far as trusted proxies wrote it:
//! from right to left, as long as the address to the right is a trusted proxy (CVE-2025-41235, and the long list of
//! limiters that read it from the left).

use std::net::{IpAddr, Ipv6Addr};

use http::HeaderMap;
use http::header::HeaderName;
use ipnet::IpNet;
use tidegate_tower::Key;

pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Whether a peer is a proxy whose word about others is believed.
pub(crate) fn is_trusted(peer: IpAddr, trusted: &[IpNet]) -> bool {
    !trusted.is_empty() && trusted.iter().any(|net| net.contains(&peer.to_canonical()))
}

/// The address of the client that sent this request, seen from `peer`'s socket.
pub(crate) fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let mut client = peer.to_canonical();
    if trusted.is_empty() {
        return client;
    }
    let is_trusted = |address: &IpAddr| trusted.iter().any(|net| net.contains(address));
    let lines = headers.get_all(X_FORWARDED_FOR);
    let mut lines: Vec<&[u8]> = lines.iter().map(|value| value.as_bytes()).collect();
    lines.reverse();
    let hops = lines.into_iter().flat_map(|line| line.rsplit(|&byte| byte == b','));
    for hop in hops {
        if !is_trusted(&client) {
            break;
        }
        // What cannot be read stops the walk: beyond it anything could stand.
        let Some(address) = parse_hop(hop) else { break };
        client = address;
    }
    client
}

/// One hop: an address, with or without brackets, a port or a zone.
fn parse_hop(hop: &[u8]) -> Option<IpAddr> {
    let hop = std::str::from_utf8(hop).ok()?.trim();
    let address = match hop.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?.0,
        None if hop.matches(':').count() == 1 => hop.split_once(':')?.0,
        None => hop,
    };
    let address = address.split_once('%').map_or(address, |(address, _zone)| address);
    address.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// The part of an address that a rate limit counts by. Mapped addresses have been unmapped before.
pub(crate) const fn limit_key(client: IpAddr) -> u128 {
    Key::network(client)
}

/// The same in words.
pub(crate) fn customer(client: IpAddr) -> String {
    match client {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let network = Ipv6Addr::from(u128::from(address) >> 64 << 64);
            format!("{network}/64")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn client(peer: &str, forwarded: &[&str], trusted: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|net| net.parse().unwrap()).collect();
        client_address(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn an_untrusted_peer_is_the_client() {
        assert_eq!(client("9.9.9.9", &["1.2.3.4"], &[]), "9.9.9.9");
        assert_eq!(client("9.9.9.9", &["1.2.3.4"], &["10.0.0.0/8"]), "9.9.9.9");
    }

    #[test]
    fn hops_are_walked_from_right_to_left_while_trusted() {
        let trusted = &["10.0.0.0/8", "fd00::/8"];
        assert_eq!(client("10.0.0.1", &["1.2.3.4"], trusted), "1.2.3.4");
        assert_eq!(client("10.0.0.1", &["6.6.6.6, 1.2.3.4"], trusted), "1.2.3.4");
        assert_eq!(client("10.0.0.1", &["6.6.6.6, 1.2.3.4, 10.0.0.7"], trusted), "1.2.3.4");
        assert_eq!(client("10.0.0.1", &["6.6.6.6", "1.2.3.4, 10.0.0.7"], trusted), "1.2.3.4");
        assert_eq!(client("10.0.0.1", &["1.2.3.4:5678"], trusted), "1.2.3.4");
        assert_eq!(client("fd00::1", &["[2001:db8::1]:443"], trusted), "2001:db8::1");
        assert_eq!(client("10.0.0.1", &["2001:db8::1%eth0"], trusted), "2001:db8::1");
        let fifty = vec!["10.1.1.1"; 49].join(", ");
        assert_eq!(client("10.0.0.1", &[&format!("7.7.7.7, {fifty}")], trusted), "7.7.7.7");
    }

    #[test]
    fn what_cannot_be_read_stops_the_walk() {
        let trusted = &["10.0.0.0/8"];
        for line in ["", " ", "unknown", "1.2.3.4, garbage", "1.2.3.4,", "\u{e9}", "1.2.3.4.5", "[::1"] {
            assert_eq!(client("10.0.0.1", &[line], trusted), "10.0.0.1", "{line:?}");
        }
        assert_eq!(client("10.0.0.1", &[], trusted), "10.0.0.1");
    }

    #[test]
    fn mapped_addresses_are_unmapped_and_v6_is_counted_by_64() {
        let key = |address: &str| limit_key(address.parse().unwrap());
        assert_eq!(client("::ffff:10.0.0.1", &["::ffff:1.2.3.4"], &["10.0.0.0/8"]), "1.2.3.4");
        assert_eq!(key("::ffff:1.2.3.4"), key("1.2.3.4"));
        assert_eq!(key("::ffff:102:304"), key("1.2.3.4"));
        assert_eq!(key("2001:db8:0:1::a"), key("2001:db8:0:1::b"));
        assert_ne!(key("2001:db8:0:1::a"), key("2001:db8:0:2::a"));
        assert_ne!(key("2001:db8::1.2.3.4"), key("1.2.3.4"));
        assert_ne!(key("::"), key("0.0.0.0"));
    }
}
