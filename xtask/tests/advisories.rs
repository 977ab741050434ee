//! House rule: no version in Cargo.lock with a known flaw that a peer can reach.
//!
//! Not a full audit, which needs a database from the network: these are the crates that read bytes from strangers, with
//! the version that ended each known flaw.

use anyhow::{Context as _, Result};
use semver::Version;

/// A crate, the first version without the flaw, and the flaw.
struct Advisory {
    name: &'static str,
    patched: Version,
    id: &'static str,
    flaw: &'static str,
}

const ADVISORIES: &[Advisory] = &[
    Advisory {
        name: "h2",
        patched: Version::new(0, 4, 16),
        id: "RUSTSEC-2026-0258",
        flaw: "empty DATA frames are queued without a bound",
    },
    Advisory {
        name: "bytes",
        patched: Version::new(1, 11, 1),
        id: "RUSTSEC-2026-0007",
        flaw: "an integer overflow when a buffer is reserved",
    },
    Advisory {
        name: "rustls",
        patched: Version::new(0, 23, 45),
        id: "RUSTSEC-2026-0285",
        flaw: "handshake messages are accepted at the wrong encryption level",
    },
    Advisory {
        name: "rustls-webpki",
        patched: Version::new(0, 103, 13),
        id: "RUSTSEC-2026-0104",
        flaw: "a malformed revocation list makes it panic",
    },
];

/// Each package of the lock file that is older than its advisory allows, as a message for a person.
fn outdated(lock: &str) -> Result<Vec<String>> {
    let lock: toml::Table = lock.parse().context("the lock file is no TOML")?;
    let packages =
        lock.get("package").and_then(toml::Value::as_array).context("the lock file has no packages")?;
    let mut found = Vec::new();
    for package in packages {
        let field = |key| package.get(key).and_then(toml::Value::as_str).with_context(|| format!("no {key}"));
        let (name, version) = (field("name")?, Version::parse(field("version")?)?);
        for Advisory { patched, id, flaw, .. } in ADVISORIES.iter().filter(|advisory| advisory.name == name) {
            if version < *patched {
                found.push(format!(
                    "Cargo.lock: {name} {version} is affected by {id} ({flaw}); it takes {patched} or later: \
                     cargo update -p {name}@{version}"
                ));
            }
        }
    }
    Ok(found)
}

#[test]
fn cargo_lock_holds_no_version_with_a_known_flaw() -> Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock");
    let found = outdated(&std::fs::read_to_string(path)?)?;
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
    Ok(())
}

#[test]
fn an_old_version_is_found_and_a_new_one_is_not() -> Result<()> {
    let lock = |version: &str| format!("[[package]]\nname = \"h2\"\nversion = \"{version}\"\n");
    assert_eq!(outdated(&lock("0.4.16"))?, [""; 0]);
    assert_eq!(outdated(&lock("0.5.0"))?, [""; 0]);
    for old in ["0.4.15", "0.3.27", "0.4.16-rc.1"] {
        let found = outdated(&lock(old))?;
        assert!(found.len() == 1 && found[0].contains("RUSTSEC-2026-0258"), "{old}: {found:?}");
    }
    Ok(())
}

#[test]
fn every_advisory_can_fail() -> Result<()> {
    for Advisory { name, id, .. } in ADVISORIES {
        let found = outdated(&format!("[[package]]\nname = \"{name}\"\nversion = \"0.0.1\"\n"))?;
        assert!(found.len() == 1 && found[0].contains(id), "{name}: {found:?}");
    }
    Ok(())
}

#[test]
fn a_lock_file_of_another_shape_is_an_error_and_no_pass() {
    assert!(outdated("").is_err());
    assert!(outdated("[[package]]\nname = \"h2\"\n").is_err());
}
