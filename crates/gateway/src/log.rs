//! The access log: JSON lines, written by a thread of its own. The data path never waits for it.
//!
//! Lines go through a channel of fixed length. When it is full, because the disk or the pipe is slower than the
//! traffic, lines are lost and counted: a log must not become the bottleneck that it is there to find.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use http::{Method, Uri, Version};
use serde_json::json;
use tidegate_engine::Timestamp;
use tidegate_policy::AccessLog;

use crate::clock;
use crate::metrics::{Counter, Ending};
use crate::trace::TraceId;

/// Lines that may wait for the writer.
const LINES_MAX: usize = 8_192;
/// With `access_log = "refused"`, at most so many lines a second: in a flood all refusals look alike.
const REFUSED_PER_SECOND: u32 = 100;
/// The longest target that is logged; the rest of it is cut off.
const TARGET_MAX: usize = 2_048;

pub(crate) struct Log {
    lines: SyncSender<Message>,
    which: AccessLog,
    /// The second, in the upper half, and how many lines it has had, in the lower.
    budget: AtomicU64,
    pub(crate) lost: Arc<Counter>,
    pub(crate) skipped: Counter,
}

enum Message {
    Access(String),
    Notice(String),
    Reopen,
    Stop,
}

/// One request, as the log shows it.
pub(crate) struct Line<'a> {
    pub(crate) client: IpAddr,
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) version: Version,
    pub(crate) route: &'a str,
    pub(crate) upstream: &'a str,
    /// The name of its class; empty if it had no route.
    pub(crate) priority: &'a str,
    /// `retry`, if the request says that it was tried before; else empty.
    pub(crate) attempt: &'a str,
    pub(crate) status: u16,
    /// Empty where there is none, as is the flag.
    pub(crate) reason: &'a str,
    pub(crate) flag: &'a str,
    /// The rate limit that the request was over.
    pub(crate) rate_limit: Option<&'a str>,
    /// The trace that it belongs to.
    pub(crate) trace: Option<TraceId>,
    pub(crate) queued: Option<Duration>,
    pub(crate) upstream_time: Option<Duration>,
    pub(crate) total: Duration,
    pub(crate) bytes: u64,
}

impl Log {
    /// Opens the log and starts its thread, which ends when [`Log::stop`] is called.
    pub(crate) fn open(which: AccessLog, file: Option<&Path>) -> io::Result<(Self, JoinHandle<()>)> {
        let out = Out::open(file.map(Path::to_path_buf))?;
        let (lines, inbox) = sync_channel(LINES_MAX);
        let lost = Arc::new(Counter::default());
        let lost_by_writer = lost.clone();
        let writer = std::thread::Builder::new()
            .name("tidegate-log".into())
            .spawn(move || write_lines(&inbox, out, &lost_by_writer))?;
        Ok((Self { lines, which, budget: AtomicU64::new(0), lost, skipped: Counter::default() }, writer))
    }

    pub(crate) fn is_on(&self) -> bool {
        self.which != AccessLog::Off
    }

    /// Whether a request that ended so is to be logged.
    pub(crate) fn wants(&self, now: Timestamp, ending: Ending) -> bool {
        match self.which {
            AccessLog::Off => false,
            AccessLog::All => true,
            AccessLog::Refused => {
                let wanted = !matches!(ending, Ending::Success | Ending::ServerError);
                wanted && self.within_budget(now)
            }
        }
    }

    pub(crate) fn access(&self, line: &Line<'_>) {
        self.send(Message::Access(line.to_json()));
    }

    /// Something about the gateway itself that an operator should see, on standard error.
    pub(crate) fn notice(&self, text: &str) {
        self.send(Message::Notice(text.to_string()));
    }

    /// Opens the file anew under its name, for whoever has renamed it to begin another.
    pub(crate) fn reopen(&self) {
        self.send(Message::Reopen);
    }

    /// Lets the thread write what it has and end, if it has room for the message; behind a reader that has stalled it
    /// may not.
    pub(crate) fn stop(&self) {
        let _ = self.lines.try_send(Message::Stop);
    }

    fn send(&self, message: Message) {
        if self.lines.try_send(message).is_err() {
            self.lost.add(1);
        }
    }

    fn within_budget(&self, now: Timestamp) -> bool {
        let second = now.as_nanos() / 1_000_000_000;
        let spend = |budget: u64| {
            let (of, used) = (budget >> 32, budget as u32);
            match (of == second, used < REFUSED_PER_SECOND) {
                (true, true) => Some(budget + 1),
                (true, false) => None,
                (false, _) => Some(second << 32 | 1),
            }
        };
        let granted = self.budget.fetch_update(Relaxed, Relaxed, spend).is_ok();
        if !granted {
            self.skipped.add(1);
        }
        granted
    }
}

/// Where lines go.
struct Out {
    writer: BufWriter<Box<dyn Write + Send>>,
    /// `None` for standard output.
    file: Option<PathBuf>,
}

impl Out {
    fn open(file: Option<PathBuf>) -> io::Result<Self> {
        let out: Box<dyn Write + Send> = match &file {
            Some(path) => Box::new(OpenOptions::new().create(true).append(true).open(path)?),
            None => Box::new(io::stdout()),
        };
        Ok(Self { writer: BufWriter::new(out), file })
    }

    /// On an error the file that was open stays so: better lines under the old name than none.
    fn reopen(&mut self) -> io::Result<()> {
        if self.file.is_some() {
            let fresh = Self::open(self.file.clone())?;
            self.writer.flush()?;
            *self = fresh;
        }
        Ok(())
    }
}

fn write_lines(inbox: &Receiver<Message>, mut out: Out, lost: &Counter) {
    let mut next = inbox.recv().ok();
    while let Some(message) = next {
        let written = match message {
            Message::Access(line) => out.writer.write_all(line.as_bytes()),
            Message::Notice(text) => writeln!(io::stderr(), "tidegate: {text}"),
            Message::Reopen => out.reopen().or_else(|error| {
                writeln!(io::stderr(), "tidegate: cannot open the access log anew: {error}")
            }),
            Message::Stop => break,
        };
        if written.is_err() {
            lost.add(1);
        }
        next = match inbox.try_recv() {
            Ok(message) => Some(message),
            Err(_) => {
                // Nothing more to write for now, so whoever follows the log should see what there is.
                if out.writer.flush().is_err() {
                    lost.add(1);
                }
                inbox.recv().ok()
            }
        };
    }
    let _ = out.writer.flush();
}

impl Line<'_> {
    fn to_json(&self) -> String {
        let millis = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        let mut target = self.uri.path_and_query().map_or("", |target| target.as_str());
        if let Some((cut, _)) = target.char_indices().find(|(at, _)| *at >= TARGET_MAX) {
            target = &target[..cut];
        }
        let line = json!({
            "time": clock::wall().to_string(),
            "client": self.client.to_string(),
            "method": self.method.as_str(),
            "target": target,
            "protocol": format!("{:?}", self.version),
            "route": self.route,
            "upstream": self.upstream,
            "priority": self.priority,
            "attempt": self.attempt,
            "status": self.status,
            "reason": self.reason,
            "flag": self.flag,
            "rate_limit": self.rate_limit,
            "trace": self.trace.map(|trace| trace.to_string()),
            "queue_ms": self.queued.map(millis),
            "upstream_ms": self.upstream_time.map(millis),
            "total_ms": millis(self.total),
            "bytes": self.bytes,
        });
        let mut text = String::with_capacity(448);
        // Writing into a string does not fail.
        let _ = writeln!(text, "{line}");
        text
    }
}
