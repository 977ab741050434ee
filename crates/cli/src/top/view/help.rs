//! What the words mean, and which keys there are.

use super::super::frame::{Frame, Line, Tone};

const KEYS: [(&str, &str); 5] = [
    ("q, Esc, Ctrl-C", "end"),
    ("u, j, down", "the next upstream"),
    ("k, up", "the one before"),
    ("p, space", "hold the picture, and go on"),
    ("?", "this; any key ends it"),
];

const WORDS: [(&str, &str); 9] = [
    ("goodput", "answers 2xx and 3xx to clients still waiting, each second"),
    ("refused", "told no by the gateway, by reason (docs/operating.md)"),
    ("in flight", "slots taken, orphans included; `most` since the start"),
    ("orphan", "a slot whose work nobody waits for any more"),
    ("wait", "in the queue: the mean and the longest that ended"),
    ("latency", "from arrival to the end of the answer, with the queue"),
    ("upstream", "from the dispatch to the head of the answer"),
    ("retries", "sent again; refused, when the budget was spent"),
    ("Little", "so many leave a second × so long each = in flight"),
];

pub(super) fn draw(frame: &mut Frame) {
    for (heading, rows) in [("Keys", &KEYS[..]), ("Words", &WORDS)] {
        frame.add(Line::of(Tone::Bold, heading));
        for (what, meaning) in rows {
            frame.add(Line::of(Tone::Plain, "  ").left(Tone::Chosen, what, 16).then(Tone::Plain, *meaning));
        }
    }
}
