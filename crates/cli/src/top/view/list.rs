//! All upstreams, a line each: now, most and limit of everything that has one.

use super::super::frame::{Frame, Line, Tone};
use super::super::sample::{Sample, Upstream};
use super::super::words::{count, name};

/// Columns of numbers, each under its heading.
const PLACES: usize = 7;
const HEADINGS: [&str; 9] = ["flight", "most", "limit", "queue", "most", "cap", "arr/s", "good/s", "ref/s"];

/// Draws those about the chosen one, as many as are to be seen.
pub(super) fn draw(frame: &mut Frame, sample: &Sample, chosen: &str, listed: usize) {
    let names = frame.width().saturating_sub(HEADINGS.len() * PLACES).clamp(8, 40);
    let mut head = Line::default().left(Tone::Dim, "upstream", names);
    for heading in HEADINGS {
        head = head.right(Tone::Dim, heading, PLACES);
    }
    frame.add(head);
    let place = sample.upstreams.iter().position(|one| one.name == chosen).unwrap_or(0);
    let first = (place + 1).saturating_sub(listed);
    for upstream in sample.upstreams.iter().skip(first).take(listed) {
        frame.add(row(upstream, upstream.name == chosen && sample.upstreams.len() > 1, names));
    }
    let hidden = sample.upstreams.len().saturating_sub(listed);
    if hidden > 0 {
        frame.add(Line::of(Tone::Dim, format!("  and {hidden} more")));
    }
}

fn row(upstream: &Upstream, is_chosen: bool, names: usize) -> Line {
    let mark = if is_chosen { "> " } else { "" };
    let tone = if is_chosen { Tone::Chosen } else { Tone::Plain };
    let mut line = Line::default().left(tone, &format!("{mark}{}", name(&upstream.name)), names);
    let is_full = upstream.limit > 0.0 && upstream.in_flight >= upstream.limit;
    let is_queue_full = upstream.queue.capacity > 0.0 && upstream.queue.now >= upstream.queue.capacity;
    let bad = |is_so: bool, tone: Tone| if is_so { tone } else { Tone::Plain };
    for (tone, value) in [
        (bad(is_full, Tone::Warn), upstream.in_flight),
        (Tone::Dim, upstream.in_flight_most),
        (Tone::Plain, upstream.limit),
        (bad(is_queue_full, Tone::Warn), upstream.queue.now),
        (Tone::Dim, upstream.queue.most),
        (Tone::Plain, upstream.queue.capacity),
        (Tone::Plain, upstream.arrivals),
        (Tone::Good, upstream.goodput),
        (bad(upstream.refused > 0.0, Tone::Bad), upstream.refused),
    ] {
        line = line.right(tone, &count(value), PLACES);
    }
    line
}
