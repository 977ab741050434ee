//! A frame: lines of text with tones, as wide and as high as the screen, which is never written beyond.
//!
//! Not a library of widgets: a few dozen lines are drawn anew once a second, and that is all.

use super::words::cut;

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    /// What is beside the point.
    Dim,
    Bold,
    Good,
    Warn,
    Bad,
    /// What is chosen.
    Chosen,
}

impl Tone {
    /// As an escape sequence (ECMA-48, SGR). Without colours only weight is left.
    const fn escape(self, colours: bool) -> &'static str {
        match (self, colours) {
            (Self::Plain, _) => "\x1b[0m",
            (Self::Dim, _) => "\x1b[0;2m",
            (Self::Good, true) => "\x1b[0;32m",
            (Self::Warn, true) => "\x1b[0;1;33m",
            (Self::Bad, true) => "\x1b[0;1;31m",
            (Self::Chosen, true) => "\x1b[0;1;36m",
            (Self::Good, false) => "\x1b[0m",
            (Self::Bold | Self::Warn | Self::Bad | Self::Chosen, _) => "\x1b[0;1m",
        }
    }
}

/// Pieces of text, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Line(Vec<(Tone, String)>);

impl Line {
    pub(super) fn of(tone: Tone, text: impl Into<String>) -> Self {
        Self::default().then(tone, text)
    }

    pub(super) fn then(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.0.push((tone, text.into()));
        self
    }

    /// At the left of a column with so many places.
    pub(super) fn left(self, tone: Tone, text: &str, places: usize) -> Self {
        self.then(tone, format!("{:<places$}", cut(text, places)))
    }

    /// At the right of one.
    pub(super) fn right(self, tone: Tone, text: &str, places: usize) -> Self {
        self.then(tone, format!("{:>places$}", cut(text, places)))
    }

    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// Blanks up to this place.
    pub(super) fn up_to(self, place: usize) -> Self {
        let missing = place.saturating_sub(self.width());
        self.then(Tone::Plain, " ".repeat(missing))
    }

    /// What fits into a line.
    fn pieces(&self, width: usize) -> impl Iterator<Item = (Tone, String)> {
        let mut left = width;
        self.0.iter().map_while(move |(tone, text)| {
            let piece: String = text.chars().take(left).collect();
            left -= piece.chars().count();
            (!piece.is_empty()).then_some((*tone, piece))
        })
    }
}

/// The lines of a screen.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    width: usize,
    height: usize,
    lines: Vec<Line>,
}

impl Frame {
    pub(super) fn new(width: u16, height: u16) -> Self {
        Self { width: width.into(), height: height.into(), lines: Vec::new() }
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// How many lines there is still room for.
    pub(super) fn room(&self) -> usize {
        self.height.saturating_sub(self.lines.len())
    }

    /// One more line, if there is room.
    pub(super) fn add(&mut self, line: Line) {
        if self.room() > 0 {
            self.lines.push(line);
        }
    }

    /// The last line of the screen.
    pub(super) fn foot(&mut self, line: Line) {
        self.lines.resize_with(self.height.saturating_sub(1), Line::default);
        self.add(line);
    }

    /// As plain text, without blanks at the ends of lines.
    pub(super) fn plain(&self) -> String {
        let text = |line: &Line| line.pieces(self.width).map(|(_, text)| text).collect::<String>();
        self.lines.iter().map(|line| format!("{}\n", text(line).trim_end())).collect()
    }

    /// As a terminal draws it over what was there, at once where it can (the synchronized output of DEC mode 2026).
    pub(super) fn escapes(&self, colours: bool) -> String {
        let mut text = String::from("\x1b[?2026h\x1b[H");
        for number in 0..self.height {
            if let Some(line) = self.lines.get(number) {
                for (tone, piece) in line.pieces(self.width) {
                    text.push_str(tone.escape(colours));
                    text.push_str(&piece);
                }
            }
            text.push_str("\x1b[0m\x1b[K");
            if number + 1 < self.height {
                text.push_str("\r\n");
            }
        }
        text.push_str("\x1b[?2026l");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_beyond_the_screen() {
        let mut frame = Frame::new(5, 2);
        frame.add(Line::of(Tone::Bad, "abc").then(Tone::Plain, "défg"));
        frame.add(Line::default());
        frame.add(Line::of(Tone::Plain, "no room"));
        assert_eq!(frame.plain(), "abcdé\n\n");
        let mut frame = Frame::new(3, 0);
        frame.foot(Line::of(Tone::Plain, "x"));
        assert_eq!(frame.plain(), "");
    }

    /// <https://no-color.org>: without colours, weight alone says what matters.
    #[test]
    fn without_colours_there_are_none() {
        let mut frame = Frame::new(9, 1);
        for tone in [Tone::Plain, Tone::Dim, Tone::Bold, Tone::Good, Tone::Warn, Tone::Bad, Tone::Chosen] {
            frame = Frame { lines: vec![Line::of(tone, "x")], ..frame };
            assert!(!frame.escapes(false).contains(";3"), "{tone:?}");
        }
        assert!(frame.escapes(true).contains("\x1b[0;1;36mx"));
    }
}
