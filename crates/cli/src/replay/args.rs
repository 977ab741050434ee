//! What can be typed after `tidegate replay`, and what a log reader makes of it.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args as ClapArgs;
use tidegate_engine::Timestamp;
use tidegate_policy::parse_duration;
use tidegate_workload::access_log::{Choice, Filter, Format, LogFormat, Mapping, Options, Zone};

use super::moment::Moment;
use crate::exit::Failure;

#[derive(ClapArgs)]
#[command(
    after_help = "\
Examples:
  tidegate replay access.log.gz --policy tidegate.toml
  tidegate replay haproxy.log --policy as-it-was.toml --policy new.toml
  tidegate replay access.log --nginx-conf /etc/nginx/nginx.conf:timed --policy p.toml
  tidegate replay requests.jsonl --map arrival=ts,duration=took_ms,path=url --policy p.toml
  zcat old.gz | tidegate replay - --policy p.toml --workers 10 --scale 1.5

Formats are recognised by their first lines. Without --workers every request
takes as long as the log says, however many are at work at once.

Exit codes: 0 done; 1 the log cannot be read or played; 2 usage; 78 bad policy.",
    group = clap::ArgGroup::new("layout").args(["format", "log_format", "nginx_conf", "map"])
)]
pub(crate) struct ReplayArgs {
    /// The access log, gzip or not; - is standard input.
    pub(crate) log: PathBuf,
    /// A policy file; several are compared with each other.
    #[arg(long = "policy", short, value_name = "FILE", required = true)]
    pub(crate) policies: Vec<PathBuf>,

    /// The log's format, by name: combined, haproxy, envoy, …
    #[arg(long, value_name = "NAME", value_parser = str::parse::<Format>, help_heading = "The log")]
    pub(crate) format: Option<Format>,
    /// The log's format, as nginx writes it: '$remote_addr [$msec] "$request" …'.
    #[arg(long, value_name = "STRING", value_parser = str::parse::<LogFormat>, help_heading = "The log")]
    pub(crate) log_format: Option<LogFormat>,
    /// The nginx configuration that states the log's format, and its name if there are several.
    #[arg(long, value_name = "FILE[:NAME]", help_heading = "The log")]
    pub(crate) nginx_conf: Option<String>,
    /// Which column of JSON lines or CSV says what: arrival=ts,duration=took_ms,path=url.
    #[arg(long, value_name = "MAPPING", value_parser = str::parse::<Mapping>, help_heading = "The log")]
    pub(crate) map: Option<Mapping>,
    /// The time zone of times that name none, such as HAProxy's: Europe/Paris or +02:00.
    #[arg(long, value_name = "ZONE", value_parser = str::parse::<Zone>, help_heading = "The log")]
    pub(crate) zone: Option<Zone>,

    /// Only requests from this moment on, such as 2026-11-30T10:00.
    #[arg(long, value_name = "TIME", value_parser = str::parse::<Moment>, help_heading = "Which requests")]
    pub(crate) from: Option<Moment>,
    /// Only requests before this moment.
    #[arg(long, value_name = "TIME", value_parser = str::parse::<Moment>, help_heading = "Which requests")]
    pub(crate) until: Option<Moment>,
    /// Only these paths; * stands for any text.
    #[arg(long = "path", value_name = "PATTERN", help_heading = "Which requests")]
    pub(crate) paths: Vec<Box<str>>,
    /// Not these paths, such as /healthz.
    #[arg(long = "without-path", value_name = "PATTERN", help_heading = "Which requests")]
    pub(crate) without_paths: Vec<Box<str>>,
    /// Only these methods.
    #[arg(long = "method", value_name = "METHOD", help_heading = "Which requests")]
    pub(crate) methods: Vec<Box<str>>,
    /// Only these statuses: 200, 5xx or 400-499.
    #[arg(long = "status", value_name = "STATUS", value_parser = parse_status, help_heading = "Which requests")]
    pub(crate) statuses: Vec<RangeInclusive<u16>>,
    /// Only these hosts; * stands for any text.
    #[arg(long = "host", value_name = "PATTERN", help_heading = "Which requests")]
    pub(crate) hosts: Vec<Box<str>>,
    /// Only these routes, as the log names them: backends, routers, clusters.
    #[arg(long = "route", value_name = "PATTERN", help_heading = "Which requests")]
    pub(crate) routes: Vec<Box<str>>,

    /// How many requests the service works on at once [default: as many as come].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "How it is played")]
    pub(crate) workers: Option<u32>,
    /// How long a request takes whose time the log does not say [default: drawn from those it does say].
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "How it is played")]
    pub(crate) service_time: Option<Duration>,
    /// How long clients wait for an answer [default: for ever].
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "How it is played")]
    pub(crate) timeout: Option<Duration>,
    /// So many times as fast: the time between arrivals is divided by it.
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = parse_factor, help_heading = "How it is played")]
    pub(crate) speed: f64,
    /// So many times as many requests; below 1, some are left out.
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = parse_factor, help_heading = "How it is played")]
    pub(crate) scale: f64,
    /// The seed of everything that is drawn.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "How it is played")]
    pub(crate) seed: u64,

    /// Prints the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Writes the result as one HTML file, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

impl ReplayArgs {
    /// How the log is to be read.
    pub(crate) fn options(&self) -> Result<Options, Failure> {
        let format = match (&self.format, &self.log_format, &self.nginx_conf, &self.map) {
            (Some(format), ..) => Choice::Known(*format),
            (_, Some(format), ..) => Choice::Nginx(format.clone()),
            (_, _, Some(place), _) => Choice::Nginx(from_conf(place)?),
            (.., Some(mapping)) => Choice::Mapped(mapping.clone()),
            _ => Choice::Detect,
        };
        let zone = self.zone.clone().unwrap_or_default();
        let at = |moment: &Option<Moment>| -> Result<Option<Timestamp>, Failure> {
            moment.as_ref().map(|moment| moment.at(&zone).map_err(Failure::runtime)).transpose()
        };
        let filter = Filter {
            paths: self.paths.clone(),
            without_paths: self.without_paths.clone(),
            statuses: self.statuses.clone(),
            methods: self.methods.clone(),
            hosts: self.hosts.clone(),
            routes: self.routes.clone(),
            from: at(&self.from)?,
            until: at(&self.until)?,
        };
        Ok(Options { format, zone, filter, ..Options::default() })
    }
}

/// Reads `nginx.conf` or `nginx.conf:timed`. A file may have a colon in its name.
fn from_conf(place: &str) -> Result<LogFormat, Failure> {
    let (file, name) = match place.rsplit_once(':') {
        Some((file, name)) if !Path::new(place).exists() => (file, Some(name)),
        _ => (place, None),
    };
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::runtime(format_args!("cannot read {file}: {error}")))?;
    LogFormat::from_conf(&text, name).map_err(|error| Failure::runtime(format_args!("{file}: {error}")))
}

/// `200`, `5xx` or `400-499`.
fn parse_status(text: &str) -> Result<RangeInclusive<u16>, String> {
    let wrong = || format!("write a status as 200, 5xx or 400-499, not {text:?}");
    let one = |text: &str| text.parse().ok().filter(|status| (100..=999).contains(status)).ok_or_else(wrong);
    if let Some((first, last)) = text.split_once('-') {
        return Ok(one(first)?..=one(last)?);
    }
    if let Some(class) = text.strip_suffix("xx") {
        let first = one(&format!("{class}00"))?;
        return Ok(first..=first + 99);
    }
    Ok(one(text)?..=one(text)?)
}

/// A factor from a thousandth to a thousand.
fn parse_factor(text: &str) -> Result<f64, String> {
    let factor: Option<f64> = text.parse().ok();
    factor
        .filter(|factor| (0.001..=1_000.0).contains(factor))
        .ok_or_else(|| format!("write a number from 0.001 to 1000, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_factors() {
        assert_eq!(parse_status("5xx"), Ok(500..=599));
        assert_eq!(parse_status("404"), Ok(404..=404));
        assert_eq!(parse_status("200-299"), Ok(200..=299));
        for wrong in ["", "xx", "5x", "12xx", "20-", "1000", "-"] {
            assert!(parse_status(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_factor("1.5"), Ok(1.5));
        for wrong in ["0", "-1", "nan", "inf", "1e9", ""] {
            assert!(parse_factor(wrong).is_err(), "{wrong}");
        }
    }
}
