//! What a request carries besides its path: fields of its head and a body, as far as clients may choose them.
//!
//! What frames a message is not for a scenario to say: a wrong length would break the connection and not the service.

use std::collections::BTreeMap;

/// Fields that whoever sends the message writes by itself.
const FRAMING: [&str; 7] =
    ["connection", "content-length", "expect", "keep-alive", "te", "transfer-encoding", "upgrade"];
/// How many fields a request may have; servers commonly stop at a hundred.
const FIELDS_MAX: usize = 64;
/// The longest value, in bytes; servers commonly stop at eight kibibytes for all of the head.
const VALUE_MAX: usize = 8_192;

/// Whether a field may be sent as it is: RFC 9110, sections 5.1 and 5.5. What is wrong is said in words.
pub fn check(name: &str, value: &str) -> Result<(), String> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(format!("`{name}` is not the name of a field"));
    }
    if FRAMING.iter().any(|framing| framing.eq_ignore_ascii_case(name)) {
        return Err(format!("`{name}` is written by whoever sends the message"));
    }
    let visible = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    if value.len() > VALUE_MAX || !value.bytes().all(visible) {
        return Err(format!(
            "the value of `{name}` is longer than {VALUE_MAX} bytes or has a control character"
        ));
    }
    Ok(())
}

/// The fields of one kind of requests: those of its clients, and its own in the place of theirs.
pub(super) fn merge(
    clients: &BTreeMap<String, String>,
    own: &BTreeMap<String, String>,
) -> Result<Vec<(String, String)>, String> {
    let lower = |fields: &BTreeMap<String, String>| {
        fields
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
            .collect::<BTreeMap<_, _>>()
    };
    let mut fields = lower(clients);
    fields.extend(lower(own));
    if fields.len() > FIELDS_MAX {
        return Err(format!("more than {FIELDS_MAX} fields"));
    }
    for (name, value) in &fields {
        check(name, value)?;
    }
    Ok(fields.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_cannot_break_the_message() {
        for (name, value, good) in [
            ("x-tenant", "acme", true),
            ("x-empty", "", true),
            ("accept", "text/html;q=0.5, */*", true),
            ("", "x", false),
            ("x tenant", "x", false),
            ("x-tenant:", "x", false),
            ("Content-Length", "7", false),
            ("transfer-encoding", "chunked", false),
            ("x-two", "one\r\nhost: evil", false),
            ("x-nul", "\0", false),
        ] {
            assert_eq!(check(name, value).is_ok(), good, "{name}: {value:?}");
        }
        assert!(check("x-long", &"x".repeat(VALUE_MAX + 1)).is_err());
    }

    #[test]
    fn a_kind_goes_before_its_clients() {
        let map = |list: &[(&str, &str)]| {
            list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let merged = merge(&map(&[("X-A", "1"), ("x-b", "2")]), &map(&[("x-a", "3")]));
        assert_eq!(merged, Ok(vec![("x-a".into(), "3".into()), ("x-b".into(), "2".into())]));
    }
}
