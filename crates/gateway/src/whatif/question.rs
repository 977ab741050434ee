//! What is asked, as it comes over the admin address.

use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::Value;
use tidegate_engine::LIMIT_MAX;
use tidegate_policy::Policy;

/// A change of the policy of one upstream. What is `None` stays as it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    /// The number of the upstream.
    pub(crate) upstream: usize,
    pub(crate) limit: Option<Limit>,
    pub(crate) wait: Option<Duration>,
    /// The classes in another order, as numbers of the order that there is.
    pub(crate) order: Option<Vec<usize>>,
    /// How much the upstream can do at once, if whoever asks knows better.
    pub(crate) workers: Option<NonZeroU32>,
    /// How much of the time before now.
    pub(crate) span: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Fixed(NonZeroU32),
    Adaptive,
}

const SPAN_MAX: Duration = Duration::from_secs(300);
const SPAN_MIN: Duration = Duration::from_secs(10);
const WAIT_MAX: Duration = Duration::from_secs(60);
/// More workers than this are as good as this many.
const WORKERS_MAX: u32 = 100_000;

impl Question {
    /// Reads it, or says what is wrong with it.
    pub(crate) fn parse(value: &Value, policy: &Policy) -> Result<Self, String> {
        let name = value["upstream"].as_str().unwrap_or_default();
        let upstream = policy.upstreams.iter().position(|upstream| upstream.name == name);
        let limit = match &value["limit"] {
            Value::Null => None,
            Value::String(word) if word == "adaptive" => Some(Limit::Adaptive),
            other => Some(Limit::Fixed(number(other, "limit", LIMIT_MAX)?)),
        };
        let wait = match &value["wait_ms"] {
            Value::Null => None,
            other => match other.as_f64() {
                Some(millis) if (0.0..=WAIT_MAX.as_secs_f64() * 1e3).contains(&millis) => {
                    Some(Duration::from_secs_f64(millis / 1e3))
                }
                _ => return Err("wait_ms is a number from 0 to 60000".to_owned()),
            },
        };
        let workers = match &value["workers"] {
            Value::Null => None,
            other => Some(number(other, "workers", WORKERS_MAX)?),
        };
        let seconds = value["seconds"].as_f64().unwrap_or(SPAN_MAX.as_secs_f64());
        let span = Duration::try_from_secs_f64(seconds).unwrap_or(SPAN_MAX).clamp(SPAN_MIN, SPAN_MAX);
        Ok(Self {
            upstream: upstream.ok_or("there is no such upstream")?,
            limit,
            wait,
            order: order(&value["priorities"], policy)?,
            workers,
            span,
        })
    }
}

fn number(value: &Value, what: &str, max: u32) -> Result<NonZeroU32, String> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number <= max);
    number.and_then(NonZeroU32::new).ok_or_else(|| format!("{what} is a whole number from 1 to {max}"))
}

fn order(value: &Value, policy: &Policy) -> Result<Option<Vec<usize>>, String> {
    let Value::Array(names) = value else {
        return if value.is_null() { Ok(None) } else { Err("priorities is a list of names".to_owned()) };
    };
    let known =
        |name: &Value| policy.priorities.iter().position(|class| Some(class.name.as_str()) == name.as_str());
    let order: Option<Vec<usize>> = names.iter().map(known).collect();
    let mut sorted = order.clone().unwrap_or_default();
    sorted.sort_unstable();
    match order {
        Some(order) if sorted.iter().copied().eq(0..policy.priorities.len()) => {
            Ok(Some(order).filter(|order| !order.is_sorted()))
        }
        _ => Err("priorities has every class of the policy once".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tidegate_policy::QuickStart;

    #[test]
    fn what_is_left_out_stays_and_what_is_wrong_is_refused() {
        let policy = Policy::for_upstream(&QuickStart::new("http://127.0.0.1:1")).unwrap().policy;
        let asked = |rest: Value| {
            let mut value = json!({ "upstream": "upstream" });
            value.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            Question::parse(&value, &policy)
        };
        let nothing = asked(json!({})).unwrap();
        assert_eq!((nothing.limit, nothing.wait, nothing.order), (None, None, None));
        assert_eq!(nothing.span, SPAN_MAX);
        assert_eq!(asked(json!({ "limit": "adaptive" })).unwrap().limit, Some(Limit::Adaptive));
        assert_eq!(
            asked(json!({ "limit": 7 })).unwrap().limit,
            Some(Limit::Fixed(NonZeroU32::new(7).unwrap()))
        );
        assert_eq!(asked(json!({ "wait_ms": 1.5 })).unwrap().wait, Some(Duration::from_micros(1_500)));
        let order = asked(json!({ "priorities": ["background", "critical", "default"] })).unwrap().order;
        assert_eq!(order, Some(vec![2, 0, 1]));
        let same = asked(json!({ "priorities": ["critical", "default", "background"] })).unwrap();
        assert_eq!(same.order, None);
        for wrong in [
            json!({ "upstream": "other" }),
            json!({ "limit": 0 }),
            json!({ "limit": -1 }),
            json!({ "limit": "all" }),
            json!({ "wait_ms": 1e9 }),
            json!({ "wait_ms": "1s" }),
            json!({ "workers": 1e12 }),
            json!({ "priorities": ["critical", "critical", "default"] }),
            json!({ "priorities": ["critical"] }),
            json!({ "priorities": "critical" }),
        ] {
            assert!(asked(wrong.clone()).is_err(), "{wrong}");
        }
        for seconds in [json!(-1), json!(1e300), json!(1)] {
            assert!((SPAN_MIN..=SPAN_MAX).contains(&asked(json!({ "seconds": seconds })).unwrap().span));
        }
    }
}
