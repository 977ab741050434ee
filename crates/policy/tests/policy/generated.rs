//! What comes from the key table: the schema and the reference page agree with what is read.

use serde_json::Value;
use tidegate_policy::{reference, schema};

use crate::{FULL, UPSTREAM};

/// As far as this schema goes; a keyword that is not known here fails.
fn validate(schema: &Value, value: &Value, at: &str) {
    for (keyword, rule) in schema.as_object().expect("a schema is an object") {
        let number = || (value.as_f64().unwrap(), rule.as_f64().unwrap());
        let length = || (value.as_array().unwrap().len() as u64, rule.as_u64().unwrap());
        let holds = match keyword.as_str() {
            "$schema" | "title" | "description" | "default" => true,
            "type" => match rule.as_str().unwrap() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_i64(),
                "number" => value.is_number(),
                other => panic!("type {other}"),
            },
            "enum" => rule.as_array().unwrap().contains(value),
            "const" => rule == value,
            "minimum" => number().0 >= number().1,
            "maximum" => number().0 <= number().1,
            "exclusiveMinimum" => number().0 > number().1,
            "minItems" => length().0 >= length().1,
            "maxItems" => length().0 <= length().1,
            "uniqueItems" => true,
            "pattern" => {
                regex_lite::Regex::new(rule.as_str().unwrap()).unwrap().is_match(value.as_str().unwrap())
            }
            "required" => {
                rule.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some())
            }
            "additionalProperties" => {
                value.as_object().unwrap().keys().all(|name| schema["properties"].get(name).is_some())
            }
            "properties" => {
                for (name, value) in value.as_object().unwrap() {
                    validate(&rule[name], value, &format!("{at}.{name}"));
                }
                true
            }
            "items" => {
                value.as_array().unwrap().iter().for_each(|item| validate(rule, item, at));
                true
            }
            "oneOf" => rule.as_array().unwrap().iter().any(|one| match one.get("const") {
                Some(constant) => constant == value,
                None => value.is_i64(),
            }),
            other => panic!("keyword {other}"),
        };
        assert!(holds, "{at}: {keyword} {rule} does not hold of {value}");
    }
}

#[test]
fn the_schema_takes_what_the_reader_takes() {
    for text in [FULL, UPSTREAM] {
        validate(&schema(), &toml::from_str(text).unwrap(), "policy");
    }
}

/// The reader itself asserts that it reads every key of the table; here every key is also given once.
#[test]
fn the_full_example_has_every_key() {
    fn missing(schema: &Value, values: &[&Value], at: &str, found: &mut Vec<String>) {
        let schema = schema.get("items").filter(|items| items.get("properties").is_some()).unwrap_or(schema);
        let Some(properties) = schema.get("properties") else { return };
        for (name, property) in properties.as_object().unwrap() {
            let inner: Vec<&Value> = values
                .iter()
                .flat_map(|value| value.as_array().map_or_else(|| vec![*value], |list| list.iter().collect()))
                .filter_map(|value| value.get(name))
                .collect();
            if inner.is_empty() {
                found.push(format!("{at}.{name}"));
            }
            missing(property, &inner, &format!("{at}.{name}"), found);
        }
    }
    let mut found = Vec::new();
    missing(&schema(), &[&toml::from_str(FULL).unwrap()], "policy", &mut found);
    assert!(found.is_empty(), "not in the example: {found:?}");
}

/// Every default is a value that its own key takes.
#[test]
fn the_defaults_are_within_the_schema() {
    fn check(schema: &Value, at: &str) -> usize {
        if let Some(default) = schema.get("default") {
            validate(schema, default, at);
        }
        let inner = schema.get("properties").or_else(|| schema.get("items")?.get("properties"));
        let inner = inner.and_then(Value::as_object).into_iter().flatten();
        usize::from(schema.get("default").is_some())
            + inner.map(|(name, property)| check(property, &format!("{at}.{name}"))).sum::<usize>()
    }
    assert!(check(&schema(), "policy") > 25);
}

#[test]
fn the_reference_has_every_section_and_lint() {
    let page = reference();
    for part in
        ["`[server]`", "`[[upstream]]`", "`[upstream.queue]`", "`[[route]]`", "| `burst` |", "| TG001 |"]
    {
        assert!(page.contains(part), "{part}");
    }
    // No row is broken by a bar in a cell.
    for line in page.lines().filter(|line| line.starts_with('|')) {
        let columns = line.matches('|').count() - 1;
        assert!(columns == 5 || columns == 2, "{line}");
    }
}
