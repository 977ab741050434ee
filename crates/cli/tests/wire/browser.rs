//! A browser without a window: Chromium, told what to do over its DevTools protocol.
//!
//! It speaks over a pair of named pipes and not over a socket (`--remote-debugging-pipe`), so nothing but the test can reach
//! it: messages are JSON, each ended by a zero byte.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};

use crate::gateway::fresh_path;
use crate::wait::{patiently, until};

/// What keeps it from asking anybody else anything.
const FLAGS: &str = "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync \
                     --disable-background-networking --disable-component-update --disable-dev-shm-usage \
                     --hide-scrollbars --remote-debugging-pipe about:blank";

/// A browser with one page.
pub(crate) struct Browser {
    process: Child,
    folder: PathBuf,
    to: Sender,
    from: Receiver,
    read: Vec<u8>,
    calls: u64,
    session: Option<String>,
    /// Whatever a person would see in red on the console.
    pub(crate) errors: Vec<String>,
}

impl Browser {
    pub(crate) async fn start() -> Self {
        let folder = fresh_path("browser");
        std::fs::create_dir_all(&folder).unwrap();
        let pipe = |name: &str| {
            let path = folder.join(name);
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            path
        };
        let (to, from) = (pipe("to"), pipe("from"));
        // Both ends at once, so that neither side waits for the other to open it.
        let receiver = OpenOptions::new().read_write(true).open_receiver(&from).unwrap();
        let sender = OpenOptions::new().read_write(true).open_sender(&to).unwrap();
        // The shell gives the browser its descriptors 3 and 4.
        let script = format!("exec chromium --user-data-dir=\"$1\" {FLAGS} 3<\"$2\" 4>\"$3\"");
        let process = Command::new("sh")
            .args(["-c", &script, "sh"])
            .args([&folder.join("profile"), &to, &from])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // So that all of its processes can be ended together.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut browser = Self {
            process,
            folder,
            to: sender,
            from: receiver,
            read: Vec::new(),
            calls: 0,
            session: None,
            errors: Vec::new(),
        };
        let targets = browser.call("Target.getTargets", json!({})).await;
        let targets = targets["targetInfos"].as_array().unwrap();
        let page = targets.iter().find(|target| target["type"] == "page").expect("about:blank is a page");
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let session =
            browser.call("Target.attachToTarget", attach).await["sessionId"].as_str().map(String::from);
        browser.session = session;
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({})).await;
        }
        browser
    }

    /// The size of the page, and whether it is dark.
    pub(crate) async fn size(&mut self, width: u32, height: u32, scheme: &str) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size).await;
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features })).await;
    }

    pub(crate) async fn open(&mut self, url: &str) {
        let opened = self.call("Page.navigate", json!({ "url": url })).await;
        assert_eq!(opened["errorText"], Value::Null, "{url}");
    }

    /// The value of an expression in the page.
    pub(crate) async fn value(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let said = self.call("Runtime.evaluate", asked).await;
        assert_eq!(said["exceptionDetails"], Value::Null, "{expression}");
        said["result"]["value"].clone()
    }

    /// Waits until an expression is true. What it asks of may not be there yet.
    pub(crate) async fn until(&mut self, expression: &str) {
        let tried =
            format!("(() => {{ try {{ return Boolean({expression}) }} catch {{ return false }} }})()");
        until(expression, async || (self.value(&tried).await == true).then_some(())).await;
    }

    /// The page as it looks, from its top, as a PNG.
    pub(crate) async fn picture(&mut self, width: u32, height: u32) -> Vec<u8> {
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let taken = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let data = self.call("Page.captureScreenshot", taken).await["data"].as_str().unwrap().to_owned();
        base64(&data)
    }

    async fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        patiently("to tell the browser", self.to.write_all(format!("{message}\0").as_bytes())).await.unwrap();
        loop {
            let mut said = self.next().await;
            if said["id"] == self.calls {
                assert_eq!(said["error"], Value::Null, "{method}");
                return said["result"].take();
            }
            self.note(&said);
        }
    }

    async fn next(&mut self) -> Value {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == 0) {
                let message: Vec<u8> = self.read.drain(..=end).take(end).collect();
                return serde_json::from_slice(&message).unwrap();
            }
            let count = patiently("word from the browser", self.from.read_buf(&mut self.read)).await.unwrap();
            assert!(count > 0, "the browser has ended");
        }
    }

    fn note(&mut self, event: &Value) {
        let said = &event["params"];
        let is_error = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Log.entryAdded") => {
                said["entry"]["level"] == "error" || said["entry"]["level"] == "warning"
            }
            Some("Runtime.consoleAPICalled") => said["type"] == "error",
            _ => false,
        };
        if is_error {
            self.errors.push(said.to_string());
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // All of its processes: they are a group, whose number is that of the first.
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", self.process.id())]).status();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'=').map(digit).collect();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for four in digits.chunks(4) {
        let bits =
            four.iter().fold(0_u32, |bits, digit| bits << 6 | u32::from(*digit)) << (6 * (4 - four.len()));
        bytes.extend(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}
