//! What collectors put before a line: the header of syslog, old and new, and that of Kubernetes.
//!
//! Only the length of it is of interest. Its time is when the line was passed on, which is not when anything happened.

/// How many bytes of the line are not of the program that wrote it.
///
/// - RFC 3164: `<134>Nov 30 05:55:01 host haproxy[4926]: `, with or without the priority and the host
/// - RFC 5424: `<134>1 2026-11-30T05:55:01.154596+00:00 host haproxy 4926 - - `
/// - rsyslog's file format: `2026-11-30T05:55:01.154596+00:00 host haproxy[4926]: `
/// - the container runtime's: `2026-11-30T05:55:01.154596789Z stdout F `
///   (<https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md>)
pub(crate) fn prefix(line: &str) -> usize {
    let rest = after_priority(line);
    let message = rfc_5424(rest).or_else(|| tagged(rest)).unwrap_or(line);
    line.len() - message.len()
}

fn after_priority(line: &str) -> &str {
    let Some((number, rest)) = line.strip_prefix('<').and_then(|rest| rest.split_once('>')) else {
        return line;
    };
    let fits = (1..=3).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    if fits { rest } else { line }
}

/// <https://www.rfc-editor.org/rfc/rfc5424#section-6>
fn rfc_5424(rest: &str) -> Option<&str> {
    let mut words = rest.strip_prefix("1 ")?.splitn(6, ' ');
    let time = words.next()?;
    if time != "-" && !is_iso(time) {
        return None;
    }
    let data = words.nth(4)?;
    let message = match data.strip_prefix("- ") {
        Some(message) => message,
        // Structured data ends with a bracket that is not escaped within it.
        None => data.strip_prefix('[')?.split_once("] ")?.1,
    };
    Some(message.strip_prefix('\u{feff}').unwrap_or(message))
}

/// A time, perhaps a host, and a program's name with a colon.
fn tagged(rest: &str) -> Option<&str> {
    let after_time = if is_month(rest) {
        let clock_end = 15;
        rest.get(clock_end..)?.strip_prefix(' ')?
    } else {
        let (time, after) = rest.split_once(' ')?;
        if !is_iso(time) {
            return None;
        }
        for stream in ["stdout F ", "stderr F ", "stdout P ", "stderr P "] {
            if let Some(message) = after.strip_prefix(stream) {
                return Some(message);
            }
        }
        after
    };
    let (first, rest) = after_time.split_once(' ')?;
    if first.ends_with(':') {
        return Some(rest);
    }
    let (second, rest) = rest.split_once(' ')?;
    second.ends_with(':').then_some(rest)
}

fn is_iso(word: &str) -> bool {
    let bytes = word.as_bytes();
    let fits = |byte: &u8| byte.is_ascii_digit() || b"-:.TZ+".contains(byte);
    bytes.len() >= 19 && bytes.iter().all(fits) && bytes[4] == b'-' && bytes[10] == b'T' && bytes[13] == b':'
}

/// `Nov 30 05:55:01`, the day padded with a space.
fn is_month(rest: &str) -> bool {
    let bytes = rest.as_bytes();
    bytes.len() > 15 && bytes[..3].is_ascii() && bytes[3] == b' ' && bytes[9] == b':' && bytes[12] == b':'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_is_known_and_nothing_else_is_cut() {
        let prefixes = [
            "",
            "<134>Nov 30 05:55:01 localhost haproxy[4926]: ",
            "Feb  6 12:14:14 host haproxy[14389]: ",
            "<134>Nov 30 05:55:01 haproxy[1]: ",
            "<134>1 2026-11-30T05:55:01.154596+00:00 - haproxy 4926 - - ",
            "<134>1 - host nginx - - [a@1 b=\"c\"] ",
            "2026-11-30T05:55:01.154596+00:00 host haproxy[4926]: ",
            "2026-11-30T05:55:01.154596789Z stdout F ",
        ];
        for before in prefixes {
            let line = format!("{before}127.0.0.1:1 [x] a: b");
            assert_eq!(prefix(&line), before.len(), "{before}");
        }
        for line in [
            "",
            "<",
            "<1>",
            "<134>1 ",
            "Nov 30",
            "2026-11-30T05:55:01Z x",
            "é: é: é",
            "1 2 3: 4",
            "2026-11-30T05:55:01Z,1,GET x: y",
        ] {
            assert_eq!(prefix(line), 0, "{line}");
        }
    }
}
