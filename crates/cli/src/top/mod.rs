//! `tidegate top`: how an instance stands, in the terminal, second by second.
//!
//! It asks the admin address of any instance and nothing else: what it shows is what `/api/live` says, and of whose requests
//! are refused most, `/api/top`. It changes nothing there.
//!
//! `follow.rs` brings samples, `sample.rs` reads them, `past.rs` keeps what is drawn as lines, `view` draws a frame, and
//! `terminal.rs` puts it on the screen. A frame is made of samples alone, so tests look at frames without a terminal.

mod events;
mod follow;
mod frame;
mod past;
mod sample;
mod terminal;
mod verdict;
mod view;
mod words;

use std::io::{self, IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::args::TopArgs;
use crate::exit::Failure;
use follow::News;
use terminal::{Key, Terminal};
use view::View;

/// How long `--once` waits for a sample. There is one a second.
const PATIENCE: Duration = Duration::from_secs(5);
/// The width of a frame that goes to no terminal, and the most lines that it has.
const PLAIN: (u16, u16) = (80, 200);

pub(crate) fn run(args: &TopArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match (args.once, args.json) {
            (true, json) => once(args.admin, json).await,
            (false, true) => lines(args.admin).await,
            (false, false) if io::stdout().is_terminal() && io::stdin().is_terminal() => {
                live(args.admin).await
            }
            (false, false) => {
                Err(Failure::runtime("this is no terminal; --once prints one frame, --json prints samples"))
            }
        }
    })
}

/// One sample, as text or as JSON.
async fn once(admin: SocketAddr, json: bool) -> Result<(), Failure> {
    let (samples, mut news) = mpsc::channel(1);
    let following = follow::follow(admin, samples);
    let first = async {
        loop {
            match news.recv().await {
                Some(News::Lost(why)) => return Err(Failure::runtime(format!("{admin}: {why}"))),
                Some(News::Sample(sample, text)) => return Ok((sample, text)),
                Some(News::Refused(_)) => {}
                None => return Err(Failure::runtime(format!("{admin}: there was no sample"))),
            }
        }
    };
    let (sample, text) = tokio::select! {
        found = timeout(PATIENCE, first) => match found {
            Ok(found) => found?,
            Err(_) => return Err(Failure::runtime(format!("{admin}: no sample came for {PATIENCE:?}"))),
        },
        () = following => return Err(Failure::runtime(format!("{admin}: there was no sample"))),
    };
    let page = if json {
        text + "\n"
    } else {
        let mut view = View::new(admin);
        view.hear(News::Sample(sample, text));
        view.hear(News::Refused(follow::refused(admin).await.unwrap_or_default()));
        view.page(PLAIN.0, PLAIN.1)
    };
    said(io::stdout().write_all(page.as_bytes()))
}

/// Samples, a line each, until nobody reads them or a signal comes.
async fn lines(admin: SocketAddr) -> Result<(), Failure> {
    let (samples, mut news) = mpsc::channel(8);
    let printing = async {
        while let Some(news) = news.recv().await {
            match news {
                News::Sample(_, text) => {
                    let mut out = io::stdout();
                    writeln!(out, "{text}").and_then(|()| out.flush())?;
                }
                News::Lost(why) => {
                    let _ = writeln!(io::stderr(), "tidegate: {admin}: {why}; trying again");
                }
                News::Refused(_) => {}
            }
        }
        Ok(())
    };
    tokio::select! {
        ended = printing => said(ended),
        () = follow::follow(admin, samples) => Ok(()),
    }
}

/// Whoever closes the pipe has seen enough.
fn said(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Failure::from),
    }
}

/// The view, until somebody ends it.
async fn live(admin: SocketAddr) -> Result<(), Failure> {
    let (samples, mut news) = mpsc::channel(8);
    let mut terminal = Terminal::enter()?;
    let (mut terminate, mut hangup) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    let mut resized = signal(SignalKind::window_change())?;
    let mut view = View::new(admin);
    let watching = async {
        loop {
            terminal.draw(&view)?;
            tokio::select! {
                news = news.recv() => match news {
                    Some(news) => view.hear(news),
                    None => return Ok(()),
                },
                key = terminal.key() => match key? {
                    Key::Quit => return Ok(()),
                    key => view.press(key),
                },
                _ = resized.recv() => {}
                _ = terminate.recv() => return Ok(()),
                _ = hangup.recv() => return Ok(()),
            }
        }
    };
    // Dropping the terminal, which every way out of here does, gives it back as it was.
    tokio::select! {
        ended = watching => ended,
        () = follow::follow(admin, samples) => Ok(()),
    }
}
