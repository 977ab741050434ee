//! A gateway: the binary, under a policy of the test's.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::client::{ask, connect, get};
use crate::message::Message;
use crate::wait::{Stopwatch, until};

/// The binary under test.
pub(crate) const TIDEGATE: &str = env!("CARGO_BIN_EXE_tidegate");

/// A policy with one upstream, called `service`. One worker, so that a connection to the upstream that was given back
/// is the one that is used next.
#[derive(Clone)]
pub(crate) struct Policy {
    endpoints: Vec<SocketAddr>,
    admin: SocketAddr,
    workers: u32,
    server: String,
    upstream: String,
    limit: String,
    queue: String,
    rest: String,
}

impl Policy {
    /// Four slots, no queue.
    pub(crate) fn before(service: SocketAddr) -> Self {
        Self {
            endpoints: vec![service],
            admin: "127.0.0.1:0".parse().unwrap(),
            workers: 1,
            server: String::new(),
            upstream: "timeout = \"20s\"".into(),
            limit: "limit = 4".into(),
            queue: "capacity = 0".into(),
            rest: String::new(),
        }
    }

    /// A further endpoint of the service.
    pub(crate) fn and(mut self, endpoint: SocketAddr) -> Self {
        self.endpoints.push(endpoint);
        self
    }

    /// Where operators connect; a free port, unless it is said.
    pub(crate) fn admin(self, admin: SocketAddr) -> Self {
        Self { admin, ..self }
    }

    pub(crate) fn workers(self, workers: u32) -> Self {
        Self { workers, ..self }
    }

    /// Lines of `[server]`.
    pub(crate) fn server(self, lines: &str) -> Self {
        Self { server: lines.into(), ..self }
    }

    /// Lines of `[[upstream]]`.
    pub(crate) fn upstream(self, lines: &str) -> Self {
        Self { upstream: lines.into(), ..self }
    }

    pub(crate) fn limit(self, limit: u32) -> Self {
        Self { limit: format!("limit = {limit}"), ..self }
    }

    /// An adaptive limit, with these lines of `[upstream.concurrency]`.
    pub(crate) fn adaptive(self, lines: &str) -> Self {
        Self { limit: lines.into(), ..self }
    }

    pub(crate) fn queue(self, capacity: u32, wait: &str) -> Self {
        Self { queue: format!("capacity = {capacity}\nwait = \"{wait}\""), ..self }
    }

    /// Routes and rate limits.
    pub(crate) fn rest(self, sections: &str) -> Self {
        Self { rest: sections.into(), ..self }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"{}\"\n", self.admin);
        let endpoints: Vec<String> =
            self.endpoints.iter().map(|endpoint| format!("http://{endpoint}")).collect();
        let Self { workers, server, upstream, limit, queue, rest, .. } = self;
        if !server.contains("access_log =") {
            text.push_str("access_log = \"off\"\n");
        }
        write!(
            text,
            "workers = {workers}\n{server}\n\n[[upstream]]\nname = \"service\"\nendpoints = {endpoints:?}\n\
             {upstream}\n\n[upstream.concurrency]\n{limit}\n\n[upstream.queue]\n{queue}\n\n{rest}\n"
        )
        .unwrap();
        text
    }
}

/// A file name that no other test has.
pub(crate) fn fresh_path(kind: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("wire-{}-{}.{kind}", std::process::id(), NEXT.fetch_add(1, Relaxed));
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// A running process of the binary, killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    /// All that it has written to standard error.
    said: Arc<Mutex<String>>,
}

impl Process {
    /// Starts a command, whose standard error is kept, and waits until a line of it begins like this.
    pub(crate) async fn start(command: &mut Command, until_line: &str) -> (Self, String) {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let (errors, into) = (child.stderr.take().unwrap(), said.clone());
        std::thread::spawn(move || keep(errors, &into));
        let mut process = Self { child, said };
        let line = until("a line on standard error", async || {
            let line = process.said().lines().find(|line| line.starts_with(until_line)).map(String::from);
            assert!(line.is_some() || process.is_running(), "it ended: {}", process.said());
            line
        })
        .await;
        (process, line)
    }

    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends a signal: `TERM`, `HUP`.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success(), "{kill}");
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        until("the process to end", async || self.child.try_wait().unwrap()).await
    }

    /// Memory in use, and the most that ever was, in KiB.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").parse().unwrap()
        };
        (value("VmRSS:"), value("VmHWM:"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the process said:\n{}", self.said());
        }
    }
}

fn keep(errors: ChildStderr, into: &Mutex<String>) {
    for line in BufReader::new(errors).lines().map_while(Result::ok) {
        let mut said = into.lock().unwrap();
        said.push_str(&line);
        said.push('\n');
    }
}

/// A running gateway.
pub(crate) struct Gateway {
    pub(crate) process: Process,
    /// Where clients connect.
    pub(crate) clients: SocketAddr,
    pub(crate) admin: SocketAddr,
    file: PathBuf,
}

impl Gateway {
    pub(crate) async fn start(policy: &Policy) -> Self {
        Self::start_with(policy, Command::new(TIDEGATE)).await
    }

    /// Starts it by a command that runs the binary with the arguments that are added.
    pub(crate) async fn start_with(policy: &Policy, mut command: Command) -> Self {
        let file = fresh_path("toml");
        std::fs::write(&file, policy.text()).unwrap();
        command.args(["run", "--config"]).arg(&file);
        let (process, line) = Process::start(&mut command, "tidegate ").await;
        let (clients, admin) = addresses(&line);
        Self { process, clients, admin, file }
    }

    /// Puts another policy in force.
    pub(crate) async fn reload(&self, policy: &Policy) {
        let done = "tidegate_config_reloads_total{result=\"ok\"}";
        let before = self.metric(done).await;
        self.offer(policy);
        until("the policy to be in force", async || (self.metric(done).await > before).then_some(())).await;
    }

    /// Asks it to read its policy again, which is this now.
    pub(crate) fn offer(&self, policy: &Policy) {
        std::fs::write(&self.file, policy.text()).unwrap();
        self.process.signal("HUP");
    }

    pub(crate) async fn admin(&self, target: &str) -> Message {
        ask(self.admin, operators_get(target)).await
    }

    /// The numbers of the upstream.
    pub(crate) async fn stats(&self) -> Stats {
        let all = self.admin("/api/stats").await.json();
        Stats(all["upstreams"]["service"].clone())
    }

    /// The value of one metric, named with its labels.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let metrics = self.admin("/metrics").await.text();
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
    }

    /// Waits until the numbers of the upstream are so.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Stats) -> bool) -> Stats {
        let watch = Stopwatch::start();
        loop {
            let stats = self.stats().await;
            if is_so(&stats) {
                return stats;
            }
            assert!(watch.elapsed() < crate::wait::PATIENCE, "waited in vain for {what}: {:#}", stats.0);
            tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        }
    }

    /// Waits until nothing is under way: every slot is free, nobody waits.
    pub(crate) async fn until_idle(&self) -> Stats {
        self.until("all slots to be free", |stats| stats.get("in_flight") + stats.get("queue_depth") == 0)
            .await
    }

    /// Whether it serves a request now.
    pub(crate) async fn serves(&self, target: &str) {
        let answer = ask(self.clients, get(target)).await;
        assert_eq!(answer.status(), 200, "{}", answer.text());
    }

    /// How many client connections are open, by its own count.
    pub(crate) async fn connections(&self) -> u64 {
        self.admin("/api/stats").await.json()["connections"]["client"].as_u64().unwrap()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

/// A GET request to the admin address, which on loopback answers to no other name.
pub(crate) fn operators_get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// Reads the two addresses in the line that says that it has started.
pub(crate) fn addresses(line: &str) -> (SocketAddr, SocketAddr) {
    let mut addresses =
        line.split("http://").skip(1).map(|rest| rest.split([',', ' ', ':']).collect::<Vec<_>>());
    let mut next = || {
        let parts = addresses.next().unwrap_or_else(|| panic!("no address in {line:?}"));
        format!("{}:{}", parts[0], parts[1]).parse().unwrap()
    };
    (next(), next())
}

/// The numbers of an upstream.
#[derive(Debug)]
pub(crate) struct Stats(Value);

impl Stats {
    pub(crate) fn get(&self, name: &str) -> u64 {
        self.0[name].as_u64().unwrap_or_else(|| panic!("no {name} in {:#}", self.0))
    }

    /// A member of what is said of the endpoint of this number.
    pub(crate) fn endpoint(&self, number: usize, name: &str) -> &Value {
        &self.0["endpoints"][number][name]
    }

    /// How many were refused for this reason.
    pub(crate) fn rejected(&self, reason: &str) -> u64 {
        self.0["rejected"][reason].as_u64().unwrap_or(0)
    }
}

/// The lab's slow upstream, which is the same binary.
pub(crate) struct Lab {
    _process: Process,
    pub(crate) address: SocketAddr,
}

impl Lab {
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(TIDEGATE);
        command.args(["upstream", "--port", "0"]).args(arguments);
        let (process, line) = Process::start(&mut command, "the lab's upstream listens").await;
        let address = line.split("http://").nth(1).unwrap().split(": ").next().unwrap().parse().unwrap();
        Self { _process: process, address }
    }

    pub(crate) async fn stats(&self) -> Value {
        connect(self.address).await.get("/stats").await.json()
    }

    pub(crate) async fn stat(&self, name: &str) -> u64 {
        self.stats().await[name].as_u64().unwrap()
    }
}

impl crate::message::Wire {
    /// A GET request on this connection, and its answer.
    pub(crate) async fn get(&mut self, target: &str) -> Message {
        self.send(get(target)).await;
        self.message().await
    }
}
