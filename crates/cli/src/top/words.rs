//! Numbers and names as they are shown: few digits, always a unit, and nothing that a terminal would act upon.

/// A name from the wire. Control characters, and whatever may be wider or narrower than a place on the screen, are written
/// as escapes: a key of a rate limit is what a client has sent (K9).
pub(super) fn name(text: &str) -> String {
    let is_plain = |c: char| {
        let is_letter = c.is_alphabetic()
            && matches!(c, '\u{a1}'..='\u{24f}' | '\u{391}'..='\u{3c9}' | '\u{400}'..='\u{45f}');
        (' '..='~').contains(&c) || is_letter
    };
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => plain.push_str("\\\\"),
            c if is_plain(c) => plain.push(c),
            c => plain.extend(c.escape_default()),
        }
    }
    plain
}

/// The first so many characters, with a mark where something is missing.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// A count or a rate: three digits are enough.
pub(super) fn count(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    match value.abs() {
        0.0 => "0".into(),
        // Rounded to the tenth it would be ten.
        small if small < 9.95 && value.fract() != 0.0 => format!("{value:.1}"),
        small if small < 9_999.5 => format!("{value:.0}"),
        medium if medium < 999_500.0 => format!("{:.0}k", value / 1e3),
        _ => format!("{:.1}M", value / 1e6),
    }
}

/// Milliseconds, as a time.
pub(super) fn millis(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    match value {
        small if small < 9.95 => format!("{value:.1} ms"),
        medium if medium < 9_999.5 => format!("{value:.0} ms"),
        _ => format!("{:.0} s", value / 1e3),
    }
}

/// The time of day, in UTC, of seconds since 1970.
pub(super) fn time_of_day(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "--:--:--".into();
    }
    let of_day = seconds as u64 % 86_400;
    format!("{:02}:{:02}:{:02} UTC", of_day / 3_600, of_day / 60 % 60, of_day % 60)
}

/// Numbers as a line of blocks, the highest of which is the most of them; one place each. What is not known is a gap.
pub(super) fn spark(values: &[f64], most: f64) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let block = |value: &f64| {
        if !value.is_finite() || *value <= 0.0 || most <= 0.0 {
            return ' ';
        }
        let part = (value / most * 8.0).ceil() as usize;
        BLOCKS[part.clamp(1, 8) - 1]
    };
    values.iter().map(block).collect()
}

/// How much of a limit is used, as a bar with these places.
pub(super) fn bar(used: f64, limit: f64, places: usize) -> String {
    let part = if limit > 0.0 && used.is_finite() { (used / limit).clamp(0.0, 1.0) } else { 0.0 };
    let full = (part * places as f64).round() as usize;
    format!("{}{}", "█".repeat(full), "·".repeat(places.saturating_sub(full)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K9. A terminal that acted upon what a client has sent could be made to do anything.
    #[test]
    fn names_cannot_act_upon_a_terminal() {
        assert_eq!(name("10.0.0.7"), "10.0.0.7");
        assert_eq!(name("\u{1b}[2Ja\tb\r\n\u{7}\u{9b}31m"), "\\u{1b}[2Ja\\tb\\r\\n\\u{7}\\u{9b}31m");
        assert_eq!(name("a\u{202e}b\u{301}漢"), "a\\u{202e}b\\u{301}\\u{6f22}");
        assert_eq!(name("Zoë Ωμέγα\\"), "Zoë Ωμέγα\\\\");
        assert!(
            (0..=0x10_ffff)
                .filter_map(char::from_u32)
                .all(|c| !name(&c.to_string()).chars().any(char::is_control))
        );
    }

    #[test]
    fn numbers_are_short_and_not_wrong() {
        for (value, shown) in [
            (0.0, "0"),
            (0.25, "0.2"),
            (9.94, "9.9"),
            (9.96, "10"),
            (1_500.0, "1500"),
            (12_345.0, "12k"),
            (999_600.0, "1.0M"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(count(value), shown);
        }
        assert_eq!(
            [millis(0.04), millis(9.96), millis(350.4), millis(12_000.0)],
            ["0.0 ms", "10 ms", "350 ms", "12 s"]
        );
        assert_eq!(time_of_day(1_780_000_000.5), "20:26:40 UTC");
    }

    #[test]
    fn a_line_is_as_high_as_its_most() {
        assert_eq!(spark(&[0.0, 1.0, 4.0, 8.0, f64::NAN, 9.0], 8.0), " ▁▄█ █");
        assert_eq!(spark(&[1.0], 0.0), " ");
        assert_eq!(
            (bar(5.0, 10.0, 4), bar(20.0, 10.0, 4), bar(f64::NAN, 0.0, 4)),
            ("██··".into(), "████".into(), "····".into())
        );
    }
}
