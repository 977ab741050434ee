//! The one table from a reason to an answer. Values only; how they are written is in `reply`.

use http::StatusCode;
use tidegate_engine::Reason;

/// One row of the table: what whoever was refused for this reason is told.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Row {
    /// HTTP status.
    pub status: StatusCode,
    /// gRPC status code.
    pub grpc: u8,
    /// Whether and when to try again, for callers that ask.
    pub retry: Retry,
    /// RFC 9209 error type.
    pub proxy_error: &'static str,
    /// What Envoy would write into its log.
    pub flag: &'static str,
    /// What a person reads.
    pub title: &'static str,
    /// The connection is closed afterwards. Only whoever has the connection can do that.
    pub close: bool,
}

/// What a caller is told about trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// After the time that the rejection says, at least a second.
    After,
    /// Nothing is known.
    Unsaid,
    /// Do not.
    Never,
}

const RESOURCE_EXHAUSTED: u8 = 8;
const UNAVAILABLE: u8 = 14;
const DEADLINE_EXCEEDED: u8 = 4;
const CANCELLED: u8 = 1;

const CONNECTION_LIMIT: &str = "connection_limit_reached";
const RESPONSE_TIMEOUT: &str = "http_response_timeout";

impl Row {
    /// The row for a reason.
    pub const fn to(reason: Reason) -> Self {
        use Reason as R;
        match reason {
            R::RateLimited => Self {
                status: StatusCode::TOO_MANY_REQUESTS,
                grpc: RESOURCE_EXHAUSTED,
                ..Self::shed("http_request_error", "RL", "Over the rate limit")
            },
            R::TenantLimit => Self {
                status: StatusCode::TOO_MANY_REQUESTS,
                grpc: RESOURCE_EXHAUSTED,
                ..Self::shed(CONNECTION_LIMIT, "UO", "This tenant has too many requests under way")
            },
            R::RouteLimit => Self::shed(CONNECTION_LIMIT, "UO", "This route has too many requests under way"),
            R::QueueFull => {
                Self::shed(CONNECTION_LIMIT, "UO", "The service is at capacity and the queue is full")
            }
            R::WaitTooLong => Self::shed(CONNECTION_LIMIT, "UO", "The wait would be longer than is useful"),
            R::QueueTimeout => Self::shed(CONNECTION_LIMIT, "UO", "No capacity became free in time"),
            R::PushedOut => Self::shed(CONNECTION_LIMIT, "UO", "More important requests came first"),
            R::Deadline => {
                Self::gone(DEADLINE_EXCEEDED, RESPONSE_TIMEOUT, "DT", "The deadline cannot be met")
            }
            R::RetryBudget => Self {
                retry: Retry::Never,
                ..Self::shed(CONNECTION_LIMIT, "URX", "Too many retries are under way already")
            },
            R::BreakerOpen => Self::shed("destination_unavailable", "UH", "The service is known to be down"),
            R::UpstreamTimeout => {
                Self::gone(DEADLINE_EXCEEDED, RESPONSE_TIMEOUT, "UT", "The service did not answer in time")
            }
            R::UpstreamConnect => Self {
                status: StatusCode::BAD_GATEWAY,
                ..Self::gone(UNAVAILABLE, "connection_refused", "UF", "The service cannot be reached")
            },
            R::UpstreamReset => Self {
                status: StatusCode::BAD_GATEWAY,
                ..Self::gone(UNAVAILABLE, "connection_terminated", "UC", "The service closed the connection")
            },
            R::GatewayOverloaded => Self {
                close: true,
                ..Self::shed("proxy_internal_response", "OM", "The gateway itself is out of resources")
            },
            R::Draining => Self {
                close: true,
                ..Self::shed("proxy_internal_response", "DR", "The gateway is shutting down")
            },
            R::ClientLeft => Self {
                // Not a registered code; nginx's for the log. Nobody is there to read it.
                status: match StatusCode::from_u16(499) {
                    Ok(status) => status,
                    Err(_) => StatusCode::BAD_REQUEST,
                },
                ..Self::gone(CANCELLED, "connection_terminated", "DC", "The client left")
            },
        }
    }

    /// `route_limit`, where the policy says that the bulkhead is a quota.
    pub const fn route_quota() -> Self {
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            grpc: RESOURCE_EXHAUSTED,
            ..Self::to(Reason::RouteLimit)
        }
    }

    /// Refused now, welcome later.
    const fn shed(proxy_error: &'static str, flag: &'static str, title: &'static str) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            grpc: UNAVAILABLE,
            retry: Retry::After,
            proxy_error,
            flag,
            title,
            close: false,
        }
    }

    /// Admitted, or too late to be; something went wrong.
    const fn gone(grpc: u8, proxy_error: &'static str, flag: &'static str, title: &'static str) -> Self {
        Self {
            status: StatusCode::GATEWAY_TIMEOUT,
            grpc,
            retry: Retry::Unsaid,
            ..Self::shed(proxy_error, flag, title)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    /// The whole table, as it is documented.
    #[test]
    fn the_table() {
        let mut table = String::new();
        let rows = Reason::ALL.map(|reason| (reason, Row::to(reason)));
        for (reason, row) in rows.into_iter().chain([(Reason::RouteLimit, Row::route_quota())]) {
            let close = if row.close { " close" } else { "" };
            let (status, grpc, retry) = (row.status.as_u16(), row.grpc, row.retry);
            writeln!(
                table,
                "{reason}: {status} grpc {grpc} {retry:?} {} {}{close}",
                row.proxy_error, row.flag
            )
            .unwrap();
        }
        expect_test::expect![[r#"
            rate_limited: 429 grpc 8 After http_request_error RL
            tenant_limit: 429 grpc 8 After connection_limit_reached UO
            route_limit: 503 grpc 14 After connection_limit_reached UO
            queue_full: 503 grpc 14 After connection_limit_reached UO
            wait_too_long: 503 grpc 14 After connection_limit_reached UO
            queue_timeout: 503 grpc 14 After connection_limit_reached UO
            pushed_out: 503 grpc 14 After connection_limit_reached UO
            deadline: 504 grpc 4 Unsaid http_response_timeout DT
            retry_budget: 503 grpc 14 Never connection_limit_reached URX
            breaker_open: 503 grpc 14 After destination_unavailable UH
            upstream_timeout: 504 grpc 4 Unsaid http_response_timeout UT
            upstream_connect: 502 grpc 14 Unsaid connection_refused UF
            upstream_reset: 502 grpc 14 Unsaid connection_terminated UC
            gateway_overloaded: 503 grpc 14 After proxy_internal_response OM close
            draining: 503 grpc 14 After proxy_internal_response DR close
            client_left: 499 grpc 1 Unsaid connection_terminated DC
            route_limit: 429 grpc 8 After connection_limit_reached UO
        "#]]
        .assert_eq(&table);
    }
}
