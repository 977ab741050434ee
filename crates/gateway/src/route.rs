//! Which route a request takes: the first whose path and method match.

use std::borrow::Cow;

use http::uri::PathAndQuery;
use http::{Method, Uri, Version, header, request};
use tidegate_policy::Route;

use crate::path::{normalize, without_parameters};

/// Why a request is refused before anybody looks for a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadRequest {
    /// It is malformed, in this way.
    Malformed(&'static str),
    /// This gateway does not do such requests.
    NotImplemented(&'static str),
}

/// Checks what hyper leaves to us and brings the target into its one spelling.
pub(crate) fn prepare(head: &mut request::Parts) -> Result<(), BadRequest> {
    if head.method == Method::CONNECT {
        return Err(BadRequest::NotImplemented("CONNECT asks for a tunnel; this is a gateway"));
    }
    let mut hosts = head.headers.get_all(header::HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(BadRequest::Malformed("there is more than one Host field"));
    }
    // RFC 9112 section 3.2.
    if head.version == Version::HTTP_11 && host.is_none() {
        return Err(BadRequest::Malformed("there is no Host field"));
    }
    if host.is_some_and(|host| host.as_bytes().iter().any(|byte| b"/@?#,\\ ".contains(byte))) {
        return Err(BadRequest::Malformed("the Host field is not a host"));
    }
    // hyper undoes `chunked`. What lies beneath it, or a second one, would reach the upstream without its name.
    let mut codings = head.headers.get_all(header::TRANSFER_ENCODING).iter();
    let chunked = codings.next().is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
    if !chunked || codings.next().is_some() {
        return Err(BadRequest::NotImplemented("the only transfer coding known here is chunked, once"));
    }
    let path = normalize(head.uri.path()).map_err(|bad| BadRequest::Malformed(bad.message()))?;
    if let Cow::Owned(path) = path {
        head.uri = with_path(&head.uri, path)?;
    }
    Ok(())
}

/// The target in origin form, as it is sent to the upstream. Authority and scheme have been used by then.
pub(crate) fn origin_form(uri: &Uri) -> Uri {
    match uri.path_and_query() {
        Some(path_and_query) if uri.authority().is_some() => Uri::from(path_and_query.clone()),
        _ => uri.clone(),
    }
}

/// The index of the route that a request takes.
pub(crate) fn find(routes: &[Route], method: &Method, path: &str) -> Option<usize> {
    let path = without_parameters(path);
    routes.iter().position(|route| {
        let method_matches =
            route.methods.is_empty() || route.methods.iter().any(|name| name == method.as_str());
        method_matches && route.path.matches(&path)
    })
}

fn with_path(uri: &Uri, mut path: String) -> Result<Uri, BadRequest> {
    let malformed = BadRequest::Malformed("the target is not a valid one");
    if let Some(query) = uri.query() {
        path.push('?');
        path.push_str(query);
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path).map_err(|_| malformed)?);
    Uri::from_parts(parts).map_err(|_| malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn prepared(request: request::Builder) -> Result<String, BadRequest> {
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        prepare(&mut head)?;
        Ok(origin_form(&head.uri).to_string())
    }

    #[test]
    fn the_upstream_is_asked_for_what_was_matched() {
        let request = |target: &str| Request::get(target).header("host", "a");
        assert_eq!(prepared(request("/x/..//%61pi?q=/../%61")).unwrap(), "/api?q=/../%61");
        assert_eq!(prepared(request("http://b//api")).unwrap(), "/api");
        assert_eq!(prepared(request("http://b")).unwrap(), "/");
    }

    #[test]
    fn what_is_malformed_is_refused() {
        let get = || Request::get("/");
        assert!(prepared(get()).is_err(), "no host");
        assert!(prepared(get().version(Version::HTTP_10)).is_ok());
        assert!(prepared(get().header("host", "a").header("host", "a")).is_err());
        assert!(prepared(get().header("host", "a, b")).is_err());
        assert!(prepared(get().header("host", "user@a")).is_err());
        assert!(prepared(Request::options("*").header("host", "a")).is_err());
        let connect = prepared(Request::connect("a:80").header("host", "a"));
        assert!(matches!(connect, Err(BadRequest::NotImplemented(_))));
    }
}
