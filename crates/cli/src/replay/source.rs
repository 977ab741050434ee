//! Where the log comes from. It is read twice, first to see what is in it, so whatever cannot be read twice is kept in
//! a temporary file meanwhile, up to a bound.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Take};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::exit::Failure;

/// So much of a standard input or a pipe is kept.
const KEPT_MAX: u64 = 4 << 30;

/// A log that can be read from its beginning, again and again.
#[derive(Debug)]
pub(crate) struct Source {
    /// What it is called in messages.
    pub(crate) name: String,
    file: File,
    /// Its length when it was opened. What is written to it afterwards is not read, so that every reading is the same.
    pub(crate) length: u64,
    read: Arc<AtomicU64>,
}

impl Source {
    /// Opens a file; `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let is_stdin = path == Path::new("-");
        let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
        let unreadable = |error: io::Error| Failure::runtime(format_args!("cannot read {name}: {error}"));
        let file = if is_stdin {
            keep(io::stdin().lock(), &name)?
        } else {
            let file = File::open(path).map_err(unreadable)?;
            let kind = file.metadata().map_err(unreadable)?;
            if kind.is_dir() {
                return Err(Failure::runtime(format_args!("{name} is a directory; name one log")));
            }
            if kind.is_file() { file } else { keep(file, &name)? }
        };
        let length = file.metadata().map_err(unreadable)?.len();
        Ok(Self { name, file, length, read: Arc::default() })
    }

    /// A reader from the beginning. There is one at a time.
    pub(crate) fn reader(&self) -> Result<Reader, Failure> {
        let reopened = self.file.try_clone().and_then(|mut file| file.seek(SeekFrom::Start(0)).map(|_| file));
        let file =
            reopened.map_err(|error| Failure::runtime(format_args!("cannot read {}: {error}", self.name)))?;
        Ok(Reader { file: file.take(self.length), read: Arc::clone(&self.read) })
    }

    /// How many bytes have been read, by all readers together.
    pub(crate) fn read(&self) -> u64 {
        self.read.load(Relaxed)
    }
}

/// Copies what can be read only once to a file that nobody else sees and that is gone when it is closed.
fn keep(reader: impl Read, name: &str) -> Result<File, Failure> {
    let failed = |error: io::Error| Failure::runtime(format_args!("cannot keep {name} for a while: {error}"));
    let mut file = tempfile::tempfile().map_err(failed)?;
    let copied = io::copy(&mut reader.take(KEPT_MAX + 1), &mut file).map_err(failed)?;
    if copied > KEPT_MAX {
        return Err(Failure::runtime(format_args!(
            "{name} is longer than the {} GiB that are kept of it; write it to a file, which may be of any length",
            KEPT_MAX >> 30
        )));
    }
    Ok(file)
}

/// Reads the log and counts the bytes.
#[derive(Debug)]
pub(crate) struct Reader {
    file: Take<File>,
    read: Arc<AtomicU64>,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read.fetch_add(count as u64, Relaxed);
        Ok(count)
    }
}
