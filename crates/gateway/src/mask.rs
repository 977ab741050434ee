//! What may be a credential, as it can be shown: by its beginning and a hash, so that an operator tells one from another and
//! finds it again where it is known, and nobody can use it.
//!
//! The hash is keyed with a secret of the process, or whoever sees it could try which of the keys that they know or guess it
//! is. So it is another after a restart.

use std::hash::{BuildHasher as _, RandomState};

/// So much of the beginning is shown, and no more than a quarter of the whole.
const SHOWN_MAX: usize = 4;

/// What a header is called that holds a credential, or a part of that.
const CREDENTIALS: [&str; 8] =
    ["auth", "cookie", "credential", "key", "password", "secret", "session", "token"];

/// The secret.
#[derive(Debug, Default)]
pub(crate) struct Mask(RandomState);

impl Mask {
    /// The value as it can be shown.
    pub(crate) fn cover(&self, value: &[u8]) -> String {
        let text = String::from_utf8_lossy(value);
        let shown = SHOWN_MAX.min(text.chars().count() / 4);
        let beginning: String = text.chars().take(shown).collect();
        format!("{beginning}… ({:06x})", self.0.hash_one(value) >> 40)
    }
}

/// Whether a header of this name, in lower case, may hold a credential.
pub(crate) fn is_credential(header: &str) -> bool {
    CREDENTIALS.iter().any(|part| header.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_told_from_others_and_not_told() {
        let mask = Mask::default();
        let covered = mask.cover(b"sk-live-0123456789abcdef");
        assert!(covered.starts_with("sk-l… (") && covered.len() == "sk-l… (012345)".len(), "{covered}");
        assert_eq!(covered, mask.cover(b"sk-live-0123456789abcdef"));
        assert_ne!(covered, mask.cover(b"sk-live-0123456789abcdeF"), "they begin alike");
        let others = (0..4).map(|_| Mask::default().cover(b"sk-live-0123456789abcdef"));
        assert!(others.into_iter().any(|other| other != covered), "it could be looked up");
        // Of a short one, the beginning would be nearly all.
        assert!(mask.cover(b"abcdefg").starts_with("a… ("));
        assert!(mask.cover(b"abc").starts_with("… ("));
        assert!(mask.cover(b"").starts_with("… ("));
        assert!(mask.cover(b"\xff\xfe\xfd\xfc").starts_with("\u{fffd}… ("));
    }

    #[test]
    fn names_of_headers_tell_credentials() {
        for name in
            ["authorization", "proxy-authorization", "cookie", "x-api-key", "x-auth", "x-access-token"]
        {
            assert!(is_credential(name), "{name}");
        }
        for name in ["x-tenant", "x-customer", "host"] {
            assert!(!is_credential(name), "{name}");
        }
    }
}
