//! nginx: its own formats, those of nginx.conf, and ingress-nginx.

use expect_test::expect;
use tidegate_workload::access_log::{Choice, LogFormat, Options};

use super::{check, check_with, fixture, read};

fn with(format: LogFormat) -> Options {
    Options { format: Choice::Nginx(format), ..Options::default() }
}

fn from_conf(name: &str) -> LogFormat {
    let conf = String::from_utf8(fixture("made-by/nginx.conf")).unwrap();
    LogFormat::from_conf(&conf, Some(name)).unwrap()
}

#[test]
fn combined() {
    check(
        fixture("nginx-combined.log"),
        &expect![[r#"
        recognised as combined: 28 of the first 28 lines fit. Apache writes when a request came, nginx when it ended; without a duration in the log, what is written counts as the arrival. It has whole seconds only, so the requests of a second are spread evenly over it, and bursts within a second are lost.
        1 05:54:55.062 200 GET "/orders/1" client=127.0.0.1 bytes=3
        2 05:54:55.187 200 GET "/orders/2" client=127.0.0.1 bytes=3
        3 05:54:55.312 200 GET "/orders/3" client=127.0.0.1 bytes=3
        4 05:54:55.437 200 GET "/orders/6" client=::1 bytes=3
        5 05:54:55.562 200 GET "/search" client=127.0.0.1 bytes=3
        6 05:54:55.687 200 POST "/checkout" client=127.0.0.1 bytes=3
        7 05:54:55.812 404 GET "/missing/thing" client=127.0.0.1 bytes=3
        8 05:54:55.937 500 GET "/broken" client=127.0.0.1 bytes=3
        9 05:54:56.250 200 GET "/work" client=127.0.0.1 bytes=3
        10 05:54:56.750 499 GET "/work" client=127.0.0.1 bytes=0 left
        11 05:54:58.500 200 GET "/work" client=127.0.0.1 bytes=3
        12 05:54:59.029 200 GET "/work" client=127.0.0.1 bytes=3
        13 05:54:59.088 200 GET "/work" client=127.0.0.1 bytes=3
        14 05:54:59.147 200 GET "/work" client=127.0.0.1 bytes=3
        15 05:54:59.205 200 GET "/work" client=127.0.0.1 bytes=3
        16 05:54:59.264 200 GET "/work" client=127.0.0.1 bytes=3
        17 05:54:59.323 200 GET "/work" client=127.0.0.1 bytes=3
        18 05:54:59.382 200 GET "/limited/a" client=127.0.0.1 bytes=3
        19 05:54:59.441 429 GET "/limited/b" client=127.0.0.1 bytes=169
        20 05:54:59.500 200 GET "/flaky/1" client=127.0.0.1 bytes=3
        21 05:54:59.558 200 GET "/flaky/2" client=127.0.0.1 bytes=3
        22 05:54:59.617 200 GET "/dead/1" client=127.0.0.1 bytes=3
        23 05:54:59.676 200 GET "/none/1" client=127.0.0.1 bytes=3
        24 05:54:59.735 400 "" client=127.0.0.1 bytes=157
        25 05:54:59.794 200 GET "/orders/1" client=127.0.0.1 bytes=3
        26 05:54:59.852 200 GET "/orders/2" client=127.0.0.1 bytes=3
        27 05:54:59.911 200 GET "/orders/3" client=127.0.0.1 bytes=3
        28 05:54:59.970 200 GET "/orders/4" client=127.0.0.1 bytes=3
    "#]],
    );
}

#[test]
fn a_format_of_ones_own_with_milliseconds_and_durations() {
    let format = from_conf("timed").map("tenant", "http_x_tenant").unwrap();
    check_with(
        fixture("nginx-timed.log"),
        with(format),
        &expect![[r#"
            read as log_format timed: 28 of the first 28 lines fit. The time is the end of a request; the arrival is that less $request_time.
            1 05:54:55.793 200 GET "/orders/1" total=9 service=9 host=127.0.0.1 client=127.0.0.1
            2 05:54:55.813 200 GET "/orders/2" total=7 service=6 host=127.0.0.1 client=127.0.0.1
            3 05:54:55.833 200 GET "/orders/3" total=6 service=7 host=127.0.0.1 client=127.0.0.1
            4 05:54:55.852 200 GET "/orders/6" total=7 service=7 host=[::1] client=::1
            5 05:54:55.872 200 GET "/search" total=7 service=8 host=127.0.0.1 client=127.0.0.1
            6 05:54:55.892 200 POST "/checkout" total=7 service=7 host=127.0.0.1 client=127.0.0.1 tenant=blue
            7 05:54:55.912 404 GET "/missing/thing" total=7 service=6 host=127.0.0.1 client=127.0.0.1
            8 05:54:55.930 500 GET "/broken" total=6 service=7 host=127.0.0.1 client=127.0.0.1
            9 05:54:55.948 200 GET "/work" total=252 service=252 host=127.0.0.1 client=127.0.0.1
            10 05:54:56.213 499 GET "/work" total=150 service=151 host=127.0.0.1 client=127.0.0.1 left
            11 05:54:57.078 200 GET "/work" total=1502 service=1502 host=127.0.0.1 client=127.0.0.1
            12 05:54:59.408 200 GET "/work" total=223 service=223 host=127.0.0.1 client=127.0.0.1
            14 05:54:59.409 200 GET "/work" total=225 service=225 host=127.0.0.1 client=127.0.0.1
            13 05:54:59.410 200 GET "/work" total=223 service=223 host=127.0.0.1 client=127.0.0.1
            15 05:54:59.410 200 GET "/work" total=224 service=224 host=127.0.0.1 client=127.0.0.1
            16 05:54:59.411 200 GET "/work" total=225 service=226 host=127.0.0.1 client=127.0.0.1
            17 05:54:59.412 200 GET "/work" total=225 service=224 host=127.0.0.1 client=127.0.0.1
            18 05:54:59.650 200 GET "/limited/a" total=7 service=6 host=127.0.0.1 client=127.0.0.1
            19 05:54:59.670 429 GET "/limited/b" total=0 host=127.0.0.1 client=127.0.0.1 attempts=0 refused
            20 05:54:59.683 200 GET "/flaky/1" total=7 service=7 host=127.0.0.1 client=127.0.0.1 attempts=2
            21 05:54:59.702 200 GET "/flaky/2" total=6 service=7 host=127.0.0.1 client=127.0.0.1
            22 05:54:59.721 200 GET "/dead/1" total=7 service=7 host=127.0.0.1 client=127.0.0.1
            23 05:54:59.738 200 GET "/none/1" total=6 service=7 host=127.0.0.1 client=127.0.0.1
            24 05:54:59.858 400 "" total=1 host=shop.test client=127.0.0.1 attempts=0
            25 05:54:59.868 200 GET "/orders/1" total=8 service=7 host=127.0.0.1 client=127.0.0.1
            26 05:54:59.887 200 GET "/orders/2" total=6 service=6 host=127.0.0.1 client=127.0.0.1
            27 05:54:59.903 200 GET "/orders/3" total=7 service=6 host=127.0.0.1 client=127.0.0.1
            28 05:54:59.919 200 GET "/orders/4" total=6 service=7 host=127.0.0.1 client=127.0.0.1
        "#]],
    );
}

#[test]
fn a_format_that_writes_json() {
    check_with(
        fixture("nginx-json.log"),
        with(from_conf("json")),
        &expect![[r#"
        read as log_format json: 28 of the first 28 lines fit. The time is the end of a request; the arrival is that less $request_time. It has whole seconds only, so the requests of a second are spread evenly over it, and bursts within a second are lost.
        1 05:54:55.053 200 GET "/orders/1" total=9 service=9 client=127.0.0.1 bytes=3
        2 05:54:55.180 200 GET "/orders/2" total=7 service=6 client=127.0.0.1 bytes=3
        3 05:54:55.306 200 GET "/orders/3" total=6 service=7 client=127.0.0.1 bytes=3
        4 05:54:55.430 200 GET "/orders/6" total=7 service=7 client=::1 bytes=3
        5 05:54:55.555 200 GET "/search" total=7 service=8 client=127.0.0.1 bytes=3
        6 05:54:55.680 200 POST "/checkout" total=7 service=7 client=127.0.0.1 bytes=3
        7 05:54:55.805 404 GET "/missing/thing" total=7 service=6 client=127.0.0.1 bytes=3
        8 05:54:55.931 500 GET "/broken" total=6 service=7 client=127.0.0.1 bytes=3
        9 05:54:55.998 200 GET "/work" total=252 service=252 client=127.0.0.1 bytes=3
        10 05:54:56.600 499 GET "/work" total=150 service=151 client=127.0.0.1 bytes=0 left
        11 05:54:56.998 200 GET "/work" total=1502 service=1502 client=127.0.0.1 bytes=3
        12 05:54:58.806 200 GET "/work" total=223 service=223 client=127.0.0.1 bytes=3
        13 05:54:58.865 200 GET "/work" total=223 service=223 client=127.0.0.1 bytes=3
        14 05:54:58.922 200 GET "/work" total=225 service=225 client=127.0.0.1 bytes=3
        15 05:54:58.981 200 GET "/work" total=224 service=224 client=127.0.0.1 bytes=3
        16 05:54:59.039 200 GET "/work" total=225 service=226 client=127.0.0.1 bytes=3
        17 05:54:59.098 200 GET "/work" total=225 service=224 client=127.0.0.1 bytes=3
        18 05:54:59.375 200 GET "/limited/a" total=7 service=6 client=127.0.0.1 bytes=3
        19 05:54:59.441 429 GET "/limited/b" total=0 client=127.0.0.1 bytes=169 attempts=0 refused
        20 05:54:59.493 200 GET "/flaky/1" total=7 service=7 client=127.0.0.1 bytes=3 attempts=2
        21 05:54:59.552 200 GET "/flaky/2" total=6 service=7 client=127.0.0.1 bytes=3
        22 05:54:59.610 200 GET "/dead/1" total=7 service=7 client=127.0.0.1 bytes=3
        23 05:54:59.670 200 GET "/none/1" total=6 service=7 client=127.0.0.1 bytes=3
        24 05:54:59.734 400 "" total=1 client=127.0.0.1 bytes=157 attempts=0
        25 05:54:59.786 200 GET "/orders/1" total=8 service=7 client=127.0.0.1 bytes=3
        26 05:54:59.846 200 GET "/orders/2" total=6 service=6 client=127.0.0.1 bytes=3
        27 05:54:59.904 200 GET "/orders/3" total=7 service=6 client=127.0.0.1 bytes=3
        28 05:54:59.964 200 GET "/orders/4" total=6 service=7 client=127.0.0.1 bytes=3
    "#]],
    );
}

#[test]
fn ingress_nginx() {
    check(
        fixture("ingress-nginx.log"),
        &expect![[r#"
            recognised as ingress-nginx: 28 of the first 28 lines fit. The time is the end of a request; the arrival is that less $request_time. It has whole seconds only, so the requests of a second are spread evenly over it, and bursts within a second are lost.
            1 05:54:55.053 200 GET "/orders/1" total=9 service=9 client=127.0.0.1 bytes=3 route=shop-orders-80
            2 05:54:55.180 200 GET "/orders/2" total=7 service=6 client=127.0.0.1 bytes=3 route=shop-orders-80
            3 05:54:55.306 200 GET "/orders/3" total=6 service=7 client=127.0.0.1 bytes=3 route=shop-orders-80
            4 05:54:55.430 200 GET "/orders/6" total=7 service=7 client=::1 bytes=3 route=shop-orders-80
            5 05:54:55.555 200 GET "/search" total=7 service=8 client=127.0.0.1 bytes=3 route=shop-orders-80
            6 05:54:55.680 200 POST "/checkout" total=7 service=7 client=127.0.0.1 bytes=3 route=shop-orders-80
            7 05:54:55.805 404 GET "/missing/thing" total=7 service=6 client=127.0.0.1 bytes=3 route=shop-orders-80
            8 05:54:55.931 500 GET "/broken" total=6 service=7 client=127.0.0.1 bytes=3 route=shop-orders-80
            9 05:54:55.998 200 GET "/work" total=252 service=252 client=127.0.0.1 bytes=3 route=shop-orders-80
            10 05:54:56.600 499 GET "/work" total=150 service=151 client=127.0.0.1 bytes=0 route=shop-orders-80 left
            11 05:54:56.998 200 GET "/work" total=1502 service=1502 client=127.0.0.1 bytes=3 route=shop-orders-80
            12 05:54:58.806 200 GET "/work" total=223 service=223 client=127.0.0.1 bytes=3 route=shop-orders-80
            13 05:54:58.865 200 GET "/work" total=223 service=223 client=127.0.0.1 bytes=3 route=shop-orders-80
            14 05:54:58.922 200 GET "/work" total=225 service=225 client=127.0.0.1 bytes=3 route=shop-orders-80
            15 05:54:58.981 200 GET "/work" total=224 service=224 client=127.0.0.1 bytes=3 route=shop-orders-80
            16 05:54:59.039 200 GET "/work" total=225 service=226 client=127.0.0.1 bytes=3 route=shop-orders-80
            17 05:54:59.098 200 GET "/work" total=225 service=224 client=127.0.0.1 bytes=3 route=shop-orders-80
            18 05:54:59.375 200 GET "/limited/a" total=7 service=6 client=127.0.0.1 bytes=3 route=shop-orders-80
            19 05:54:59.441 429 GET "/limited/b" total=0 client=127.0.0.1 bytes=169 route=shop-orders-80 attempts=0 refused
            20 05:54:59.493 200 GET "/flaky/1" total=7 service=3000 client=127.0.0.1 bytes=3 route=shop-orders-80 attempts=2
            21 05:54:59.552 200 GET "/flaky/2" total=6 service=7 client=127.0.0.1 bytes=3 route=shop-orders-80
            22 05:54:59.610 200 GET "/dead/1" total=7 service=7 client=127.0.0.1 bytes=3 route=shop-orders-80
            23 05:54:59.670 200 GET "/none/1" total=6 service=7 client=127.0.0.1 bytes=3 route=shop-orders-80
            24 05:54:59.734 400 "" total=1 client=127.0.0.1 bytes=157 attempts=0
            25 05:54:59.786 200 GET "/orders/1" total=8 service=7 client=127.0.0.1 bytes=3 route=shop-orders-80
            26 05:54:59.846 200 GET "/orders/2" total=6 service=6 client=127.0.0.1 bytes=3 route=shop-orders-80
            27 05:54:59.904 200 GET "/orders/3" total=7 service=6 client=127.0.0.1 bytes=3 route=shop-orders-80
            28 05:54:59.964 200 GET "/orders/4" total=6 service=7 client=127.0.0.1 bytes=3 route=shop-orders-80
        "#]],
    );
}

/// A container's output, as the kubelet keeps it.
#[test]
fn what_kubernetes_puts_before_a_line_changes_nothing() {
    let bare = String::from_utf8(fixture("ingress-nginx.log")).unwrap();
    let kept: Vec<_> =
        bare.lines().map(|line| format!("2026-11-30T05:54:55.802123456Z stdout F {line}\n")).collect();
    let entries = |text: String| read(text, Options::default()).0;
    assert_eq!(entries(kept.concat()), entries(bare));
}

/// nginx writes a colon where it went from one group of servers to another.
#[test]
fn attempts_are_counted_and_their_times_added_up() {
    let format: LogFormat = "$msec $upstream_addr $upstream_response_time $status".parse().unwrap();
    let text = "10.5 127.0.0.2:80, 127.0.0.3:80 : 127.0.0.4:80 0.010, - : 0.200 200\n10.6 - - 503\n10.7 127.0.0.2:80 - 499\n";
    check_with(
        text,
        with(format),
        &expect![[r#"
            read as log_format unnamed: 3 of the first 3 lines fit. The time is the end of a request, and without $request_time in the format it counts as the arrival.
            1 00:00:10.500 200 "" service=210 attempts=3
            2 00:00:10.600 503 "" attempts=0 refused
            3 00:00:10.700 499 "" left
        "#]],
    );
}
