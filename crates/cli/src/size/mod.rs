//! `tidegate size`: how long a queue may be, with the arithmetic shown.
//!
//! Little's law: what waits is what is served in the time that it waits. So with W workers, a service time S and a
//! wait of at most B, at most W · B / S may wait; one more would wait for longer.
//!
//! `queue` is about one service, `chain` about several under one deadline; `sums` calculates, `answer` shows.

mod answer;
mod chain;
mod queue;
mod sums;

pub(crate) use sums::{Hop, Rate, parse_hop, parse_rate};

use std::io::Write as _;

use crate::args::SizeArgs;
use crate::exit::Failure;

pub(crate) fn run(args: &SizeArgs) -> Result<(), Failure> {
    let answer = match (args.deadline, args.workers, args.service_time) {
        (Some(deadline), ..) => chain::answer(deadline, &args.hop)?,
        (None, Some(workers), Some(service_time)) => {
            if service_time.is_zero() {
                return Err(Failure::runtime("a service time of zero needs no queue"));
            }
            let load = queue::Load { rate: args.rate, burst: args.burst };
            let hop = Hop { workers, service_time };
            match args.queue {
                Some(queue) => queue::meaning(hop, queue, load),
                None => queue::longest(hop, args.wait.unwrap_or_default(), load),
            }
        }
        // The argument parser has asked for what is needed.
        _ => return Err(Failure::runtime("--workers and --service-time are needed")),
    };
    let mut out = std::io::stdout();
    if args.json {
        writeln!(out, "{:#}", answer.to_json())?;
    } else {
        write!(out, "{answer}")?;
    }
    Ok(())
}
