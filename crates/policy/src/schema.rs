//! The JSON schema of the policy file, for editors. It comes from the [key table](crate::keys).
//!
//! What two keys say of each other is not in it; `tidegate check` is the judge.

use serde_json::{Map, Value, json};
use toml::de::DeValue;

use crate::keys::{Absent, Form, Key, Kind, ROOT, Section, Shape};

/// The JSON schema of the policy file (draft 2020-12).
#[must_use]
pub fn schema() -> Value {
    let mut schema = object(&ROOT);
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), json!("tidegate policy"));
    Value::Object(schema)
}

fn section(section: &Section) -> Value {
    let table = object(section);
    match section.shape {
        Shape::One => Value::Object(table),
        Shape::Many { max } => json!({ "type": "array", "items": table, "maxItems": max }),
    }
}

fn object(section: &Section) -> Map<String, Value> {
    let mut properties = Map::new();
    for key in section.keys {
        properties.insert(key.name.to_owned(), property(key));
    }
    for inner in section.inner {
        properties.insert(inner.name.to_owned(), self::section(inner));
    }
    let mut required: Vec<&str> =
        section.keys.iter().filter(|key| key.absent == Absent::Required).map(|key| key.name).collect();
    if section.path.is_empty() {
        // The one section that no policy can do without.
        required.push("upstream");
    }
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("description".to_owned(), json!(section.doc));
    object.insert("properties".to_owned(), Value::Object(properties));
    object.insert("additionalProperties".to_owned(), json!(false));
    if !required.is_empty() {
        object.insert("required".to_owned(), json!(required));
    }
    object
}

fn property(key: &Key) -> Value {
    let mut property = kind(&key.kind);
    let mut description = key.doc.to_owned();
    match key.absent {
        Absent::Required => {}
        Absent::Default(default) => {
            property.insert("default".to_owned(), default_value(default));
        }
        Absent::Means(means) => description.push_str(&format!(" Left out: {means}.")),
    }
    if matches!(key.kind, Kind::Duration { .. }) {
        description.push_str(&format!(" From {}.", key.kind.bounds()));
    }
    property.insert("description".to_owned(), json!(description));
    Value::Object(property)
}

fn kind(kind: &Kind) -> Map<String, Value> {
    let value = match *kind {
        Kind::Switch => json!({ "type": "boolean" }),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::OneOf(numbers) => json!({ "enum": numbers }),
        Kind::Share { max } => json!({ "type": "number", "minimum": 0.0, "maximum": max }),
        Kind::Factor { above, max } => json!({ "type": "number", "exclusiveMinimum": above, "maximum": max }),
        Kind::Duration { .. } => json!({ "type": "string", "pattern": Kind::DURATION_PATTERN }),
        Kind::Rate => json!({ "type": "string", "pattern": Kind::RATE_PATTERN }),
        Kind::Choice { of, .. } => json!({ "enum": of }),
        Kind::AdaptiveOr { min, max } => {
            json!({ "oneOf": [{ "const": "adaptive" }, { "type": "integer", "minimum": min, "maximum": max }] })
        }
        Kind::Text(form) => text(form),
        Kind::List { of, min, max } => {
            json!({ "type": "array", "items": text(of), "minItems": min, "maxItems": max, "uniqueItems": true })
        }
    };
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn text(form: Form) -> Value {
    json!({ "type": "string", "pattern": form.pattern() })
}

/// The default of the table, which is TOML, as JSON.
fn default_value(default: &str) -> Value {
    match DeValue::parse(default).as_ref().map(|value| value.get_ref()) {
        Ok(DeValue::String(text)) => json!(text),
        Ok(DeValue::Boolean(on)) => json!(on),
        Ok(DeValue::Integer(integer)) => json!(integer.as_str().parse::<i64>().ok()),
        Ok(DeValue::Float(float)) => json!(float.as_str().parse::<f64>().ok()),
        Ok(DeValue::Array(list)) if list.is_empty() => json!([]),
        _ => Value::Null,
    }
}
