//! Lints of `[server]`.

use super::{At, LintCode, Lints};
use crate::keys::SERVER;
use crate::model::{AccessLog, Policy};
use crate::values::duration_text;

const fn at(key: &'static str) -> At {
    At { section: &SERVER, index: 0, key }
}

pub(super) fn check(policy: &Policy, lints: &mut Lints<'_>) {
    let server = &policy.server;
    if let Some(everyone) = server.trusted_proxies.iter().find(|network| network.prefix_len() == 0) {
        lints.warn(
            LintCode::EveryoneTrusted,
            at("trusted_proxies"),
            format!("{everyone} is everybody: anybody can choose the address that they are counted by"),
            "name the networks of your own proxies",
        );
    }
    if !server.admin.ip().to_canonical().is_loopback() {
        lints.warn(
            LintCode::PublicAdmin,
            at("admin"),
            format!("{} can be reached from other machines, and asks for no password", server.admin.ip()),
            "listen on 127.0.0.1, or see to it that only your own machines can connect",
        );
    }
    if server.access_log == AccessLog::Off && server.access_log_file.is_some() {
        lints.warn(
            LintCode::LogFileUnused,
            at("access_log_file"),
            "nothing is written to it with access_log = \"off\"",
            "remove it, or write access_log = \"refused\"",
        );
    }
    if let Some(longest) = policy.upstreams.iter().max_by_key(|upstream| upstream.timeout)
        && server.drain < longest.timeout
    {
        lints.warn(
            LintCode::ShortDrain,
            at("drain"),
            format!(
                "requests to `{}` may take {}, and are cut off after {}",
                longest.name,
                duration_text(longest.timeout),
                duration_text(server.drain)
            ),
            format!("write \"{}\" or more", duration_text(longest.timeout)),
        );
    }
}
