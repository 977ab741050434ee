//! The report as a page: one file that needs nothing else, no network, no script, no font.
//!
//! It puts together what others make: texts and tables as in a terminal, charts as SVG.

use std::fmt::Write as _;

use super::figure::{self, Courses, Figure};
use super::sheet::{self, Sheet};
use super::table::played;
use super::verdict::{self, Found, Verdict, judge};
use super::{Report, wire, words};
use crate::scenario::Scenario;

const STYLE: &str = include_str!("page.css");
/// How many changes of the services are listed; charts mark all of them.
const CHANGES_MAX: usize = 12;
/// A table with more columns than this is set smaller on paper.
const COLUMNS_MANY: usize = 12;

/// What the words of a report mean.
const WORDS: [(&str, &str); 8] = [
    ("offered", "Requests that clients wanted an answer to, each counted once however often it was tried."),
    (
        "goodput",
        "Requests that were answered successfully before their client gave up: the number to protect.",
    ),
    ("too late", "Work that a service finished for somebody who was not there any more."),
    (
        "rejected",
        "Attempts that a gateway refused, at once or after a wait. One request can be rejected several times.",
    ),
    ("failed", "Requests that their clients gave up, after all their tries or when their time was over."),
    ("served", "From the first try of a request to its useful answer, waits between tries included."),
    ("refused", "From a try to its refusal."),
    ("tries", "Attempts for each request: ×1 if nobody tries again."),
];

/// How a page was made.
#[derive(Clone, Copy, Debug)]
pub struct MadeBy<'a> {
    /// What to type to have it again.
    pub command: &'a str,
    /// The version that did it.
    pub version: &'a str,
}

/// A page about a scenario and what came of it, as one file of HTML.
pub fn page(scenario: &Scenario, reports: &[Report], made_by: &MadeBy<'_>) -> String {
    whole(&scenario.name, "tidegate report", |out| content(scenario, reports, made_by, out))
}

fn content(scenario: &Scenario, reports: &[Report], made_by: &MadeBy<'_>, out: &mut String) {
    let verdicts = judge(scenario, reports);
    heading(scenario, &verdicts, out);
    section("What came of it", out, |out| {
        draw(&sheet::overview(reports), out);
        for text in wire::limited(reports) {
            let _ = writeln!(out, "<p class=\"verdict missed\"><b>!</b> {}</p>", escape(&text));
        }
        figures("bars", figure::endings(reports), out);
    });
    section("Over time", out, |out| courses(scenario, reports, out));
    if let Some(latencies) = figure::latencies(reports) {
        section("Time to a useful answer", out, |out| figures("whole", [latencies], out));
    }
    for sheet in sheet::details(reports) {
        section(&sheet.title, out, |out| draw(&sheet, out));
    }
    if !verdicts.is_empty() {
        section("Expectations", out, |out| expectations(&verdicts, out));
    }
    section("The words", out, |out| {
        out.push_str("<dl>\n");
        for (word, meaning) in WORDS {
            let _ = writeln!(out, "<div><dt>{word}</dt><dd>{meaning}</dd></div>");
        }
        out.push_str("</dl>\n");
    });
    footer(scenario, reports, made_by, out);
}

/// A page with its heading and style; `content` has to close the header that is open when it begins.
pub(super) fn whole(name: &str, kind: &str, content: impl FnOnce(&mut String)) -> String {
    let mut out = String::new();
    let name = escape(name);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{name} · tidegate</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header>\n<p class=\"kind\">{kind}</p>\n<h1>{name}</h1>\n"
    );
    content(&mut out);
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// Text that means itself in HTML, in an element as in an attribute.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // These have no meaning in a page, not even escaped.
            character if character.is_control() && !character.is_whitespace() => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}

fn heading(scenario: &Scenario, verdicts: &[Verdict<'_>], out: &mut String) {
    for paragraph in scenario.story.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        let _ = writeln!(out, "<p class=\"story\">{}</p>", escape(paragraph.trim()));
    }
    let _ = writeln!(out, "<p class=\"facts\">{}</p>", escape(&played(scenario)));
    let changes: Vec<_> = figure::changes(scenario).collect();
    if !changes.is_empty() {
        out.push_str("<ul class=\"facts\">\n");
        for (at, what) in changes.iter().take(CHANGES_MAX) {
            let _ = writeln!(out, "<li><b>{}</b> {}</li>", words::length(*at), escape(what));
        }
        if let Some(more @ 1..) = changes.len().checked_sub(CHANGES_MAX) {
            let _ = writeln!(out, "<li>… and {more} more changes</li>");
        }
        out.push_str("</ul>\n");
    }
    if let Some(summary) = verdict::summary(verdicts) {
        let missed = verdicts.iter().any(|verdict| matches!(verdict.found, Found::Missed(_)));
        let (class, sign) = if missed { ("missed", "✗") } else { ("met", "✓") };
        let _ = writeln!(out, "<p class=\"verdict {class}\"><b>{sign}</b> {}</p>", escape(&summary));
    }
    out.push_str("</header>\n");
}

pub(super) fn section(title: &str, out: &mut String, content: impl FnOnce(&mut String)) {
    let _ = writeln!(out, "<section>\n<h2>{}</h2>", escape(title));
    content(out);
    out.push_str("</section>\n");
}

fn draw(sheet: &Sheet, out: &mut String) {
    // On paper nobody can scroll.
    let class = if sheet.columns.len() > COLUMNS_MANY { " many" } else { "" };
    let title = escape(&sheet.title);
    let _ = writeln!(out, "<div class=\"wide{class}\"><table>\n<caption>{title}</caption>\n<thead>");
    let grouped = sheet.columns.iter().any(|column| !column.group.is_empty());
    if grouped {
        out.push_str("<tr><td></td>");
        for group in sheet.columns.chunk_by(|one, next| one.group == next.group) {
            let (span, name) = (group.len(), escape(&group[0].group));
            let _ = match &*name {
                "" => write!(out, "<td colspan=\"{span}\"></td>"),
                name => write!(out, "<th class=\"group\" scope=\"colgroup\" colspan=\"{span}\">{name}</th>"),
            };
        }
        out.push_str("</tr>\n");
    }
    let _ = write!(out, "<tr><th scope=\"col\">{}</th>", escape(sheet.corner));
    for column in &sheet.columns {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(&column.name));
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    for (name, cells) in &sheet.rows {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(name));
        for (cell, column) in cells.iter().zip(&sheet.columns) {
            let class = if column.name == "goodput" { " class=\"main\"" } else { "" };
            let _ = write!(out, "<td{class}>{}</td>", escape(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

fn courses(scenario: &Scenario, reports: &[Report], out: &mut String) {
    let courses = Courses::new(scenario, reports);
    // What was measured is to be seen beside what was predicted of it, or beside another run.
    if reports.len() > 1 && reports.iter().any(|report| report.sending.is_some()) {
        figures("whole", [courses.together(reports)], out);
    }
    for report in reports {
        let [goodput, offered] = [report.all.goodput, report.all.offered]
            .map(|number| words::count(number as f64 / f64::from(report.runs.max(1))));
        let _ = writeln!(
            out,
            "<div class=\"policy\">\n<h3>{} <small>{goodput} of {offered} answered in time, {}</small></h3>",
            escape(&report.policy),
            escape(&words::percent(report.all.goodput_share())),
        );
        figures("pair", [courses.flow(report), courses.state(report)], out);
        out.push_str("</div>\n");
    }
}

pub(super) fn figures(class: &str, figures: impl IntoIterator<Item = Figure>, out: &mut String) {
    let _ = writeln!(out, "<div class=\"figures {class}\">");
    for Figure { title, note, svg } in figures {
        let (title, note) = (escape(&title), escape(&note));
        let _ = writeln!(out, "<figure>\n<figcaption><b>{title}</b> {note}</figcaption>\n{svg}\n</figure>");
    }
    out.push_str("</div>\n");
}

fn expectations(verdicts: &[Verdict<'_>], out: &mut String) {
    out.push_str(
        "<div class=\"wide\"><table class=\"expectations\">\n<caption>Expectations</caption>\n<thead>\n<tr>\
         <th scope=\"col\">policy</th><th scope=\"col\">number</th><th scope=\"col\">of</th>\
         <th scope=\"col\">expected</th><th scope=\"col\">found</th><th scope=\"col\">verdict</th></tr>\n\
         </thead>\n<tbody>\n",
    );
    for Verdict { expectation, found } in verdicts {
        let number = |number: f64| format!("{}", (number * 1e3).round() / 1e3);
        let (class, word, number) = match found {
            Found::Met(found) => ("met", "✓ met", number(*found)),
            Found::Missed(missed) => {
                ("missed", "✗ missed", missed.found.map_or_else(|| "not known".to_owned(), number))
            }
            Found::NotPlayed => ("skipped", "not played", words::NONE.to_owned()),
        };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{number}</td>\
             <td class=\"{class}\">{word}</td></tr>",
            escape(&expectation.policy),
            expectation.metric,
            escape(&verdict::part(&expectation.of)),
            verdict::range(expectation),
        );
    }
    out.push_str("</tbody>\n</table></div>\n");
}

fn footer(scenario: &Scenario, reports: &[Report], made_by: &MadeBy<'_>, out: &mut String) {
    let MadeBy { command, version } = made_by;
    let _ = writeln!(
        out,
        "<footer>\n<p>tidegate {} · seed {} · {} run{}</p>\n<pre>{}</pre>",
        escape(version),
        scenario.seed,
        scenario.runs,
        if scenario.runs == 1 { "" } else { "s" },
        escape(command),
    );
    let played: Vec<_> = reports.iter().filter(|report| report.events > 0).collect();
    if !played.is_empty() {
        out.push_str("<p>The same events in the same order have the same trace:</p>\n<ul>\n");
        for report in played {
            let (policy, events) = (escape(&report.policy), words::count(report.events as f64));
            let _ =
                writeln!(out, "<li>{policy}: {events} events, trace <code>{:016x}</code></li>", report.trace);
        }
        out.push_str("</ul>\n");
    }
    out.push_str("</footer>\n");
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    const MADE_BY: MadeBy<'_> = MadeBy { command: "tidegate simulate a<b.toml", version: "0.0.0" };

    /// Every tag that opens is closed, in order; the page is written so that even XML's rules hold.
    #[track_caller]
    fn check_tags(page: &str) {
        let mut open = Vec::new();
        let mut rest = page.split_once("</style>").expect("there is a style").1;
        rest = &rest[rest.find("<body>").expect("there is a body")..];
        while let Some((_, tag)) = rest.split_once('<') {
            let (tag, after) = tag.split_once('>').expect("a tag ends");
            rest = after;
            assert!(!tag.contains('<'), "{tag}");
            let name: &str = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
            match tag {
                // It was opened before the body.
                "/html" => assert!(open.is_empty(), "{open:?}"),
                tag if tag.starts_with('/') => assert_eq!(open.pop(), Some(name), "{tag}"),
                tag if tag.ends_with('/') => {}
                _ => open.push(name),
            }
        }
        assert!(open.is_empty(), "left open: {open:?}");
    }

    #[test]
    fn a_page_is_well_formed_and_needs_no_network() {
        let page = page(&sample::scenario(), &sample::reports(), &MADE_BY);
        for loading in ["src=", "href=", "url(", "@import", "<script", "http:", "https:", "//"] {
            assert!(!page.contains(loading), "{loading}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf\""), "{page}");
        assert_eq!(page.matches("role=\"img\"").count(), page.matches("<desc>").count());
        assert!(page.contains("1 of 3 expectations is not met") && page.contains("a&lt;b.toml"));
        assert!(page.len() < 100_000, "{}", page.len());
        check_tags(&page);
    }

    #[test]
    fn names_and_stories_are_text_and_nothing_else() {
        let evil = "<script>alert(\"1 & '2'\")</script>";
        let scenario = sample::parse(&format!("{}.toml", evil.replace('/', "\\")), "<b>a & b</b>");
        let mut reports = sample::reports();
        for report in &mut reports {
            report.policy = evil.to_owned();
            report.classes[0].0 = evil.to_owned();
        }
        let page = page(&scenario, &reports, &MADE_BY);
        assert!(!page.contains("<script") && !page.contains("<b>a"), "{page}");
        assert!(page.contains("&lt;b&gt;a &amp; b&lt;/b&gt;") && page.contains("&lt;script&gt;"));
        check_tags(&page);
    }

    #[test]
    fn a_report_of_nothing_is_a_page_all_the_same() {
        let scenario = sample::scenario();
        let mut reports = sample::reports();
        reports.truncate(1);
        reports[0] = super::super::Meter::new(&scenario, "no control").finish(0, 0);
        let whole = page(&scenario, &reports, &MADE_BY);
        assert!(!whole.contains("NaN"), "{whole}");
        check_tags(&whole);
        check_tags(&page(&scenario, &[], &MADE_BY));
    }
}
