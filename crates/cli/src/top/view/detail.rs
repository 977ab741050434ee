//! One upstream: what came and what became of it over time, its classes, its times, and what protects it.

use super::super::frame::{Frame, Line, Tone};
use super::super::past::{Past, Second};
use super::super::sample::{Latency, RefusedKey, Upstream};
use super::super::words::{bar, count, cut, millis, name, spark};

/// The places before a line or a bar.
const LABEL: usize = 16;
const NUMBER: usize = 9;
/// What is shown at least, below the lines: classes, times, retries, and so on. The rest of the screen is for reasons.
const BELOW: usize = 8;

pub(super) fn draw(frame: &mut Frame, upstream: &Upstream, past: &Past, refused: &[RefusedKey]) {
    let title = format!("── {} ", name(&upstream.name));
    let rule = "─".repeat(frame.width().saturating_sub(title.chars().count()));
    frame.add(Line::of(Tone::Dim, title + &rule));
    bars(frame, upstream);
    lines(frame, upstream, past);
    classes(frame, upstream);
    times(frame, upstream);
    protection(frame, upstream);
    keys(frame, refused);
    routes(frame, upstream);
}

fn bars(frame: &mut Frame, upstream: &Upstream) {
    let queue = &upstream.queue;
    let used = format!("{} of {}", count(upstream.in_flight), count(upstream.limit));
    let orphans = format!("  orphans {}", count(upstream.orphans));
    let tone = if upstream.orphans > 0.0 { Tone::Warn } else { Tone::Dim };
    frame.add(gauge(frame, "in flight", upstream.in_flight, upstream.limit, &used).then(tone, orphans));
    let used = format!("{} of {}", count(queue.now), count(queue.capacity));
    let budget = format!("  budget {}", millis(queue.budget_ms));
    frame.add(gauge(frame, "queue", queue.now, queue.capacity, &used).then(Tone::Dim, budget));
}

fn gauge(frame: &Frame, label: &str, used: f64, limit: f64, words: &str) -> Line {
    let places = frame.width().saturating_sub(LABEL + 36).clamp(10, 60);
    let tone = if limit > 0.0 && used >= limit { Tone::Warn } else { Tone::Good };
    let line = Line::default().left(Tone::Plain, label, LABEL).then(tone, bar(used, limit, places));
    line.then(Tone::Plain, format!("  {words}"))
}

fn lines(frame: &mut Frame, upstream: &Upstream, past: &Past) {
    let seconds = frame.width().saturating_sub(LABEL + NUMBER + 2);
    let line = |number: &dyn Fn(&Second) -> f64| past.line(&upstream.name, seconds, number);
    let arrivals = line(&|second| second.arrivals);
    // One height for all of them, so that they can be compared.
    let most = arrivals.iter().copied().fold(0.0, f64::max);
    // The newest is always at the end of its line.
    let row = |tone: Tone, label: &str, now: f64, values: &[f64]| {
        let line = Line::default().left(Tone::Plain, label, LABEL);
        line.right(tone, &format!("{}/s", count(now)), NUMBER)
            .then(tone, format!("  {:>seconds$}", spark(values, most)))
    };
    frame.add(row(Tone::Plain, "arrivals", upstream.arrivals, &arrivals));
    frame.add(row(Tone::Good, "goodput", upstream.goodput, &line(&|second| second.goodput)));
    frame.add(row(Tone::Bad, "refused", upstream.refused, &line(&|second| second.refused)));
    let classes = upstream.classes.len() + 1;
    let reasons = frame.room().saturating_sub(classes + BELOW).clamp(1, 8);
    for reason in past.reasons(&upstream.name).iter().take(reasons) {
        let of = |second: &Second| second.reasons.get(reason).copied().unwrap_or(0.0);
        let label = format!("  {}", name(reason));
        frame.add(row(Tone::Dim, &label, upstream.rejected_for(reason), &line(&of)));
    }
}

fn classes(frame: &mut Frame, upstream: &Upstream) {
    const HEADINGS: [&str; 7] = ["arr/s", "good/s", "ref/s", "flight", "waiting", "wait", "longest"];
    const PLACES: usize = 9;
    let mut head = Line::default().left(Tone::Dim, "class", LABEL);
    for heading in HEADINGS {
        head = head.right(Tone::Dim, heading, PLACES);
    }
    frame.add(head);
    for class in &upstream.classes {
        let mut line = Line::default().left(Tone::Plain, &name(&class.name), LABEL);
        for value in [class.arrivals, class.goodput, class.refused, class.in_flight, class.waiting] {
            line = line.right(Tone::Plain, &count(value), PLACES);
        }
        let late = |wait: f64| if wait > upstream.queue.budget_ms * 0.8 { Tone::Warn } else { Tone::Plain };
        for wait in [class.wait_ms, class.wait_max_ms] {
            line = line.right(late(wait), &millis(wait), PLACES);
        }
        frame.add(line);
    }
}

fn times(frame: &mut Frame, upstream: &Upstream) {
    const PLACES: usize = 9;
    const THREE: [&str; 3] = ["median", "90 %", "99 %"];
    let mut head = Line::default().left(Tone::Dim, "last second", LABEL);
    for heading in THREE {
        head = head.right(Tone::Dim, heading, PLACES);
    }
    head = head.right(Tone::Dim, "minute:", PLACES);
    for heading in THREE {
        head = head.right(Tone::Dim, heading, PLACES);
    }
    frame.add(head);
    let row = |label: &str, latency: &Latency| {
        let mut line = Line::default().left(Tone::Plain, label, LABEL);
        for value in latency.second {
            line = line.right(Tone::Plain, &millis(value), PLACES);
        }
        line = line.right(Tone::Plain, "", PLACES);
        for value in latency.minute {
            line = line.right(Tone::Plain, &millis(value), PLACES);
        }
        line
    };
    frame.add(row("latency", &upstream.whole));
    frame.add(row("upstream", &upstream.upstream));
}

fn protection(frame: &mut Frame, upstream: &Upstream) {
    let breakers = &upstream.breakers;
    let mut line = Line::of(Tone::Plain, format!("breakers  {} closed", count(breakers.closed)));
    for (number, word, tone) in
        [(breakers.half_open, "half open", Tone::Warn), (breakers.open, "open", Tone::Bad)]
    {
        if number > 0.0 {
            line = line.then(tone, format!(", {} {word}", count(number)));
        }
    }
    let (left, most) = upstream.retry_budget;
    let retries = format!(
        "retries  {} sent, {} refused",
        count(upstream.retries_sent),
        count(upstream.retries_refused)
    );
    line = line.up_to(34).then(Tone::Plain, format!("{retries}, budget {} of {}", count(left), count(most)));
    frame.add(line);
    let little = &upstream.little;
    let (lambda, w, l) = (count(little.lambda), millis(little.w_ms), count(little.l));
    let law = format!("Little    {lambda}/s × {w} = {l} in flight; {} can wait", count(little.queue_bound));
    let wasted = format!("wasted {} a second", millis(upstream.wasted_ms));
    let tone = if upstream.wasted_ms > 0.0 { Tone::Warn } else { Tone::Dim };
    let line = Line::of(Tone::Plain, law);
    let line = if line.width() < 58 { line.up_to(58) } else { line.then(Tone::Plain, "  ") };
    frame.add(line.then(tone, wasted));
}

fn keys(frame: &mut Frame, refused: &[RefusedKey]) {
    // One line where there is little room; a line for each where there is more.
    if frame.room() <= 4 {
        let words =
            refused.iter().map(|one| format!("{}:{} {}", name(&one.by), name(&one.key), count(one.refused)));
        let words: Vec<String> = words.take(4).collect();
        let words = if words.is_empty() { "nobody".into() } else { words.join("  ") };
        frame.add(Line::default().left(Tone::Plain, "refused most", LABEL).then(Tone::Plain, words));
        return;
    }
    let mut head = Line::default().left(Tone::Dim, "refused most", LABEL).right(Tone::Dim, "lately", NUMBER);
    head = head.then(Tone::Dim, "  key");
    frame.add(head);
    for one in refused.iter().take(8.min(frame.room().saturating_sub(4))) {
        let line = Line::default().left(Tone::Plain, &name(&one.by), LABEL);
        let key = cut(&name(&one.key), frame.width().saturating_sub(LABEL + NUMBER + 2));
        frame.add(line.right(Tone::Plain, &count(one.refused), NUMBER).then(Tone::Plain, format!("  {key}")));
    }
}

fn routes(frame: &mut Frame, upstream: &Upstream) {
    // With less there is no room for the heading, a route and the foot.
    if frame.room() < 3 || upstream.routes.is_empty() {
        return;
    }
    const HEADINGS: [&str; 6] = ["arr/s", "good/s", "ref/s", "now", "most", "limit"];
    const PLACES: usize = 8;
    let labels = frame.width().saturating_sub(HEADINGS.len() * PLACES);
    let mut head = Line::default().left(Tone::Dim, "route", labels);
    for heading in HEADINGS {
        head = head.right(Tone::Dim, heading, PLACES);
    }
    frame.add(head);
    let most = frame.room().saturating_sub(1);
    for route in upstream.routes.iter().take(most) {
        let mut line = Line::default().left(Tone::Plain, &name(&route.label), labels);
        for value in [route.arrivals, route.goodput, route.refused, route.now, route.most, route.limit] {
            line = line.right(Tone::Plain, &count(value), PLACES);
        }
        frame.add(line);
    }
}
