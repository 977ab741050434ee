//! HAProxy's `option httplog`, of all versions.
//!
//! ```text
//! client:port [time] frontend backend/server TR/Tw/Tc/Tr/Ta status bytes cookie cookie state
//!     active/frontend/backend/server/retries server-queue/backend-queue {request headers} {response headers} "request"
//! ```
//!
//! Until 1.6 the time is when the connection was accepted and the first timer, `Tq`, counts from there, idle time
//! included; since 1.7 the time is the first byte of the request, and the first timer, `TR`, the rest of its head. A
//! line does not say which. It need not: in both, the head was complete at time plus first timer, and that is when the
//! proxy could decide.
//! <https://docs.haproxy.org/2.6/configuration.html#8.2.3>

use super::draft::{Draft, bad};
use super::fault::{Fault, What};
use super::role::{Clock, Role};
use super::stamp::Zone;
use super::value::{Escape, Unit, unescape};

/// Reads a line without its syslog prefix.
pub(crate) fn read(line: &str, zone: &Zone) -> Result<Draft, Fault> {
    let mut cursor = Cursor { line, at: 0, draft: Draft::default(), zone };
    let client = cursor.until(" [", "client", None)?;
    // The port is always there, also behind an IPv6 address without brackets.
    let Some((address, _)) = client.rsplit_once(':').filter(|_| !client.contains(' ')) else {
        return Err(Fault::at(0, bad("client", "an address and a port")));
    };
    cursor.set(0, "client", Role::Client, address)?;
    cursor.until("] ", "time", Some(Role::Start(Clock::Common)))?;
    cursor.until(" ", "frontend", None)?;
    cursor.until("/", "backend", Some(Role::Route))?;
    let server = cursor.until(" ", "server", None)?;
    // `<NOSRV>`, or one of the services within the proxy, such as `<STATS>`.
    let upstream = if server.starts_with('<') { "" } else { server };
    cursor.set(cursor.at, "server", Role::Upstream, upstream)?;
    cursor.until("/", "TR", Some(Role::Head(Unit::Millis)))?;
    cursor.until("/", "Tw", Some(Role::Queued(Unit::Millis)))?;
    cursor.until("/", "Tc", None)?;
    cursor.until("/", "Tr", Some(Role::Service(Unit::Millis)))?;
    cursor.until(" ", "Ta", Some(Role::Total(Unit::Millis)))?;
    cursor.until(" ", "status", Some(Role::Status))?;
    cursor.until(" ", "bytes", Some(Role::Bytes))?;
    cursor.until(" ", "request cookie", None)?;
    cursor.until(" ", "response cookie", None)?;
    cursor.until(" ", "termination state", Some(Role::Termination))?;
    for name in ["active connections", "frontend connections", "backend connections", "server connections"] {
        cursor.until("/", name, None)?;
    }
    cursor.until(" ", "retries", Some(Role::Retries))?;
    cursor.until("/", "server queue", None)?;
    cursor.until(" ", "backend queue", None)?;
    cursor.request()?;
    Ok(cursor.draft)
}

struct Cursor<'a> {
    line: &'a str,
    at: usize,
    draft: Draft,
    zone: &'a Zone,
}

impl<'a> Cursor<'a> {
    /// Takes the field that ends before `end`.
    fn until(&mut self, end: &'static str, name: &str, role: Option<Role>) -> Result<&'a str, Fault> {
        let start = self.at;
        let rest = &self.line[start..];
        let length = rest
            .find(end)
            .ok_or_else(|| Fault::at(start, What::Missing(format!("{end:?} after {name}").into())))?;
        let text = &rest[..length];
        if let Some(role) = role {
            self.set(start, name, role, text)?;
        }
        self.at = start + length + end.len();
        Ok(text)
    }

    fn set(&mut self, at: usize, name: &str, role: Role, text: &str) -> Result<(), Fault> {
        self.draft.set(role, text, self.zone).map_err(|kind| Fault::at(at, bad(name, kind)))
    }

    /// The request, which comes last but for what `option httpslog` adds. Captured headers stand before it, in braces,
    /// and have no quote in them: HAProxy writes it as `#22`. A line that was cut has no closing quote.
    fn request(&mut self) -> Result<(), Fault> {
        let rest = &self.line[self.at..];
        let open = rest.find('"').ok_or_else(|| Fault::at(self.at, What::Missing("request".into())))?;
        let captured = rest[..open].trim_end();
        let in_braces = captured.starts_with('{') && captured.ends_with('}');
        if !captured.is_empty() && !in_braces {
            return Err(Fault::at(self.at, What::Expected("{".into())));
        }
        let request = &rest[open + 1..];
        let request = request.rfind('"').map_or(request, |end| &request[..end]);
        let start = self.at + open + 1;
        self.set(start, "request", Role::Request, &unescape(request, Escape::Hash))
    }
}
