//! How the command fails: a message for people, a code for scripts.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// A failure, already put into words.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// Something went wrong while running: 1.
    pub(crate) fn runtime(message: impl Display) -> Self {
        Self { code: 1, message: message.to_string() }
    }

    /// What was typed makes no sense together with what was read: 2, as for the rest of what is typed.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self { code: 2, message: message.to_string() }
    }

    /// An address cannot be bound: 69, EX_UNAVAILABLE.
    pub(crate) fn bind(message: impl Display) -> Self {
        Self { code: 69, message: message.to_string() }
    }

    /// The policy is not one: 78, EX_CONFIG. A service manager should not try again.
    pub(crate) fn policy(message: impl Display) -> Self {
        Self { code: 78, message: message.to_string() }
    }

    /// Everything was played, and an expectation was not met: 99.
    pub(crate) fn missed(message: impl Display) -> Self {
        Self { code: 99, message: message.to_string() }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn report(self) -> ExitCode {
        let message = self.message.trim_end();
        if !message.is_empty() {
            // Rendered problems bring their own heading.
            let heading = if message.starts_with("error") { "" } else { "tidegate: " };
            let _ = writeln!(io::stderr(), "{heading}{message}");
        }
        ExitCode::from(self.code)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        // `tidegate … | head` closes the pipe when it has seen enough; that is no failure.
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self { code: 0, message: String::new() },
            _ => Self::runtime(error),
        }
    }
}
