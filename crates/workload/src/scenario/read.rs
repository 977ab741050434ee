//! From the file to the scenario: every bound and every cross-reference is checked here, those of `retry` in `retry.rs`, and
//! nowhere else.

use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use tidegate_policy::{Policy, Problem, Style};
use toml::Spanned;

use super::fields;
use super::file::{self, File};
use super::model::SHOWN;
use super::retry::retry;
use super::value::Span;
use super::{
    Arrivals, Capacity, Change, Clients, Kind, NamedPolicy, Piece, Scenario, Service, ServiceTime, Spacing,
};
use crate::expect::{Expectation, Metric, Part};
use crate::report::Window;

/// The largest scenario file, in bytes.
const FILE_SIZE_MAX: usize = 1024 * 1024;
const DURATION_MAX: Duration = Duration::from_secs(31 * 24 * 3600);
const RUNS_MAX: u32 = 1_000;
const GATEWAYS_MAX: u32 = 64;
const SERVICES_MAX: usize = 16;
const CLIENTS_MAX: usize = 64;
const KINDS_MAX: usize = 256;
const POLICIES_MAX: usize = 16;
const CHANGES_MAX: usize = 10_000;
const WORKERS_MAX: u32 = 100_000;
const QUEUE_MAX: u32 = 10_000_000;
const USERS_MAX: u32 = 1_000_000;
const COST_MAX: f64 = 1e6;

/// What comes of it when nothing stands before the service.
pub const NO_CONTROL: &str = "no control";
/// What comes of a fixed limit that is right at every moment.
pub const BEST_STATIC: &str = "best static limit";

/// What is wrong with a scenario: where, what, and what would be right.
#[derive(Clone, Debug)]
pub struct ScenarioError {
    text: String,
    line: Option<usize>,
}

impl ScenarioError {
    /// The line, from 1; `None` if the file as a whole is meant.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for ScenarioError {}

/// What is wrong, and where in the text; the help may be empty.
pub(super) struct Wrong {
    span: Option<Range<usize>>,
    message: String,
    help: String,
}

pub(super) fn wrong<T>(
    span: Range<usize>,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Result<T, Failure> {
    Err(Failure::Here(Wrong { span: Some(span), message: message.into(), help: help.into() }))
}

pub(super) enum Failure {
    Here(Wrong),
    /// The text of a policy's own errors, and the first of their lines.
    InPolicy(String, Option<usize>),
}

impl Scenario {
    /// Reads a scenario. `file` is its name in messages; policies in files of their own are looked for beside it.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ScenarioError> {
        let shown = file.display().to_string();
        let named = |span, message: &str, help: &str| {
            let problem = Problem::in_file(&shown, text, span, message, help);
            ScenarioError { text: problem.render(Style::Plain), line: problem.line() }
        };
        if text.len() > FILE_SIZE_MAX {
            return Err(named(None, "the file is longer than a mebibyte", "is it a scenario?"));
        }
        let parsed: File = toml::from_str(text).map_err(|error| named(error.span(), error.message(), ""))?;
        let name =
            file.file_stem().map_or_else(|| "scenario".into(), |stem| stem.to_string_lossy().into_owned());
        Reader { text, shown: &shown, beside: file.parent() }.scenario(name, parsed).map_err(|failure| {
            match failure {
                Failure::Here(wrong) => named(wrong.span, &wrong.message, &wrong.help),
                Failure::InPolicy(text, line) => ScenarioError { text, line },
            }
        })
    }
}

struct Reader<'a> {
    text: &'a str,
    shown: &'a str,
    beside: Option<&'a Path>,
}

impl Reader<'_> {
    fn scenario(&self, name: String, file: File) -> Result<Scenario, Failure> {
        let duration = bounded("duration", &file.duration, Duration::from_nanos(1), DURATION_MAX)?;
        let warmup = bounded("warmup", &file.warmup, Duration::ZERO, duration)?;
        let runs = number("runs", &file.runs, RUNS_MAX)?;
        let gateways = number("gateways", &file.gateways, GATEWAYS_MAX)?;
        for (what, count, most) in [
            ("service", file.service.len(), SERVICES_MAX),
            ("clients", file.clients.len(), CLIENTS_MAX),
            ("policy", file.policy.len(), POLICIES_MAX),
        ] {
            if count > most {
                return wrong(0..0, format!("{count} of [[{what}]], where {most} are allowed"), "");
            }
        }
        let services = services(&file.service)?;
        if file.clients.is_empty() {
            return wrong(0..0, "nobody comes", "write [[clients]] with a name and a rate");
        }
        let clients = file
            .clients
            .iter()
            .map(|found| clients(found, &services, duration))
            .collect::<Result<Vec<_>, _>>()?;
        let policies = file.policy.iter().map(|found| self.policy(found)).collect::<Result<Vec<_>, _>>()?;
        let mut names = HashSet::from([NO_CONTROL, BEST_STATIC]);
        for (policy, found) in policies.iter().zip(&file.policy) {
            if !names.insert(&policy.name) {
                return wrong(found.span(), format!("there is a report named `{}` already", policy.name), "");
            }
        }
        let classes: HashSet<&str> = kinds(&clients).map(|kind| kind.class.as_str()).collect();
        let tenants: HashSet<&str> = kinds(&clients).map(|kind| kind.tenant.as_str()).collect();
        let mut expectations = Vec::new();
        for found in &file.expect {
            expectations.extend(expectation(found, &names, &classes, &tenants)?);
        }
        let story = file.story.trim().to_owned();
        let seed = file.seed;
        Ok(Scenario {
            name,
            story,
            seed,
            runs,
            duration,
            warmup,
            gateways,
            services,
            clients,
            policies,
            expectations,
        })
    }

    fn policy(&self, found: &Spanned<file::Policy>) -> Result<NamedPolicy, Failure> {
        let policy = found.get_ref();
        let (text, shown) = match (&policy.text, &policy.file) {
            (Some(text), None) => {
                // As many lines before it as in the file, so that its errors name the file's own lines.
                let begin = text.span().start;
                let first_line =
                    self.text[begin..].starts_with("'''\n") || self.text[begin..].starts_with("\"\"\"\n");
                let lines = self.text[..begin].matches('\n').count() + usize::from(first_line);
                ("\n".repeat(lines) + text.get_ref(), self.shown.to_owned())
            }
            (None, Some(file)) => {
                let path = self.beside.unwrap_or_else(|| Path::new("")).join(file.get_ref());
                match std::fs::read_to_string(&path) {
                    Ok(text) => (text, path.display().to_string()),
                    Err(error) => {
                        return wrong(file.span(), format!("cannot read {}: {error}", path.display()), "");
                    }
                }
            }
            _ => return wrong(found.span(), "a policy has either `text` or `file`", ""),
        };
        match Policy::parse(&text, &shown) {
            Ok(parsed) => {
                Ok(NamedPolicy { name: shown_name(found)?, policy: parsed.policy, model: policy.model })
            }
            Err(errors) => {
                let line = errors.problems().first().and_then(Problem::line);
                Err(Failure::InPolicy(errors.render(Style::Plain), line))
            }
        }
    }
}

/// The name in tables. That of a model says that it is one, and nothing else can be taken for one.
fn shown_name(found: &Spanned<file::Policy>) -> Result<String, Failure> {
    let file::Policy { name, model, .. } = found.get_ref();
    match model {
        Some(product) if product.name() == name => Ok(product.shown()),
        Some(product) => {
            let help = format!("write name = \"{}\"", product.name());
            wrong(found.span(), format!("`{name}` is not what this is a model of"), help)
        }
        None if name.starts_with(SHOWN) => {
            wrong(found.span(), format!("a name that begins with `{SHOWN}` is that of a model"), "")
        }
        None => Ok(name.clone()),
    }
}

fn bounded(what: &str, value: &Spanned<Span>, least: Duration, most: Duration) -> Result<Duration, Failure> {
    let Span(duration) = *value.get_ref();
    if (least..=most).contains(&duration) {
        return Ok(duration);
    }
    wrong(value.span(), format!("`{what}` is from {least:?} to {most:?}"), "")
}

fn number(what: &str, value: &Spanned<u32>, most: u32) -> Result<u32, Failure> {
    let number = *value.get_ref();
    if (1..=most).contains(&number) {
        Ok(number)
    } else {
        wrong(value.span(), format!("`{what}` is from 1 to {most}"), "")
    }
}

fn kinds(clients: &[Clients]) -> impl Iterator<Item = &Kind> {
    clients.iter().flat_map(|clients| &clients.mix)
}

fn services(list: &[Spanned<file::Service>]) -> Result<Vec<Service>, Failure> {
    if list.is_empty() {
        return wrong(0..0, "there is no service", "write [[service]] with `workers` and `time`");
    }
    let name = |index: usize| list[index].get_ref().name.clone().unwrap_or_else(|| "service".to_owned());
    let names: Vec<String> = (0..list.len()).map(name).collect();
    let mut services = Vec::with_capacity(list.len());
    for (index, found) in list.iter().enumerate() {
        let (span, service) = (found.span(), found.get_ref());
        if names[..index].contains(&names[index]) {
            return wrong(span, format!("there is a service named `{}` already", names[index]), "");
        }
        let mut calls = Vec::with_capacity(service.calls.len());
        for call in &service.calls {
            // Only services further down, so that no request goes round in circles.
            match names.iter().position(|name| name == call) {
                Some(called) if called > index => calls.push(called),
                Some(_) => {
                    return wrong(span, format!("`{call}` stands above; a service calls those below it"), "");
                }
                None => return wrong(span, format!("there is no service named `{call}`"), ""),
            }
        }
        services.push(Service {
            name: names[index].clone(),
            capacity: capacity(service, &span)?,
            time: service.time.clone(),
            queue: match service.queue {
                Some(queue) if queue > QUEUE_MAX => {
                    return wrong(span, format!("`queue` is at most {QUEUE_MAX}"), "");
                }
                queue => queue,
            },
            delay: service.delay.map_or(Duration::ZERO, |Span(delay)| delay),
            best: service.best,
            fails: match service.fails {
                share if (0.0..=1.0).contains(&share) => share,
                _ => return wrong(span, "`fails` is a share, from 0 to 1", ""),
            },
            cancels_work: service.cancels_work,
            calls,
            changes: changes(service, &span)?,
        });
    }
    Ok(services)
}

fn capacity(service: &file::Service, span: &Range<usize>) -> Result<Capacity, Failure> {
    match (service.workers, &service.shared, &service.elastic) {
        (Some(workers @ 1..=WORKERS_MAX), None, None) => Ok(Capacity::Workers(workers)),
        (Some(_), None, None) => wrong(span.clone(), format!("`workers` is from 1 to {WORKERS_MAX}"), ""),
        (None, Some(shared), None) if shared.knee >= 1.0 && (0.0..=10.0).contains(&shared.hard) => {
            Ok(Capacity::Shared { knee: shared.knee, hard: shared.hard })
        }
        (None, Some(_), None) => wrong(span.clone(), "`knee` is at least 1, `hard` from 0 to 10", ""),
        (None, None, Some(elastic)) if (0.0..=1e6).contains(&elastic.slope) => {
            Ok(Capacity::Elastic { slope: elastic.slope })
        }
        (None, None, Some(_)) => wrong(span.clone(), "`slope` is from 0 to 1000000", ""),
        _ => wrong(
            span.clone(),
            "a service has one of `workers`, `shared` and `elastic`",
            "write `workers = 10`",
        ),
    }
}

fn changes(service: &file::Service, span: &Range<usize>) -> Result<Vec<(Duration, Change)>, Failure> {
    if service.change.len() > CHANGES_MAX {
        return wrong(span.clone(), format!("more than {CHANGES_MAX} changes"), "");
    }
    let mut changes = Vec::with_capacity(service.change.len());
    for change in &service.change {
        let what = match (change.workers, change.slowdown, change.fails, change.pause) {
            (Some(workers @ 1..=WORKERS_MAX), None, None, None) if service.workers.is_some() => {
                Change::Workers(workers)
            }
            (None, Some(times), None, None) if times > 0.0 && times <= 1e6 => Change::Slowdown(times),
            (None, None, Some(share), None) if (0.0..=1.0).contains(&share) => Change::Fails(share),
            (None, None, None, Some(Span(pause))) => Change::Pause(pause),
            _ => {
                let message = format!("the change at {:?} is none", change.at.0);
                let help =
                    "write one of `workers` (if it has any), `slowdown`, `fails` (from 0 to 1) and `pause`";
                return wrong(span.clone(), message, help);
            }
        };
        changes.push((change.at.0, what));
    }
    changes.sort_by_key(|(at, _)| *at);
    Ok(changes)
}

fn clients(
    found: &Spanned<file::Clients>,
    services: &[Service],
    duration: Duration,
) -> Result<Clients, Failure> {
    let (span, clients) = (found.span(), found.get_ref());
    let from = clients.from.map_or(Duration::ZERO, |Span(from)| from);
    let until = clients.until.map_or(duration, |Span(until)| until.min(duration));
    if from > until {
        return wrong(span, "`from` comes after `until`", "");
    }
    if clients.batch.is_some() && clients.rate.is_none() {
        return wrong(span, "`batch` belongs to a `rate`", "write how many come at once in `burst`");
    }
    let arrivals = match (&clients.rate, &clients.burst, clients.users) {
        (Some(rate), None, None) => Arrivals::Open {
            spacing: match clients.spacing {
                file::Spacing::Even => Spacing::Even,
                file::Spacing::Poisson => Spacing::Poisson,
            },
            together: at_most("batch", clients.batch, &span)?,
            pieces: pieces(rate.0, &clients.change, from, until, &span)?,
        },
        (None, Some(bursts), None) if bursts.len() <= CHANGES_MAX => {
            let mut list: Vec<_> =
                bursts.iter().map(|burst| (burst.at.0, burst.count.min(USERS_MAX))).collect();
            list.sort();
            Arrivals::Bursts(list)
        }
        (None, None, Some(users @ 1..=USERS_MAX)) => {
            let think = clients.think.clone().unwrap_or(ServiceTime::Constant(Duration::ZERO));
            Arrivals::Closed { users, think, from, until }
        }
        (None, None, Some(_)) => return wrong(span, format!("`users` is from 1 to {USERS_MAX}"), ""),
        _ => {
            return wrong(
                span,
                "clients come by one of `rate`, `burst` and `users`",
                "write `rate = \"100/s\"`",
            );
        }
    };
    Ok(Clients {
        name: clients.name.clone(),
        arrivals,
        timeout: clients.timeout.map(|Span(timeout)| timeout),
        tells_deadline: tells_deadline(clients, &span)?,
        identified: clients.identified,
        tenants: at_most("tenants", clients.tenants, &span)?,
        retry: retry(&clients.retry, &span)?,
        mix: mix(clients, services, &span)?,
    })
}

/// One, unless it is said; and not more than there may be of anybody.
fn at_most(what: &str, number: Option<NonZeroU32>, span: &Range<usize>) -> Result<NonZeroU32, Failure> {
    match number.unwrap_or(NonZeroU32::MIN) {
        number if number.get() <= USERS_MAX => Ok(number),
        _ => wrong(span.clone(), format!("`{what}` is at most {USERS_MAX}"), ""),
    }
}

fn tells_deadline(clients: &file::Clients, span: &Range<usize>) -> Result<bool, Failure> {
    if clients.tells_deadline && clients.timeout.is_none() {
        let message = "`tells_deadline` without a `timeout`: there is nothing to tell";
        return wrong(span.clone(), message, "write how long they wait");
    }
    Ok(clients.tells_deadline)
}

fn pieces(
    rate: f64,
    changes: &[file::RateChange],
    from: Duration,
    until: Duration,
    span: &Range<usize>,
) -> Result<Vec<Piece>, Failure> {
    if changes.len() > CHANGES_MAX {
        return wrong(span.clone(), format!("more than {CHANGES_MAX} changes"), "");
    }
    let mut pieces = Vec::with_capacity(changes.len() + 1);
    let (mut since, mut rate) = (from, rate);
    for change in changes {
        let at = change.at.0;
        if at < since {
            return wrong(span.clone(), format!("the change at {at:?} comes before the one above it"), "");
        }
        let at = at.min(until);
        if at > since {
            let rate_at_end = if change.ramp { change.rate.0 } else { rate };
            pieces.push(Piece { from: since, until: at, rate, rate_at_end });
        }
        (since, rate) = (at, change.rate.0);
    }
    if until > since {
        pieces.push(Piece { from: since, until, rate, rate_at_end: rate });
    }
    Ok(pieces)
}

fn mix(clients: &file::Clients, services: &[Service], span: &Range<usize>) -> Result<Vec<Kind>, Failure> {
    if clients.mix.len() > KINDS_MAX {
        return wrong(span.clone(), format!("more than {KINDS_MAX} kinds of requests"), "");
    }
    let whole = [file::Kind::default()];
    let list = if clients.mix.is_empty() { &whole[..] } else { &clients.mix };
    list.iter().map(|kind| one_kind(kind, clients, services, span)).collect()
}

fn one_kind(
    kind: &file::Kind,
    clients: &file::Clients,
    services: &[Service],
    span: &Range<usize>,
) -> Result<Kind, Failure> {
    let or = |own: &Option<String>, all: &Option<String>, default: &str| {
        own.as_ref().or(all.as_ref()).map_or(default, String::as_str).to_owned()
    };
    let share = kind.share.unwrap_or(1.0);
    let cost = kind.cost.or(clients.cost).unwrap_or(1.0);
    if !(share > 0.0 && share <= 1e9 && cost > 0.0 && cost <= COST_MAX) {
        return wrong(span.clone(), format!("`share` and `cost` are above 0, `cost` at most {COST_MAX}"), "");
    }
    let asked = or(&kind.service, &clients.service, &services[0].name);
    let Some(service) = services.iter().position(|service| service.name == asked) else {
        return wrong(span.clone(), format!("there is no service named `{asked}`"), "");
    };
    let path = or(&kind.path, &clients.path, "/");
    if !path.starts_with('/') {
        return wrong(span.clone(), format!("`{path}` is not a path: it begins with /"), "");
    }
    let headers = fields::merge(&clients.headers, &kind.headers);
    Ok(Kind {
        share,
        class: or(&kind.class, &clients.class, &clients.name),
        tenant: or(&kind.tenant, &clients.tenant, &clients.name),
        method: or(&kind.method, &clients.method, "GET"),
        path,
        headers: headers.or_else(|what| wrong(span.clone(), what, ""))?,
        body: or(&kind.body, &clients.body, ""),
        cost,
        service,
    })
}

fn expectation(
    found: &Spanned<file::Expect>,
    policies: &HashSet<&str>,
    classes: &HashSet<&str>,
    tenants: &HashSet<&str>,
) -> Result<Vec<Expectation>, Failure> {
    let (span, expect) = (found.span(), found.get_ref());
    for (what, name, known) in [
        ("policy", Some(&expect.policy), policies),
        ("class", expect.class.as_ref(), classes),
        ("tenant", expect.tenant.as_ref(), tenants),
    ] {
        if let Some(name) = name
            && !known.contains(name.as_str())
        {
            return wrong(span, format!("there is no {what} named `{name}`"), "");
        }
    }
    let of = match (&expect.class, &expect.tenant, expect.from, expect.until) {
        (None, None, None, None) => Part::All,
        (Some(class), None, None, None) => Part::Class(class.clone()),
        (None, Some(tenant), None, None) => Part::Tenant(tenant.clone()),
        (None, None, from, until) => Part::Window(Window {
            from: from.map_or(Duration::ZERO, |Span(from)| from),
            until: until.map_or(Duration::MAX, |Span(until)| until),
        }),
        _ => return wrong(span, "of a class, of a tenant, or of a stretch of time: one of these", ""),
    };
    let mut list = Vec::new();
    for (name, range) in &expect.metrics {
        let Some(metric) = Metric::from_name(name) else {
            let known = Metric::names().collect::<Vec<_>>().join(", ");
            return wrong(span, format!("a report has no `{name}`"), format!("it has {known}"));
        };
        if matches!(of, Part::Window(_)) && !metric.has_windows() {
            return wrong(span, format!("`{name}` is not known of a stretch of time"), "");
        }
        list.push(Expectation {
            policy: expect.policy.clone(),
            of: of.clone(),
            metric,
            least: range.0,
            most: range.1,
        });
    }
    if list.is_empty() {
        return wrong(
            span,
            "nothing is expected",
            "write a number of the report, such as `goodput = [90, 110]`",
        );
    }
    Ok(list)
}
