//! The terminal: taken over at the start, and given back as it was, however this ends.

use std::io::{self, Write as _};
use std::sync::Once;
use std::thread;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode, size};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::view::View;
use crate::exit::Failure;

/// The other screen, no cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";
/// What a screen is taken for that does not say how large it is.
const USUAL: (u16, u16) = (80, 24);
/// How long the thread that reads keys goes without looking whether anybody wants them.
const LOOK: Duration = Duration::from_millis(200);

/// What somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Quit,
    Next,
    Previous,
    Pause,
    Help,
    /// Nothing in particular.
    Other,
}

impl Key {
    fn of(event: &KeyEvent) -> Self {
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        match event.code {
            KeyCode::Char('c' | 'd') if control => Self::Quit,
            KeyCode::Char('q') | KeyCode::Esc => Self::Quit,
            KeyCode::Char('j' | 'u') | KeyCode::Down | KeyCode::Right | KeyCode::Tab => Self::Next,
            KeyCode::Char('k') | KeyCode::Up | KeyCode::Left | KeyCode::BackTab => Self::Previous,
            KeyCode::Char('p' | ' ') => Self::Pause,
            KeyCode::Char('?' | 'h') => Self::Help,
            _ => Self::Other,
        }
    }
}

pub(super) struct Terminal {
    keys: Receiver<io::Result<Key>>,
    colours: bool,
}

impl Terminal {
    pub(super) fn enter() -> Result<Self, Failure> {
        give_back_on_panic();
        enable_raw_mode()?;
        let (found, keys) = channel(16);
        // Made before anything else can fail, so that whatever does gives the terminal back.
        let this = Self { keys, colours: has_colours(std::env::var_os("NO_COLOR").as_deref()) };
        write(ENTER)?;
        // It ends with the process, or when nobody wants its keys.
        thread::Builder::new().name("tidegate-keys".into()).spawn(move || read(&found))?;
        Ok(this)
    }

    pub(super) fn draw(&self, view: &View) -> Result<(), Failure> {
        let (width, height) =
            size().ok().filter(|(width, height)| *width > 0 && *height > 0).unwrap_or(USUAL);
        Ok(write(&view.frame(width, height).escapes(self.colours))?)
    }

    /// The next key.
    pub(super) async fn key(&mut self) -> Result<Key, Failure> {
        match self.keys.recv().await {
            Some(key) => Ok(key?),
            None => Ok(Key::Quit),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// <https://no-color.org>: any value but an empty one means none.
fn has_colours(no_color: Option<&std::ffi::OsStr>) -> bool {
    no_color.is_none_or(std::ffi::OsStr::is_empty)
}

fn read(found: &Sender<io::Result<Key>>) {
    while !found.is_closed() {
        let key = match crossterm::event::poll(LOOK) {
            Ok(false) => continue,
            Ok(true) => crossterm::event::read(),
            Err(error) => Err(error),
        };
        let key = match key {
            Ok(Event::Key(event)) if event.kind != KeyEventKind::Release => Ok(Key::of(&event)),
            Ok(_) => continue,
            Err(error) => Err(error),
        };
        let is_over = key.is_err();
        if found.blocking_send(key).is_err() || is_over {
            return;
        }
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn give_back() {
    let _ = write(LEAVE);
    let _ = disable_raw_mode();
}

/// What a panic has to say must not be lost with the screen that it is said on.
fn give_back_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_the_help_says() {
        let key = |code, modifiers| Key::of(&KeyEvent::new(code, modifiers));
        let plain = |code| key(code, KeyModifiers::NONE);
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Key::Quit);
        assert_eq!(plain(KeyCode::Char('c')), Key::Other);
        for (codes, meant) in [
            (&[KeyCode::Char('q'), KeyCode::Esc][..], Key::Quit),
            (&[KeyCode::Char('u'), KeyCode::Char('j'), KeyCode::Down], Key::Next),
            (&[KeyCode::Char('k'), KeyCode::Up], Key::Previous),
            (&[KeyCode::Char('p'), KeyCode::Char(' ')], Key::Pause),
            (&[KeyCode::Char('?')], Key::Help),
        ] {
            assert!(codes.iter().all(|code| plain(*code) == meant), "{codes:?}");
        }
    }

    #[test]
    fn no_color_is_honoured() {
        assert!(has_colours(None) && has_colours(Some("".as_ref())));
        assert!(!has_colours(Some("1".as_ref())));
    }
}
