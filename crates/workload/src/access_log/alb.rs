//! The access log of AWS Application Load Balancers: fields between spaces, some of them quoted.
//!
//! Fields were added at the end over the years and will be, so what follows the ones that are used is not looked at.
//! <https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html>

use super::draft::{Draft, bad};
use super::fault::{Fault, What};
use super::role::{Clock, Role};
use super::stamp::Zone;
use super::value::{Escape, Unit, unescape};

/// The fields in their order, named as AWS names them.
const FIELDS: [(&str, Option<Role>); 22] = [
    ("type", None),
    ("time", Some(Role::End(Clock::Iso))),
    ("elb", None),
    ("client:port", Some(Role::Client)),
    ("target:port", Some(Role::Upstream)),
    ("request_processing_time", Some(Role::Part(Unit::Seconds))),
    ("target_processing_time", Some(Role::Part(Unit::Seconds))),
    ("response_processing_time", Some(Role::Part(Unit::Seconds))),
    ("elb_status_code", Some(Role::Status)),
    ("target_status_code", None),
    ("received_bytes", None),
    ("sent_bytes", Some(Role::Bytes)),
    ("request", Some(Role::Request)),
    ("user_agent", None),
    ("ssl_cipher", None),
    ("ssl_protocol", None),
    ("target_group_arn", Some(Role::Route)),
    ("trace_id", None),
    ("domain_name", None),
    ("chosen_cert_arn", None),
    ("matched_rule_priority", None),
    ("request_creation_time", Some(Role::Start(Clock::Iso))),
];
/// The field that is a part of the whole time and the upstream's time as well.
const TARGET_TIME: usize = 6;
/// What the first field may be.
const TYPES: [&str; 6] = ["http", "https", "h2", "grpcs", "ws", "wss"];
/// Logs of before 2018 end with the field before this one.
const FIELDS_MIN: usize = 18;

/// Reads a line.
pub(crate) fn read(line: &str, zone: &Zone) -> Result<Draft, Fault> {
    let mut draft = Draft::default();
    let mut at = 0;
    for (index, (name, role)) in FIELDS.into_iter().enumerate() {
        let Some((start, end)) = token(line, at)? else {
            if index >= FIELDS_MIN {
                break;
            }
            return Err(Fault::at(line.len(), What::Missing(name.into())));
        };
        let text = &line[start..end];
        if index == 0 && !TYPES.contains(&text) {
            return Err(Fault::at(start, bad(name, "a type of request")));
        }
        if index == TARGET_TIME {
            let service = draft.set(Role::Service(Unit::Seconds), text, zone);
            service.map_err(|kind| Fault::at(start, bad(name, kind)))?;
        }
        if let Some(role) = role {
            let text = if role == Role::Route { group_name(text) } else { text };
            let text = unescape(text, Escape::Backslash);
            draft.set(role, &text, zone).map_err(|kind| Fault::at(start, bad(name, kind)))?;
        }
        at = end;
    }
    Ok(draft)
}

/// The name in `arn:aws:…:targetgroup/NAME/ID`; the rest of it tells whose account it is.
fn group_name(arn: &str) -> &str {
    arn.split('/').nth(1).unwrap_or(arn)
}

/// Where the next field begins and ends, without its quotes.
fn token(line: &str, at: usize) -> Result<Option<(usize, usize)>, Fault> {
    let rest = &line[at..];
    let rest = rest.strip_prefix('"').unwrap_or(rest).trim_start_matches(' ');
    let start = line.len() - rest.len();
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find(' ').unwrap_or(rest.len());
        return Ok((!rest.is_empty()).then_some((start, start + end)));
    };
    let mut escaped = false;
    let end = quoted.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    let end = end.ok_or_else(|| Fault::at(start, What::OpenQuote))?;
    Ok(Some((start + 1, start + 1 + end)))
}
