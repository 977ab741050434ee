//! Draws charts as SVG: lines over an axis, and bars beside each other. It knows nothing of reports.
//!
//! Colours and dashes are classes, which the page defines for light and dark. Each chart has a title and a description
//! for those who cannot see it, and names each line beside it, so that nobody has to tell colours apart.

use std::fmt::Write as _;

use super::axis::Axis;
use super::html::escape;
use super::words::cut;

/// So much room there is for a picture's text, in its own units, which are pixels at full size.
const LINE_HEIGHT: f64 = 13.0;
/// How many characters of a name fit beside a line or above a bar.
const NAME_WIDTH: usize = 28;

/// Lines over an axis.
pub(super) struct LineChart<'a> {
    pub(super) title: &'a str,
    /// What it shows, in a sentence.
    pub(super) description: String,
    pub(super) size: (f64, f64),
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// From the first; later ones are drawn over earlier ones.
    pub(super) lines: Vec<Line>,
    /// Stretches of the x axis that are not counted.
    pub(super) shaded: Option<(f64, f64)>,
    /// Moments at which something happens, with what.
    pub(super) marks: &'a [(f64, String)],
}

/// One line.
pub(super) struct Line {
    pub(super) name: String,
    /// The class that says how it looks.
    pub(super) class: String,
    /// Whether what is below it is filled.
    pub(super) filled: bool,
    /// Rising x. A value that is none leaves a gap.
    pub(super) points: Vec<(f64, Option<f64>)>,
}

impl Line {
    /// The highest value; zero if there is none.
    pub(super) fn highest(&self) -> f64 {
        self.points.iter().filter_map(|(_, value)| *value).fold(0.0, f64::max)
    }
}

impl LineChart<'_> {
    pub(super) fn svg(&self) -> String {
        let (width, height) = self.size;
        let mut svg = open(width, height, self.title, &self.description);
        self.grid(&mut svg);
        // A picture of its own: what is higher than the axis is cut off at its top.
        let (left, top) = (self.x.begin(), self.y.end());
        let (inner, below) = (self.x.end() - left, self.y.begin() - top + 2.0);
        let _ = write!(
            svg,
            r#"<svg x="{left}" y="{top}" width="{inner}" height="{below}" viewBox="{left} {top} {inner} {below}">"#
        );
        for line in &self.lines {
            self.line(line, &mut svg);
        }
        svg.push_str("</svg>");
        self.names(&mut svg);
        svg.push_str("</svg>");
        svg
    }

    fn grid(&self, svg: &mut String) {
        let Self { x, y, .. } = self;
        let (left, right, bottom, top) = (x.begin(), x.end(), y.begin(), y.end());
        if let Some((from, until)) = self.shaded {
            let (from, until) = (x.at(from), x.at(until));
            let _ = write!(
                svg,
                r#"<rect class="shade" x="{from:.1}" y="{top:.1}" width="{:.1}" height="{:.1}"><title>not counted</title></rect>"#,
                until - from,
                bottom - top
            );
        }
        for (value, text) in &y.ticks {
            let at = y.at(*value);
            let _ = write!(
                svg,
                r#"<path class="grid" d="M{left:.1} {at:.1}H{right:.1}"/><text class="tick" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                left - 6.0,
                at + 3.5,
                escape(text)
            );
        }
        let _ = write!(svg, r#"<path class="base" d="M{left:.1} {bottom:.1}H{right:.1}"/>"#);
        for (value, text) in &x.ticks {
            let at = x.at(*value);
            let _ = write!(
                svg,
                r#"<path class="base" d="M{at:.1} {bottom:.1}v4"/><text class="tick" x="{at:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
                bottom + 16.0,
                escape(text)
            );
        }
        for (moment, what) in self.marks {
            let at = x.at(*moment);
            let _ = write!(
                svg,
                r#"<path class="mark" d="M{at:.1} {top:.1}V{bottom:.1}"><title>{}</title></path>"#,
                escape(what)
            );
        }
    }

    fn line(&self, line: &Line, svg: &mut String) {
        let bottom = self.y.begin();
        // Each stretch without a gap is a path of its own.
        for stretch in line.points.split(|(_, value)| value.is_none()).filter(|stretch| !stretch.is_empty()) {
            let mut path = String::new();
            for (index, (at, value)) in stretch.iter().enumerate() {
                let letter = if index == 0 { 'M' } else { 'L' };
                let (x, y) = (self.x.at(*at), self.y.at(value.unwrap_or_default()));
                let _ = write!(path, "{letter}{x:.1} {y:.1}");
            }
            let ends = stretch.first().zip(stretch.last()).filter(|_| line.filled);
            if let Some(((first, _), (last, _))) = ends {
                let (first, last) = (self.x.at(*first), self.x.at(*last));
                let class = &line.class;
                let _ = write!(
                    svg,
                    r#"<path class="fill {class}" d="{path}L{last:.1} {bottom:.1}L{first:.1} {bottom:.1}Z"/>"#
                );
            }
            let _ = write!(svg, r#"<path class="line {}" d="{path}"/>"#, line.class);
        }
    }

    /// The names, each as near to the end of its line as the others let it.
    fn names(&self, svg: &mut String) {
        let ends = self.lines.iter().filter_map(|line| {
            let last = line.points.iter().rev().find_map(|(_, value)| *value)?;
            let (end, top) = (self.y.at(last), self.y.end());
            // An arrow for what is somewhere above.
            let name = format!("{}{}", cut(&line.name, NAME_WIDTH), if end < top - 1.0 { " ↑" } else { "" });
            Some((end.max(top), line, name))
        });
        let mut ends: Vec<_> = ends.collect();
        ends.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
        let places: Vec<f64> = ends.iter().map(|(at, ..)| *at).collect();
        let places = apart(&places, (self.y.end(), self.y.begin()), LINE_HEIGHT);
        for ((end, line, name), place) in ends.iter().zip(places) {
            let (x, class) = (self.x.end(), &line.class);
            let _ = write!(
                svg,
                r#"<path class="lead" d="M{:.1} {end:.1}L{:.1} {place:.1}"/><path class="line {class}" d="M{:.1} {place:.1}h14"/><text class="name" x="{:.1}" y="{:.1}">{}</text>"#,
                x + 1.0,
                x + 9.0,
                x + 10.0,
                x + 28.0,
                place + 3.5,
                escape(name)
            );
        }
    }
}

/// Bars beside each other, each with its name and its number.
pub(super) struct BarChart<'a> {
    pub(super) title: &'a str,
    pub(super) description: String,
    pub(super) width: f64,
    /// The class that says how the bars look.
    pub(super) class: &'a str,
    /// What a full bar is.
    pub(super) most: f64,
    pub(super) bars: Vec<Bar<'a>>,
}

/// One bar.
pub(super) struct Bar<'a> {
    pub(super) name: &'a str,
    pub(super) value: f64,
    pub(super) text: String,
}

impl BarChart<'_> {
    pub(super) fn svg(&self) -> String {
        const ROW: f64 = 36.0;
        let height = ROW * self.bars.len() as f64;
        let mut svg = open(self.width, height, self.title, &self.description);
        for (index, Bar { name, value, text }) in self.bars.iter().enumerate() {
            let top = ROW * index as f64;
            let share = if self.most > 0.0 { (value / self.most).clamp(0.0, 1.0) } else { 0.0 };
            // What is not nothing can be seen.
            let length = if *value > 0.0 { (share * self.width).max(1.5) } else { 0.0 };
            let (class, text) = (self.class, escape(text));
            let _ = write!(
                svg,
                r#"<text class="name" x="0" y="{:.1}">{}</text><text class="value" x="{width:.1}" y="{:.1}" text-anchor="end">{text}</text><rect class="track" x="0" y="{bar:.1}" width="{width:.1}" height="10" rx="2"/><rect class="bar {class}" x="0" y="{bar:.1}" width="{length:.1}" height="10" rx="2"/>"#,
                top + 13.0,
                escape(&cut(name, NAME_WIDTH)),
                top + 13.0,
                width = self.width,
                bar = top + 18.0,
            );
        }
        svg.push_str("</svg>");
        svg
    }
}

fn open(width: f64, height: f64, title: &str, description: &str) -> String {
    format!(
        r#"<svg viewBox="0 0 {width:.0} {height:.0}" role="img"><title>{}</title><desc>{}</desc>"#,
        escape(title),
        escape(description)
    )
}

/// Rising places, moved so that they are at least so far apart and, where there is room, within the bounds.
fn apart(places: &[f64], (least, most): (f64, f64), distance: f64) -> Vec<f64> {
    let mut moved = places.to_vec();
    let mut floor = least;
    for place in &mut moved {
        *place = place.max(floor);
        floor = *place + distance;
    }
    let mut ceiling = most;
    for place in moved.iter_mut().rev() {
        *place = place.min(ceiling);
        ceiling = *place - distance;
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_cover_each_other() {
        assert_eq!(apart(&[50.0, 50.0, 90.0], (0.0, 100.0), 10.0), [50.0, 60.0, 90.0]);
        assert_eq!(apart(&[98.0, 99.0, 100.0], (0.0, 100.0), 10.0), [80.0, 90.0, 100.0]);
        assert!(apart(&[], (0.0, 100.0), 10.0).is_empty());
    }

    #[test]
    fn a_gap_ends_one_path_and_begins_another() {
        let line = Line {
            name: "limit <1>".to_owned(),
            class: "limit".to_owned(),
            filled: false,
            points: vec![(0.0, Some(1.0)), (1.0, Some(1.0)), (2.0, None), (3.0, Some(2.0)), (4.0, Some(2.0))],
        };
        let chart = LineChart {
            title: "a",
            description: "b".to_owned(),
            size: (100.0, 50.0),
            x: Axis::counts(4.0, 4, (10.0, 90.0)),
            y: Axis::counts(2.0, 2, (40.0, 0.0)),
            lines: vec![line],
            shaded: None,
            marks: &[],
        };
        let svg = chart.svg();
        assert!(svg.contains("M10.0 20.0L30.0 20.0\"") && svg.contains("M70.0 0.0L90.0 0.0\""), "{svg}");
        assert!(svg.contains("limit &lt;1&gt;") && !svg.contains("<1>"), "{svg}");
    }
}
