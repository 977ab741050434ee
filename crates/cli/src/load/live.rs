//! How it goes, while it goes: a few lines on a terminal, and nothing where there is none.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tidegate_load::Snapshot;

/// A view of one run.
pub(super) struct View {
    bar: ProgressBar,
}

impl View {
    /// Of a run of this length. `title` stands above it.
    pub(super) fn new(title: &str, length: Duration, quiet: bool) -> Self {
        let length = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        // It draws nothing until it is told where.
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        if !quiet && io::stdout().is_terminal() && io::stderr().is_terminal() {
            if let Ok(style) = ProgressStyle::with_template("{prefix}\n{wide_bar} {percent:>3}%\n{msg}") {
                bar.set_style(style);
            }
            bar.set_prefix(title.to_owned());
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(4));
        }
        Self { bar }
    }

    /// How it stands.
    pub(super) fn show(&self, snapshot: &Snapshot) {
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_position(u64::try_from(snapshot.elapsed.as_millis()).unwrap_or(u64::MAX));
        self.bar.set_message(lines(snapshot));
    }

    /// It is over, and leaves nothing behind.
    pub(super) fn end(self) {
        self.bar.finish_and_clear();
    }
}

fn lines(snapshot: &Snapshot) -> String {
    let Snapshot { offered, goodput, refused, failed, outstanding, rates, served, lag_p99, .. } = snapshot;
    let [coming, good, no] = rates;
    let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let lag = if *lag_p99 == Duration::MAX { "some were never sent".to_owned() } else { millis(*lag_p99) };
    format!(
        "offered {coming:>9.0}/s   goodput {good:>9.0}/s   refused {no:>9.0}/s   outstanding {outstanding}\n\
         served p50 {}, p99 {}   lag p99 {lag}\n\
         so far {} of {} useful, {} refused, {} given up, after {}",
        millis(served[0]),
        millis(served[1]),
        goodput,
        offered,
        refused,
        failed,
        HumanDuration(snapshot.elapsed),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_while_it_runs() {
        let snapshot = Snapshot {
            elapsed: Duration::from_secs(3),
            offered: 900,
            goodput: 700,
            refused: 150,
            failed: 20,
            outstanding: 30,
            rates: [300.0, 250.0, 50.0],
            served: [Duration::from_millis(20), Duration::from_millis(90)],
            lag_p99: Duration::from_micros(300),
        };
        let text = lines(&snapshot);
        for part in ["goodput       250/s", "p99 90.0 ms", "lag p99 0.3 ms", "700 of 900 useful"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let late = lines(&Snapshot { lag_p99: Duration::MAX, ..snapshot });
        assert!(late.contains("never sent"), "{late}");
    }
}
