//! The formats that metrics are written in: Prometheus' own text, version 0.0.4; OpenMetrics 1.0.0, which a client gets
//! that asks for it, as Prometheus does; and what is sent to a collector of OpenTelemetry, whose words are
//! `trace/export/metrics.rs`'s affair. What is written is `expose.rs`'s.
//!
//! Both texts have the same series with the same labels, so whoever changes from one to the other sees no break.

use std::fmt::Write as _;

use http::HeaderMap;
use http::header::ACCEPT;

use super::Histogram;
use super::names::{Kind, Metric};

/// A format.
pub(crate) enum Format {
    /// Prometheus' text format, version 0.0.4.
    Text,
    /// OpenMetrics 1.0.0: names of counters without `_total` where they are described, units, and a mark at the end.
    OpenMetrics,
    /// OTLP.
    #[cfg(feature = "otlp")]
    Otlp(crate::trace::Families),
}

impl Format {
    /// The text that a client wants. Prometheus' own, unless the other is asked for at least as much.
    pub(crate) fn wanted(headers: &HeaderMap) -> Self {
        let (mut text, mut open) = (0.0, 0.0);
        let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
        for range in lines.flat_map(|line| line.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let (mut weight, mut version) = (1.0, "1.0.0");
            for parameter in parts {
                match parameter.split_once('=') {
                    Some((name, value)) if name.eq_ignore_ascii_case("q") => {
                        weight = value.parse().unwrap_or(0.0);
                    }
                    Some((name, value)) if name.eq_ignore_ascii_case("version") => {
                        version = value.trim_matches('"');
                    }
                    _ => {}
                }
            }
            if kind.eq_ignore_ascii_case("text/plain") {
                text = f64::max(text, weight);
            } else if kind.eq_ignore_ascii_case("application/openmetrics-text") && version == "1.0.0" {
                open = f64::max(open, weight);
            }
        }
        if open > 0.0 && open >= text { Self::OpenMetrics } else { Self::Text }
    }

    pub(crate) const fn content_type(&self) -> &'static str {
        match self {
            #[cfg(feature = "otlp")]
            Self::Otlp(_) => "application/json",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// What has been written so far.
pub(crate) struct Page {
    text: String,
    format: Format,
}

impl Page {
    pub(super) fn new(format: Format) -> Self {
        Self { text: String::with_capacity(32 * 1024), format }
    }

    /// The text.
    pub(super) fn end(mut self) -> String {
        if matches!(self.format, Format::OpenMetrics) {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    /// The families of a page that is no text.
    #[cfg(feature = "otlp")]
    pub(crate) fn into_families(self) -> Vec<serde_json::Value> {
        match self.format {
            Format::Otlp(families) => families.into_all(),
            Format::Text | Format::OpenMetrics => Vec::new(),
        }
    }

    /// Describes a metric. Its samples follow.
    pub(super) fn head(&mut self, metric: &Metric) {
        #[cfg(feature = "otlp")]
        if let Format::Otlp(families) = &mut self.format {
            return families.head(metric);
        }
        let is_open = matches!(self.format, Format::OpenMetrics);
        let Metric { mut name, kind, seconds, help, .. } = *metric;
        if is_open {
            name = name.strip_suffix("_total").unwrap_or(name);
        }
        // Writing into a string does not fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        if seconds && is_open {
            let _ = writeln!(self.text, "# UNIT {name} seconds");
        }
    }

    /// A sample with the values of the metric's labels, in its order.
    pub(super) fn sample<const N: usize>(&mut self, metric: &Metric, values: [&str; N], value: f64) {
        debug_assert_eq!(metric.labels.len(), N, "{}", metric.name);
        #[cfg(feature = "otlp")]
        if let Format::Otlp(families) = &mut self.format {
            return families.sample(metric, &values, value);
        }
        self.series(metric, "", &values, None);
        let _ = writeln!(self.text, " {value}");
    }

    /// A metric that has one sample and no labels.
    pub(super) fn single(&mut self, metric: &Metric, value: f64) {
        self.head(metric);
        self.sample(metric, [], value);
    }

    pub(super) fn histogram<const N: usize>(
        &mut self,
        metric: &Metric,
        values: [&str; N],
        histogram: &Histogram,
    ) {
        debug_assert!(metric.kind == Kind::Histogram && metric.labels.len() == N, "{}", metric.name);
        #[cfg(feature = "otlp")]
        if let Format::Otlp(families) = &mut self.format {
            return families.histogram(metric, &values, histogram);
        }
        let mut total = 0;
        for (bound, count) in histogram.cumulative() {
            total = count;
            self.series(metric, "_bucket", &values, Some(bound));
            let _ = writeln!(self.text, " {count}");
        }
        self.series(metric, "_sum", &values, None);
        let _ = writeln!(self.text, " {}", histogram.seconds());
        self.series(metric, "_count", &values, None);
        let _ = writeln!(self.text, " {total}");
    }

    fn series(&mut self, metric: &Metric, part: &str, values: &[&str], bound: Option<f64>) {
        self.text.push_str(metric.name);
        self.text.push_str(part);
        let mut before = '{';
        for (label, value) in metric.labels.iter().zip(values) {
            let _ = write!(self.text, "{before}{label}=\"");
            self.escaped(value);
            self.text.push('"');
            before = ',';
        }
        if let Some(bound) = bound {
            let bound = if bound.is_finite() { format!("{bound:?}") } else { "+Inf".to_owned() };
            let _ = write!(self.text, "{before}le=\"{bound}\"");
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
    }

    fn escaped(&mut self, value: &str) {
        for character in value.chars() {
            match character {
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                other => self.text.push(other),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::names;
    use super::*;
    use http::HeaderValue;
    use std::time::Duration;

    fn wanted(accept: &str) -> &'static str {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_str(accept).unwrap());
        Format::wanted(&headers).content_type()
    }

    #[test]
    fn a_client_gets_the_format_that_it_asks_for() {
        assert_eq!(Format::wanted(&HeaderMap::new()).content_type(), Format::Text.content_type());
        for (accept, format) in [
            ("*/*", Format::Text),
            ("text/html, text/plain;q=0.9", Format::Text),
            // Prometheus 2.42 and 3.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Format::OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                 text/plain;version=0.0.4;q=0.4",
                Format::OpenMetrics,
            ),
            ("application/openmetrics-text; version=\"1.0.0\"", Format::OpenMetrics),
            ("application/openmetrics-text;version=0.0.1", Format::Text),
            ("application/openmetrics-text;q=0", Format::Text),
            ("application/openmetrics-text;q=0.1,text/plain;q=0.2", Format::Text),
            ("application/openmetrics-text;q=nonsense", Format::Text),
        ] {
            assert_eq!(wanted(accept), format.content_type(), "{accept}");
        }
    }

    fn page(format: Format) -> String {
        let histogram = Histogram::default();
        histogram.observe(Duration::from_secs(70));
        let mut page = Page::new(format);
        page.head(&names::WASTED);
        page.sample(&names::WASTED, [], 1.5);
        page.head(&names::LIMIT);
        page.sample(&names::LIMIT, ["a\\\"b\n"], 4.0);
        page.head(&names::QUEUE_WAIT);
        page.histogram(&names::QUEUE_WAIT, ["a"], &histogram);
        let text = page.end();
        // All buckets but the last two say the same.
        text.lines().filter(|line| !line.ends_with(" 0")).map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn the_text_format() {
        expect_test::expect![[r##"
            # HELP tidegate_wasted_seconds_total Upstream time spent on answers that nobody waited for.
            # TYPE tidegate_wasted_seconds_total counter
            tidegate_wasted_seconds_total 1.5
            # HELP tidegate_limit How much may be in flight.
            # TYPE tidegate_limit gauge
            tidegate_limit{upstream="a\\\"b\n"} 4
            # HELP tidegate_queue_wait_seconds Time in the queue, of requests that had to wait.
            # TYPE tidegate_queue_wait_seconds histogram
            tidegate_queue_wait_seconds_bucket{upstream="a",le="+Inf"} 1
            tidegate_queue_wait_seconds_sum{upstream="a"} 70
            tidegate_queue_wait_seconds_count{upstream="a"} 1
        "##]]
        .assert_eq(&page(Format::Text));
    }

    #[test]
    fn openmetrics() {
        expect_test::expect![[r##"
            # HELP tidegate_wasted_seconds Upstream time spent on answers that nobody waited for.
            # TYPE tidegate_wasted_seconds counter
            # UNIT tidegate_wasted_seconds seconds
            tidegate_wasted_seconds_total 1.5
            # HELP tidegate_limit How much may be in flight.
            # TYPE tidegate_limit gauge
            tidegate_limit{upstream="a\\\"b\n"} 4
            # HELP tidegate_queue_wait_seconds Time in the queue, of requests that had to wait.
            # TYPE tidegate_queue_wait_seconds histogram
            # UNIT tidegate_queue_wait_seconds seconds
            tidegate_queue_wait_seconds_bucket{upstream="a",le="+Inf"} 1
            tidegate_queue_wait_seconds_sum{upstream="a"} 70
            tidegate_queue_wait_seconds_count{upstream="a"} 1
            # EOF
        "##]]
        .assert_eq(&page(Format::OpenMetrics));
    }
}
