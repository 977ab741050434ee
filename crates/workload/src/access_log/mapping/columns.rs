//! The columns of a CSV line (RFC 4180), and which of them are wanted.
//!
//! A field does not go on over the end of a line: a log line is a line, and one bad quote must not swallow the rest of
//! the file.

use std::borrow::Cow;

use crate::access_log::fault::{Fault, What};

/// Where the columns of a mapping are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) separator: u8,
    /// For each pair of the mapping, which column it is, from 0.
    pub(crate) columns: Vec<usize>,
    /// Whether the first line is no entry.
    pub(crate) has_names: bool,
}

/// Finds the columns by the first line of the file. The error names the one that is not there.
pub(super) fn find<'a>(wanted: impl Iterator<Item = &'a str> + Clone, first: &str) -> Result<Header, String> {
    let separator = separator(first);
    let position = |name: &str| name.parse::<usize>().ok().filter(|&number| number > 0);
    if let Some(columns) = wanted.clone().map(|name| position(name).map(|number| number - 1)).collect() {
        return Ok(Header { separator, columns, has_names: false });
    }
    let names = split(first, separator).map_err(|fault| fault.what.to_string())?;
    let columns = wanted.map(|name| {
        let by_name = names.iter().position(|(_, known)| known.trim() == name);
        by_name.or_else(|| position(name).map(|number| number - 1)).ok_or_else(|| name.to_owned())
    });
    Ok(Header { separator, columns: columns.collect::<Result<_, _>>()?, has_names: true })
}

/// A tab if there is one, else the more frequent of semicolon and comma.
fn separator(first: &str) -> u8 {
    let count = |wanted: u8| first.bytes().filter(|&byte| byte == wanted).count();
    match (count(b'\t'), count(b';') > count(b',')) {
        (1.., _) => b'\t',
        (0, true) => b';',
        (0, false) => b',',
    }
}

/// The fields of a line, and where each begins.
pub(super) fn split(line: &str, separator: u8) -> Result<Vec<(usize, Cow<'_, str>)>, Fault> {
    let mut fields = Vec::new();
    let mut at = 0;
    loop {
        let rest = &line[at..];
        let (field, length) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let inner = quoted_length(quoted).ok_or_else(|| Fault::at(at, What::OpenQuote))?;
                let text = &quoted[..inner];
                let text = if text.contains("\"\"") {
                    Cow::Owned(text.replace("\"\"", "\""))
                } else {
                    Cow::Borrowed(text)
                };
                (text, inner + 2)
            }
            None => {
                let end = rest.bytes().position(|byte| byte == separator).unwrap_or(rest.len());
                (Cow::Borrowed(&rest[..end]), end)
            }
        };
        fields.push((at, field));
        at += length;
        match line.as_bytes().get(at) {
            None => return Ok(fields),
            Some(&byte) if byte == separator => at += 1,
            Some(_) => return Err(Fault::at(at, What::Expected(char::from(separator).to_string().into()))),
        }
    }
}

/// How long the text before a closing quote is, doubled quotes being part of it.
fn quoted_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == b'"')?;
        if bytes.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str) -> Vec<String> {
        split(line, b',').unwrap().into_iter().map(|(_, field)| field.into_owned()).collect()
    }

    #[test]
    fn lines_come_apart_at_their_separators() {
        assert_eq!(fields("a,b,,"), ["a", "b", "", ""]);
        assert_eq!(fields(r#""a,b","c""d","""#), ["a,b", "c\"d", ""]);
        assert_eq!(fields(r#""",x"y"#), ["", "x\"y"]);
        assert_eq!(fields(""), [""]);
    }

    #[test]
    fn quotes_have_to_end_and_to_be_all_of_a_field() {
        assert_eq!(split("a,\"b", b','), Err(Fault::at(2, What::OpenQuote)));
        assert_eq!(split("\"a\"b", b','), Err(Fault::at(3, What::Expected(",".into()))));
    }

    #[test]
    fn columns_have_names_or_numbers() {
        let found = find(["ts", "code"].into_iter(), "id;code;ts, UTC;ts").unwrap();
        assert_eq!(found, Header { separator: b';', columns: vec![3, 1], has_names: true });
        let found = find(["2", "1"].into_iter(), "5\t6").unwrap();
        assert_eq!(found, Header { separator: b'\t', columns: vec![1, 0], has_names: false });
        assert_eq!(find(["x"].into_iter(), "a,b"), Err("x".to_owned()));
    }
}
