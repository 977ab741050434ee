//! The dashboard as a person sees it, in a browser before a real gateway under a real overload.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use crate::browser::Browser;
use crate::client::{ask, connect};
use crate::gateway::{Gateway, Lab, Policy, TIDEGATE, fresh_path, operators_get};
use crate::service::Service;
use crate::wait::{Stopwatch, patiently, turn, until};

const HOSTILE: &str = "<script>window.hacked=1</script><img src=x onerror=window.hacked=2>";

/// Four slots of 20 ms are 200 a second. Half of the requests are of a class of its own, by somebody with a wicked name.
async fn gateway(lab: &Lab) -> Gateway {
    let rest = "[[route]]\npath = \"/work/checkout\"\npriority = \"critical\"\nconcurrency = 10\n\
                [[route]]\npath = \"/*\"\ntenant = \"header:x-tenant\"\n\
                [[rate_limit]]\nname = \"each\"\nkey = \"header:x-tenant\"\nrate = \"300/s\"\nshow_key = true\npaths = [\"/work/browse\"]\n";
    Gateway::start(&Policy::before(lab.address).queue(8, "100ms").rest(rest)).await
}

/// Clients that ask again as soon as they have an answer, until they are told to stop.
struct Crowd {
    stop: Arc<AtomicBool>,
    clients: JoinSet<()>,
}

impl Crowd {
    fn of(gateway: &Gateway, clients: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut all = JoinSet::new();
        for number in 0..clients {
            let (stop, to) = (stop.clone(), gateway.clients);
            all.spawn(async move {
                let mut wire = connect(to).await;
                let path = if number % 2 == 0 { "/work/checkout" } else { "/work/browse" };
                let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Tenant: {HOSTILE}\r\n\r\n");
                while !stop.load(Relaxed) {
                    wire.send(&request).await;
                    wire.message().await;
                    // Nobody asks thousands of times a second.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        }
        Self { stop, clients: all }
    }

    async fn stop(self) {
        self.stop.store(true, Relaxed);
        self.clients.join_all().await;
    }
}

/// Nothing hangs over the edge, no text is cut off or lies on another, every chart has a unit and a legend.
async fn looks_right(browser: &mut Browser, width: u32) {
    let look = r"(() => {
        const found = [];
        const note = (what, element) => found.push(`${what}: ${element.textContent || element.outerHTML}`.slice(0, 120));
        const boxes = (elements) => elements.map((element) => [element, element.getBoundingClientRect()]);
        for (const [element, box] of boxes([...document.querySelectorAll('body *')])) {
            const outside = box.width > 0 && (box.right > innerWidth + 1 || box.left < -1);
            if (outside && !element.closest('svg, .skip')) note('outside', element);
        }
        for (const element of document.querySelectorAll('.tiles b, .legend .name, h2, h3, figcaption, .verdict, dd, td, th, button')) {
            if (element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).display !== 'inline' && !element.closest('thead')) note('cut', element);
        }
        for (const chart of document.querySelectorAll('figure')) {
            const texts = boxes([...chart.querySelectorAll('.plot text')]);
            const edge = chart.getBoundingClientRect();
            if (!texts.length || !texts[0][0].textContent || !chart.querySelector('.legend li')) note('bare', chart);
            texts.forEach(([one, a], index) => {
                if (a.left < edge.left || a.right > edge.right) note('over the edge of its chart', one);
                for (const [other, b] of texts.slice(index + 1)) {
                    const apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
                    if (!apart) note(`on ${other.textContent}`, one);
                }
            });
        }
        return JSON.stringify(found);
    })()";
    assert_eq!(browser.value("document.documentElement.scrollWidth").await, width);
    assert_eq!(browser.value(look).await, "[]", "at {width}");
}

/// What the page says is what `/api/stats` says, under overload and after it; and nobody's name becomes code.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_shows_what_the_statistics_say() {
    let lab = Lab::start(&["--service-time", "20ms"]).await;
    let gateway = gateway(&lab).await;
    let crowd = Crowd::of(&gateway, 40);
    let mut browser = Browser::start().await;
    browser.size(1280, 900, "light").await;
    browser.open(&format!("http://{}/", gateway.admin)).await;
    browser.until("document.getElementById('verdict').dataset.level === 'bad'").await;
    let verdict = browser.value("document.getElementById('verdict').textContent").await;
    let verdict = verdict.as_str().unwrap();
    assert!(verdict.starts_with("service is full: ") && verdict.contains(" of 4 slots taken"), "{verdict}");
    browser
        .until("document.querySelector('#keys tbody th') && document.querySelector('#tenants tbody th')")
        .await;
    crowd.stop().await;
    let stats = gateway.until_idle().await;
    for (column, name) in [
        ("received", "received"),
        ("goodput", "goodput"),
        ("shed", "shed"),
        ("in_flight", "in_flight"),
        ("max_in_flight", "max_in_flight"),
        ("limit", "limit"),
        ("max_queue_depth", "max_queue_depth"),
        ("queue_capacity", "queue_capacity"),
    ] {
        let cell = format!(
            "document.querySelector('tr[data-upstream=service] td[data-column={column}]').dataset.value"
        );
        browser.until(&format!("{cell} === '{}'", stats.get(name))).await;
    }
    // What was counted is also what the samples of the page add up to.
    let sums = "import('/assets/feed.js').then(({ samples }) => samples.reduce((total, sample) => \
                total + sample.upstreams.service.arrivals * sample.seconds, 0))";
    let seen = until("all of it in the samples", async || {
        let sum = browser.value(sums).await.as_f64()?.round() as u64;
        (sum >= stats.get("received")).then_some(sum)
    });
    assert_eq!(seen.await, stats.get("received"));

    let names =
        "[...document.querySelectorAll('#keys th, #tenants th')].map((cell) => cell.textContent).join(' | ')";
    let names = browser.value(names).await;
    assert!(names.as_str().unwrap().contains(&HOSTILE[..60]), "{names}");
    assert_eq!(
        browser
            .value("[window.hacked ?? null, document.scripts.length, document.images.length]")
            .await
            .to_string(),
        "[null,1,1]"
    );

    // Without a mouse: the values of a moment ago.
    let key = "document.querySelector('[data-chart=flow] svg').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft' }))";
    browser.value(key).await;
    browser.until("document.querySelector('[data-chart=flow] .moment').textContent.endsWith(' ago')").await;
    for (width, scheme) in [(1280, "light"), (1280, "dark"), (400, "light"), (400, "dark")] {
        browser.size(width, 900, scheme).await;
        let drawn = format!(
            "document.querySelector('[data-chart=flow] svg').viewBox.baseVal.width === document.querySelector('[data-chart=flow] svg').clientWidth && innerWidth === {width}"
        );
        browser.until(&drawn).await;
        looks_right(&mut browser, width).await;
    }
    assert_eq!(browser.errors, Vec::<String>::new());
}

/// The forms: what a request is, and what another limit would have made of what came.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_explained_and_a_limit_is_tried() {
    let lab = Lab::start(&["--service-time", "20ms"]).await;
    let gateway = gateway(&lab).await;
    let crowd = Crowd::of(&gateway, 40);
    let mut browser = Browser::start().await;
    browser.size(400, 900, "dark").await;
    browser.open(&format!("http://{}/", gateway.admin)).await;
    browser.until("document.querySelector('#whatif-order li')").await;
    let ask = format!(
        "document.getElementById('explain-request').value = `curl http://a/work/browse -H 'x-tenant: {HOSTILE}'`; \
         document.querySelector('#explain button').click()"
    );
    browser.value(&ask).await;
    browser.until("document.querySelector('[data-explained=route]')").await;
    let said = async |browser: &mut Browser, what: &str| -> String {
        let cell = format!("document.querySelector('[data-explained=\"{what}\"]').textContent");
        browser.value(&cell).await.as_str().unwrap().to_owned()
    };
    assert_eq!(said(&mut browser, "route").await, "/*");
    assert_eq!(said(&mut browser, "class").await, "default: that of the route");
    assert!(said(&mut browser, "tenant").await.starts_with(HOSTILE));
    assert!(said(&mut browser, "rate limits").await.starts_with("each: 300 in 1 s, "));

    gateway.until("enough to play", |stats| stats.get("goodput") > 300).await;
    let ask = "document.getElementById('whatif-limit').value = '1'; document.querySelector('#whatif button:not(.small)').click()";
    browser.value(ask).await;
    browser.until("document.querySelector('[data-whatif]')").await;
    let gained = browser.value("Number(document.querySelector('[data-whatif]').dataset.whatif)").await;
    assert!(gained.as_f64().unwrap() < -50.0, "one slot does less than four: {gained}");
    // Charts are drawn when it is known how wide they are, which is a frame later.
    browser.until("[...document.querySelectorAll('#whatif-result figure')].every((one) => one.querySelector('.plot text')?.textContent)").await;
    looks_right(&mut browser, 400).await;
    crowd.stop().await;
    assert_eq!(browser.value("window.hacked ?? null").await, Value::Null);
    assert_eq!(browser.errors, Vec::<String>::new());
}

/// The form for changes has the upstreams of the policy in force, and keeps what somebody has typed.
#[tokio::test]
async fn a_reload_changes_the_form_and_not_what_is_typed() {
    let (service, token) = (Service::prompt().await, fresh_path("token"));
    std::fs::write(&token, "0123456789abcdef\n").unwrap();
    let route = "[[route]]\npath = \"/*\"\nupstream = \"service\"\n";
    let other = |name: &str| {
        format!("{route}[[upstream]]\nname = \"{name}\"\nendpoints = [\"http://{}\"]\n", service.address)
    };
    let policy = Policy::before(service.address).server(&format!("admin_token_file = {token:?}"));
    let gateway = Gateway::start(&policy.clone().rest(&other("old"))).await;
    let mut browser = Browser::start().await;
    browser.open(&format!("http://{}/", gateway.admin)).await;
    browser.until("document.querySelector('#change select')?.options.length === 2").await;
    let form = "(() => { const form = document.querySelector('#change form'); const select = form.querySelector('select'); \
                return JSON.stringify([select.value, [...select.options].map((one) => one.value), form.querySelector('input').value]) })()";
    browser.value("document.querySelector('#change input').value = 'typed'").await;
    gateway.reload(&policy.clone().rest(&other("new"))).await;
    browser
        .until("[...document.querySelectorAll('#change option')].some((one) => one.value === 'new')")
        .await;
    assert_eq!(browser.value(form).await, r#"["service",["service","new"],"typed"]"#);
    browser.value("document.querySelector('#change select').value = 'new'").await;
    gateway.reload(&policy.rest(&other("newest"))).await;
    browser
        .until("[...document.querySelectorAll('#change option')].some((one) => one.value === 'newest')")
        .await;
    assert_eq!(browser.value(form).await, r#"["",["service","newest"],"typed"]"#, "nobody chose another");
    assert_eq!(browser.errors, Vec::<String>::new());
}

/// The line at the top says what is so, the worst first.
#[tokio::test]
async fn the_verdict_names_the_bottleneck() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(service.address)).await;
    let mut browser = Browser::start().await;
    browser.open(&format!("http://{}/", gateway.admin)).await;
    browser.until("document.getElementById('verdict').dataset.level").await;
    // A sample in which 100/s come and are answered, with this verdict and these changes; a second upstream is idle.
    let verdict = "(kind, level, means, changes, draining = 0) => import('/assets/verdict.js').then(({ verdict }) => { \
                   const it = { kind: 'idle', level: 'good', weight: 0, arrivals: 100, goodput: 100, refused: 0, failed: 0, client_left: 0, \
                   taken: 4, limit: 10, waiting: 0, reason: null, for_reason: null }; \
                   const one = { in_flight: 4, orphans: 0, priorities: {}, breakers: { open: 0, closed: 2, half_open: 0 }, \
                   latency_ms: { second: { p50: 20 } }, verdict: it }; \
                   const orders = { ...one, ...changes, verdict: { ...it, kind, level, weight: 1, ...means } }; \
                   const said = verdict({ gateway: { draining }, upstreams: { idle: one, orders } }, { key: 'acme', rate_limit: 'each' }); \
                   return `${said.level}: ${said.head} ${said.more}`.trim() })";
    let two =
        "{ priorities: { critical: { arrivals: 20, refused: 0 }, default: { arrivals: 80, refused: 60 } } }";
    for (asked, said) in [
        (
            "'well', 'good'",
            "good: All is well: 100/s of useful answers of 100/s that come to orders, 4 of 10 slots taken.",
        ),
        ("'idle', 'good'", "good: Nobody asks orders for anything just now."),
        (
            "'just_full', 'warn', { taken: 10, waiting: 3 }, { priorities: { default: { arrivals: 9, wait_ms: 12 } } }",
            "warn: orders is just about full: 10 of 10 slots taken, 3 waiting for 12 ms, nobody refused; 100/s of useful answers.",
        ),
        (
            &format!("'full', 'bad', {{ taken: 10, refused: 60, goodput: 40, reason: 'queue_full' }}, {two}"),
            "bad: orders is full: 10 of 10 slots taken, 40/s of useful answers, refusing 60/s. \
             critical: served whole. default: refused in part.",
        ),
        (
            "'refuses', 'warn', { refused: 60, goodput: 40, reason: 'deadline' }",
            "warn: orders refuses 60/s of 100/s (deadline), with 4 of 10 slots taken.",
        ),
        (
            "'held_back', 'warn', { refused: 60, goodput: 40, reason: 'rate_limited', for_reason: 59 }",
            "warn: orders is held back by policy, not by load: 59/s refused (rate limited); 40/s of useful answers. \
             4 of 10 slots taken. Most of all acme, by each.",
        ),
        (
            "'fails', 'bad', { failed: 70, goodput: 30, reason: 'upstream_timeout' }",
            "bad: orders fails: 70/s of 100/s get no answer from it (upstream timeout). \
             30/s of useful answers; 4 of 10 slots taken.",
        ),
        (
            "'clients_leave', 'bad', { client_left: 95, goodput: 5 }, { orphans: 900 }",
            "bad: orders: clients give up before their answer: 95/s leave, 5/s of useful answers of 100/s that come. \
             Half of the answers that came took 20 ms or more. 900 slots are taken for clients who have gone.",
        ),
        (
            "'down', 'bad', { refused: 100, goodput: 0 }, { breakers: { open: 2, closed: 0, half_open: 0 } }",
            "bad: orders is down: the breaker of all 2 endpoints is open, refusing 100/s.",
        ),
        (
            "'new', 'warn'",
            "warn: orders: 100/s of useful answers of 100/s that come, 4 of 10 slots taken. Load the page again.",
        ),
    ] {
        assert_eq!(browser.value(&format!("({verdict})({asked})")).await, said, "{asked}");
    }
    let draining = browser.value(&format!("({verdict})('well', 'good', {{}}, {{}}, 1)")).await;
    assert_eq!(draining, "warn: Draining: it takes no new connections, and 8 requests are still under way.");
}

/// The demo's show: its process, and where its dashboard is.
async fn show() -> (Child, SocketAddr) {
    let mut child = Command::new(TIDEGATE)
        .args(["demo", "--show", "--any-port"])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    loop {
        let line = patiently("the address of the dashboard", lines.next_line()).await.unwrap().unwrap();
        if let Some((_, address)) = line.split_once("http://") {
            // Read on, or the demo would stand still before a full pipe.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return (child, address.trim_end_matches('/').parse().unwrap());
        }
    }
}

/// What a newcomer sees within a minute: under the same overload one of two services alike goes on, and the other collapses.
#[tokio::test]
async fn the_demo_shows_the_collapse_and_the_hold() {
    let _turn = turn().await;
    let (_demo, admin) = show().await;
    let watch = Stopwatch::start();
    let lately = |history: &Value, upstream: &str, what: &str| -> f64 {
        let values = history["upstreams"][upstream][what].as_array().cloned().unwrap_or_default();
        values.iter().filter_map(Value::as_f64).sum::<f64>() / values.len().max(1) as f64
    };
    loop {
        let history = ask(admin, operators_get("/api/history?seconds=5")).await.json();
        let (with, without) = ("with-tidegate", "without-tidegate");
        let arrivals = lately(&history, without, "arrivals");
        let useful = [with, without].map(|upstream| lately(&history, upstream, "goodput"));
        if arrivals > 80.0 && useful[0] > 35.0 && useful[1] < 5.0 {
            return;
        }
        assert!(watch.elapsed() < Duration::from_secs(60), "{arrivals} come, {useful:?} are useful");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// The picture of the README, taken anew: `cargo test -p tidegate --test wire picture -- --ignored`.
#[tokio::test]
#[ignore = "it writes into docs, and takes a minute"]
async fn a_picture_for_the_readme() {
    let (_demo, admin) = show().await;
    let mut browser = Browser::start().await;
    browser.size(1280, 900, "light").await;
    browser.open(&format!("http://{admin}/")).await;
    tokio::time::sleep(Duration::from_secs(46)).await;
    let picture = browser.picture(1280, 980).await;
    assert!(picture.len() < 200_000, "{}", picture.len());
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/images/dashboard.png");
    std::fs::write(file, picture).unwrap();
}
