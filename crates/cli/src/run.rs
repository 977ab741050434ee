//! `tidegate run`: the gateway as a process, with its signals.

use std::io::{self, Write as _};
use std::time::Duration;

use tidegate_gateway::{Gateway, Given, StartError};
use tidegate_policy::{Parsed, Policy, QuickStart, set_by_flag};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

use crate::args::RunArgs;
use crate::check;
use crate::exit::Failure;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    // Before anybody can know that we are here: a signal that nobody hears ends the process.
    let told = Told::listen()?;
    let parsed = policy(args)?;
    check::warn(&parsed.lints);
    let upstreams = describe(&parsed.policy);
    let gateway = start(parsed)?;
    let listening = gateway.listening();
    let _ = writeln!(
        io::stderr(),
        "tidegate {} listens on http://{}, admin on http://{}, in front of {upstreams}",
        env!("CARGO_PKG_VERSION"),
        listening.clients,
        listening.admin,
    );
    until_stopped(told, gateway, || reload(args))
}

/// Starts a gateway, with the exit code that fits if it cannot.
pub(crate) fn start(given: impl Into<Given>) -> Result<Gateway, Failure> {
    Gateway::start(given).map_err(|error| match error {
        StartError::Bind(..) => Failure::bind(error),
        StartError::Log(_) | StartError::Thread(_) | StartError::Otlp(_) => Failure::runtime(error),
    })
}

fn policy(args: &RunArgs) -> Result<Parsed, Failure> {
    let mut parsed = match (&args.config, &args.upstream) {
        (Some(file), _) => check::load(file)?,
        (None, Some(upstream)) => {
            let quick = QuickStart {
                limit: args.limit.clone(),
                queue: args.queue.clone(),
                wait: args.wait.clone(),
                timeout: args.timeout.clone(),
                ..QuickStart::new(upstream)
            };
            Policy::for_upstream(&quick).map_err(|errors| check::failure(&errors))?
        }
        // The argument parser has asked for one of the two.
        (None, None) => return Err(Failure::policy("give --config FILE or --upstream URL")),
    };
    crate::otel::add(&mut parsed);
    // What is typed goes before what is written.
    let settings = &mut parsed.settings;
    if let Some(listen) = args.listen {
        parsed.policy.server.listen = listen;
        set_by_flag(settings, "[server]", "listen", &format!("\"{listen}\""), "--listen");
    }
    if let Some(admin) = args.admin {
        parsed.policy.server.admin = admin;
        set_by_flag(settings, "[server]", "admin", &format!("\"{admin}\""), "--admin");
    }
    Ok(parsed)
}

/// Reads the policy again; `None`, and a word about it, if there is nothing new to put in force.
fn reload(args: &RunArgs) -> Option<Parsed> {
    if args.config.is_none() {
        let _ = writeln!(io::stderr(), "tidegate: there is no policy file to read again");
        return None;
    }
    match policy(args) {
        Ok(parsed) => {
            check::warn(&parsed.lints);
            Some(parsed)
        }
        Err(failure) => {
            let _ = failure.report();
            let _ =
                writeln!(io::stderr(), "tidegate: the policy was not changed; the one before stays in force");
            None
        }
    }
}

/// Waits for signals and does what they say, until the gateway has ended.
pub(crate) fn until_stopped(
    told: Told,
    gateway: Gateway,
    reload: impl Fn() -> Option<Parsed>,
) -> Result<(), Failure> {
    let Told { runtime, mut signals, mut hangup } = told;
    let cut_short = runtime.block_on(async {
        loop {
            tokio::select! {
                () = signals.stop() => break,
                () = gateway.until_draining() => break,
                _ = hangup.recv() => put_in_force(&gateway, reload()),
            }
        }
        let _ = writeln!(io::stderr(), "tidegate: draining, at most for {:?}", gateway.drain_time());
        gateway.drain();
        tokio::select! {
            () = ended(&gateway) => {}
            () = sleep(gateway.drain_time()) => gateway.stop(),
            () = signals.stop() => {
                gateway.stop();
                return true;
            }
        }
        false
    });
    gateway.wait();
    if cut_short { Err(Failure::runtime("ended at once by a second signal")) } else { Ok(()) }
}

/// Waits for a signal that asks us to end.
pub(crate) async fn stopped() -> Result<(), Failure> {
    Signals::listen()?.stop().await;
    Ok(())
}

fn put_in_force(gateway: &Gateway, parsed: Option<Parsed>) {
    let Some(parsed) = parsed else { return gateway.reload_refused() };
    let said = match gateway.reload(parsed) {
        Ok(()) => "the policy was read again and is in force".to_string(),
        Err(error) => error.to_string(),
    };
    let _ = writeln!(io::stderr(), "tidegate: {said}");
}

async fn ended(gateway: &Gateway) {
    while !gateway.has_ended() {
        sleep(Duration::from_millis(5)).await;
    }
}

/// What the process is told by signals, and what it is heard with. From here on a signal waits to be heard.
pub(crate) struct Told {
    runtime: Runtime,
    signals: Signals,
    hangup: Signal,
}

impl Told {
    pub(crate) fn listen() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (signals, hangup) = runtime
            .block_on(async { Ok::<_, io::Error>((Signals::listen()?, signal(SignalKind::hangup())?)) })?;
        Ok(Self { runtime, signals, hangup })
    }
}

/// The signals that ask us to end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn describe(policy: &Policy) -> String {
    let endpoints = policy.upstreams.iter().flat_map(|upstream| &upstream.endpoints);
    endpoints.map(|endpoint| format!("http://{endpoint}")).collect::<Vec<_>>().join(", ")
}
