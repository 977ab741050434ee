//! The files of `deploy/`: dashboards and rules that fit the metrics there are, and that Prometheus reads.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use crate::gateway::fresh_path;
use crate::prometheus::installed;

const DASHBOARD: &str = include_str!("../../../../deploy/grafana/tidegate.json");
const RECORDING: &str = include_str!("../../../../deploy/prometheus/recording.yml");
const ALERTS: &str = include_str!("../../../../deploy/prometheus/alerts.yml");
const SCRAPE: &str = include_str!("../../../../deploy/prometheus/scrape.yml");

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus")
}

/// Every name that may be asked for: those of the manual, which is compared with `/metrics` elsewhere, and the parts of
/// histograms.
fn names() -> BTreeSet<String> {
    let manual = include_str!("../../../../docs/metrics.md");
    let rows = manual.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut names = BTreeSet::new();
    for row in rows {
        let name = row.split(['{', '`']).next().unwrap();
        if row.contains("| histogram |") {
            names.extend(["_bucket", "_sum", "_count"].map(|part| format!("{name}{part}")));
        } else {
            names.insert(name.to_owned());
        }
    }
    assert!(names.len() > 30, "{names:?}");
    names
}

/// The names of metrics in an expression.
fn asked_for(expression: &str) -> BTreeSet<&str> {
    let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    words.filter(|word| word.starts_with("tidegate_")).collect()
}

/// Every expression of the dashboard, with its variables filled in.
fn expressions() -> Vec<String> {
    let board: Value = serde_json::from_str(DASHBOARD).unwrap();
    let targets = panels(&board).into_iter().filter_map(|panel| panel["targets"].as_array().cloned());
    let all: Vec<String> = targets
        .flatten()
        .map(|target| target["expr"].as_str().unwrap().to_owned())
        .map(|expr| {
            expr.replace("$__rate_interval", "5m").replace("$instance", ".*").replace("$upstream", ".*")
        })
        .collect();
    assert!(all.len() > 30, "{all:?}");
    all
}

fn panels(board: &Value) -> Vec<Value> {
    board["panels"].as_array().unwrap().clone()
}

fn promtool(arguments: &[&str]) -> Option<Output> {
    Some(Command::new(installed("promtool")?).args(arguments).current_dir(folder()).output().unwrap())
}

fn assert_passed(output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("SUCCESS"), "{said}");
}

#[test]
fn dashboards_and_rules_ask_for_metrics_that_there_are() {
    let names = names();
    let ours = |text: &str| -> Vec<String> {
        asked_for(text).into_iter().filter(|name| !names.contains(*name)).map(String::from).collect()
    };
    for expression in expressions() {
        assert_eq!(ours(&expression), [""; 0], "{expression}");
        assert!(!asked_for(&expression).is_empty(), "it asks for somebody else's metrics: {expression}");
    }
    // In annotations, histograms are called by their names.
    let rules = format!("{RECORDING}{ALERTS}");
    let whole: BTreeSet<String> =
        names.iter().filter_map(|name| name.strip_suffix("_sum").map(String::from)).collect();
    assert_eq!(ours(&rules).into_iter().filter(|name| !whole.contains(name)).collect::<Vec<_>>(), [""; 0]);
    // Every rule that is recorded is used, and every one that is used is recorded.
    let windows = |text: &str, before: &str| -> BTreeSet<String> {
        let found = text.split(before).skip(1).map(|rest| rest.split([' ', '\n']).next().unwrap().to_owned());
        found.collect()
    };
    assert_eq!(
        windows(RECORDING, "record: tidegate:goodput_lost:ratio_rate"),
        windows(ALERTS, "tidegate:goodput_lost:ratio_rate")
    );
}

/// Grafana finds it again by its name, each panel has a unit and words, and none lies on another.
#[test]
fn the_dashboard_is_whole() {
    let board: Value = serde_json::from_str(DASHBOARD).unwrap();
    assert_eq!(board["uid"], "tidegate");
    let variables: Vec<&str> = board["templating"]["list"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(variables, ["datasource", "instance", "upstream"]);
    let mut taken = BTreeSet::new();
    let mut titles = BTreeSet::new();
    for panel in panels(&board) {
        let title = panel["title"].as_str().unwrap().to_owned();
        let at = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{title}");
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(taken.insert((x, y)), "{title} lies on another panel");
            }
        }
        if panel["type"] != "row" {
            assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title}");
            assert!(panel["description"].as_str().unwrap().ends_with('.'), "{title}");
        }
        assert!(titles.insert(title.clone()), "{title} is there twice");
    }
}

/// Prometheus reads every expression of the dashboard.
#[test]
fn the_dashboard_asks_what_can_be_asked() {
    let mut rules = String::from("groups:\n  - name: dashboard\n    rules:\n");
    for (number, expression) in expressions().iter().enumerate() {
        // A string of JSON is one of YAML.
        let expression = Value::from(expression.as_str());
        rules.push_str(&format!("      - record: panel:{number}\n        expr: {expression}\n"));
    }
    let file = fresh_path("yml");
    std::fs::write(&file, rules).unwrap();
    if let Some(output) = promtool(&["check", "rules", &file.display().to_string()]) {
        assert_passed(&output);
    }
    std::fs::remove_file(file).unwrap();
}

/// `alerts.test.yml` says of every alert when it fires, and when not.
#[test]
fn alerts_fire_when_they_should_and_not_otherwise() {
    let Some(output) = promtool(&["check", "rules", "recording.yml", "alerts.yml"]) else { return };
    assert_passed(&output);
    let Some(output) = promtool(&["test", "rules", "alerts.test.yml"]) else { return };
    assert_passed(&output);
    let tests = std::fs::read_to_string(folder().join("alerts.test.yml")).unwrap();
    let named = |text: &str, before: &str| -> BTreeSet<String> {
        text.split(before)
            .skip(1)
            .map(|rest| rest.split([',', '\n', ' ']).next().unwrap().to_owned())
            .collect()
    };
    let alerts = named(ALERTS, "- alert: ");
    assert_eq!(named(&tests, "alertname: "), alerts);
    assert_eq!(ALERTS.matches("runbook: ").count(), alerts.len(), "each says what to do");
}

#[test]
fn prometheus_takes_the_configuration() {
    let Some(output) = promtool(&["check", "config", "scrape.yml"]) else { return };
    assert_passed(&output);
    assert!(SCRAPE.contains(&format!("[\"{}\"]", "127.0.0.1:8101")), "the default admin address");
}

/// systemd reads the unit, and finds no more to say against it than against others of its kind.
#[test]
fn systemd_takes_the_unit() {
    let unit = include_str!("../../../../deploy/systemd/tidegate.service");
    let unit = unit.replace("/usr/local/bin/tidegate", crate::gateway::TIDEGATE);
    assert!(unit.contains("RestartPreventExitStatus=78"));
    let file = fresh_path("d").with_extension("service");
    std::fs::write(&file, unit).unwrap();
    match Command::new("systemd-analyze").arg("verify").arg(&file).output() {
        Err(_) => eprintln!("skipped: systemd-analyze is missing; apt-get install systemd"),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let ours: Vec<&str> = said.lines().filter(|line| line.contains(".service")).collect();
            assert!(output.status.success() && ours.is_empty(), "{said}");
        }
    }
    std::fs::remove_file(file).unwrap();
}
