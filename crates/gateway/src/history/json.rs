//! Samples as JSON: one as an object, or many as the same object with an array in the place of every number.

use std::fmt::Write as _;
use std::sync::Arc;

use super::{Layout, Sample};

/// An answer has at most so many numbers. Of a policy so large that the time that was asked for has more, the last part of
/// it is given.
const NUMBERS_MAX: usize = 500_000;

/// One sample.
pub(crate) fn row(sample: &Sample) -> String {
    let mut text = String::with_capacity(sample.values.len() * 20 + 128);
    let _ = write!(text, "{{\"id\":{},\"at\":", sample.id);
    number(&mut text, sample.at_millis as f64 / 1e3);
    text.push_str(",\"seconds\":");
    length(&mut text, sample.seconds);
    tree(&mut text, &sample.layout, |text, leaf| value(text, sample, Some(leaf)));
    text.push('}');
    text
}

/// Samples, the oldest first, under the names of the newest. Where an older one did not have a number, there is null.
pub(crate) fn columns<'a>(samples: impl ExactSizeIterator<Item = &'a Sample> + Clone, kept: usize) -> String {
    let layout = samples.clone().last().map(|sample| sample.layout.clone()).unwrap_or_default();
    let most = NUMBERS_MAX / (layout.len() + 3);
    let skipped = samples.len().saturating_sub(most.max(1));
    let samples: Vec<&Sample> = samples.skip(skipped).collect();
    let mut text = format!("{{\"kept\":{kept},\"samples\":{},\"id\":", samples.len());
    array(&mut text, samples.iter().map(|sample| sample.id as f64));
    text.push_str(",\"at\":");
    array(&mut text, samples.iter().map(|sample| sample.at_millis as f64 / 1e3));
    text.push_str(",\"seconds\":");
    text.push('[');
    for sample in &samples {
        comma(&mut text);
        length(&mut text, sample.seconds);
    }
    text.push(']');
    let paths: Vec<_> = layout.paths().collect();
    let mut old: Option<(&Arc<Layout>, Vec<Option<usize>>)> = None;
    let mut places: Vec<(usize, Vec<Option<usize>>)> = Vec::new();
    for (number, sample) in samples.iter().enumerate() {
        let is_other = old.as_ref().is_none_or(|(layout, _)| !Arc::ptr_eq(layout, &sample.layout));
        if is_other {
            let found = places_in(&sample.layout, &paths, Arc::ptr_eq(&layout, &sample.layout));
            places.push((number, found.clone()));
            old = Some((&sample.layout, found));
        }
    }
    tree(&mut text, &layout, |text, leaf| {
        let mut spans = places.iter().peekable();
        let mut current = None;
        text.push('[');
        for (number, sample) in samples.iter().enumerate() {
            while let Some(span) = spans.next_if(|span| span.0 <= number) {
                current = span.1[leaf];
            }
            comma(text);
            value(text, sample, current);
        }
        text.push(']');
    });
    text.push('}');
    text
}

/// Where the numbers of these names are in another layout.
fn places_in(layout: &Layout, paths: &[&[Arc<str>]], same: bool) -> Vec<Option<usize>> {
    if same {
        return (0..paths.len()).map(Some).collect();
    }
    let known: std::collections::HashMap<&[Arc<str>], usize> =
        layout.paths().enumerate().map(|(place, path)| (path, place)).collect();
    paths.iter().map(|path| known.get(path).copied()).collect()
}

/// Writes what the layout says as nested objects, each after a comma.
fn tree(text: &mut String, layout: &Layout, mut leaf: impl FnMut(&mut String, usize)) {
    let mut open: Vec<&str> = Vec::new();
    for (index, path) in layout.paths().enumerate() {
        let Some((name, groups)) = path.split_last() else { continue };
        let common = open.iter().zip(groups).take_while(|(open, group)| **open == &***group).count();
        for _ in common..open.len() {
            text.push('}');
        }
        open.truncate(common);
        for group in &groups[common..] {
            comma(text);
            string(text, group);
            text.push_str(":{");
            open.push(group);
        }
        comma(text);
        string(text, name);
        text.push(':');
        leaf(text, index);
    }
    for _ in open {
        text.push('}');
    }
}

fn comma(text: &mut String) {
    if !text.ends_with(['{', '[']) {
        text.push(',');
    }
}

fn array(text: &mut String, values: impl Iterator<Item = f64>) {
    text.push('[');
    for value in values {
        comma(text);
        number(text, value);
    }
    text.push(']');
}

/// What a sample has in this place: null if there is none.
fn value(text: &mut String, sample: &Sample, place: Option<usize>) {
    let Some(place) = place else { return text.push_str("null") };
    match sample.layout.word(place, sample.values[place]) {
        Some(word) => string(text, word),
        None => number(text, sample.values[place].into()),
    }
}

/// To a microsecond, so that a rate times it is what was counted.
fn length(text: &mut String, seconds: f32) {
    let _ = write!(text, "{}", (f64::from(seconds) * 1e6).round() / 1e6);
}

/// To three digits behind the point, without those that are zero.
fn number(text: &mut String, value: f64) {
    if !value.is_finite() {
        text.push_str("null");
        return;
    }
    let rounded = (value * 1e3).round() / 1e3;
    // Not `-0`.
    let _ = write!(text, "{}", if rounded == 0.0 { 0.0 } else { rounded });
}

/// Names come from the policy, but a path may be anything.
fn string(text: &mut String, value: &str) {
    text.push_str(&serde_json::Value::from(value).to_string());
}

#[cfg(test)]
mod tests {
    use super::super::Tape;
    use super::*;
    use serde_json::{Value, json};

    fn sample(id: u64, route: &str, values: &[f32]) -> Sample {
        let mut tape = Tape::naming();
        tape.group("upstreams", |tape| {
            tape.group("a", |tape| {
                tape.gauge("limit", 0.0);
                tape.group(route, |tape| tape.gauge("now", 0.0));
            });
        });
        tape.gauge("last", 0.0);
        tape.word("how", &["well", "ill"], None);
        let layout = Arc::new(tape.layout());
        Sample { id, at_millis: 1500, seconds: 1.0, layout, values: values.into() }
    }

    #[test]
    fn a_sample_is_an_object_and_many_are_the_same_object_of_arrays() {
        let hostile = "/<script>\"\\";
        let old = sample(6, "/old", &[1.0, 2.0, 3.0, f32::NAN]);
        let new = sample(7, hostile, &[4.0, f32::NAN, 0.1, 1.0]);
        let parsed = |text: String| serde_json::from_str::<Value>(&text).unwrap();
        assert_eq!(
            parsed(row(&new)),
            json!({
                "id": 7, "at": 1.5, "seconds": 1,
                "upstreams": { "a": { "limit": 4, hostile: { "now": null } } },
                "last": 0.1, "how": "ill",
            })
        );
        assert_eq!(
            parsed(columns([old, new].iter(), 900)),
            json!({
                "kept": 900, "samples": 2, "id": [6, 7], "at": [1.5, 1.5], "seconds": [1, 1],
                "upstreams": { "a": { "limit": [1, 4], hostile: { "now": [null, null] } } },
                "last": [3, 0.1], "how": [null, "ill"],
            })
        );
        assert_eq!(parsed(columns([].iter(), 0))["samples"], 0);
    }

    #[test]
    fn an_answer_has_a_bound() {
        let mut tape = Tape::naming();
        (0..40_000).for_each(|leaf| tape.gauge(&leaf.to_string(), 0.0));
        let layout = Arc::new(tape.layout());
        let values: Box<[f32]> = vec![0.0; 40_000].into();
        let sample = Sample { id: 1, at_millis: 0, seconds: 1.0, layout, values };
        let samples = vec![sample; 100];
        let text = columns(samples.iter(), 100);
        assert!(text.starts_with("{\"kept\":100,\"samples\":12,"), "{}", &text[..60]);
    }
}
