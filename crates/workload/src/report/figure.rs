//! Which charts a page has, and what of the reports is in each.

use std::fmt::Write as _;
use std::time::Duration;

use super::axis::Axis;
use super::chart::{Bar, BarChart, Line, LineChart};
use super::words;
use super::{Bucket, Report, Totals};
use crate::scenario::{Change, Scenario};

/// The size of a chart that stands beside another, and the place of its axes.
const HALF: (f64, f64) = (520.0, 210.0);
const HALF_X: (f64, f64) = (46.0, 392.0);
const HALF_Y: (f64, f64) = (182.0, 10.0);
/// The same for one that stands alone.
pub(super) const WHOLE: (f64, f64) = (1060.0, 320.0);
pub(super) const WHOLE_X: (f64, f64) = (64.0, 850.0);
pub(super) const WHOLE_Y: (f64, f64) = (290.0, 12.0);
const BAR_WIDTH: f64 = 240.0;
/// How many policies look different from each other.
const LOOKS: usize = 8;
/// How many points the course of a quantile has.
const QUANTILES: u32 = 120;
/// So many requests to a point, if they come evenly: fewer are noise.
const REQUESTS_A_POINT: u64 = 30;

/// A line that is more than so many times as high as the others is cut off, at this many times the highest of them.
const TOWERS_FROM: f64 = 3.0;
const CUT_OFF_AT: f64 = 1.5;

/// A number of all that was counted, and one of a stretch of time.
type Count = fn(&Totals) -> u64;
type Of<T> = fn(&Bucket) -> T;

/// A chart with its heading.
pub(super) struct Figure {
    pub(super) title: String,
    pub(super) note: String,
    pub(super) svg: String,
}

/// What became of requests, policy by policy.
pub(super) fn endings<'a>(reports: &'a [Report]) -> Vec<Figure> {
    let kinds: [(&str, &str, &str, Count); 4] = [
        ("Goodput", "goodput", "Useful answers in time.", |totals| totals.goodput),
        ("Too late", "late", "Work the service did for clients who had left.", |totals| totals.late),
        ("Rejected", "rejected", "Attempts that were told no.", Totals::refusals),
        ("Failed", "failed", "Requests that their clients gave up.", |totals| totals.failed),
    ];
    let each = |report: &Report, of: Count| of(&report.all) as f64 / f64::from(report.runs.max(1));
    let offered = reports.iter().map(|report| each(report, |totals| totals.offered)).fold(0.0, f64::max);
    let figure = |(title, class, note, of): (&str, &str, &str, Count)| {
        let bar = |report: &'a Report| {
            let value = each(report, of);
            Bar { name: report.policy.as_str(), value, text: words::count(value) }
        };
        let bars: Vec<_> = reports.iter().map(bar).collect();
        let listed: Vec<_> = bars.iter().map(|bar| format!("{}: {}", bar.name, bar.text)).collect();
        let most = bars.iter().map(|bar| bar.value).fold(offered, f64::max);
        let scale =
            if most > offered { format!(" A full bar is {}.", words::count(most)) } else { String::new() };
        let description = format!("{note} {}", listed.join("; "));
        let chart = BarChart { title, description, width: BAR_WIDTH, class, most, bars };
        Figure { title: title.to_owned(), note: format!("{note}{scale}"), svg: chart.svg() }
    };
    kinds.map(figure).into()
}

/// How long answers took, for all policies; `None` if nobody was answered.
pub(super) fn latencies(reports: &[Report]) -> Option<Figure> {
    let answered = || reports.iter().enumerate().filter(|(_, report)| report.all.served.count() > 0);
    let x = Axis::nines(answered().map(|(_, report)| report.all.served.count()).max()?, WHOLE_X);
    let lines: Vec<Line> = answered()
        .map(|(index, report)| {
            let served = &report.all.served;
            let seconds = |share| (share, Some(served.quantile(share).as_nanos() as f64 / 1e3));
            Line {
                name: report.policy.clone(),
                class: format!("p{}", index % LOOKS),
                filled: false,
                points: x.spread(QUANTILES).map(seconds).collect(),
            }
        })
        .collect();
    let values = || lines.iter().flat_map(|line| &line.points).filter_map(|(_, micros)| *micros);
    let micros = |micros: f64| Duration::from_nanos((micros * 1e3) as u64);
    let y = Axis::latencies(
        micros(values().fold(f64::MAX, f64::min)),
        micros(values().fold(0.0, f64::max)),
        WHOLE_Y,
    );
    let title = "Time to a useful answer";
    let listed = answered().map(|(_, report)| {
        let [p50, p99] = [0.5, 0.99].map(|share| words::time(report.all.served.quantile(share)));
        format!("{}: half within {p50}, 99% within {p99}", report.policy)
    });
    let description = listed.collect::<Vec<_>>().join("; ");
    let svg = LineChart { title, description, size: WHOLE, x, y, lines, shaded: None, marks: &[] }.svg();
    let note = "Upwards the time within which the share of useful answers, across, had come. Both scales are logarithmic.";
    Some(Figure { title: "All policies".to_owned(), note: note.to_owned(), svg })
}

/// How it went over time, under all policies with the same scale for rates.
pub(super) struct Courses<'a> {
    scenario: &'a Scenario,
    marks: Vec<(f64, String)>,
    /// So many stretches of the series make one point.
    stretch: usize,
    /// The highest rate that is shown.
    rate_most: f64,
}

impl<'a> Courses<'a> {
    pub(super) fn new(scenario: &'a Scenario, reports: &[Report]) -> Self {
        let marks = changes(scenario).filter(|(at, _)| *at <= scenario.duration);
        let marks = marks.map(|(at, what)| (at.as_secs_f64(), what)).collect();
        let offered =
            |report: &Report| report.series.buckets.iter().map(|bucket| bucket.offered).sum::<u64>();
        let buckets = reports.first().map_or(1, |report| report.series.buckets.len() as u64);
        let each = reports.iter().map(offered).max().unwrap_or_default() / buckets.max(1);
        let stretch = REQUESTS_A_POINT.div_ceil(each.max(1)).clamp(1, 4) as usize;
        let mut courses = Self { scenario, marks, stretch, rate_most: 0.0 };
        let lines: Vec<_> = reports.iter().flat_map(|report| courses.rates(report)).collect();
        courses.rate_most = highest(&lines, "rejected");
        courses
    }

    /// Requests and what became of them, in each second.
    pub(super) fn flow(&self, report: &Report) -> Figure {
        let note = "Each second. The same scale under every policy.".to_owned();
        self.figure("Requests", note, report, self.rates(report), self.rate_most)
    }

    /// The limit and what it limits.
    pub(super) fn state(&self, report: &Report) -> Figure {
        let lines = self.gauges(report);
        let most = highest(&lines, "limit");
        let at = match &self.scenario.services[..] {
            [first, _, ..] => format!(" at {}", first.name),
            _ => String::new(),
        };
        let note = format!("How many at a time{at}. A scale of its own.");
        self.figure("Limit, in flight, waiting", note, report, lines, most)
    }

    /// Useful answers in each second, of all reports in one chart.
    pub(super) fn together(&self, reports: &[Report]) -> Figure {
        let goodput = |(index, report): (usize, &Report)| {
            let mut line = self.rates(report).into_iter().find(|line| line.class == "goodput")?;
            (line.name, line.class) = (report.policy.clone(), format!("p{}", index % LOOKS));
            Some(line)
        };
        let lines: Vec<_> = reports.iter().enumerate().filter_map(goodput).collect();
        let most = lines.iter().map(Line::highest).fold(0.0, f64::max);
        let peaks =
            lines.iter().map(|line| format!("{}: at most {}", line.name, words::count(line.highest())));
        let description = format!("Over time. {}", peaks.collect::<Vec<_>>().join("; "));
        let (title, note) = ("Goodput", "Useful answers each second, of all of them.");
        let chart = LineChart {
            title,
            description,
            size: WHOLE,
            x: Axis::time(self.scenario.duration, 8, WHOLE_X),
            y: Axis::counts(most, 5, WHOLE_Y),
            lines,
            shaded: None,
            marks: &self.marks,
        };
        Figure { title: title.to_owned(), note: note.to_owned(), svg: chart.svg() }
    }

    fn figure(&self, title: &str, mut note: String, report: &Report, lines: Vec<Line>, most: f64) -> Figure {
        for line in lines.iter().filter(|line| line.highest() > most * 1.2) {
            let _ =
                write!(note, " Beyond it: {}, up to {}.", line.name, words::count(line.highest().round()));
        }
        let peaks =
            lines.iter().map(|line| format!("{}: at most {}", line.name, words::count(line.highest())));
        let description =
            format!("Over time, under {}. {}", report.policy, peaks.collect::<Vec<_>>().join("; "));
        let warmup = self.scenario.warmup.as_secs_f64();
        let chart = LineChart {
            title,
            description,
            size: HALF,
            x: Axis::time(self.scenario.duration, 6, HALF_X),
            y: Axis::counts(most, 4, HALF_Y),
            lines,
            shaded: (warmup > 0.0).then_some((0.0, warmup)),
            marks: &self.marks,
        };
        Figure { title: title.to_owned(), note, svg: chart.svg() }
    }

    fn rates(&self, report: &Report) -> Vec<Line> {
        let lines: [(&str, &str, Of<u64>); 4] = [
            ("offered", "offered", |bucket| bucket.offered),
            ("rejected", "rejected", |bucket| bucket.rejected),
            ("too late", "late", |bucket| bucket.late),
            ("goodput", "goodput", |bucket| bucket.goodput),
        ];
        let line = |(name, class, of): (&str, &str, Of<u64>)| {
            let points = self.points(report, |stretch| {
                let seconds = report.series.every.as_secs_f64() * stretch.len() as f64;
                let sum: u64 = stretch.iter().map(of).sum();
                Some(sum as f64 / f64::from(report.runs.max(1)) / seconds)
            });
            Line { name: name.to_owned(), class: class.to_owned(), filled: class == "offered", points }
        };
        // What never happens has no line, but for what this is all about.
        let shown =
            |line: &Line| line.class == "goodput" || line.points.iter().any(|(_, rate)| *rate > Some(0.0));
        lines.into_iter().map(line).filter(shown).collect()
    }

    fn gauges(&self, report: &Report) -> Vec<Line> {
        let lines: [(&str, &str, Of<f64>); 4] = [
            ("limit", "limit", |bucket| bucket.limit),
            ("queue", "queue", |bucket| bucket.queue),
            ("in flight", "in-flight", |bucket| bucket.in_flight),
            ("service queue", "service-queue", |bucket| bucket.service_queue),
        ];
        let line = |(name, class, of): (&str, &str, Of<f64>)| {
            let points = self.points(report, |stretch| {
                let looks: u64 = stretch.iter().map(|bucket| bucket.looks).sum();
                (looks > 0).then(|| stretch.iter().map(of).sum::<f64>() / looks as f64)
            });
            Line { name: name.to_owned(), class: class.to_owned(), filled: class == "queue", points }
        };
        let shown = |line: &Line| {
            line.class == "in-flight" || line.points.iter().any(|(_, value)| *value > Some(0.0))
        };
        lines.into_iter().map(line).filter(shown).collect()
    }

    /// A point in the middle of each stretch.
    fn points(&self, report: &Report, of: impl Fn(&[Bucket]) -> Option<f64>) -> Vec<(f64, Option<f64>)> {
        let every = report.series.every.as_secs_f64();
        let stretches = report.series.buckets.chunks(self.stretch).enumerate();
        stretches
            .map(|(index, stretch)| {
                let middle = every * ((index * self.stretch) as f64 + stretch.len() as f64 / 2.0);
                (middle, of(stretch))
            })
            .collect()
    }
}

/// How high an axis has to be for these lines. Refusals of clients who try again at once, or a limit that limits nothing,
/// would be so high that nothing else could be seen beside them.
fn highest(lines: &[Line], towering: &str) -> f64 {
    let (high, others): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.class == towering);
    let of = |lines: Vec<&Line>| lines.into_iter().map(Line::highest).fold(0.0, f64::max);
    let (high, others) = (of(high), of(others));
    if others > 0.0 && high > others * TOWERS_FROM { others * CUT_OFF_AT } else { others.max(high) }
}

/// What changes about the services, in words.
pub(super) fn changes(scenario: &Scenario) -> impl Iterator<Item = (Duration, String)> {
    scenario.services.iter().flat_map(|service| {
        let away = (!service.delay.is_zero())
            .then(|| (Duration::ZERO, format!("{}: is {} away", service.name, words::length(service.delay))));
        away.into_iter().chain(service.changes.iter().map(|(at, change)| {
            let what = match change {
                Change::Workers(1) => "one worker".to_owned(),
                Change::Workers(workers) => format!("{} workers", words::count(f64::from(*workers))),
                Change::Slowdown(1.0) => "back to its first speed".to_owned(),
                Change::Slowdown(times) => format!("takes {times} times as long as at first"),
                Change::Fails(share) => format!("fails {} of its work", words::percent(*share)),
                Change::Pause(pause) => format!("stands still for {}", words::length(*pause)),
            };
            (*at, format!("{}: {what}", service.name))
        }))
    })
}
