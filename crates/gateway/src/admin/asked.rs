//! A request as a person has it at hand: a curl command, a head as it is on the wire, or only a path.
//!
//! Of curl it knows what changes the head. It is no shell: there are quotes, but no variables and no pipes.

use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, HeaderName, RANGE, REFERER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};

use super::options::{self, Known, Valued};

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

/// What a curl command says, as far as it has been read.
#[derive(Default)]
struct Curl {
    method: Option<String>,
    url: Option<String>,
    headers: HeaderMap,
    has_data: bool,
    is_json: bool,
    is_form: bool,
    is_upload: bool,
    in_query: bool,
    is_head: bool,
}

fn curl(text: &str) -> Result<Request<()>, String> {
    let words = words(text)?;
    let mut words = words.into_iter().skip(1);
    let mut curl = Curl::default();
    while let Some(word) = words.next() {
        if word == "--next" || word == "-:" {
            return Err("one request at a time: leave out `--next` and what follows".to_owned());
        } else if let Some(option) = word.strip_prefix("--").filter(|option| !option.is_empty()) {
            let (name, attached) =
                option.split_once('=').map_or((option, None), |(name, it)| (name, Some(it)));
            let known = options::long(name).ok_or_else(|| unknown(&format!("--{name}")))?;
            curl.takes(known, &format!("--{name}"), attached, &mut words)?;
        } else if let Some(cluster) = word.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
            curl.cluster(cluster, &mut words)?;
        } else {
            curl.url.get_or_insert(word);
        }
    }
    curl.into_request()
}

fn unknown(option: &str) -> String {
    format!(
        "`{option}` is no option of curl that is known here: leave it out if it changes nothing of the request"
    )
}

impl Curl {
    /// Several options of one letter may stand in one word; the value of the last stands behind it, or in the next word.
    fn cluster(&mut self, cluster: &str, words: &mut impl Iterator<Item = String>) -> Result<(), String> {
        let mut rest = cluster.chars();
        while let Some(letter) = rest.next() {
            let name = format!("-{letter}");
            let known = options::short(letter).ok_or_else(|| unknown(&name))?;
            let attached = Some(rest.as_str()).filter(|rest| !rest.is_empty());
            if self.takes(known, &name, attached, words)? {
                break;
            }
        }
        Ok(())
    }

    /// Reads an option, and says whether it has a value.
    fn takes(
        &mut self,
        option: Known,
        name: &str,
        attached: Option<&str>,
        words: &mut impl Iterator<Item = String>,
    ) -> Result<bool, String> {
        match option {
            Known::Head => self.is_head = true,
            Known::Get => self.in_query = true,
            Known::Plain => {}
            Known::Valued(valued) => {
                let value = attached.map(str::to_owned).or_else(|| words.next());
                self.takes_value(valued, &value.ok_or_else(|| format!("`{name}` needs a value"))?)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn takes_value(&mut self, option: Valued, value: &str) -> Result<(), String> {
        match option {
            Valued::Method => self.method = Some(value.to_owned()),
            Valued::Url => {
                self.url.get_or_insert_with(|| value.to_owned());
            }
            Valued::Field => self.field(value)?,
            Valued::Agent => put(&mut self.headers, USER_AGENT, value)?,
            // Without `=` it is the name of a file with cookies, which is not here.
            Valued::Cookie if !value.contains('=') => {}
            Valued::Cookie => put(&mut self.headers, COOKIE, value)?,
            Valued::Referer => put(&mut self.headers, REFERER, value.trim_end_matches(";auto"))?,
            Valued::Range => put(&mut self.headers, RANGE, &format!("bytes={value}"))?,
            // What it is does not matter here, and need not be kept.
            Valued::User => put(&mut self.headers, AUTHORIZATION, "Basic (as given)")?,
            Valued::Bearer => put(&mut self.headers, AUTHORIZATION, "Bearer (as given)")?,
            Valued::Data => self.has_data = true,
            Valued::Json => (self.has_data, self.is_json) = (true, true),
            Valued::Form => (self.has_data, self.is_form) = (true, true),
            Valued::Upload => self.is_upload = true,
            Valued::Other => {}
        }
        Ok(())
    }

    /// As curl has them: `name:` takes a field away, and `name;` is one without a value.
    fn field(&mut self, line: &str) -> Result<(), String> {
        match (line.split_once(':'), line.strip_suffix(';')) {
            (Some((_, value)), _) if value.trim().is_empty() => Ok(()),
            (None, Some(name)) => field(&mut self.headers, &format!("{name}:")),
            _ => field(&mut self.headers, line),
        }
    }

    fn into_request(self) -> Result<Request<()>, String> {
        let url = self.url.ok_or("there is no URL in the command")?;
        let url = if url.starts_with('/') || url.contains("://") { url } else { format!("http://{url}") };
        let usual = match (self.is_head, self.is_upload, self.has_data && !self.in_query) {
            (true, ..) => "HEAD",
            (false, true, _) => "PUT",
            (false, false, true) => "POST",
            (false, false, false) => "GET",
        };
        let mut request = request(self.method.as_deref().unwrap_or(usual), &url)?;
        *request.headers_mut() = self.headers;
        if self.has_data && !self.in_query {
            let kind = match (self.is_json, self.is_form) {
                (true, _) => "application/json",
                (false, true) => "multipart/form-data",
                (false, false) => "application/x-www-form-urlencoded",
            };
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

    /// Letters stand together, and what has a value takes it from behind itself or from the next word.
    #[test]
    fn options_of_curl_in_one_word() {
        check("curl -sXPOST http://shop/x", expect!["POST http://shop/x | host: shop"]);
        check("curl -sH 'x-a: b' http://shop/x", expect!["GET http://shop/x | x-a: b | host: shop"]);
        check("curl -fsSLo /dev/null http://shop/x", expect!["GET http://shop/x | host: shop"]);
        check(
            "curl -vkIu ann:secret http://shop/x",
            expect!["HEAD http://shop/x | authorization: Basic (as given) | host: shop"],
        );
        check("curl -sX", expect!["! `-X` needs a value"]);
    }

    #[test]
    fn options_of_curl_with_a_value_that_is_no_url() {
        check(
            "curl -e http://from/ -r 0-99 -E cert.pem --key key.pem http://shop/x",
            expect!["GET http://shop/x | referer: http://from/ | range: bytes=0-99 | host: shop"],
        );
        check(
            "curl --range=5- --referer http://from/ --retry-max-time 5 -Y 1 -y 2 http://shop/x",
            expect!["GET http://shop/x | range: bytes=5- | referer: http://from/ | host: shop"],
        );
        check(
            "curl -T file http://shop/x -H 'accept:' -H 'x-empty;'",
            expect!["PUT http://shop/x | x-empty:  | host: shop"],
        );
        check(
            "curl -b jar.txt -F a=@file --oauth2-bearer secret http://shop/x",
            expect![
                "POST http://shop/x | authorization: Bearer (as given) | content-type: multipart/form-data | host: shop"
            ],
        );
        check(
            "curl -sŁ http://shop/x",
            expect![
                "! `-Ł` is no option of curl that is known here: leave it out if it changes nothing of the request"
            ],
        );
        check(
            "curl --no-such-thing 5 http://shop/x",
            expect![
                "! `--no-such-thing` is no option of curl that is known here: leave it out if it changes nothing of the request"
            ],
        );
        check(
            "curl --no-progress-meter --no-keepalive http://shop/x",
            expect!["GET http://shop/x | host: shop"],
        );
        check(
            "curl http://shop/x --next http://shop/y",
            expect!["! one request at a time: leave out `--next` and what follows"],
        );
    }
}
