//! Ctrl-C and SIGTERM end a run early: what there is until then is shown. A second one ends at once.

use std::process;
use std::sync::OnceLock;

use tidegate_load::Stop;
use tokio::signal::unix::{SignalKind, signal};

/// The wish to end early, of this process. Signals are heard from the first call on.
pub(super) fn stop() -> Stop {
    static STOP: OnceLock<Stop> = OnceLock::new();
    STOP.get_or_init(|| {
        let stop = Stop::default();
        let wish = stop.clone();
        // Without a thread for it a signal ends the process, as it does by default.
        let _ = std::thread::Builder::new().name("signals".into()).spawn(move || hear(&wish));
        stop
    })
    .clone()
}

fn hear(wish: &Stop) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    runtime.block_on(async {
        let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return;
        };
        for again in [false, true] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if again {
                process::exit(1);
            }
            wish.set();
        }
    });
}
