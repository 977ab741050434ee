//! The `log_format` directives in the text of an nginx configuration.
//!
//! It splits a configuration into words as nginx does, and looks at nothing but this directive: includes are not
//! followed, since nothing here opens files.

use super::LogFormatError;
use crate::access_log::value::Escape;

/// The most formats that are taken from a configuration.
const FORMATS_MAX: usize = 256;

/// A `log_format` as it is stated.
pub(super) struct Stated {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) escape: Escape,
}

/// All formats of a configuration, in its order.
pub(super) fn formats(text: &str) -> Result<Vec<Stated>, LogFormatError> {
    let mut words = Words { rest: text };
    let mut directive: Vec<String> = Vec::new();
    let mut found = Vec::new();
    while let Some(word) = words.next_word()? {
        match word {
            Word::Text(text) => directive.push(text),
            Word::End => {
                found.extend(stated(&directive)?);
                directive.clear();
            }
        }
        if found.len() >= FORMATS_MAX {
            break;
        }
    }
    // The text of one directive may have been given without its semicolon.
    found.extend(stated(&directive)?);
    Ok(found)
}

fn stated(directive: &[String]) -> Result<Option<Stated>, LogFormatError> {
    let [keyword, name, pieces @ ..] = directive else { return Ok(None) };
    if keyword != "log_format" {
        return Ok(None);
    }
    let (escape, pieces) = match pieces.split_first() {
        Some((first, rest)) if first.starts_with("escape=") => (escape(&first["escape=".len()..])?, rest),
        _ => (Escape::Backslash, pieces),
    };
    Ok(Some(Stated { name: name.clone(), text: pieces.concat(), escape }))
}

fn escape(name: &str) -> Result<Escape, LogFormatError> {
    Ok(match name {
        "default" => Escape::Backslash,
        "json" => Escape::Json,
        "none" => Escape::None,
        _ => return Err(LogFormatError::BadEscape(name.into())),
    })
}

enum Word {
    Text(String),
    /// `;`, `{` or `}`.
    End,
}

struct Words<'a> {
    rest: &'a str,
}

impl Words<'_> {
    fn next_word(&mut self) -> Result<Option<Word>, LogFormatError> {
        loop {
            self.rest = self.rest.trim_start();
            if !self.rest.starts_with('#') {
                break;
            }
            self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]);
        }
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        match first {
            ';' | '{' | '}' => {
                self.rest = &self.rest[1..];
                Ok(Some(Word::End))
            }
            '"' | '\'' => self.quoted(first).map(|text| Some(Word::Text(text))),
            _ => Ok(Some(Word::Text(self.bare()))),
        }
    }

    fn bare(&mut self) -> String {
        // A brace after a dollar belongs to a variable.
        let mut before = ' ';
        let mut in_variable = false;
        let end = self.rest.find(|c: char| {
            in_variable |= c == '{' && before == '$';
            let ends = c.is_whitespace() || c == ';' || (matches!(c, '{' | '}') && !in_variable);
            in_variable &= c != '}';
            before = c;
            ends
        });
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word.to_owned()
    }

    fn quoted(&mut self, quote: char) -> Result<String, LogFormatError> {
        let mut text = String::new();
        let mut chars = self.rest[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next().map(|(_, escaped)| escaped) {
                    Some('n') => text.push('\n'),
                    Some('r') => text.push('\r'),
                    Some('t') => text.push('\t'),
                    Some(escaped @ ('"' | '\'' | '\\')) => text.push(escaped),
                    // nginx keeps the backslash of what is no escape.
                    other => text.extend(['\\'].into_iter().chain(other)),
                },
                _ if c == quote => {
                    self.rest = &self.rest[at + 2..];
                    return Ok(text);
                }
                _ => text.push(c),
            }
        }
        Err(LogFormatError::OpenQuote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONF: &str = r#"
# log_format commented '$never';
events { worker_connections 64; }
http {
    log_format main  '$remote_addr - [$time_local] "$request" ' # a remark; with a semicolon
                     "$status \"$http_referer\" \\ ${msec}";
    log_format j escape=json '{"t":"$msec"}';
    access_log /var/log/nginx/access.log main;
    server { listen 80; location ~ ^/(a|b)$ { return 204; } }
}
"#;

    #[test]
    fn formats_are_found_and_their_pieces_joined() {
        let found: Vec<_> = formats(CONF).unwrap().into_iter().map(|f| (f.name, f.text, f.escape)).collect();
        let main = r#"$remote_addr - [$time_local] "$request" $status "$http_referer" \ ${msec}"#;
        assert_eq!(found[0], ("main".into(), main.into(), Escape::Backslash));
        assert_eq!(found[1], ("j".into(), r#"{"t":"$msec"}"#.into(), Escape::Json));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn the_only_one_or_the_named_one_is_taken() {
        use crate::access_log::LogFormat;
        assert_eq!(LogFormat::from_conf(CONF, Some("main")).unwrap().name, "main".into());
        let error = |name| LogFormat::from_conf(CONF, name).unwrap_err().to_string();
        assert_eq!(error(None), "which log_format? There is main, j");
        assert_eq!(error(Some("x")), "there is no log_format x; there is main, j");
        assert_eq!(LogFormat::from_conf("http {}", None), Err(LogFormatError::NoFormat));
    }
}
