//! `tidegate check`, and reading a policy file for the other commands.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use serde_json::{Value, json};
use tidegate_policy::{Lint, Parsed, Policy, PolicyErrors, Problem, Style};

use crate::args::CheckArgs;
use crate::exit::Failure;

pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let text = match read(&args.file) {
        Ok(text) => text,
        Err(failure) if args.json => {
            let finding = json!({ "level": "error", "message": failure.message() });
            writeln!(io::stdout(), "{:#}", json!({ "ok": false, "findings": [finding] }))?;
            return Err(Failure::policy(""));
        }
        Err(failure) => return Err(failure),
    };
    let parsed = Policy::parse(&text, &args.file.display().to_string());
    if args.json {
        let (ok, findings) = match &parsed {
            Ok(parsed) => {
                (!args.strict || parsed.lints.is_empty(), parsed.lints.iter().map(lint_json).collect())
            }
            Err(errors) => {
                (false, errors.problems().iter().map(|problem| problem_json("error", problem)).collect())
            }
        };
        let findings: Vec<Value> = findings;
        writeln!(io::stdout(), "{:#}", json!({ "ok": ok, "findings": findings }))?;
        return if ok { Ok(()) } else { Err(Failure::policy("")) };
    }
    let parsed = parsed.map_err(|errors| failure(&errors))?;
    warn(&parsed.lints);
    writeln!(io::stdout(), "{}", summary(&parsed.policy, &parsed.lints))?;
    if args.strict && !parsed.lints.is_empty() {
        return Err(Failure::policy("there are warnings, and with --strict they count"));
    }
    Ok(())
}

/// Reads and checks a policy file.
pub(crate) fn load(path: &Path) -> Result<Parsed, Failure> {
    let text = read(path)?;
    Policy::parse(&text, &path.display().to_string()).map_err(|errors| failure(&errors))
}

/// Problems of a policy, put into words.
pub(crate) fn failure(errors: &PolicyErrors) -> Failure {
    Failure::policy(errors.render(style()))
}

/// Shows what is unwise about a policy.
pub(crate) fn warn(lints: &[Lint]) {
    for lint in lints {
        let _ = writeln!(io::stderr(), "{}", lint.render(style()).trim_end());
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let unreadable =
        |error: io::Error| Failure::policy(format_args!("cannot read {}: {error}", path.display()));
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    // The parser refuses what is longer; one byte more shows it that there is more.
    file.take(Policy::FILE_SIZE_MAX as u64 + 1).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

fn style() -> Style {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if io::stderr().is_terminal() && !plain { Style::Colour } else { Style::Plain }
}

fn summary(policy: &Policy, lints: &[Lint]) -> String {
    let count = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    format!(
        "The policy is right: {}, {}, {}; {}.",
        count(policy.upstreams.len(), "upstream"),
        count(policy.routes.len(), "route"),
        count(policy.rate_limits.len(), "rate limit"),
        if lints.is_empty() { "nothing to warn of".to_string() } else { count(lints.len(), "warning") },
    )
}

fn lint_json(lint: &Lint) -> Value {
    let mut value = problem_json("warning", lint.problem());
    value["code"] = json!(lint.code().as_str());
    value
}

fn problem_json(level: &str, problem: &Problem) -> Value {
    json!({
        "level": level,
        "flag": problem.flag(),
        "line": problem.line(),
        "column": problem.column(),
        "message": problem.message(),
        "help": problem.help(),
    })
}
