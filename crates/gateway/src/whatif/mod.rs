//! What if: the last five minutes of arrivals, played by the simulator against the policy as it is and against another.
//!
//! It answers a question about *our* side, with everything of the other side taken as it was: how many came and when, and
//! how long the upstream worked on each. What it cannot know is what nobody has tried: how much more the upstream could do at
//! once. It takes that to be the most that it was seen to do, unless whoever asks says otherwise. Clients are taken to wait
//! for as long as the upstream's timeout, and their retries to be what they were. Rate limits, tenants and deadlines of
//! clients are not played.

mod question;
pub(crate) use question::{Limit, Question};

mod recording;
pub(crate) use recording::Recording;

mod play;
pub(crate) use play::play;

mod result;
