//! `tidegate load SCENARIO --lab`: the scenario's service, a gateway with the scenario's policy before it, and its clients,
//! all on this machine; and beside it what virtual time has predicted.

use std::net::{Ipv4Addr, SocketAddr};

use tidegate_gateway::Gateway;
use tidegate_load::{Names, Target};
use tidegate_policy::{AccessLog, Endpoint, Host, Policy};
use tidegate_sim::{Control, play};
use tidegate_workload::{NO_CONTROL, NamedPolicy, Report, Scenario};

use super::args::LoadArgs;
use super::service::{COST, Served, serve};
use super::{gauges, measure, plan};
use crate::exit::Failure;
use crate::run;

/// What stands before the service.
enum Before {
    Nothing,
    Policy(Box<NamedPolicy>),
}

/// Plays a scenario in the lab, and predicts it if that was asked for. The last report is the measured one.
pub(super) fn run(args: &LoadArgs, scenario: &Scenario) -> Result<Vec<Report>, Failure> {
    check(scenario)?;
    let before = before(args, scenario)?;
    let mut reports = Vec::with_capacity(2);
    if args.lab.predict {
        let control = match &before {
            Before::Nothing => Control::Nothing,
            Before::Policy(named) => Control::Policy(named.clone()),
        };
        let mut report = play(scenario, &control, scenario.seed).map_err(Failure::runtime)?;
        report.policy = format!("predicted: {}", report.policy);
        reports.push(report);
    }
    reports.push(measured(args, scenario, before)?);
    Ok(reports)
}

fn measured(args: &LoadArgs, scenario: &Scenario, before: Before) -> Result<Report, Failure> {
    let service = serve(&scenario.services[0], scenario.seed, 0)?;
    match before {
        Before::Nothing => {
            let to = (service.address, None);
            send(args, scenario, NO_CONTROL, to, Names::default(), &service)
        }
        Before::Policy(named) => {
            let names = Names::of(&named.policy);
            let policy = pointed_at(named.policy, &scenario.services[0].name, service.address);
            let gateway = run::start(policy)?;
            let to = (gateway.listening().clients, Some(&gateway));
            let report = send(args, scenario, &named.name, to, names, &service);
            end(gateway);
            report
        }
    }
}

fn send(
    args: &LoadArgs,
    scenario: &Scenario,
    policy: &str,
    (to, gateway): (SocketAddr, Option<&Gateway>),
    names: Names,
    service: &Served,
) -> Result<Report, Failure> {
    let mut settings = plan::settings(args, scenario, Target::at(to));
    settings.names = Names { cost: Some(COST.to_owned()), ..names };
    // As in virtual time: what is under way at the end is pending.
    settings.drain = args.sending.drain.unwrap_or_default();
    service.begin();
    let name = format!("measured: {policy}");
    let play = || measure(args, scenario, &name, &settings);
    let mut report = gauges::watched(scenario, gateway, service, play)?;
    // What was finished and brought nobody anything.
    report.all.late = service.completed().saturating_sub(report.all.goodput);
    Ok(report)
}

fn end(gateway: Gateway) {
    gateway.stop();
    gateway.wait();
}

/// What the lab can be: one service, one gateway.
fn check(scenario: &Scenario) -> Result<(), Failure> {
    let elsewhere = scenario.clients.iter().flat_map(|clients| &clients.mix).any(|kind| kind.service != 0);
    let what = match scenario {
        _ if elsewhere || !scenario.services[0].calls.is_empty() => "several services",
        _ if scenario.gateways > 1 => "several gateways",
        _ => return Ok(()),
    };
    Err(Failure::usage(format_args!(
        "the lab is one gateway before one service, and this scenario has {what}"
    )))
}

fn before(args: &LoadArgs, scenario: &Scenario) -> Result<Before, Failure> {
    let named = match args.lab.only.as_deref() {
        Some(NO_CONTROL) => return Ok(Before::Nothing),
        Some(only) => scenario.policies.iter().find(|named| named.name == only).ok_or_else(|| {
            let names = scenario.policies.iter().map(|named| named.name.as_str()).chain([NO_CONTROL]);
            let names = names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            Failure::usage(format_args!(
                "there is no policy named `{only}` to put in force; there is {names}"
            ))
        })?,
        None => match scenario.policies.first() {
            Some(first) => first,
            None => return Ok(Before::Nothing),
        },
    };
    match named.model {
        None => Ok(Before::Policy(Box::new(named.clone()))),
        Some(_) => Err(Failure::usage(format_args!(
            "`{}` is a model of another product, which only the simulator has",
            named.name
        ))),
    }
}

/// The policy, before this address in the place of the service, on any free port, quiet.
fn pointed_at(mut policy: Policy, service: &str, address: SocketAddr) -> Policy {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    policy.server.listen = any_port;
    policy.server.admin = any_port;
    policy.server.access_log = AccessLog::Off;
    // The simulator has one state of everything, and so must the gateway.
    policy.server.workers = 1;
    let named = policy.upstreams.iter().position(|upstream| upstream.name == service).unwrap_or_default();
    if let Some(upstream) = policy.upstreams.get_mut(named) {
        upstream.endpoints = vec![Endpoint { host: Host::Ip(address.ip()), port: address.port() }];
    }
    policy
}
