//! What is wrong with a policy: collected while reading, placed at its line, rendered with the line and a caret.
//!
//! It knows nothing of policies. Whoever finds a problem says what is wrong and what would be right; where it is
//! comes from the span.

use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Origin as SnippetOrigin, Renderer, Snippet};

/// So many problems are kept; the rest is counted. Nobody reads more, and a hostile file must not fill the memory.
pub(crate) const PROBLEMS_MAX: usize = 100;
/// A longer line is named by its number and not quoted.
const QUOTED_LINE_MAX: usize = 400;

/// Everything that is wrong with a policy, in the order of the file. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyErrors {
    problems: Vec<Problem>,
    more: usize,
}

impl PolicyErrors {
    /// The problems, in the order of the file; at most a hundred.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// How many more there are than [`problems`](Self::problems) holds.
    #[must_use]
    pub fn more(&self) -> usize {
        self.more
    }

    /// All problems as text for a reader, each with its line and a caret; ends with a newline.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let mut text = String::new();
        for problem in &self.problems {
            text.push_str(&problem.render(style));
            text.push('\n');
        }
        if self.more > 0 {
            text.push_str(&format!("and {} more problems\n", self.more));
        }
        text
    }
}

impl fmt::Display for PolicyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Style::Plain))
    }
}

impl Error for PolicyErrors {}

/// Whether a rendered problem has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Text only: for files, pipes and logs.
    #[default]
    Plain,
    /// With ANSI colours, for a terminal.
    Colour,
}

/// One thing that is wrong: where, what, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    place: Place,
    message: String,
    help: Option<String>,
    code: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Spot { source: Arc<Source>, spot: Spot },
    File(Arc<Source>),
    Flag(&'static str),
}

/// Lines and columns count from 1, columns in characters; the range is in bytes of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Spot {
    line: usize,
    column: usize,
    range: Range<usize>,
}

impl Problem {
    pub(crate) fn new(source: &Arc<Source>, raw: Raw, code: Option<&'static str>) -> Self {
        let spot = raw.span.map(|span| source.spot(span));
        let place = match (&source.origin, spot) {
            (Origin::Flags(flags), Some(spot)) => flags
                .get(spot.line - 1)
                .map_or_else(|| Place::File(Arc::clone(source)), |flag| Place::Flag(flag)),
            (Origin::File(_), Some(spot)) => Place::Spot { source: Arc::clone(source), spot },
            (_, None) => Place::File(Arc::clone(source)),
        };
        let message = match (&place, raw.subject) {
            (Place::Flag(flag), _) => format!("{flag}: {}", raw.message),
            (_, Some(key)) => format!("`{key}`: {}", raw.message),
            (_, None) => raw.message,
        };
        Self { place, message, help: Some(raw.help).filter(|help| !help.is_empty()), code }
    }

    /// A problem of another file that is read beside policies, such as a scenario. `span` is in bytes of `text`; `None`
    /// means the file as a whole. An empty `help` is none.
    #[must_use]
    pub fn in_file(file: &str, text: &str, span: Option<Range<usize>>, message: &str, help: &str) -> Self {
        let source = Arc::new(Source { origin: Origin::File(file.to_owned()), text: text.to_owned() });
        let span = span.map(|span| span.start.min(text.len())..span.end.min(text.len()));
        let raw = Raw { span, subject: None, message: message.to_owned(), help: help.to_owned() };
        Self::new(&source, raw, None)
    }

    /// The name of the file; `None` for the command line.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        match &self.place {
            Place::Spot { source, .. } | Place::File(source) => source.name(),
            Place::Flag(_) => None,
        }
    }

    /// The line, from 1; `None` if the file as a whole is meant.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.spot().map(|spot| spot.line)
    }

    /// The column, from 1 and in characters; `None` if the file as a whole is meant.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.spot().map(|spot| spot.column)
    }

    /// The flag of the command line that is meant, such as `--wait`.
    #[must_use]
    pub fn flag(&self) -> Option<&'static str> {
        match self.place {
            Place::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    /// What is wrong, as one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What would be right.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The problem as text for a reader: the message, the line with a caret, the help. Ends with a newline.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let level = if self.code.is_some() { Level::WARNING } else { Level::ERROR };
        let mut title = level.primary_title(self.message.as_str());
        if let Some(code) = self.code {
            title = title.id(code);
        }
        let mut group = Group::with_title(title);
        match &self.place {
            Place::Spot { source, spot } => group = quote(group, source, spot),
            Place::File(source) => {
                if let Some(name) = source.name() {
                    group = group.element(SnippetOrigin::path(name));
                }
            }
            Place::Flag(_) => {}
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = match style {
            Style::Plain => Renderer::plain(),
            Style::Colour => Renderer::styled(),
        };
        let mut text = renderer.render(&[group]);
        text.push('\n');
        text
    }

    fn spot(&self) -> Option<&Spot> {
        match &self.place {
            Place::Spot { spot, .. } => Some(spot),
            _ => None,
        }
    }
}

/// Adds the line of the spot, underlined as far as the spot reaches on it.
fn quote<'a>(group: Group<'a>, source: &'a Source, spot: &Spot) -> Group<'a> {
    let name = source.name().unwrap_or_default();
    let (start, line) = source.line_at(spot.range.start);
    if line.len() > QUOTED_LINE_MAX {
        return group.element(SnippetOrigin::path(name).line(spot.line).char_column(spot.column));
    }
    let from = spot.range.start - start;
    let to = (spot.range.end - start).min(line.len()).max(from);
    let snippet = Snippet::source(line).path(name).line_start(spot.line);
    group.element(snippet.annotation(AnnotationKind::Primary.span(from..to)))
}

/// A problem as its finder states it.
#[derive(Debug)]
pub(crate) struct Raw {
    /// Bytes of the source; `None` for the file as a whole.
    pub(crate) span: Option<Range<usize>>,
    /// The key it is about.
    pub(crate) subject: Option<&'static str>,
    pub(crate) message: String,
    /// Empty for none.
    pub(crate) help: String,
}

/// The problems found so far.
#[derive(Debug)]
pub(crate) struct Report {
    source: Arc<Source>,
    problems: Vec<Raw>,
    more: usize,
}

impl Report {
    pub(crate) fn new(source: Arc<Source>) -> Self {
        Self { source, problems: Vec::new(), more: 0 }
    }

    pub(crate) fn push(&mut self, raw: Raw) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(raw);
        } else {
            self.more += 1;
        }
    }

    /// How many problems were found so far.
    pub(crate) fn count(&self) -> usize {
        self.problems.len() + self.more
    }

    /// The value if nothing is wrong with it, else all the problems in the order of the file.
    pub(crate) fn finish<T>(mut self, value: Option<T>) -> Result<T, PolicyErrors> {
        if let (Some(value), true) = (value, self.problems.is_empty()) {
            return Ok(value);
        }
        debug_assert!(!self.problems.is_empty(), "a value is withheld only after a problem was reported");
        self.problems.sort_by_key(|raw| raw.span.as_ref().map(|span| span.start));
        let problems = self.problems.into_iter().map(|raw| Problem::new(&self.source, raw, None)).collect();
        Err(PolicyErrors { problems, more: self.more })
    }
}

/// The text that is read, and where it came from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) origin: Origin,
    pub(crate) text: String,
}

/// Where a policy text came from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A file of this name.
    File(String),
    /// Written down from the command line: line by line, the flag it says.
    Flags(Vec<&'static str>),
}

impl Source {
    fn name(&self) -> Option<&str> {
        match &self.origin {
            Origin::File(name) => Some(name),
            Origin::Flags(_) => None,
        }
    }

    fn spot(&self, span: Range<usize>) -> Spot {
        let start = self.boundary(span.start);
        let range = start..self.boundary(span.end).max(start);
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Spot {
            line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            range,
        }
    }

    /// The line that holds this byte, without its end, and where it starts.
    fn line_at(&self, at: usize) -> (usize, &str) {
        let start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        (start, line.strip_suffix('\r').unwrap_or(line))
    }

    /// The nearest character boundary at or before the byte: spans come from a parser that is not ours.
    fn boundary(&self, at: usize) -> usize {
        self.text.floor_char_boundary(at)
    }
}
