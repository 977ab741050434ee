//! What an operator can change while the gateway runs: begin to drain, and set the limit of an upstream. Both are said on
//! standard error, with the address that asked.

use std::net::IpAddr;
use std::num::NonZeroU32;

use http::StatusCode;
use serde_json::{Value, json};
use tidegate_engine::LIMIT_MAX;

use crate::gateway::Shared;

/// What came of it.
pub(super) type Changed = Result<Value, (StatusCode, String)>;

/// As SIGTERM does: whoever runs the gateway ends it when it is drained.
pub(super) fn drain(shared: &Shared, from: IpAddr) -> Changed {
    shared.log.notice(&format!("{from} asked over the admin address to drain"));
    shared.drain();
    Ok(json!({ "stage": shared.stage_name() }))
}

/// Sets the limit of an upstream, or with the word `policy` gives it back to the policy.
pub(super) fn limit(shared: &Shared, from: IpAddr, upstream: Option<&str>, limit: Option<&str>) -> Changed {
    let wrong = |why: String| Err((StatusCode::BAD_REQUEST, why));
    let limit = match limit {
        Some("policy") => None,
        Some(text) => match text.parse::<NonZeroU32>() {
            Ok(number) if number.get() <= LIMIT_MAX => Some(number),
            _ => return wrong(format!("limit is a number from 1 to {LIMIT_MAX}, or `policy`\n")),
        },
        None => return wrong("say the limit: a number, or `policy`\n".to_owned()),
    };
    let name = upstream.unwrap_or_default();
    let is_changed = shared.change(|live| {
        let index = live.policy.upstreams.iter().position(|upstream| upstream.name == name)?;
        Some(live.with_limit(index, limit, shared.clock))
    });
    if !is_changed {
        return Err((StatusCode::NOT_FOUND, "there is no such upstream\n".to_owned()));
    }
    let said = limit.map_or_else(|| "what the policy says".to_owned(), |limit| limit.to_string());
    shared.log.notice(&format!("{from} set the limit of {name} over the admin address to {said}"));
    Ok(json!({ "upstream": name, "limit": said }))
}
