//! `[server]`

use super::Places;
use super::section::{Found, Section, choice, integer, text};
use crate::keys::SERVER;
use crate::model::{AccessLog, Server};
use crate::problem::Report;
use crate::values;

pub(crate) fn read(found: Option<Found<'_>>, report: &mut Report, places: &mut Places) -> Server {
    let mut section = Section::open(&SERVER, 0, found, report, places);
    let server = Server {
        listen: section.value("listen", |_, value| values::address(text(value)?)),
        admin: section.value("admin", |_, value| values::address(text(value)?)),
        workers: u16::try_from(section.value("workers", integer)).unwrap_or(u16::MAX),
        max_connections: section.value("max_connections", integer),
        max_upgrades: section.value("max_upgrades", integer),
        drain: section.duration("drain"),
        header_timeout: section.duration("header_timeout"),
        idle_timeout: section.duration("idle_timeout"),
        body_timeout: section.duration("body_timeout"),
        max_header_bytes: section.value("max_header_bytes", integer),
        trusted_proxies: section.list("trusted_proxies", values::network),
        deadline_headers: deadline_headers(&mut section),
        retry_after_max: section.duration("retry_after_max"),
        // In the order of the words in the key table.
        access_log: match section.value("access_log", choice) {
            0 => AccessLog::Off,
            1 => AccessLog::Refused,
            _ => AccessLog::All,
        },
        access_log_file: section.optional("access_log_file", |_, value| values::file_path(text(value)?)),
    };
    if section.is_sound() && server.listen == server.admin && server.listen.port() != 0 {
        section.contradiction(
            if section.has("admin") { "admin" } else { "listen" },
            "`listen` and `admin` are the same address",
            "give each a port of its own",
        );
    }
    section.close();
    server
}

/// Where nothing is said, those that clients set by themselves.
fn deadline_headers(section: &mut Section<'_, '_>) -> Vec<String> {
    let given = section.has("deadline_headers");
    let names = section.list("deadline_headers", values::header);
    if given { names } else { ["grpc-timeout", "x-envoy-expected-rq-timeout-ms"].map(str::to_owned).into() }
}
