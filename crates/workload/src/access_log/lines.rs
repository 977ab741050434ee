//! The lines of a file: unpacked if it is compressed, bounded in length, numbered from 1.
//!
//! It looks at no line; it only finds where each ends. Memory does not grow with the file nor with a line.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

/// The two bytes that a gzip file begins with (RFC 1952 section 2.3.1).
const GZIP: &[u8] = b"\x1f\x8b";
/// What is not unpacked here, and how it begins.
const OTHERS: [(&str, &[u8]); 4] =
    [("zstd", b"\x28\xb5\x2f\xfd"), ("xz", b"\xfd7zXZ\0"), ("bzip2", b"BZh"), ("zip", b"PK\x03\x04")];
/// As many bytes as the longest of these.
const MAGIC_MAX: usize = 6;
const BUFFER: usize = 64 * 1_024;

/// The file broke off: it could not be read, or its compression is damaged or cut.
#[derive(Debug)]
pub struct ReadError {
    /// The last line that was read whole.
    pub after_line: u64,
    /// How many bytes were read before it, after unpacking.
    pub after_bytes: u64,
    /// What the reader says.
    pub source: io::Error,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { after_line, after_bytes, source } = self;
        write!(f, "the log cannot be read beyond line {after_line} (byte {after_bytes}): {source}")
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// One line, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Text(String),
    /// Longer than is read: so many bytes.
    TooLong(u64),
}

/// A file, line by line.
pub(crate) struct Lines {
    input: Box<dyn BufRead + Send>,
    pub(crate) is_compressed: bool,
    line_max: usize,
    number: u64,
    bytes: u64,
    buffer: Vec<u8>,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Lines {
    /// Looks at the first bytes to tell whether the file is compressed. The error is that they cannot be read, or that
    /// it is compressed with something else.
    pub(crate) fn new(mut reader: impl Read + Send + 'static, line_max: usize) -> io::Result<Self> {
        let mut first = Vec::with_capacity(MAGIC_MAX);
        Read::by_ref(&mut reader).take(MAGIC_MAX as u64).read_to_end(&mut first)?;
        if let Some((name, _)) = OTHERS.iter().find(|(_, magic)| first.starts_with(magic)) {
            let message = format!("it is compressed with {name}; unpack it first (gzip is unpacked here)");
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        let is_compressed = first.starts_with(GZIP);
        let whole: Chain<Cursor<Vec<u8>>, _> = Cursor::new(first).chain(reader);
        let whole = BufReader::with_capacity(BUFFER, whole);
        let input: Box<dyn BufRead + Send> = if is_compressed {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(whole)))
        } else {
            Box::new(whole)
        };
        Ok(Self { input, is_compressed, line_max, number: 0, bytes: 0, buffer: Vec::new() })
    }

    /// The next line and its number, or `None` at the end. What is not UTF-8 is replaced.
    pub(crate) fn next_line(&mut self) -> Result<Option<(u64, Line)>, ReadError> {
        self.buffer.clear();
        let mut length = 0_u64;
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => {
                    return Err(ReadError { after_line: self.number, after_bytes: self.bytes, source });
                }
            };
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let piece = &chunk[..end.unwrap_or(chunk.len())];
            length += piece.len() as u64;
            // One more than fits is kept, for a carriage return that is not part of the line.
            let room = (self.line_max + 1).saturating_sub(self.buffer.len());
            self.buffer.extend_from_slice(&piece[..piece.len().min(room)]);
            let used = piece.len() + usize::from(end.is_some());
            let at_the_end = chunk.is_empty();
            self.input.consume(used);
            if end.is_some() || at_the_end {
                if at_the_end && length == 0 {
                    return Ok(None);
                }
                self.number += 1;
                self.bytes = self.bytes.saturating_add(length + u64::from(end.is_some()));
                return Ok(Some((self.number, self.line(length))));
            }
        }
    }

    fn line(&self, length: u64) -> Line {
        let mut bytes = self.buffer.as_slice();
        if self.number == 1 {
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        if length == self.buffer.len() as u64 {
            bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        }
        if length > self.buffer.len() as u64 || bytes.len() > self.line_max {
            return Line::TooLong(length);
        }
        Line::Text(match String::from_utf8_lossy(bytes) {
            Cow::Borrowed(text) => text.to_owned(),
            Cow::Owned(text) => text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(bytes: &[u8], line_max: usize) -> (Vec<Line>, Option<String>) {
        let mut lines = Lines::new(Cursor::new(bytes.to_vec()), line_max).unwrap();
        let mut found = Vec::new();
        loop {
            match lines.next_line() {
                Ok(Some((number, line))) => {
                    assert_eq!(number, found.len() as u64 + 1);
                    found.push(line);
                }
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error.to_string())),
            }
        }
    }

    fn text(text: &str) -> Line {
        Line::Text(text.into())
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn lines_end_as_they_end_everywhere() {
        let (lines, _) = read(b"\xef\xbb\xbfa\r\n\n\xff\nlast", 8);
        assert_eq!(lines, [text("a"), text(""), text("\u{fffd}"), text("last")]);
        assert_eq!(read(b"", 8).0, []);
        assert_eq!(read(b"\n", 8).0, [text("")]);
    }

    #[test]
    fn a_line_may_be_as_long_as_the_bound_and_no_longer() {
        let (lines, _) = read(b"12345678\r\n123456789\n123456789012\nx\n", 8);
        assert_eq!(lines, [text("12345678"), Line::TooLong(9), Line::TooLong(12), text("x")]);
    }

    #[test]
    fn gzip_is_recognised_and_may_have_several_members() {
        let whole = [packed(b"a\nb"), packed(b"c\nd\n")].concat();
        assert_eq!(read(&whole, 8), (vec![text("a"), text("bc"), text("d")], None));
    }

    #[test]
    fn a_cut_gzip_gives_what_was_before_the_cut() {
        let line = |n: u32| format!("{:08x}\n", n.wrapping_mul(2_654_435_761));
        let whole = packed((0..2_000).map(line).collect::<String>().as_bytes());
        let (lines, error) = read(&whole[..whole.len() / 2], 80);
        assert!(lines.len() > 100, "{}", lines.len());
        let error = error.unwrap();
        assert!(
            error.starts_with(&format!("the log cannot be read beyond line {} ", lines.len())),
            "{error}"
        );
    }
}
