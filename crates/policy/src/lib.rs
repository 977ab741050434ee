//! The policy file of tidegate: TOML in, a checked [`Policy`] out.
//!
//! It is the only place where text becomes policy. Everything that is wrong with a file is reported at once, each
//! problem with its line, a caret and what would be right; what is right and yet unwise is a [`Lint`]. It opens no
//! file, and it decides nothing: that is the engine's work.
//!
//! ```
//! use tidegate_policy::Policy;
//!
//! let text = r#"
//! [[upstream]]
//! name = "orders"
//! endpoints = ["http://127.0.0.1:8103"]
//! timeout = 2
//! "#;
//! let errors = Policy::parse(text, "tidegate.toml").unwrap_err();
//! let problem = &errors.problems()[0];
//! assert_eq!((problem.line(), problem.column()), (Some(5), Some(11)));
//! assert_eq!(problem.message(), "`timeout`: a duration needs a unit");
//! assert_eq!(problem.help(), Some("write \"2ms\" or \"2s\""));
//! ```
#![forbid(unsafe_code)]

mod model;
pub use model::{
    AccessLog, Breaker, Bulkhead, Ejection, Endpoint, Fingerprint, HealthCheck, Host, Otlp, PathPattern,
    Policy, PriorityClass, RateKey, RateLimit, RateLimitHeaders, Route, RoutePriority, Server, TenantKey,
    TenantWeight, Upstream,
};

mod keys;
mod path;
mod values;

mod problem;
pub use problem::{PolicyErrors, Problem, Style};

mod read;

mod lint;
pub use lint::{Lint, LintCode};

pub mod words;

mod settings;
pub use settings::{Setting, ValueSource, set_by_environment, set_by_flag};

mod quick;
pub use quick::QuickStart;

mod schema;
pub use schema::schema;

mod reference;
pub use reference::reference;

/// A policy, and what is unwise about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The policy, with every default filled in.
    pub policy: Policy,
    /// Warnings, in the order of the file.
    pub lints: Vec<Lint>,
    /// What each key says and where that comes from, section by section.
    pub settings: Vec<Setting>,
}

impl Policy {
    /// The largest policy file, in bytes. Whoever opens the file need not read further than one byte beyond.
    pub const FILE_SIZE_MAX: usize = 1_048_576;

    /// Reads the text of a policy file. `file_name` is what problems call it.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the text, in the order of the file.
    pub fn parse(text: &str, file_name: &str) -> Result<Parsed, PolicyErrors> {
        let origin = problem::Origin::File(file_name.to_owned());
        read::read(problem::Source { origin, text: text.to_owned() })
    }
}

/// Reads a duration as policy files write it, such as `500ms` or `1.5s`, for flags that mean the same. The error is
/// put into words.
pub fn parse_duration(text: &str) -> Result<std::time::Duration, String> {
    values::duration(text).map_err(|wrong| match wrong.help.as_str() {
        "" => wrong.message,
        help => format!("{}: {help}", wrong.message),
    })
}
