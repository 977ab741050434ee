//! A request as a person has it at hand: a curl command, a head as it is on the wire, or only a path.
//!
//! Of curl it knows what changes the head. It is no shell: there are quotes, but no variables and no pipes.

use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, HeaderName, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};

/// Reads it, or says what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Request<()>, String> {
    let text = text.trim();
    let first = text.split_whitespace().next().unwrap_or_default();
    let mut request = if first.eq_ignore_ascii_case("curl") { curl(text)? } else { head(text)? };
    // Every client sends one, and whoever types a request leaves it out.
    let host = request.uri().authority().and_then(|it| HeaderValue::from_str(it.as_str()).ok());
    let host = host.unwrap_or_else(|| HeaderValue::from_static("localhost"));
    request.headers_mut().entry(HOST).or_insert(host);
    Ok(request)
}

fn head(text: &str) -> Result<Request<()>, String> {
    let mut lines = text.lines().map(str::trim_end);
    let words: Vec<&str> = lines.next().unwrap_or_default().split_ascii_whitespace().collect();
    let (method, target) = match words[..] {
        [target] => ("GET", target),
        [method, target] => (method, target),
        [method, target, version] if version.starts_with("HTTP/") => (method, target),
        _ => return Err("the first line is no request: write it like `POST /checkout`".to_owned()),
    };
    let mut request = request(method, target)?;
    for line in lines.take_while(|line| !line.is_empty()) {
        field(request.headers_mut(), line)?;
    }
    Ok(request)
}

fn request(method: &str, target: &str) -> Result<Request<()>, String> {
    let uri: Uri = target.parse().map_err(|_| format!("`{target}` is no target"))?;
    // What has no path, such as `checkout`, is taken for the name of a host.
    if !target.starts_with(['/', '*']) && uri.scheme().is_none() {
        return Err(format!("`{target}` is no path: it begins with `/`, or with `http://`"));
    }
    let mut request = Request::new(());
    *request.method_mut() =
        Method::from_bytes(method.as_bytes()).map_err(|_| format!("`{method}` is no method"))?;
    *request.uri_mut() = uri;
    Ok(request)
}

fn field(headers: &mut HeaderMap, line: &str) -> Result<(), String> {
    let wrong = || format!("`{line}` is no field: write it like `x-tenant: acme`");
    let (name, value) = line.split_once(':').ok_or_else(wrong)?;
    let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| wrong())?;
    headers.append(name, HeaderValue::from_str(value.trim()).map_err(|_| wrong())?);
    Ok(())
}

/// Options that have a value and change nothing of the head.
const WITH_VALUE: &[&str] = &[
    "-o",
    "--output",
    "-w",
    "--write-out",
    "-m",
    "--max-time",
    "--connect-timeout",
    "--retry",
    "--retry-delay",
    "-x",
    "--proxy",
    "--resolve",
    "--connect-to",
    "--cacert",
    "--cert",
    "--key",
    "-c",
    "--cookie-jar",
    "--limit-rate",
    "-K",
    "--config",
    "--max-redirs",
    "-D",
    "--dump-header",
    "--interface",
    "-T",
    "--upload-file",
];
const DATA: &[&str] = &["-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--data-urlencode"];

/// What a curl command says, as far as it has been read.
#[derive(Default)]
struct Curl {
    method: Option<String>,
    url: Option<String>,
    headers: HeaderMap,
    has_data: bool,
    is_json: bool,
    in_query: bool,
    is_head: bool,
}

fn curl(text: &str) -> Result<Request<()>, String> {
    let words = words(text)?;
    let mut words = words.into_iter().skip(1);
    let mut curl = Curl::default();
    while let Some(word) = words.next() {
        if !word.starts_with('-') || word == "-" {
            curl.url.get_or_insert(word);
            continue;
        }
        let (option, attached) = attached(&word);
        let mut value = || {
            attached
                .map(str::to_owned)
                .or_else(|| words.next())
                .ok_or_else(|| format!("`{option}` needs a value"))
        };
        match option {
            "-X" | "--request" => curl.method = Some(value()?),
            "--url" => curl.url = Some(value()?),
            "-H" | "--header" => field(&mut curl.headers, &value()?)?,
            "-A" | "--user-agent" => put(&mut curl.headers, USER_AGENT, &value()?)?,
            "-b" | "--cookie" => put(&mut curl.headers, COOKIE, &value()?)?,
            // What it is does not matter here, and need not be kept.
            "-u" | "--user" => {
                value()?;
                put(&mut curl.headers, AUTHORIZATION, "Basic (as given)")?;
            }
            "--json" => {
                value()?;
                (curl.has_data, curl.is_json) = (true, true);
            }
            "-I" | "--head" => curl.is_head = true,
            "-G" | "--get" => curl.in_query = true,
            "-F" | "--form" => {
                value()?;
                curl.has_data = true;
            }
            _ if DATA.contains(&option) => {
                value()?;
                curl.has_data = true;
            }
            _ if WITH_VALUE.contains(&option) => drop(value()?),
            _ => {}
        }
    }
    curl.into_request()
}

/// The value of a short option may stand right behind it.
fn attached(word: &str) -> (&str, Option<&str>) {
    if word.starts_with("--") {
        return word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
    }
    let takes_value = |option: &str| {
        matches!(option, "-X" | "-H" | "-A" | "-b" | "-u" | "-F")
            || DATA.contains(&option)
            || WITH_VALUE.contains(&option)
    };
    match word.split_at_checked(2) {
        Some((option, value)) if !value.is_empty() && takes_value(option) => (option, Some(value)),
        _ => (word, None),
    }
}

impl Curl {
    fn into_request(self) -> Result<Request<()>, String> {
        let url = self.url.ok_or("there is no URL in the command")?;
        let url = if url.starts_with('/') || url.contains("://") { url } else { format!("http://{url}") };
        let usual = match (self.is_head, self.has_data && !self.in_query) {
            (true, _) => "HEAD",
            (false, true) => "POST",
            (false, false) => "GET",
        };
        let mut request = request(self.method.as_deref().unwrap_or(usual), &url)?;
        *request.headers_mut() = self.headers;
        if self.has_data && !self.in_query {
            let kind = if self.is_json { "application/json" } else { "application/x-www-form-urlencoded" };
            request.headers_mut().entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
        }
        Ok(request)
    }
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) -> Result<(), String> {
    let value = HeaderValue::from_str(value).map_err(|_| format!("`{value}` cannot stand in a field"))?;
    headers.insert(name, value);
    Ok(())
}

/// Words as a shell has them.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        None => return Err(format!("a {character} is not closed")),
                        Some(end) if end == character => break,
                        Some('\\') if character == '"' => word.extend(characters.next()),
                        Some(other) => word.push(other),
                    }
                }
            }
            '\\' => match characters.next() {
                // The command goes on in the next line.
                Some('\n') | None => {}
                Some('\r') => {
                    characters.next();
                }
                Some(other) => word.get_or_insert_default().push(other),
            },
            _ if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    proptest! {
        /// Whatever is pasted, it is read or it is said what is wrong.
        #[test]
        fn nothing_panics(text in r#"(curl )?([ -~\n'"\\é]|-H|-X|--header=|http://|: ){0,40}"#) {
            if let Err(wrong) = parse(&text) {
                prop_assert!(!wrong.is_empty());
            }
        }
    }

    #[track_caller]
    fn check(text: &str, expect: Expect) {
        let shown = match parse(text) {
            Err(wrong) => format!("! {wrong}"),
            Ok(request) => {
                let fields = request
                    .headers()
                    .iter()
                    .map(|(name, value)| format!(" | {name}: {}", value.to_str().unwrap()));
                format!("{} {}{}", request.method(), request.uri(), fields.collect::<String>())
            }
        };
        expect.assert_eq(&shown);
    }

    #[test]
    fn a_head_or_a_path() {
        check("/search?q=1", expect!["GET /search?q=1 | host: localhost"]);
        check("POST /checkout", expect!["POST /checkout | host: localhost"]);
        check(
            "PUT /a HTTP/1.1\r\nHost: shop\r\nX-Tenant: <script>\r\n\r\nbody: no",
            expect!["PUT /a | host: shop | x-tenant: <script>"],
        );
        check("checkout", expect!["! `checkout` is no path: it begins with `/`, or with `http://`"]);
        check("POST /a b c", expect!["! the first line is no request: write it like `POST /checkout`"]);
        check("GET /\nnonsense", expect!["! `nonsense` is no field: write it like `x-tenant: acme`"]);
        check("", expect!["! the first line is no request: write it like `POST /checkout`"]);
    }

    #[test]
    fn a_curl_command() {
        check("curl http://shop:8102/checkout", expect!["GET http://shop:8102/checkout | host: shop:8102"]);
        check(
            "curl -s -o /dev/null -XPUT -H 'x-tenant: a b' \\\n  \"http://shop/x?a=1&b=2\"",
            expect!["PUT http://shop/x?a=1&b=2 | x-tenant: a b | host: shop"],
        );
        check(
            "curl --json '{\"a\": 1}' localhost:8102/orders -H \"x-say: \\\"hi\\\"\"",
            expect![[
                r#"POST http://localhost:8102/orders | x-say: "hi" | content-type: application/json | host: localhost:8102"#
            ]],
        );
        check(
            "curl -d a=1 -H 'content-type: text/plain' http://shop/",
            expect!["POST http://shop/ | content-type: text/plain | host: shop"],
        );
        check(
            "curl -G -d a=1 http://shop/ --max-time 5 -u ann:secret",
            expect!["GET http://shop/ | authorization: Basic (as given) | host: shop"],
        );
        check("curl -I --header=x-a:1 http://shop/", expect!["HEAD http://shop/ | x-a: 1 | host: shop"]);
        check("curl 'http://shop/", expect!["! a ' is not closed"]);
        check("curl -H", expect!["! `-H` needs a value"]);
        check("curl -s", expect!["! there is no URL in the command"]);
    }
}
