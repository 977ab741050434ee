//! Names as the engine sees them: hashes by a seed that nobody outside knows, so that nobody can choose names that
//! collide.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;
use std::sync::LazyLock;

/// One seed for the process, so that a name is the same everywhere in it. Another process has another.
static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Whom a rate limit counts a request against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(u64);

impl Key {
    /// All together.
    pub const ALL: Self = Self(0);

    /// Whoever has this name.
    pub fn of(name: impl Hash) -> Self {
        Self(SEED.hash_one(name))
    }

    /// Whoever has this address, by its [`network`](Self::network).
    pub fn address(address: IpAddr) -> Self {
        Self::of(Self::network(address))
    }

    /// What of an address is counted by, as a number: IPv4 whole and the same however it is written, IPv6 its network of 64
    /// bits, which is what one customer has at least and can choose from at will (RFC 6177).
    pub const fn network(address: IpAddr) -> u128 {
        match address.to_canonical() {
            IpAddr::V4(address) => address.to_bits() as u128,
            // The last bit, so that no network is an address of IPv4.
            IpAddr::V6(address) => address.to_bits() >> 64 << 64 | 1,
        }
    }

    pub(crate) const fn number(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C9.
    #[test]
    fn one_customer_has_one_key() {
        let key = |address: &str| Key::address(address.parse().unwrap());
        assert_eq!(key("::ffff:1.2.3.4"), key("1.2.3.4"));
        assert_ne!(key("1.2.3.5"), key("1.2.3.4"));
        assert_eq!(key("2001:db8:0:1::a"), key("2001:db8:0:1::b"));
        assert_ne!(key("2001:db8:0:1::a"), key("2001:db8:0:2::a"));
        assert_ne!(key("2001:db8::1.2.3.4"), key("1.2.3.4"));
        assert_ne!(key("::"), key("0.0.0.0"));
    }
}
