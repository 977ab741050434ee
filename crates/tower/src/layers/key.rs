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

    /// Whoever has this address. Of IPv6 it is the network of 64 bits, which is what one customer has at least; an IPv4
    /// address is the same however it is written.
    pub fn address(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::of(address),
            IpAddr::V6(address) => Self::of(u128::from(address) >> 64),
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
    }
}
