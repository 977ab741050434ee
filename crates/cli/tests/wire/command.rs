//! The command line: what it prints, where, and with which exit code.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::gateway::{Gateway, Lab, Policy, Process, TIDEGATE, addresses};
use crate::ran::{File, run};
use crate::service::{Service, nobody};
use crate::wait::turn;

const UPSTREAM: &str = "[[upstream]]\nname = \"orders\"\nendpoints = [\"http://127.0.0.1:8103\"]\n";

/// 2: what was typed is not a command.
#[test]
fn usage_errors() {
    for arguments in [
        &[][..],
        &["frobnicate"],
        &["run"],
        &["run", "--config", "a.toml", "--upstream", "http://127.0.0.1:1"],
        &["run", "--upstream", "http://127.0.0.1:1", "--listen", "nowhere"],
        &["check"],
        &["size", "--workers", "0", "--service-time", "200ms", "--wait", "500ms"],
        &["size", "--workers", "4", "--service-time", "200", "--wait", "500ms"],
    ] {
        let ran = run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains("Usage") || ran.err.contains("--help"), "{arguments:?}: {}", ran.err);
    }
}

/// A11 (cowprotocol#4804, redis-cell#41). A zero that would let nobody through is refused when the policy is read; 78,
/// with the line and a mark under what is wrong.
#[test]
fn zeros_that_would_let_nobody_through() {
    let limit = |limit| format!("{UPSTREAM}[upstream.concurrency]\nlimit = {limit}\n");
    let queue = |queue| format!("{UPSTREAM}[upstream.queue]\n{queue}\n");
    let rate = |rate| format!("{UPSTREAM}[[rate_limit]]\nname = \"all\"\nkey = \"global\"\n{rate}\n");
    for (text, line, what) in [
        (limit("0"), 5, "`limit`"),
        (limit("\"adaptive\"\nmax = 0"), 6, "`max`"),
        (queue("wait = \"0s\""), 5, "`wait`"),
        (rate("rate = \"0/s\""), 7, "`rate`"),
        (rate("rate = \"10/s\"\nburst = 0"), 8, "`burst`"),
        (rate("rate = \"10/s\"\nmax_keys = 0"), 8, "`max_keys`"),
        (rate("rate = 10"), 7, "`rate`"),
        (rate("rate = \"10/0s\""), 7, "`rate`"),
        (format!("{UPSTREAM}timeout = \"0s\"\n"), 4, "`timeout`"),
        (format!("{UPSTREAM}[[route]]\npath = \"/*\"\nconcurrency = 0\n"), 6, "`concurrency`"),
        (format!("[server]\nmax_connections = 0\n{UPSTREAM}"), 2, "`max_connections`"),
        (format!("[server]\nlisten = \"127.0.0.1:8102\"\nlimt = 1\n{UPSTREAM}"), 3, "limt"),
    ] {
        let file = File::with(&text);
        for command in [&["check", file.path()][..], &["run", "--config", file.path()]] {
            let ran = run(command);
            assert_eq!((ran.code, ran.out.as_str()), (78, ""), "{text}{}", ran.err);
            assert!(ran.err.contains(&format!("{}:{line}:", file.path())), "{what}: {}", ran.err);
            assert!(ran.err.starts_with("error") && ran.err.contains(what), "{what}: {}", ran.err);
            assert!(
                ran.err.lines().any(|line| line.trim_start().starts_with("| ") && line.contains('^')),
                "{}",
                ran.err
            );
        }
    }
    // A queue of nothing has a meaning: at once or not at all.
    assert_eq!(run(&["check", File::with(&queue("capacity = 0")).path()]).code, 0);
}

/// A file that cannot be read is a bad policy too.
#[test]
fn unreadable_policies() {
    for path in ["/nonexistent/tidegate.toml", env!("CARGO_TARGET_TMPDIR")] {
        let ran = run(&["check", path]);
        assert_eq!((ran.code, ran.out.as_str()), (78, ""), "{path}");
        assert!(ran.err.contains("cannot read"), "{}", ran.err);
    }
}

/// 69: somebody else has the port, and it is named.
#[tokio::test]
async fn a_port_in_use() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    let upstream = format!("http://{}", service.address);
    let (clients, admin) = (gateway.clients.to_string(), gateway.admin.to_string());
    for (listen, admin, taken) in
        [(&clients, "127.0.0.1:0", &clients), (&"127.0.0.1:0".into(), &*admin, &admin)]
    {
        let ran = run(&["run", "--upstream", &upstream, "--listen", listen, "--admin", admin]);
        assert_eq!(ran.code, 69, "{}", ran.err);
        assert!(ran.err.contains(&format!("cannot listen on {taken}")), "{}", ran.err);
    }
    assert_eq!(run(&["upstream", "--port", &gateway.clients.port().to_string()]).code, 69);
}

/// `check`: right, right but unwise, and for machines.
#[test]
fn check_tells_wrong_from_unwise() {
    let good = File::with(UPSTREAM);
    let ran = run(&["check", "--strict", good.path()]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.starts_with("The policy is right: 1 upstream, 1 route, 0 rate limits"), "{}", ran.out);

    let unwise = File::with(&format!("{UPSTREAM}[upstream.queue]\nwait = \"11s\"\n"));
    let ran = run(&["check", unwise.path()]);
    assert_eq!(ran.code, 0);
    assert!(ran.err.contains("warning[TG003]") && ran.out.contains("1 warning"), "{}{}", ran.err, ran.out);
    assert_eq!(run(&["check", "--strict", unwise.path()]).code, 78);

    let json = |arguments: &[&str]| {
        let ran = run(arguments);
        (ran.code, serde_json::from_str::<Value>(&ran.out).unwrap())
    };
    let (code, findings) = json(&["check", "--json", unwise.path()]);
    assert_eq!((code, &findings["ok"]), (0, &true.into()));
    let finding = &findings["findings"][0];
    assert_eq!(
        (&finding["level"], &finding["code"], &finding["line"]),
        (&"warning".into(), &"TG003".into(), &5.into())
    );
    let (code, findings) = json(&["check", "--json", "--strict", unwise.path()]);
    assert_eq!((code, &findings["ok"]), (78, &false.into()));
    let bad = File::with("[[upstream]]\nname = 1\n");
    let (code, findings) = json(&["check", "--json", bad.path()]);
    assert_eq!(
        (code, &findings["ok"], &findings["findings"][0]["level"]),
        (78, &false.into(), &"error".into())
    );
    let (code, findings) = json(&["check", "--json", "there-is-no-such-file.toml"]);
    assert_eq!((code, &findings["ok"]), (78, &false.into()));
    assert!(findings["findings"][0]["message"].as_str().unwrap().contains("there-is-no-such-file.toml"));
}

/// `size`: the article's formula, Q ≤ W · B / S, and what a queue means in waiting.
#[test]
fn size_calculates() {
    let ran = run(&["size", "--workers", "4", "--service-time", "200ms", "--wait", "500ms"]);
    assert_eq!(ran.code, 0);
    assert!(ran.out.starts_with("capacity = 10\n"), "{}", ran.out);
    let ran = run(&["size", "--workers", "4", "--service-time", "200ms", "--wait", "500ms", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap()["capacity"], 10);
    let ran = run(&["size", "--workers", "4", "--service-time", "200ms", "--queue", "46"]);
    assert!(ran.out.contains("2.3s"), "{}", ran.out);
    let ran = run(&["size", "--deadline", "1s", "--hop", "4x200ms", "--hop", "10x20ms"]);
    assert!(
        ran.out.contains("hop 1: capacity = 7") && ran.out.contains("hop 2: capacity = 195"),
        "{}",
        ran.out
    );
}

/// What it says of its own is printed to where it can be used.
#[test]
fn it_describes_itself() {
    let schema: Value = serde_json::from_str(&run(&["schema"]).out).unwrap();
    assert!(schema["$schema"].is_string() && schema["properties"]["upstream"].is_object(), "{schema:#}");
    assert!(run(&["schema", "--markdown"]).out.starts_with("# The policy file"));
    for command in ["run", "demo", "check", "size", "upstream", "schema"] {
        let ran = run(&[command, "--help"]);
        assert!(ran.code == 0 && ran.out.contains("Examples:\n  tidegate "), "{command}: {}", ran.out);
    }
    let help = run(&["--help"]).out;
    assert!(help.contains("Examples:") && help.contains("Exit codes:"), "{help}");
    assert!(run(&["--version"]).out.starts_with("tidegate "));
    let completions = run(&["completions", "bash"]);
    assert!(completions.code == 0 && completions.out.contains("_tidegate()"), "{}", completions.out);
    let script = File::with(&completions.out);
    assert!(Command::new("bash").args(["-n", script.path()]).status().unwrap().success());
}

/// `run --upstream` needs no file.
#[tokio::test]
async fn run_without_a_file() {
    let lab = Lab::start(&["--service-time", "1ms"]).await;
    let upstream = format!("http://{}", lab.address);
    let mut command = Command::new(TIDEGATE);
    command.args(["run", "--upstream", &upstream, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command
        .args(["--limit", "3", "--queue", "5", "--wait", "100ms", "--timeout", "1s"])
        .env_remove("TIDEGATE_CONFIG");
    let (mut process, line) = Process::start(&mut command, "tidegate ").await;
    let (clients, admin) = addresses(&line);
    assert!(line.ends_with(&format!("in front of {upstream}")), "{line}");
    let answer = crate::client::ask(clients, crate::client::get("/work")).await;
    assert_eq!((answer.status(), answer.text()), (200, "done\n".into()));
    let stats = crate::client::ask(admin, crate::client::get("/api/stats")).await.json();
    let upstreams = stats["upstreams"].as_object().unwrap();
    let one = upstreams.values().next().unwrap();
    assert_eq!((&one["limit"], &one["queue_capacity"], &one["completed"]), (&3.into(), &5.into(), &1.into()));

    // There is no policy to read again, and that is no reason to end.
    process.signal("HUP");
    crate::wait::until("a word about it", async || {
        process.said().contains("there is no policy file to read again").then_some(())
    })
    .await;
    process.signal("TERM");
    assert_eq!(process.ended().await.code(), Some(0));
}

/// A policy that is right is started with even if the service is not there yet.
#[tokio::test]
async fn run_before_its_service() {
    let gateway = Gateway::start(&Policy::before(nobody().await)).await;
    assert_eq!(gateway.admin("/readyz").await.status(), 200);
}

/// `demo` measures what the article says: served and refused, row by row.
#[tokio::test]
async fn the_demo_measures_the_articles_rows() {
    let _turn = turn().await;
    let child =
        Command::new(TIDEGATE).args(["demo", "--any-port", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let output = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap()).await.unwrap();
    assert!(output.status.success());
    let stories: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let counts: Vec<Vec<(u64, &str, u64)>> = stories
        .iter()
        .map(|story| {
            let rows = story["rows"].as_array().unwrap().iter().filter(|row| row["count"].is_u64());
            rows.map(|row| {
                (
                    row["status"].as_u64().unwrap(),
                    row["reason"].as_str().unwrap(),
                    row["count"].as_u64().unwrap(),
                )
            })
            .collect()
        })
        .collect();
    assert_eq!(counts[0], [(200, "", 12), (503, "queue_full", 38)]);
    assert_eq!(counts[1], [(200, "", 4), (503, "queue_full", 46)]);
    assert_eq!(counts[2], [(200, "", 50)]);
    // Between the third round of answers and the end of the wait there are 100 ms, which a busy machine may use up.
    assert!(counts[3].iter().all(|(status, _, count)| *status != 200 || *count <= 12), "{:?}", counts[3]);
    let told = |(_, reason, count): &(u64, &str, u64)| *reason == "wait_too_long" && *count >= 38;
    assert!(counts[3].iter().any(told), "{:?}", counts[3]);
    assert_eq!(counts[3].iter().map(|(_, _, count)| count).sum::<u64>(), 100);
    assert_eq!(counts[4], [(504, "upstream_timeout", 4)]);
    let [(200, "", admitted), (429, "rate_limited", refused)] = counts[5][..] else {
        panic!("{:?}", counts[5])
    };
    assert!((20..30).contains(&admitted) && admitted + refused == 60, "{admitted} {refused}");
    let facts = |story: usize, what: &str| {
        let rows = stories[story]["rows"].as_array().unwrap();
        let row =
            rows.iter().find(|row| row["what"] == what).unwrap_or_else(|| panic!("no {what}: {rows:#?}"));
        row["measured"].clone()
    };
    for story in 0..5 {
        assert_eq!(facts(story, "upstream's most at once"), 4);
    }
    assert_eq!(facts(0, "every refusal before the first answer"), true);
    let admitted = facts(6, "admitted").as_u64().unwrap();
    assert!((100..220).contains(&admitted), "{admitted}");
}
