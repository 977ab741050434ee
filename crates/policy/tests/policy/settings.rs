//! Where each value comes from: a line, a flag, a default.

use expect_test::{Expect, expect};
use tidegate_policy::{Parsed, Policy, QuickStart, Setting, ValueSource, set_by_environment, set_by_flag};

use crate::{FULL, UPSTREAM};

/// What is not a default is compared, and of the defaults these keys.
#[track_caller]
fn check(settings: &[Setting], defaults: &[&str], expect: Expect) {
    let shown = settings.iter().filter_map(|setting| {
        let from = match &setting.from {
            ValueSource::Line { file, line } => format!("{file}:{line}"),
            ValueSource::Flag(name) | ValueSource::Environment(name) => (*name).to_owned(),
            ValueSource::Default if defaults.contains(&setting.key) => "default".to_owned(),
            ValueSource::LeftOut if defaults.contains(&setting.key) => "left out".to_owned(),
            ValueSource::Operator => "operator".to_owned(),
            ValueSource::Default | ValueSource::LeftOut => return None,
        };
        let Setting { section, of, key, value, .. } = setting;
        Some(format!("{section} {of} {key} = {value} ({from})\n"))
    });
    expect.assert_eq(&shown.collect::<String>());
}

#[test]
fn a_line_a_default_or_what_leaving_it_out_means() {
    let text = "[server]\ndrain = \"5s\"\ntrusted_proxies = [\n  \"10.0.0.0/8\",\n]\n\n\
                [[upstream]]\nname = \"a\"\nendpoints = [\"http://127.0.0.1:1\"]\n[upstream.queue]\ncapacity = 7\n\n\
                [[upstream]]\nname = \"b\"\nendpoints = [\"http://127.0.0.1:2\"]\n[upstream.queue]\nwait = \"1s\"\n\n\
                [[route]]\npath = \"/a/*\"\nupstream = \"a\"\n[[route]]\npath = \"/*\"\nupstream = \"b\"\n";
    let parsed = Policy::parse(text, "p.toml").unwrap();
    check(
        &parsed.settings,
        &["listen", "wait", "capacity", "limit"],
        expect![[r#"
        [server]  listen = "127.0.0.1:8102" (default)
        [server]  drain = "5s" (p.toml:2)
        [server]  trusted_proxies = [ "10.0.0.0/8", ] (p.toml:3)
        [[upstream]] a name = "a" (p.toml:8)
        [[upstream]] a endpoints = ["http://127.0.0.1:1"] (p.toml:9)
        [upstream.concurrency] a limit = "adaptive" (default)
        [upstream.queue] a wait = "500ms" (default)
        [upstream.queue] a capacity = 7 (p.toml:11)
        [[upstream]] b name = "b" (p.toml:14)
        [[upstream]] b endpoints = ["http://127.0.0.1:2"] (p.toml:15)
        [upstream.concurrency] b limit = "adaptive" (default)
        [upstream.queue] b wait = "1s" (p.toml:17)
        [upstream.queue] b capacity = as many as can be served within `wait`, by the measured service time; at most 10_000, also until that is known (left out)
        [[route]] /a/* path = "/a/*" (p.toml:20)
        [[route]] /a/* upstream = "a" (p.toml:21)
        [[route]] /* path = "/*" (p.toml:23)
        [[route]] /* upstream = "b" (p.toml:24)
    "#]],
    );
}

#[test]
fn a_flag_also_where_it_goes_before_the_file() {
    let quick = QuickStart { wait: Some("1s".into()), ..QuickStart::new("http://127.0.0.1:3000") };
    let mut parsed = Policy::for_upstream(&quick).unwrap();
    set_by_flag(&mut parsed.settings, "[server]", "listen", "\"127.0.0.1:1\"", "--listen");
    check(
        &parsed.settings,
        &["capacity"],
        expect![[r#"
        [server]  listen = "127.0.0.1:1" (--listen)
        [[upstream]] upstream name = "upstream" (--upstream)
        [[upstream]] upstream endpoints = ["http://127.0.0.1:3000"] (--upstream)
        [upstream.queue] upstream wait = "1s" (--wait)
        [upstream.queue] upstream capacity = as many as can be served within `wait`, by the measured service time; at most 10_000, also until that is known (left out)
    "#]],
    );
}

#[test]
fn a_variable_also_of_a_section_that_nobody_has_written() {
    let mut parsed = Policy::parse(UPSTREAM, "short.toml").unwrap();
    let at = "\"http://collector:4318\"";
    set_by_environment(&mut parsed.settings, "[server.otlp]", "endpoint", at, "OTEL_EXPORTER_OTLP_ENDPOINT");
    set_by_environment(&mut parsed.settings, "[server.otlp]", "sample", "0.5", "OTEL_TRACES_SAMPLER_ARG");
    let otlp: Vec<Setting> =
        parsed.settings.into_iter().filter(|setting| setting.section == "[server.otlp]").collect();
    check(
        &otlp,
        &["service_name", "metrics_interval", "headers_file"],
        expect![[r#"
        [server.otlp]  endpoint = "http://collector:4318" (OTEL_EXPORTER_OTLP_ENDPOINT)
        [server.otlp]  service_name = "tidegate" (default)
        [server.otlp]  sample = 0.5 (OTEL_TRACES_SAMPLER_ARG)
        [server.otlp]  metrics_interval = "15s" (default)
        [server.otlp]  headers_file = no fields of your own are sent (left out)
    "#]],
    );
}

/// Every key that a full policy has is there once, as it was written, and so is every key that a short one leaves out.
#[test]
fn nothing_is_missing() {
    let names = |parsed: &Parsed| -> Vec<(String, String, &'static str)> {
        parsed.settings.iter().map(|it| (it.section.clone(), it.of.clone(), it.key)).collect()
    };
    let full = Policy::parse(FULL, "full.toml").unwrap();
    let written = full.settings.iter().filter(|it| matches!(it.from, ValueSource::Line { .. })).count();
    let keys = FULL.lines().filter(|line| line.contains(" = ") && !line.starts_with('#')).count();
    assert_eq!(written, keys);
    let mut once = names(&full);
    once.sort();
    once.dedup();
    assert_eq!(once.len(), full.settings.len());
    let short = names(&Policy::parse(UPSTREAM, "short.toml").unwrap());
    for (section, _, key) in names(&full) {
        let is_table_of_server_or_upstream = section == "[server]" || section.starts_with("[upstream.");
        if is_table_of_server_or_upstream && section != "[upstream.health_check]" {
            assert!(short.iter().any(|it| it.0 == section && it.2 == key), "{section} {key}");
        }
    }
}
