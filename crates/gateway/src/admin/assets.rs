//! The page and what belongs to it, as it was when this was built. There is no build step, nothing comes from anywhere else,
//! and each file is served as it stands in this folder.

use std::hash::{DefaultHasher, Hasher};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::body::Body;
use super::reply::page;

/// Path, type, content.
type Asset = (&'static str, &'static str, &'static str);

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const ASSETS: &[Asset] = &[
    ("/", HTML, include_str!("page/index.html")),
    ("/assets/page.css", CSS, include_str!("page/page.css")),
    ("/assets/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("/assets/main.js", SCRIPT, include_str!("page/main.js")),
    ("/assets/feed.js", SCRIPT, include_str!("page/feed.js")),
    ("/assets/dom.js", SCRIPT, include_str!("page/dom.js")),
    ("/assets/chart.js", SCRIPT, include_str!("page/chart.js")),
    ("/assets/panels.js", SCRIPT, include_str!("page/panels.js")),
    ("/assets/verdict.js", SCRIPT, include_str!("page/verdict.js")),
    ("/assets/tools.js", SCRIPT, include_str!("page/tools.js")),
    ("/assets/policy.js", SCRIPT, include_str!("page/policy.js")),
];

/// The file of this path. A browser that has it already is told so.
pub(super) fn find(path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
    let (_, kind, content) = ASSETS.iter().find(|(known, ..)| *known == path)?;
    let tag = tag(content);
    let known = headers.get(IF_NONE_MATCH).and_then(|tags| tags.to_str().ok()).unwrap_or_default();
    let is_known = known.split(',').any(|known| known.trim().trim_start_matches("W/") == tag);
    let mut response = if is_known {
        page(StatusCode::NOT_MODIFIED, kind, Bytes::new())
    } else {
        page(StatusCode::OK, kind, Bytes::from_static(content.as_bytes()))
    };
    // Asked for each time, and sent once for each version: an old page beside a new gateway would be wrong.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    Some(response)
}

fn tag(content: &str) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(content.as_bytes());
    format!("\"{:016x}\"", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content security policy lets no inline script or style through, so there must be none that is missed.
    #[test]
    fn the_page_has_nothing_inline_and_asks_nobody_else() {
        const INLINE: [&str; 6] = ["style=", " onclick=", " onload=", "innerHTML", "eval(", "@import"];
        const ELSEWHERE: [&str; 5] = ["\"http", "`http", "'http", "\"//", "url("];
        for (path, _, content) in ASSETS {
            // The name of a vocabulary, which nobody asks for.
            let content = content.replace("\"http://www.w3.org/2000/svg\"", "");
            for forbidden in INLINE.into_iter().chain(ELSEWHERE) {
                assert!(!content.contains(forbidden), "{path} has {forbidden}");
            }
        }
        let page = ASSETS[0].2;
        let scripts = page.matches("<script").count();
        assert_eq!(scripts, page.matches("<script type=\"module\" src=\"/assets/").count());
        assert!(!page.contains("<style"));
    }

    /// Every file is small enough to be read, and all that a page asks for is there.
    #[test]
    fn every_import_is_an_asset() {
        for (path, _, content) in ASSETS {
            for name in content.split("\"./").skip(1).filter_map(|rest| rest.split('"').next()) {
                assert!(
                    ASSETS.iter().any(|(known, ..)| *known == format!("/assets/{name}")),
                    "{path}: {name}"
                );
            }
        }
    }
}
