//! `tidegate demo`: the whole thing on one machine, in ten seconds.
//!
//! It starts the lab's upstream and a gateway, plays the experiments of "Backpressure, Rate Limiting and Load Shedding
//! in an API Gateway" one after the other, and prints what it measured beside what the article had.

mod burst;
mod stories;
mod table;

use std::io::{self, Write as _};
use std::net::SocketAddr;

use serde_json::{Value, json};
use tidegate_gateway::Gateway;
use tidegate_policy::Policy;

use crate::args::{DemoArgs, UpstreamArgs};
use crate::exit::Failure;
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
    if !args.stay {
        writeln!(out, "Next: tidegate run --upstream http://127.0.0.1:3000, or the demo with --stay.")?;
        stage.gateway.stop();
        stage.gateway.wait();
        return Ok(());
    }
    stage.stay(&mut out)
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
        run::until_stopped(self.gateway, || None)
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
