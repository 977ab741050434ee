//! What tidegate, HAProxy and nginx are told.
//!
//! tidegate is told where the service is. HAProxy and nginx have no way to find a limit, so theirs is set by hand, by
//! somebody who knows the service and its clients to the number: how many workers, how many answers a second, how long
//! clients wait. That is the best that can be done with them on the day for which the numbers are right.

use std::net::SocketAddr;
use std::path::Path;

use super::case::Story;
use super::contender::Known;
use super::{fairness, priorities};
use crate::bench::configs::nginx_config;

/// tidegate's policy, where it needs one: to say which clients are which. `None`: `run --upstream` is enough.
pub(crate) fn tidegate(known: &Known, listen: SocketAddr, admin: SocketAddr) -> Option<String> {
    let routes = match known.story {
        Story::Untold => return None,
        Story::Priorities => format!(
            r#"
[[priority]]
name = "critical"
[[priority]]
name = "default"
[[priority]]
name = "background"
floor = {floor}
[[route]]
path = "{checkout}"
upstream = "service"
priority = "critical"
[[route]]
path = "{analytics}"
upstream = "service"
priority = "background"
"#,
            floor = priorities::FLOOR,
            checkout = priorities::CHECKOUT,
            analytics = priorities::ANALYTICS,
        ),
        Story::Tenants => format!(
            "[[route]]\npath = \"/*\"\nupstream = \"service\"\ntenant = \"header:{}\"\n",
            fairness::TENANT_HEADER
        ),
    };
    Some(format!(
        r#"[server]
listen = "{listen}"
admin = "{admin}"
access_log = "off"
[[upstream]]
name = "service"
endpoints = ["http://{upstream}"]
{routes}"#,
        upstream = known.upstream,
    ))
}

/// `maxconn` is the true number of workers. A request waits for three quarters of what its client does, and no more are
/// let wait than can be served in that time: the queue of a backend has no bound of its own, so its length is asked on
/// arrival, as the configuration manual proposes for a surge. `abortonclose` stays off, since the service goes on with
/// work whose client has left: so does the slot.
pub(crate) fn haproxy(known: &Known, listen: SocketAddr) -> String {
    let wait = known.timeout.mul_f64(0.75);
    let queue = (known.capacity * wait.as_secs_f64()).round().max(1.0);
    // Lower classes go first, and the bound of the queue is for the others.
    let (class, unless) = match known.story {
        Story::Priorities => (
            format!("    http-request set-priority-class int(-1) if {{ path {} }}\n", priorities::CHECKOUT),
            format!(" !{{ path {} }}", priorities::CHECKOUT),
        ),
        Story::Untold | Story::Tenants => (String::new(), String::new()),
    };
    format!(
        r"global
    nbthread 1
    maxconn 8000
defaults
    mode http
    timeout connect 1s
    timeout client 60s
    timeout server 60s
    timeout queue {wait}ms
    no option abortonclose
    retries 0
    http-reuse always
frontend clients
    bind {listen}
    default_backend service
backend service
    http-request deny deny_status 503 if {{ queue(service) ge {queue} }}{unless}
{class}    server service {upstream} maxconn {workers}
",
        wait = wait.as_millis(),
        upstream = known.upstream,
        workers = known.workers,
    )
}

/// `limit_conn` counts requests at work and lets nobody wait. So it is set to twice the number of workers, and to four
/// more at least: the others wait in the service, and no worker is idle. `proxy_ignore_client_abort` keeps the place of a
/// client that left, since the service goes on with its work.
pub(crate) fn nginx(known: &Known, listen: SocketAddr, folder: &Path) -> String {
    let server = format!(
        r#"limit_conn_zone $server_name zone=service:1m;
    upstream service {{ server {upstream}; keepalive 512; keepalive_requests 1000000000; }}
    server {{
        listen {listen} backlog=4096;
        server_name service;
        location / {{
            limit_conn service {limit};
            limit_conn_status 503;
            limit_conn_log_level info;
            proxy_pass http://service;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_ignore_client_abort on;
            proxy_next_upstream off;
        }}
    }}"#,
        upstream = known.upstream,
        limit = known.workers.saturating_mul(2).max(known.workers.saturating_add(4)),
    );
    nginx_config(folder, &server).replace("worker_connections 4096", "worker_connections 16000")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn known(story: Story) -> Known {
        Known {
            upstream: SocketAddr::from(([127, 0, 0, 1], 80)),
            workers: 10,
            capacity: 470.0,
            timeout: Duration::from_millis(400),
            story,
        }
    }

    #[test]
    fn tidegate_is_told_who_is_who_and_no_number_of_the_service() {
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        assert_eq!(tidegate(&known(Story::Untold), address, address), None);
        for (story, routes) in [(Story::Priorities, 2), (Story::Tenants, 1)] {
            let policy: toml::Table = tidegate(&known(story), address, address).unwrap().parse().unwrap();
            assert_eq!(policy["route"].as_array().unwrap().len(), routes);
            let upstream = policy["upstream"][0].as_table().unwrap();
            assert_eq!(upstream.keys().collect::<Vec<_>>(), ["endpoints", "name"]);
        }
    }

    #[test]
    fn haproxy_lets_as_many_wait_as_can_be_served_in_that_time() {
        let config = haproxy(&known(Story::Untold), SocketAddr::from(([127, 0, 0, 1], 80)));
        assert!(
            config.contains("timeout queue 300ms") && config.contains("queue(service) ge 141"),
            "{config}"
        );
    }
}
