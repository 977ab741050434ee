//! Lints of health checks.

use super::{At, LintCode, Lints};
use crate::keys::HEALTH_CHECK;
use crate::model::Policy;
use crate::values::duration_text;

pub(super) fn check(policy: &Policy, lints: &mut Lints<'_>) {
    for (index, upstream) in policy.upstreams.iter().enumerate() {
        let Some(health) = &upstream.health_check else { continue };
        let at = |key| At { section: &HEALTH_CHECK, index, key };
        if health.timeout > health.interval {
            lints.warn(
                LintCode::HealthCheckOverlaps,
                at(if lints.given(at("timeout")).is_some() { "timeout" } else { "interval" }),
                format!(
                    "`timeout` ({}) is longer than `interval` ({}): an endpoint that does not answer is asked less often",
                    duration_text(health.timeout),
                    duration_text(health.interval)
                ),
                "write a `timeout` below `interval`",
            );
        }
        if upstream.endpoints.len() == 1 {
            lints.warn(
                LintCode::HealthCheckAlone,
                at("path"),
                "there is only one endpoint, and it gets all requests whether or not it is healthy",
                "give more endpoints; without others, the breaker is what keeps requests away",
            );
        }
    }
}
