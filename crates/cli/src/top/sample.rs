//! A sample of `/api/live`, read. What is missing or null is not known, and shown as such: an older or a newer instance is
//! looked at as far as it can be.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// One second of an instance.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    /// Seconds since 1970.
    pub(super) at: f64,
    pub(super) draining: bool,
    pub(super) client_connections: f64,
    pub(super) upstream_connections: f64,
    /// Requests that ended without a route.
    pub(super) unrouted: f64,
    pub(super) upstreams: Vec<Upstream>,
}

/// One upstream. Numbers that are not known are not a number.
#[derive(Clone, Debug, Default)]
pub(super) struct Upstream {
    pub(super) name: String,
    pub(super) verdict: Verdict,
    pub(super) arrivals: f64,
    pub(super) goodput: f64,
    pub(super) refused: f64,
    pub(super) wasted_ms: f64,
    /// A second's refusals by reason, those that there were none of left out.
    pub(super) rejected: Vec<(String, f64)>,
    pub(super) limit: f64,
    pub(super) in_flight: f64,
    pub(super) in_flight_most: f64,
    pub(super) orphans: f64,
    pub(super) queue: Queue,
    /// The most important first, as the instance has them.
    pub(super) classes: Vec<Class>,
    pub(super) whole: Latency,
    pub(super) upstream: Latency,
    pub(super) breakers: Breakers,
    pub(super) retries_sent: f64,
    pub(super) retries_refused: f64,
    pub(super) retry_budget: (f64, f64),
    pub(super) little: Little,
    pub(super) routes: Vec<Route>,
}

/// What the instance says of it, and the means of its last seconds from which it says so. Empty where it does not.
#[derive(Clone, Debug, Default)]
pub(super) struct Verdict {
    pub(super) kind: String,
    pub(super) level: String,
    pub(super) arrivals: f64,
    pub(super) goodput: f64,
    pub(super) refused: f64,
    pub(super) failed: f64,
    pub(super) client_left: f64,
    pub(super) taken: f64,
    pub(super) limit: f64,
    pub(super) waiting: f64,
    /// For which most had no answer, and how many.
    pub(super) reason: String,
    pub(super) for_reason: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    pub(super) now: f64,
    pub(super) most: f64,
    pub(super) capacity: f64,
    pub(super) budget_ms: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Class {
    pub(super) name: String,
    pub(super) arrivals: f64,
    pub(super) goodput: f64,
    pub(super) refused: f64,
    pub(super) in_flight: f64,
    pub(super) waiting: f64,
    pub(super) wait_ms: f64,
    pub(super) wait_max_ms: f64,
}

/// The median, nine in ten, and ninety-nine in a hundred; of the last second and of the last minute.
#[derive(Clone, Debug, Default)]
pub(super) struct Latency {
    pub(super) second: [f64; 3],
    pub(super) minute: [f64; 3],
}

#[derive(Clone, Debug, Default)]
pub(super) struct Breakers {
    pub(super) closed: f64,
    pub(super) half_open: f64,
    pub(super) open: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Little {
    pub(super) lambda: f64,
    pub(super) w_ms: f64,
    pub(super) l: f64,
    pub(super) queue_bound: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    pub(super) label: String,
    pub(super) arrivals: f64,
    pub(super) goodput: f64,
    pub(super) refused: f64,
    pub(super) now: f64,
    pub(super) most: f64,
    pub(super) limit: f64,
}

/// Somebody whose requests are refused.
#[derive(Clone, Debug, Default)]
pub(super) struct RefusedKey {
    /// The rate limit or the upstream that refuses.
    pub(super) by: String,
    pub(super) key: String,
    pub(super) refused: f64,
}

impl Sample {
    /// `None` if this is no sample at all.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let order: Order = serde_json::from_str(text).unwrap_or_default();
        value["id"].as_u64()?;
        let gateway = &value["gateway"];
        let upstream = |(name, value): (&String, &Value)| Upstream::of(name, value, order.classes(name));
        Some(Self {
            at: number(&value["at"]),
            draining: number(&gateway["draining"]) > 0.0,
            client_connections: number(&gateway["client_connections"]),
            upstream_connections: number(&gateway["upstream_connections"]),
            unrouted: number(&gateway["unrouted"]),
            upstreams: value["upstreams"].as_object()?.iter().map(upstream).collect(),
        })
    }
}

impl Upstream {
    fn of(name: &str, value: &Value, order: Vec<&str>) -> Self {
        let of = |key: &str| number(&value[key]);
        let (queue, breakers) = (&value["queue"], &value["breakers"]);
        let (retries, little) = (&value["retries"], &value["little"]);
        let mut rejected: Vec<(String, f64)> =
            members(&value["rejected"]).map(|(reason, count)| (reason.clone(), number(count))).collect();
        rejected.retain(|(_, count)| *count > 0.0);
        rejected.sort_by(|one, other| other.1.total_cmp(&one.1));
        Self {
            name: name.to_owned(),
            verdict: Verdict::of(&value["verdict"]),
            arrivals: of("arrivals"),
            goodput: of("goodput"),
            refused: of("refused"),
            wasted_ms: of("wasted_ms"),
            rejected,
            limit: of("limit"),
            in_flight: of("in_flight"),
            in_flight_most: of("max_in_flight"),
            orphans: of("orphans"),
            queue: Queue {
                now: number(&queue["now"]),
                most: number(&queue["max"]),
                capacity: number(&queue["capacity"]),
                budget_ms: number(&queue["wait_budget_ms"]),
            },
            classes: order.into_iter().map(|name| Class::of(name, &value["priorities"][name])).collect(),
            whole: Latency::of(&value["latency_ms"]),
            upstream: Latency::of(&value["upstream_ms"]),
            breakers: Breakers {
                closed: number(&breakers["closed"]),
                half_open: number(&breakers["half_open"]),
                open: number(&breakers["open"]),
            },
            retries_sent: number(&retries["sent"]),
            retries_refused: number(&retries["refused"]),
            retry_budget: (number(&retries["budget"]), number(&retries["budget_max"])),
            little: Little {
                lambda: number(&little["lambda"]),
                w_ms: number(&little["w_ms"]),
                l: number(&little["l"]),
                queue_bound: number(&little["queue_bound"]),
            },
            routes: members(&value["routes"]).map(|(label, one)| Route::of(label, one)).collect(),
        }
    }

    /// How many were refused in the second for this reason.
    pub(super) fn rejected_for(&self, reason: &str) -> f64 {
        self.rejected.iter().find(|(known, _)| known == reason).map_or(0.0, |(_, count)| *count)
    }
}

impl Verdict {
    fn of(value: &Value) -> Self {
        let of = |key: &str| number(&value[key]);
        Self {
            kind: text(&value["kind"]),
            level: text(&value["level"]),
            arrivals: of("arrivals"),
            goodput: of("goodput"),
            refused: of("refused"),
            failed: of("failed"),
            client_left: of("client_left"),
            taken: of("taken"),
            limit: of("limit"),
            waiting: of("waiting"),
            reason: text(&value["reason"]),
            for_reason: of("for_reason"),
        }
    }
}

impl Class {
    fn of(name: &str, value: &Value) -> Self {
        let of = |key: &str| number(&value[key]);
        Self {
            name: name.to_owned(),
            arrivals: of("arrivals"),
            goodput: of("goodput"),
            refused: of("refused"),
            in_flight: of("in_flight"),
            waiting: of("waiting"),
            wait_ms: of("wait_ms"),
            wait_max_ms: of("wait_max_ms"),
        }
    }
}

impl Latency {
    fn of(value: &Value) -> Self {
        let three = |span: &Value| ["p50", "p90", "p99"].map(|part| number(&span[part]));
        Self { second: three(&value["second"]), minute: three(&value["minute"]) }
    }
}

impl Route {
    fn of(label: &str, value: &Value) -> Self {
        let of = |key: &str| number(&value[key]);
        Self {
            label: label.to_owned(),
            arrivals: of("arrivals"),
            goodput: of("goodput"),
            refused: of("refused"),
            now: of("now"),
            most: of("max"),
            limit: of("limit"),
        }
    }
}

impl RefusedKey {
    /// Those of an answer of `/api/top`, whose groups are called so.
    pub(super) fn all(list: &Value, group: &str) -> Vec<Self> {
        let entries = list["top"].as_array().map_or(&[][..], Vec::as_slice).iter();
        entries
            .map(|one| Self {
                by: text(&one[group]),
                key: text(&one["key"]),
                refused: number(&one["refused"]),
            })
            .collect()
    }
}

/// In which order classes come, the most important first, which an object read as a [`Value`] does not keep.
#[derive(Default, Deserialize)]
struct Order {
    upstreams: Pairs<OrderOf>,
}

#[derive(Deserialize)]
struct OrderOf {
    #[serde(default)]
    priorities: Pairs<IgnoredAny>,
}

impl Order {
    fn classes(&self, upstream: &str) -> Vec<&str> {
        let found = self.upstreams.0.iter().find(|(name, _)| name == upstream);
        found
            .map(|(_, of)| of.priorities.0.iter().map(|(name, _)| name.as_str()).collect())
            .unwrap_or_default()
    }
}

/// An object as the pairs that it consists of.
struct Pairs<T>(Vec<(String, T)>);

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Visitor<T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Pairs<T>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Visitor(std::marker::PhantomData))
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Refusals by reason, for what is drawn as a line.
pub(super) fn by_reason(upstream: &Upstream) -> BTreeMap<String, f64> {
    upstream.rejected.iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_not_known_and_what_is_no_sample_is_none() {
        assert!(Sample::parse("").is_none());
        assert!(Sample::parse("{\"id\":1}").is_none());
        assert!(Sample::parse("[1]").is_none());
        let text =
            "{\"id\":1,\"upstreams\":{\"a\":{\"limit\":4,\"latency_ms\":{\"second\":{\"p50\":null}}}}}";
        let sample = Sample::parse(text).unwrap();
        assert_eq!((sample.upstreams[0].limit, sample.draining), (4.0, false));
        assert!(sample.upstreams[0].in_flight.is_nan() && sample.upstreams[0].whole.second[0].is_nan());
    }

    /// The most important class comes first, and not the first in the alphabet.
    #[test]
    fn classes_are_in_the_order_of_the_instance() {
        let text =
            "{\"id\":1,\"upstreams\":{\"a\":{\"priorities\":{\"z\":{\"waiting\":1},\"b\":{},\"a\":{}}}}}";
        let classes = &Sample::parse(text).unwrap().upstreams[0].classes;
        assert_eq!(classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>(), ["z", "b", "a"]);
        assert_eq!(classes[0].waiting, 1.0);
    }
}
