//! What an upstream says of its own load: the field `endpoint-load-metrics` of ORCA, as text or as JSON.
//!
//! ```text
//! endpoint-load-metrics: TEXT cpu_utilization=0.3, application_utilization=0.8
//! endpoint-load-metrics: JSON {"cpu_utilization": 0.3}
//! ```
//!
//! Of all that may stand there one number is of use here: how much of it is in use. That is what the application says, or
//! its processor where the application says nothing, as everybody reads it who balances by it (gRFC A58). The binary
//! format needs a parser of protocol buffers, and is not read. What is malformed is no report.

use http::HeaderMap;
use http::header::HeaderName;

const METRICS: HeaderName = HeaderName::from_static("endpoint-load-metrics");
const METRICS_BIN: HeaderName = HeaderName::from_static("endpoint-load-metrics-bin");
/// A longer report is not read.
const BYTES_MAX: usize = 4_096;
const APPLICATION: &str = "application_utilization";
const PROCESSOR: &str = "cpu_utilization";

/// Takes the report out of an answer: it is for whoever stands before the service, not for its clients. The part of the
/// upstream that is in use, 1 being all; it may be more.
pub(crate) fn take(headers: &mut HeaderMap) -> Option<f64> {
    headers.remove(METRICS_BIN);
    let once = headers.get_all(METRICS).iter().nth(1).is_none();
    let report = headers.remove(METRICS)?;
    utilization(report.as_bytes()).filter(|_| once)
}

fn utilization(report: &[u8]) -> Option<f64> {
    if report.len() > BYTES_MAX {
        return None;
    }
    let (format, metrics) = std::str::from_utf8(report).ok()?.trim_ascii().split_once(' ')?;
    let (application, processor) = match format {
        "TEXT" => text(metrics)?,
        "JSON" => json(metrics)?,
        _ => return None,
    };
    // Zero is what protocol buffers make of a number that is not there.
    let said = application.filter(|part| *part != 0.0).or(processor)?;
    // NaN fails it.
    (said >= 0.0 && said.is_finite()).then_some(said)
}

type Parts = (Option<f64>, Option<f64>);

/// `name=value, name=value`; Envoy has also known a colon between the two.
fn text(metrics: &str) -> Option<Parts> {
    let (mut application, mut processor) = (None, None);
    for metric in metrics.split(',') {
        let (name, value) = metric.split_once(['=', ':'])?;
        let known = match name.trim_ascii() {
            APPLICATION => &mut application,
            PROCESSOR => &mut processor,
            _ => continue,
        };
        // Named twice, it is not known which is meant.
        if known.replace(value.trim_ascii().parse().ok()?).is_some() {
            return None;
        }
    }
    Some((application, processor))
}

/// Names as they are written in the message's definition, or as its JSON mapping spells them.
fn json(metrics: &str) -> Option<Parts> {
    let report: serde_json::Value = serde_json::from_str(metrics).ok()?;
    let number = |snake, camel| report.get(snake).or_else(|| report.get(camel)).map(|number| number.as_f64());
    // What is there and no number makes all of it suspect.
    let number = |snake, camel| number(snake, camel).map_or(Some(None), |number| number.map(Some));
    Some((number(APPLICATION, "applicationUtilization")?, number(PROCESSOR, "cpuUtilization")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(lines: &[&str]) -> Option<f64> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(METRICS, line.parse().unwrap());
        }
        headers.insert(METRICS_BIN, "CgA=".parse().unwrap());
        let load = take(&mut headers);
        assert!(headers.is_empty(), "{headers:?} is not for clients");
        load
    }

    #[test]
    fn reports() {
        for (report, expected) in [
            ("TEXT cpu_utilization=0.3", 0.3),
            ("TEXT cpu_utilization=0.3, application_utilization=0.8, named_metrics.q=5", 0.8),
            ("TEXT application_utilization:1.25,cpu_utilization:0.3", 1.25),
            ("TEXT application_utilization=0, cpu_utilization=0.3", 0.3),
            ("JSON {\"cpu_utilization\": 0.3, \"named_metrics\": {\"q\": 5}}", 0.3),
            ("JSON {\"cpuUtilization\": 1, \"applicationUtilization\": 0.5}", 0.5),
            ("TEXT cpu_utilization=1e308", 1e308),
            ("TEXT cpu_utilization=0", 0.0),
        ] {
            assert_eq!(taken(&[report]), Some(expected), "{report}");
        }
    }

    #[test]
    fn what_is_none() {
        let long = format!("TEXT cpu_utilization=0.3, named_metrics.x={}", "1".repeat(10_000));
        let deep = format!("JSON {}", "[".repeat(4_000));
        for report in [
            "",
            "TEXT",
            "TEXT ",
            "cpu_utilization=0.3",
            "BIN CQAAAAAAAOA/",
            "XML <cpu_utilization>0.3</cpu_utilization>",
            "TEXT mem_utilization=0.3",
            "TEXT cpu_utilization",
            "TEXT cpu_utilization=",
            "TEXT cpu_utilization=much",
            "TEXT cpu_utilization=NaN",
            "TEXT cpu_utilization=-1",
            "TEXT cpu_utilization=inf",
            "TEXT cpu_utilization=1e999",
            "TEXT cpu_utilization=0.3, cpu_utilization=0.9",
            "TEXT application_utilization=NaN, cpu_utilization=0.3",
            "JSON",
            "JSON {",
            "JSON []",
            "JSON 0.3",
            "JSON {\"cpu_utilization\": \"NaN\"}",
            "JSON {\"cpu_utilization\": -1}",
            "JSON {\"cpu_utilization\": 1e999}",
            "JSON {\"application_utilization\": null, \"cpu_utilization\": 0.3}",
            &long,
            &deep,
        ] {
            assert_eq!(taken(&[report]), None, "{report}");
        }
        assert_eq!(taken(&["TEXT cpu_utilization=0.3", "TEXT cpu_utilization=0.9"]), None);
        assert_eq!(taken(&[]), None);
    }
}
