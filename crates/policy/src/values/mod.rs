//! The values of a policy: one string in, one typed value out, or what is wrong with it.
//!
//! Nothing here knows of keys, files or bounds that belong to one key; those are in [`keys`](crate::keys).

mod time;
pub(crate) use time::{Rate, duration, duration_text, duration_without_unit, rate, rate_without_unit};

mod endpoint;
pub(crate) use endpoint::{endpoint, host_field, host_name};

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;

use crate::model::{RateKey, TenantKey};

/// What is wrong with a value, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) message: String,
    /// Empty for none.
    pub(crate) help: String,
}

impl Wrong {
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into() }
    }

    /// For what is designed but not built: nobody may believe that it is in force.
    pub(crate) fn not_yet(what: &str, help: impl Into<String>) -> Self {
        Self::new(format!("{what} is not supported by this version of tidegate"), help)
    }
}

pub(crate) fn name(text: &str) -> Result<String, Wrong> {
    const HELP: &str = "a name has 1 to 64 of the characters a-z, 0-9, `_` and `-`";
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-';
    if text.is_empty() {
        Err(Wrong::new("a name cannot be empty", HELP))
    } else if text.len() > 64 {
        Err(Wrong::new("a name this long would not fit the metrics", HELP))
    } else if let Some(odd) = text.chars().find(|c| !c.is_ascii() || !plain(*c as u8)) {
        Err(Wrong::new(format!("{odd:?} cannot stand in a name"), HELP))
    } else {
        Ok(text.to_owned())
    }
}

pub(crate) fn address(text: &str) -> Result<SocketAddr, Wrong> {
    text.parse().map_err(|_| {
        let help = match text.strip_prefix(':') {
            Some(port) if port.parse::<u16>().is_ok() => {
                format!("write \"0.0.0.0:{port}\" for every interface")
            }
            _ => "write an address and a port, such as \"127.0.0.1:8102\" or \"[::1]:8102\"".to_owned(),
        };
        Wrong::new("this is not an address with a port", help)
    })
}

pub(crate) fn network(text: &str) -> Result<IpNet, Wrong> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(IpNet::from(address));
    }
    let network: IpNet = text.parse().map_err(|_| {
        Wrong::new(
            "this is neither an address nor a network",
            "write \"10.0.0.7\", \"10.0.0.0/8\" or \"fd00::/8\"",
        )
    })?;
    if network.addr() != network.network() {
        return Err(Wrong::new(
            "the address has bits beyond the prefix",
            format!("write \"{}\" for the network, or the address alone", network.trunc()),
        ));
    }
    Ok(network)
}

pub(crate) fn file_path(text: &str) -> Result<PathBuf, Wrong> {
    if text.is_empty() || text.contains('\0') {
        return Err(Wrong::new("this is not the path of a file", "leave the key out for standard output"));
    }
    Ok(PathBuf::from(text))
}

/// A path, perhaps with a query, as it goes into a request line.
pub(crate) fn target(text: &str) -> Result<String, Wrong> {
    if text.starts_with('/') && text.len() <= 256 && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(text.to_owned());
    }
    Err(Wrong::new(
        "this cannot be asked for",
        "write a path such as \"/healthz\", in plain ASCII, at most 256 characters",
    ))
}

/// A method name, in upper case.
pub(crate) fn method(text: &str) -> Result<String, Wrong> {
    if is_token(text) && text.len() <= 32 {
        return Ok(text.to_ascii_uppercase());
    }
    Err(Wrong::new(
        "this is not the name of a method",
        "write a method such as \"GET\"; leave `methods` out for all",
    ))
}

pub(crate) fn rate_key(text: &str) -> Result<RateKey, Wrong> {
    const KNOWN: [&str; 5] = ["client-ip", "tenant", "route", "global", "header:"];
    const HELP: &str = "write \"client-ip\", \"header:NAME\", \"tenant\", \"route\" or \"global\"";
    match text {
        "client-ip" => Ok(RateKey::ClientIp),
        "route" => Ok(RateKey::Route),
        "global" => Ok(RateKey::Global),
        "tenant" => Ok(RateKey::Tenant),
        _ => match header_named(text) {
            Some(name) => name.map(RateKey::Header),
            None => Err(Wrong::new(
                format!("`{}` is nothing that can be counted", show(text)),
                nearest(text, KNOWN)
                    .map_or_else(|| HELP.to_owned(), |near| format!("did you mean \"{near}\"? {HELP}")),
            )),
        },
    }
}

/// The name of a header in `header:NAME`, in lower case; `None` if the text does not begin like that.
pub(crate) fn header_named(text: &str) -> Option<Result<String, Wrong>> {
    let name = text.strip_prefix("header:")?;
    if is_token(name) && name.len() <= 256 {
        return Some(Ok(name.to_ascii_lowercase()));
    }
    Some(Err(Wrong::new("this is not the name of a header", "write it like \"header:x-api-key\"")))
}

/// Whom to be fair between.
pub(crate) fn tenant_key(text: &str) -> Result<TenantKey, Wrong> {
    const HELP: &str = "write \"header:NAME\" or \"client-ip\"";
    match header_named(text) {
        Some(name) => name.map(TenantKey::Header),
        None if text == "client-ip" => Ok(TenantKey::ClientIp),
        None => Err(Wrong::new(format!("`{}` tells no tenants apart", show(text)), HELP)),
    }
}

/// The name of a tenant, as it can stand in a field: blanks round a value are not part of it (RFC 9110 section 5.5).
pub(crate) fn tenant_name(text: &str) -> Result<String, Wrong> {
    let printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if printable && (1..=256).contains(&text.len()) && text.trim() == text {
        return Ok(text.to_owned());
    }
    Err(Wrong::new(
        format!("`{}` cannot be the name of a tenant", show(text)),
        "it has 1 to 256 printable characters of ASCII, and no blank at its ends",
    ))
}

/// What a service is called by those who look at many.
pub(crate) fn service_name(text: &str) -> Result<String, Wrong> {
    let printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if printable && (1..=256).contains(&text.len()) && text.trim() == text {
        return Ok(text.to_owned());
    }
    Err(Wrong::new(
        format!("`{}` cannot be the name of a service", show(text)),
        "it has 1 to 256 printable characters of ASCII, and no blank at its ends",
    ))
}

/// The name of a field, in lower case.
pub(crate) fn header(text: &str) -> Result<String, Wrong> {
    if is_token(text) && text.len() <= 256 {
        return Ok(text.to_ascii_lowercase());
    }
    Err(Wrong::new(
        format!("`{}` is not the name of a field", show(text)),
        "write it like \"x-request-timeout-ms\"",
    ))
}

/// A token of RFC 9110: the names of methods and headers.
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// The nearest of the known words, if one is near enough to have been meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 64 {
        return None;
    }
    let word = word.to_ascii_lowercase().replace('-', "_");
    let distance = |candidate: &str| strsim::damerau_levenshtein(&word, &candidate.replace('-', "_"));
    let (distance, candidate) = known
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        .min_by_key(|&(distance, _)| distance)?;
    (distance <= (candidate.len().max(word.len()) / 3).max(1)).then_some(candidate)
}

/// A piece of the file for a message: short, and without anything that a terminal would obey.
pub(crate) fn show(text: &str) -> String {
    const LENGTH_MAX: usize = 60;
    let mut shown: String = text.chars().take(LENGTH_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(LENGTH_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// A number as one would write it in the file: `10_000`.
pub(crate) fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}
