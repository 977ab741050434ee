//! What the policy file calls things, for those who show a policy again.

use tidegate_engine::{Discipline, LimitPolicy};

use crate::keys::{ALGORITHMS, DISCIPLINES};

/// The `algorithm` of an adaptive limit; `None` for a number.
#[must_use]
pub fn algorithm(limit: &LimitPolicy) -> Option<&'static str> {
    match limit {
        LimitPolicy::Fixed(_) => None,
        LimitPolicy::Ebb(_) => Some(ALGORITHMS[0]),
        LimitPolicy::Aimd(_) => Some(ALGORITHMS[1]),
        LimitPolicy::Gradient2(_) => Some(ALGORITHMS[2]),
        LimitPolicy::Vegas(_) => Some(ALGORITHMS[3]),
    }
}

/// The `discipline` of a queue.
#[must_use]
pub fn discipline(discipline: Discipline) -> &'static str {
    match discipline {
        Discipline::Forecast => DISCIPLINES[0],
        Discipline::Fifo => DISCIPLINES[1],
        Discipline::AdaptiveLifo => DISCIPLINES[2],
        Discipline::Codel => DISCIPLINES[3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    /// Each word comes out as it went in.
    #[test]
    fn the_words_are_those_of_the_file() {
        for (algorithm, discipline) in ALGORITHMS.into_iter().zip(DISCIPLINES) {
            let text = format!(
                "[[upstream]]\nname = \"a\"\nendpoints = [\"http://127.0.0.1:1\"]\n\
                 concurrency = {{ algorithm = \"{algorithm}\" }}\nqueue = {{ discipline = \"{discipline}\" }}\n"
            );
            let policy = Policy::parse(&text, "policy.toml").unwrap().policy;
            let upstream = &policy.upstreams[0];
            assert_eq!(super::algorithm(&upstream.limit), Some(algorithm));
            assert_eq!(super::discipline(upstream.queue.discipline), discipline);
        }
    }
}
