//! Each log is recognised as what it is and as nothing else; what is nothing known is an error that says what was tried.

use expect_test::{Expect, expect};
use tidegate_workload::access_log::{AccessLog, Choice, Format, Options};

use super::fixture;

const RECOGNISED: [(&str, Format); 15] = [
    ("apache-common.log", Format::Common),
    ("apache-combined.log", Format::Combined),
    ("nginx-combined.log", Format::Combined),
    ("ingress-nginx.log", Format::IngressNginx),
    ("haproxy.log", Format::Haproxy),
    ("haproxy-rfc3164.log", Format::Haproxy),
    ("haproxy-rfc5424.log", Format::Haproxy),
    ("haproxy-1.5.log", Format::Haproxy),
    ("envoy.log", Format::EnvoyText),
    ("istio.log", Format::IstioText),
    ("envoy-json.log", Format::EnvoyJson),
    ("alb.log", Format::AwsAlb),
    ("traefik.log", Format::TraefikText),
    ("traefik-json.log", Format::TraefikJson),
    ("caddy.log", Format::CaddyJson),
];

#[test]
fn each_log_is_recognised_as_itself() {
    for (name, format) in RECOGNISED.into_iter().chain([("tidegate.log", Format::TidegateJson)]) {
        let log = AccessLog::open(std::io::Cursor::new(fixture(name)), Options::default()).unwrap();
        let recognised = log.recognised();
        assert_eq!((recognised.format.as_str(), recognised.guessed), (format.name(), true), "{name}");
        assert_eq!(recognised.fitting, recognised.sampled, "{name}");
    }
}

/// Which formats can make out any line of which log: those that have the same beginning, and no others.
#[test]
fn no_log_is_read_as_another() {
    for (name, own) in RECOGNISED.into_iter().chain([("tidegate.log", Format::TidegateJson)]) {
        let fits = |format: &Format| {
            let options = Options { format: Choice::Known(*format), ..Options::default() };
            AccessLog::open(std::io::Cursor::new(fixture(name)), options).is_ok()
        };
        let found: Vec<Format> = Format::ALL.into_iter().filter(fits).collect();
        let with_same_beginning = match own {
            Format::Combined => vec![Format::Common, own],
            Format::IngressNginx | Format::TraefikText => vec![Format::Common, Format::Combined, own],
            _ => vec![own],
        };
        assert_eq!(found, with_same_beginning, "{name}");
    }
}

#[track_caller]
fn refused(text: &str, options: Options, expected: &Expect) {
    let error = AccessLog::open(std::io::Cursor::new(text.to_owned()), options).unwrap_err();
    expected.assert_eq(&error.to_string());
}

#[test]
fn what_nobody_knows_is_an_error_that_says_what_was_tried() {
    refused(
        "hello \u{7} 203.0.113.9 world\nand more\n",
        Options::default(),
        &expect![[r#"
            no known format fits half of the first 2 lines; say which it is, or map its columns
              the first line: hello \u{7} <address> world
              tried: common (0 fit), combined (0 fit), ingress-nginx (0 fit), haproxy (0 fit), envoy (0 fit), istio (0 fit), envoy-json (0 fit), alb (0 fit), traefik (0 fit), traefik-json (0 fit), caddy (0 fit), tidegate (0 fit)"#]],
    );
}

#[test]
fn a_log_without_a_line_is_empty() {
    for text in ["", "\n\n", "#Version: 1.0\n#Fields: date time\n", "\u{feff}"] {
        refused(text, Options::default(), &expect!["the log is empty"]);
    }
    let options = Options { format: Choice::Mapped("arrival=ts".parse().unwrap()), ..Options::default() };
    refused("ts,code\n", options, &expect!["the log is empty"]);
}

#[test]
fn one_long_line_is_no_log() {
    let text = format!("[{}]", "{},".repeat(40_000));
    refused(
        &text,
        Options::default(),
        &expect!["the first line has 120002 bytes, and at most 65536 are read: is it one entry a line?"],
    );
}

#[test]
fn what_is_compressed_otherwise_is_named() {
    for (magic, name) in [("PK\u{3}\u{4}", "zip"), ("BZh91AY", "bzip2")] {
        let error = AccessLog::open(std::io::Cursor::new(magic.to_owned()), Options::default()).unwrap_err();
        let expected = format!(
            "the log cannot be read: it is compressed with {name}; unpack it first (gzip is unpacked here)"
        );
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn the_wrong_format_is_an_error_that_shows_the_first_line() {
    let options = Options { format: Choice::Known(Format::Haproxy), ..Options::default() };
    let text = "203.0.113.9 - - [14/Mar/2025:09:26:53 +0100] \"GET / HTTP/1.1\" 200 5120\n";
    refused(
        text,
        options,
        &expect![
            "none of the first 1 lines is of the format haproxy; line 1, column 1: client is not an address and a port, near `<address> - - [14/Mar/…`"
        ],
    );
}
