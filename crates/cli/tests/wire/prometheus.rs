//! Debian's Prometheus, scraping a running gateway, and its promtool, reading what it scrapes. `cargo xtask test`
//! installs both; without them these tests say so and do nothing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::client::{ask, connect, get, sent};
use crate::gateway::{Gateway, Policy, fresh_path};
use crate::service::{Script, Service};
use crate::wait::until;

/// Where a program of the package lies, if it is installed.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    let path = Path::new("/usr/bin").join(program);
    let is_there = path.exists();
    if !is_there {
        eprintln!("skipped: {} is missing; apt-get install prometheus", path.display());
    }
    is_there.then_some(path)
}

/// A Prometheus that scrapes one gateway every second.
struct Prometheus {
    process: Child,
    address: SocketAddr,
    folder: PathBuf,
}

impl Prometheus {
    async fn start(program: &Path, scraped: SocketAddr) -> Self {
        let folder = fresh_path("prometheus");
        std::fs::create_dir_all(&folder).unwrap();
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
             scrape_configs: [{{job_name: tidegate, static_configs: [{{targets: [\"{scraped}\"]}}]}}]\n"
        );
        std::fs::write(folder.join("prometheus.yml"), config).unwrap();
        // No other test uses this host, so the port stays free.
        let address = Script::at("127.77.9.1:0".parse().unwrap()).await.address;
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let process = Command::new(program)
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let prometheus = Self { process, address, folder };
        until("Prometheus to be ready", async || {
            tokio::net::TcpStream::connect(address).await.ok()?;
            (ask(address, get("/-/ready")).await.status() == 200).then_some(())
        })
        .await;
        prometheus
    }

    /// What it answers to this path with a query.
    async fn api(&self, path: &str, query: &[(&str, &str)]) -> Value {
        let mut target = format!("/api/v1/{path}?");
        for (name, value) in query {
            target.push_str(&format!("{name}="));
            for byte in value.bytes() {
                target.push_str(&format!("%{byte:02X}"));
            }
            target.push('&');
        }
        let answer = ask(self.address, get(&target)).await.json();
        assert_eq!(answer["status"], "success", "{path} {query:?}: {answer}");
        answer["data"].clone()
    }

    /// The values of this expression now, by this label.
    async fn by(&self, label: &str, expression: &str) -> BTreeMap<String, f64> {
        let data = self.api("query", &[("query", expression)]).await;
        let samples = data["result"].as_array().unwrap().iter();
        let value = |sample: &Value| sample["value"][1].as_str().unwrap().parse().unwrap();
        samples.map(|s| (s["metric"][label].as_str().unwrap_or_default().into(), value(s))).collect()
    }

    async fn value(&self, expression: &str) -> Option<f64> {
        self.by("", expression).await.into_values().next()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            eprintln!("Prometheus said:\n{log}");
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// One of each: served, answered 500, over a rate limit, in a full queue, with a wait, left, malformed, without a route.
async fn traffic(gateway: &Gateway, service: &Service, round: u64) {
    let asked = service.seen().len();
    let mut in_flight = sent(gateway.clients, get("/first")).await;
    service.until_asked(asked + 1).await;
    let mut waiting = sent(gateway.clients, get("/second")).await;
    gateway.until("one in the queue", |stats| stats.get("queue_depth") == 1).await;
    let mut wire = connect(gateway.clients).await;
    for _ in 0..5 {
        assert_eq!(wire.get("/refused").await.reason(), "queue_full");
    }
    service.release(2);
    assert_eq!((in_flight.message().await.status(), waiting.message().await.status()), (200, 200));
    service.turn_to(500);
    service.release(1);
    assert_eq!(wire.get("/broken").await.status(), 500);
    service.turn_to(200);
    let keyed = format!("GET /keyed HTTP/1.1\r\nHost: a\r\nX-Key: {round}\r\n\r\n");
    service.release(1);
    assert_eq!(ask(gateway.clients, &keyed).await.status(), 200);
    assert_eq!(ask(gateway.clients, &keyed).await.status(), 429);
    assert_eq!(ask(gateway.clients, get("/%zz")).await.status(), 400);
    let asked = service.seen().len();
    let leaving = sent(gateway.clients, get("/left")).await;
    service.until_asked(asked + 1).await;
    drop(leaving);
    gateway.until("an orphan", |stats| stats.get("orphans") == 1).await;
    service.release(1);
    gateway.until_idle().await;
}

fn policy(service: &Service) -> Policy {
    let rest = "[[rate_limit]]\nname = \"each\"\nkey = \"header:x-key\"\nrate = \"1/h\"\nburst = 1\n\
                paths = [\"/keyed\"]\n";
    Policy::before(service.address).limit(1).queue(1, "10s").rest(rest)
}

/// promtool finds nothing to complain of in the real thing.
#[tokio::test]
async fn promtool_has_no_complaint() {
    let Some(promtool) = installed("promtool") else { return };
    let service = Service::held().await;
    let gateway = Gateway::start(&policy(&service)).await;
    traffic(&gateway, &service, 1).await;
    let page = fresh_path("metrics");
    std::fs::write(&page, gateway.admin("/metrics").await.body).unwrap();
    let mut command = Command::new(promtool);
    command.args(["check", "metrics"]).stdin(std::fs::File::open(&page).unwrap());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.trim().is_empty(), "{said}");
    std::fs::remove_file(page).unwrap();
}

/// What Prometheus has after scraping is what the gateway itself says, counter by counter, and it follows.
#[tokio::test]
async fn prometheus_counts_what_the_gateway_counts() {
    let Some(program) = installed("prometheus") else { return };
    let service = Service::held().await;
    let gateway = Gateway::start(&policy(&service)).await;
    let prometheus = Prometheus::start(&program, gateway.admin).await;
    for round in 1..=2 {
        traffic(&gateway, &service, round).await;
        until_equal(&prometheus, &gateway, round).await;
    }
    let targets = prometheus.api("targets", &[]).await;
    assert_eq!(targets["activeTargets"][0]["lastError"], "", "{targets}");
    // Units come with OpenMetrics only, so that is what it has read.
    let metadata = prometheus.api("metadata", &[("metric", "tidegate_upstream_seconds")]).await;
    let about = &metadata["tidegate_upstream_seconds"][0];
    assert_eq!((&about["type"], &about["unit"]), (&"histogram".into(), &"seconds".into()), "{metadata}");
    let quantile = "histogram_quantile(0.5, sum by (le) (tidegate_upstream_seconds_bucket))";
    let median = prometheus.value(quantile).await.unwrap();
    assert!((0.0..10.0).contains(&median), "{median}");
}

/// Waits until every number that both have is the same in both.
async fn until_equal(prometheus: &Prometheus, gateway: &Gateway, round: u64) {
    let all = gateway.admin("/api/stats").await.json();
    let stats = &all["upstreams"]["service"];
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{all:#}"));
    let rejected: BTreeMap<String, f64> =
        stats["rejected"].as_object().unwrap().iter().map(|(k, v)| (k.clone(), number(v))).collect();
    assert!(rejected["queue_full"] == 5.0 * round as f64 && rejected.len() >= 2, "{rejected:?}");
    let expected = [
        ("sum(tidegate_requests_total{route!=\"\"})", &stats["received"]),
        ("sum(tidegate_requests_total{outcome=~\"success|server_error\"})", &stats["completed"]),
        ("tidegate_goodput_total", &all["goodput"]),
        ("tidegate_in_flight{upstream=\"service\"}", &stats["in_flight"]),
        ("tidegate_orphans", &stats["orphans"]),
        ("tidegate_limit", &stats["limit"]),
        ("sum(tidegate_queue_depth)", &stats["queue_depth"]),
        ("tidegate_queue_capacity", &stats["queue_capacity"]),
    ];
    until("Prometheus to have the gateway's numbers", async || {
        for (expression, value) in expected {
            if prometheus.value(expression).await? != number(value) {
                return None;
            }
        }
        let of_reasons = "sum by (reason) (tidegate_rejected_total{route!=\"\"}) > 0";
        (prometheus.by("reason", of_reasons).await == rejected).then_some(())
    })
    .await;
}
