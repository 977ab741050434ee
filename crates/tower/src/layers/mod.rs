//! The layers: the gate and rate limits in front of services, in the words of tower and `http`.
//!
//! What is refused becomes a response here, or an error; what is decided is the engine's.

mod gate_layer;
pub use gate_layer::{GateFuture, GateLayer, GateService};

mod call_layer;
pub use call_layer::{CallFuture, CallLayer, CallService};

mod class;
pub use class::Class;

mod passing;
pub use passing::CallError;

pub mod deadline;

mod slot;

mod body;
pub use body::AnswerBody;

mod outcome;
pub use outcome::outcome_of;

mod event;
pub use event::GateEvent;

pub mod answer;

mod rate_layer;
pub use rate_layer::{RateLimitFuture, RateLimitLayer, RateLimitService};

mod limits;
pub use limits::RateLimit;

pub mod quota;

mod key;
pub use key::Key;
