//! `tidegate explain`: what a policy would do with a request, found out by the functions of the gateway itself.

mod text;

use std::io::{self, Write as _};

use http::header::{HOST, HeaderName};
use http::{HeaderValue, Method, Request, Uri};
use tidegate_gateway::{explain, explained_json};

use crate::args::ExplainArgs;
use crate::check;
use crate::exit::Failure;

pub(crate) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let request = request(args)?;
    let asked = format!("{} {}", request.method(), request.uri());
    let policy = check::load(&args.file)?.policy;
    let explained = explain(&policy, request, args.client);
    let mut out = io::stdout();
    if args.json {
        writeln!(out, "{:#}", explained_json(&policy, &explained))?;
    } else {
        write!(out, "{}", text::of(&policy, &asked, &explained))?;
    }
    Ok(())
}

/// What was typed, as a request.
fn request(args: &ExplainArgs) -> Result<Request<()>, Failure> {
    let words: Vec<&str> = args.request.split_ascii_whitespace().collect();
    let wrong = || {
        let shown = args.request.escape_debug();
        Failure::usage(format_args!("`{shown}` is not a request; write it like 'POST /checkout'"))
    };
    let (method, target) = match words[..] {
        [target] => ("GET", target),
        [method, target] | [method, target, "HTTP/1.1"] => (method, target),
        _ => return Err(wrong()),
    };
    let uri: Uri = target.parse().map_err(|_| wrong())?;
    // A target without a path, such as `checkout`, is taken for the name of a host.
    if !target.starts_with(['/', '*']) && uri.scheme().is_none() && method != "CONNECT" {
        return Err(wrong());
    }
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(method.as_bytes()).map_err(|_| wrong())?;
    *request.uri_mut() = uri;
    for field in &args.header {
        let (name, value) = parse_field(field).ok_or_else(|| {
            Failure::usage(format_args!(
                "`{}` is not a field; write it like 'x-tenant: acme'",
                field.escape_debug()
            ))
        })?;
        request.headers_mut().append(name, value);
    }
    // Every client sends one, and whoever types a request here leaves it out.
    request.headers_mut().entry(HOST).or_insert(HeaderValue::from_static("localhost"));
    Ok(request)
}

fn parse_field(field: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = field.split_once(':')?;
    Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value.trim()).ok()?))
}
