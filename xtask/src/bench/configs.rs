//! What the gateways of the proxy benchmark are told: the same task, with as little else as each can.
//!
//! One core each: one worker, one thread. No access log. Connections to the upstream are kept and reused. nginx and
//! HAProxy get no controls in the first task, which favours them: tidegate has its concurrency limit and queue on.

use std::net::SocketAddr;
use std::path::Path;

use super::peers::Task;

/// The limit is above the load's connections, so nothing waits: what is measured is the way through.
pub(crate) fn tidegate_policy(
    task: Task,
    listen: SocketAddr,
    admin: SocketAddr,
    upstream: SocketAddr,
) -> String {
    let rate_limit = match task {
        Task::Proxy => "",
        Task::Reject => "[[rate_limit]]\nname = \"bench\"\nkey = \"global\"\nrate = \"1/s\"\nburst = 1\n",
    };
    format!(
        r#"[server]
listen = "{listen}"
admin = "{admin}"
workers = 1
access_log = "off"
[[upstream]]
name = "bench"
endpoints = ["http://{upstream}"]
[upstream.concurrency]
limit = 256
[upstream.queue]
wait = "1s"
[[route]]
path = "/*"
upstream = "bench"
{rate_limit}"#
    )
}

/// nginx closes a connection after a number of requests; the others do not, so the number is set out of reach.
pub(crate) fn nginx_config(folder: &Path, server: &str) -> String {
    let folder = folder.display();
    // Only root can and has to say which user the worker runs as: one that can read the temporary folder.
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    format!(
        r"{user}
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {server}
}}
"
    )
}

/// A server that answers 200 with three bytes.
pub(crate) fn nginx_upstream(listen: SocketAddr) -> String {
    format!("server {{ listen {listen}; location / {{ return 200 \"ok\\n\"; }} }}")
}

/// A server that forwards, or refuses nearly everything.
pub(crate) fn nginx_proxy(task: Task, listen: SocketAddr, upstream: SocketAddr) -> String {
    let (zone, limit) = match task {
        Task::Proxy => ("", ""),
        Task::Reject => (
            "limit_req_zone $server_name zone=bench:1m rate=1r/s;",
            "limit_req zone=bench; limit_req_status 429; limit_req_log_level info;",
        ),
    };
    format!(
        r#"{zone}
    upstream bench {{ server {upstream}; keepalive 256; keepalive_requests 1000000000; }}
    server {{
        listen {listen};
        server_name bench;
        location / {{
            {limit}
            proxy_pass http://bench;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
        }}
    }}"#
    )
}

/// One frontend, one backend, one server.
pub(crate) fn haproxy_config(task: Task, listen: SocketAddr, upstream: SocketAddr) -> String {
    let limit = match task {
        Task::Proxy => "",
        Task::Reject => {
            "    stick-table type integer size 1k expire 10s store http_req_rate(1s)\n    \
             http-request track-sc0 int(1)\n    \
             http-request deny deny_status 429 if { sc_http_req_rate(0) gt 1 }\n"
        }
    };
    format!(
        r"global
    nbthread 1
    maxconn 4096
defaults
    mode http
    timeout connect 1s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend bench
    bind {listen}
{limit}    default_backend bench
backend bench
    server bench {upstream}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_toml_and_limits_only_when_it_has_to_refuse() {
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        for (task, limited) in [(Task::Proxy, false), (Task::Reject, true)] {
            let policy: toml::Table = tidegate_policy(task, address, address, address).parse().unwrap();
            assert_eq!(policy.contains_key("rate_limit"), limited);
            assert!(policy.contains_key("route"));
        }
    }
}
