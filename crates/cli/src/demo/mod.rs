//! `tidegate demo`: the whole thing on one machine.
//!
//! It starts the lab's upstream and a gateway, plays the experiments of "Backpressure, Rate Limiting and Load Shedding
//! in an API Gateway" one after the other, and prints what it measured beside what the article had. That takes ten seconds.
//! On a terminal the show follows, which is to be looked at on the dashboard.

mod burst;
mod show;
mod stories;
mod table;

use std::io::{self, IsTerminal as _, Write as _};
use std::net::SocketAddr;

use serde_json::{Value, json};
use tidegate_gateway::Gateway;
use tidegate_policy::Policy;

use crate::args::{DemoArgs, UpstreamArgs};
use crate::exit::Failure;
use crate::run::Told;
use crate::{check, lab, run};

/// Where everything is.
struct Stage {
    gateway: Gateway,
    clients: SocketAddr,
    upstream: SocketAddr,
    /// How many policies have been put in force, for names that are new.
    policies: u32,
}

pub(crate) fn run(args: &DemoArgs) -> Result<(), Failure> {
    let mut stage = Stage::set(args)?;
    let mut out = io::stdout();
    if args.show {
        return stage.show(&mut out);
    }
    if !args.json {
        writeln!(out, "{}", stage.welcome())?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut results: Vec<Value> = Vec::new();
    for (index, story) in stories::ALL.iter().enumerate() {
        if !args.json {
            writeln!(out, "{}. {}", index + 1, story.title)?;
            out.flush()?;
        }
        let measured = runtime.block_on((story.play)(&mut stage))?;
        if args.json {
            results.push(json!({ "story": story.title, "rows": measured.to_json() }));
        } else {
            writeln!(out, "{measured}")?;
        }
    }
    if args.json {
        writeln!(out, "{:#}", Value::from(results))?;
        stage.gateway.stop();
        stage.gateway.wait();
        return Ok(());
    }
    if args.stay {
        return stage.stay(&mut out);
    }
    if out.is_terminal() && !args.once {
        return stage.show(&mut out);
    }
    writeln!(out, "Next: tidegate demo --show, or tidegate run --upstream http://127.0.0.1:3000.")?;
    stage.gateway.stop();
    stage.gateway.wait();
    Ok(())
}

impl Stage {
    fn set(args: &DemoArgs) -> Result<Self, Failure> {
        let port = |port| if args.any_port { 0 } else { port };
        let listener = lab::bind(port(8103))?;
        let upstream = listener.local_addr()?;
        std::thread::Builder::new().name("lab".into()).spawn(move || {
            let args = UpstreamArgs {
                port: 0,
                workers: 0,
                service_time: std::time::Duration::from_millis(200),
                cancels_work: false,
            };
            // It ends with the process.
            let _ = lab::serve(listener, &args);
        })?;
        let server = format!(
            "[server]\nlisten = \"127.0.0.1:{}\"\nadmin = \"127.0.0.1:{}\"\naccess_log = \"off\"\n",
            port(8102),
            port(8101)
        );
        let gateway =
            run::start(policy(&server, "lab", upstream, "limit = 4", "capacity = 8\nwait = \"500ms\"", "")?)?;
        let clients = gateway.listening().clients;
        Ok(Self { gateway, clients, upstream, policies: 0 })
    }

    /// Puts a policy in force before an upstream that is new to the gateway, so that it knows nothing of it yet.
    fn put_in_force(&mut self, concurrency: &str, queue: &str, rest: &str) -> Result<(), Failure> {
        self.policies += 1;
        let listening = self.gateway.listening();
        let server = self.gateway_section(listening.clients, listening.admin);
        let name = format!("lab-{}", self.policies);
        let mut policy = policy(&server, &name, self.upstream, concurrency, queue, rest)?;
        // The gateway compares with what it was started with, which may have said: any port.
        let before = self.gateway.policy();
        policy.server.listen = before.server.listen;
        policy.server.admin = before.server.admin;
        self.gateway.reload(policy).map_err(Failure::runtime)
    }

    fn gateway_section(&self, listen: SocketAddr, admin: SocketAddr) -> String {
        format!("[server]\nlisten = \"{listen}\"\nadmin = \"{admin}\"\naccess_log = \"off\"\n")
    }

    fn welcome(&self) -> String {
        format!(
            "A slow service at http://{} takes 200 ms for each request and takes on whatever comes.\n\
             tidegate stands in front of it at http://{}; its numbers are at http://{}/api/stats.\n",
            self.upstream,
            self.clients,
            self.gateway.listening().admin
        )
    }

    /// Plays the show until somebody ends it.
    fn show(self, out: &mut io::Stdout) -> Result<(), Failure> {
        let listening = self.gateway.listening();
        let server = self.gateway_section(listening.clients, listening.admin);
        let mut parsed = show::parsed(&server, show::services()?)?;
        // The gateway compares with what it was started with, which may have said: any port.
        let before = self.gateway.policy();
        parsed.policy.server.listen = before.server.listen;
        parsed.policy.server.admin = before.server.admin;
        self.gateway.reload(parsed).map_err(Failure::runtime)?;
        writeln!(
            out,
            "Two services alike, each good for 50 a second, one behind tidegate and one not. 25 a second come, then 100, \
             then 25.\n\nLook at it:  http://{}/\n\nIt goes on until Ctrl-C.\n",
            listening.admin
        )?;
        let gateway = self.gateway;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            tokio::select! {
                result = show::play(&gateway) => result,
                stopped = run::stopped() => stopped,
                () = gateway.until_draining() => Ok(()),
            }
        })?;
        // Whoever has seen enough does not wait for two thousand requests that nobody waits for.
        gateway.stop();
        gateway.wait();
        writeln!(out)?;
        Ok(())
    }

    fn stay(mut self, out: &mut io::Stdout) -> Result<(), Failure> {
        self.put_in_force("limit = 4", "capacity = 8\nwait = \"500ms\"", "")?;
        let (clients, admin) = (self.clients, self.gateway.listening().admin);
        writeln!(
            out,
            "It stays as in the first story: 4 slots, a queue of 8. Try, and end it with Ctrl-C:\n\n  \
             seq 1 50 | xargs -P 50 -I{{}} curl -s -o /dev/null -w '%{{http_code}} %{{time_total}}\\n' \
             'http://{clients}/work?ms=200' | sort | uniq -c\n  \
             curl -s http://{admin}/api/stats\n"
        )?;
        run::until_stopped(Told::listen()?, self.gateway, || None)
    }
}

fn policy(
    server: &str,
    name: &str,
    upstream: SocketAddr,
    concurrency: &str,
    queue: &str,
    rest: &str,
) -> Result<Policy, Failure> {
    // What a story says of the upstream itself comes first in `rest`, up to an empty line.
    let (of_upstream, rest) = rest.split_once("\n\n").unwrap_or((rest, ""));
    let text = format!(
        "{server}\n[[upstream]]\nname = \"{name}\"\nendpoints = [\"http://{upstream}\"]\n{of_upstream}\n\n\
         [upstream.concurrency]\n{concurrency}\n\n[upstream.queue]\n{queue}\n\n[[route]]\npath = \"/*\"\n\n{rest}\n"
    );
    let parsed = Policy::parse(&text, "the demo's policy").map_err(|errors| check::failure(&errors))?;
    Ok(parsed.policy)
}
