//! Access logs as a workload: what came to a service and when, from the log of whatever stood before it.
//!
//! A log is read as a stream, in memory that does not grow with the file. Its lines become [`Entry`]s in the order of
//! arrival; lines that cannot be read are counted and shown, and reading goes on. Nothing here opens a file, asks a
//! clock or decides what would happen to a request.
//!
//! ```
//! use tidegate_workload::access_log::{AccessLog, Options};
//!
//! let text = "203.0.113.7 - - [01/May/2024:10:00:00 +0000] \"GET /orders?id=7 HTTP/1.1\" 200 512\n";
//! let mut log = AccessLog::open(text.as_bytes(), Options::default())?;
//! assert_eq!(log.recognised().format, "common");
//! let entry = log.next().expect("the line is an entry");
//! assert_eq!((&*entry.path, entry.status), ("/orders", Some(200)));
//! assert!(log.next().is_none() && log.failure().is_none());
//! assert_eq!(log.tally().entries, 1);
//! # Ok::<(), tidegate_workload::access_log::OpenError>(())
//! ```
//!
//! The log of a system that was overloaded shows what that system let in. Requests that it refused are there
//! ([`Entry::refused`]); those that were never sent because earlier ones took so long are not.
//!
//! In reading order: `reader` has the loop over the lines; [`Format`] knows the formats by name, [`LogFormat`] compiles
//! nginx's, [`Mapping`] is for JSON and CSV of one's own. The module `lines` finds lines, `layout` has one way to read
//! them for each kind of format, `draft` decides what their fields mean, `order` brings entries into order.

mod reader;
pub use reader::{AccessLog, Tally};

mod options;
pub use options::{Choice, Options};

mod format;
pub use format::{Format, UnknownFormat};

mod nginx;
pub use nginx::{LogFormat, LogFormatError};

mod mapping;
pub use mapping::{Mapping, MappingError};

mod lines;
pub use lines::ReadError;

mod detect;
pub use detect::{OpenError, Recognised};

mod alb;
mod haproxy;
mod json;
mod layout;
mod syslog;
mod template;

mod stamp;
pub use stamp::{Grain, UnknownZone, Zone};

mod draft;
mod role;
mod value;

mod entry;
pub use entry::Entry;

mod order;
pub use order::{Spread, Window};

mod filter;
pub use filter::{Filter, Filtered};

mod fault;
pub use fault::Unreadable;

mod clients;
pub use clients::Pseudonyms;
