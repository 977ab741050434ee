//! `tidegate top` against running gateways: one frame, samples line by line, and an instance that goes away.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};

use serde_json::Value;

use crate::client::{connect, get, sent};
use crate::gateway::{Gateway, Policy, TIDEGATE};
use crate::ran::run;
use crate::service::{Service, nobody, nobody_yet};
use crate::wait::until;

/// A frame as text, of a gateway that is full and refuses.
#[tokio::test]
async fn one_frame_says_how_it_stands() {
    let service = Service::held().await;
    let rest = "[[rate_limit]]\nname = \"each\"\nkey = \"header:x-key\"\nshow_key = true\n\
                rate = \"1/h\"\nburst = 1\npaths = [\"/keyed\"]\n[[route]]\npath = \"/*\"\nupstream = \"service\"\n";
    let gateway = Gateway::start(&Policy::before(service.address).limit(2).queue(1, "60s").rest(rest)).await;
    let mut held = Vec::new();
    for number in 1..=3 {
        held.push(sent(gateway.clients, get("/")).await);
        gateway.until("it to be decided", |stats| stats.get("received") == number).await;
    }
    let keyed = "GET /keyed HTTP/1.1\r\nHost: a\r\nX-Key: \u{1b}[2Jme\r\n\r\n".replace('\u{1b}', "\\x1b");
    let mut wire = connect(gateway.clients).await;
    // The second with this key is over the limit; the first finds the queue full.
    for reason in ["queue_full", "rate_limited"] {
        wire.send(&keyed).await;
        assert_eq!(wire.message().await.reason(), reason);
    }
    // A sample is as old as a second.
    let frame = until("a frame that shows it", async || {
        let ran = run(&["top", "--once", "--admin", &gateway.admin.to_string()]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out.contains("2 of 2").then_some(ran.out)
    })
    .await;
    assert!(frame.starts_with(&format!("tidegate top  {}", gateway.admin)), "{frame}");
    for part in [
        "service: ",
        "1 of 1  budget 60 s",
        "class",
        "critical",
        "breakers  1 closed",
        "Little",
        "each",
        "\\\\x1b[2Jme",
        "/*",
    ] {
        assert!(frame.contains(part), "no {part} in\n{frame}");
    }
    assert!(frame.lines().all(|line| line.chars().count() <= 80) && !frame.contains('\u{1b}'), "{frame}");
    let row = frame.lines().find(|line| line.starts_with("service  ")).unwrap();
    let numbers: Vec<&str> = row.split_whitespace().skip(1).take(6).collect();
    assert_eq!(numbers, ["2", "2", "2", "1", "1", "1"], "now, most and limit of slots and places\n{frame}");
    service.release(3);
    for wire in &mut held {
        assert_eq!(wire.message().await.status(), 200);
    }
}

/// One sample is what `/api/live` says.
#[tokio::test]
async fn one_sample_is_a_line_of_json() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    let ran = run(&["top", "--once", "--json", "--admin", &gateway.admin.to_string()]);
    assert_eq!((ran.code, ran.out.lines().count()), (0, 1), "{}", ran.err);
    let sample: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(sample["upstreams"]["service"]["limit"], 4);
}

/// Without an instance, and without a terminal, it says so and fails.
#[tokio::test]
async fn it_says_what_is_missing() {
    let gone = nobody().await;
    let ran = run(&["top", "--once", "--admin", &gone.to_string()]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.err.contains(&gone.to_string()) && ran.err.contains("refused"), "{}", ran.err);
    let ran = run(&["top", "--admin", &gone.to_string()]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("--once"), "{}", ran.err);
    // What is there answers, and is no gateway. It is served by this test, which must not stand still meanwhile.
    let service = Service::prompt().await;
    let admin = service.address.to_string();
    let ran = tokio::task::spawn_blocking(move || run(&["top", "--once", "--admin", &admin])).await.unwrap();
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert_eq!(service.targets(), ["/api/live"]);
}

/// A running `top --json`, killed when it is dropped.
struct Top {
    child: Child,
    lines: Receiver<String>,
    errors: Receiver<String>,
}

impl Top {
    fn start(admin: SocketAddr) -> Self {
        let mut command = Command::new(TIDEGATE);
        command.args(["top", "--json", "--admin", &admin.to_string()]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = read(child.stdout.take().unwrap());
        let errors = read(child.stderr.take().unwrap());
        Self { child, lines, errors }
    }

    async fn sample(&self) -> Value {
        let line = until("a sample", async || self.lines.try_recv().ok()).await;
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (found, lines) = sync_channel(1_000);
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = found.try_send(line);
        }
    });
    lines
}

/// Samples come one a second, none twice; an instance that goes away is missed, and followed again when it is back.
#[tokio::test]
async fn samples_go_on_when_an_instance_comes_back() {
    let (service, admin) = (Service::prompt().await, nobody_yet().await);
    let policy = Policy::before(service.address).admin(admin);
    let mut gateway = Gateway::start(&policy).await;
    let top = Top::start(admin);
    let ids = [
        top.sample().await["id"].clone(),
        top.sample().await["id"].clone(),
        top.sample().await["id"].clone(),
    ];
    let ids = ids.map(|id| id.as_u64().unwrap());
    assert!(ids[0] + 1 == ids[1] && ids[1] + 1 == ids[2], "{ids:?}");
    gateway.process.signal("TERM");
    assert_eq!(gateway.process.ended().await.code(), Some(0));
    let said = until("it to be missed", async || top.errors.try_recv().ok()).await;
    assert!(said.contains(&admin.to_string()) && said.contains("trying again"), "{said}");
    // What came before it went.
    while top.lines.try_recv().is_ok() {}
    let again = Gateway::start(&policy.limit(7)).await;
    assert_eq!(top.sample().await["upstreams"]["service"]["limit"], 7);
    drop(again);
}
