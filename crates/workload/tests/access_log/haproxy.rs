//! HAProxy: the log of the real program by three ways, and the format's oddities by hand.

use expect_test::expect;
use tidegate_workload::access_log::{Choice, Format, Options};

use super::{check, check_with, fixture, read};

#[test]
fn one_slot_and_a_queue_of_300_ms() {
    check(
        fixture("haproxy.log"),
        &expect![[r#"
            recognised as haproxy: 28 of the first 28 lines fit. The time is the start of a request; the arrival is when its head was complete, one TR (or Tq) later. It names no time zone and is taken to be in UTC.
            1 06:08:52.636 200 GET "/orders/1" total=10 queued=0 service=10 client=127.0.0.1 bytes=117 route=orders
            2 06:08:52.662 200 GET "/orders/2" total=8 queued=0 service=8 client=127.0.0.1 bytes=117 route=orders
            3 06:08:52.685 200 GET "/orders/3" total=8 queued=0 service=8 client=127.0.0.1 bytes=117 route=orders
            4 06:08:52.712 200 GET "/orders/6" total=10 queued=0 service=10 client=::1 bytes=117 route=orders
            5 06:08:52.740 200 GET "/search" total=10 queued=0 service=10 client=127.0.0.1 bytes=117 route=orders
            6 06:08:52.765 200 POST "/checkout" total=8 queued=0 service=8 client=127.0.0.1 bytes=117 route=orders
            7 06:08:52.793 404 GET "/missing/thing" total=8 queued=0 service=8 client=127.0.0.1 bytes=124 route=orders
            8 06:08:52.813 500 GET "/broken" total=6 queued=0 service=6 client=127.0.0.1 bytes=136 route=orders
            9 06:08:52.831 200 GET "/work" total=256 queued=0 service=256 client=127.0.0.1 bytes=117 route=orders
            10 06:08:53.101 400 GET "/work" total=152 queued=0 client=127.0.0.1 bytes=206 route=orders left
            11 06:08:53.971 504 GET "/work" total=1002 queued=0 client=127.0.0.1 bytes=198 route=orders
            12 06:08:55.812 200 GET "/work" total=221 queued=0 service=221 client=127.0.0.1 bytes=117 route=orders
            17 06:08:55.818 200 GET "/work" total=444 queued=215 service=225 client=127.0.0.1 bytes=117 route=orders
            13 06:08:55.820 503 GET "/work" total=301 queued=301 client=127.0.0.1 bytes=217 route=orders attempts=0 refused
            14 06:08:55.828 503 GET "/work" total=301 queued=301 client=127.0.0.1 bytes=217 route=orders attempts=0 refused
            15 06:08:55.828 503 GET "/work" total=302 queued=302 client=127.0.0.1 bytes=217 route=orders attempts=0 refused
            16 06:08:55.829 503 GET "/work" total=300 queued=300 client=127.0.0.1 bytes=217 route=orders attempts=0 refused
            18 06:08:56.274 429 GET "/limited/a" total=0 client=127.0.0.1 bytes=225 route=web attempts=0 refused
            19 06:08:56.296 429 GET "/limited/b" total=0 client=127.0.0.1 bytes=225 route=web attempts=0 refused
            20 06:08:56.312 200 GET "/flaky/1" total=9 queued=0 service=9 client=127.0.0.1 bytes=117 route=orders
            21 06:08:56.332 200 GET "/flaky/2" total=10 queued=0 service=10 client=127.0.0.1 bytes=117 route=orders
            22 06:08:56.362 503 GET "/dead/1" total=501 queued=500 client=127.0.0.1 bytes=217 route=dead attempts=2
            23 06:08:56.885 503 GET "/none/1" total=0 client=127.0.0.1 bytes=217 route=none attempts=0 refused
            24 06:08:57.004 400 "" total=0 client=127.0.0.1 bytes=0 route=web attempts=0
            25 06:08:57.017 200 GET "/orders/1" total=8 queued=0 service=8 client=127.0.0.1 bytes=117 route=orders
            26 06:08:57.041 200 GET "/orders/2" total=8 queued=0 service=8 client=127.0.0.1 bytes=117 route=orders
            27 06:08:57.066 200 GET "/orders/3" total=8 queued=0 service=8 client=127.0.0.1 bytes=117 route=orders
            28 06:08:57.099 200 GET "/orders/4" total=10 queued=0 service=10 client=127.0.0.1 bytes=117 route=orders
        "#]],
    );
}

#[test]
fn what_syslog_puts_before_a_line_changes_nothing() {
    let entries = |name| read(fixture(name), Options::default()).0;
    let bare = entries("haproxy.log");
    assert_eq!(bare, entries("haproxy-rfc3164.log"));
    assert_eq!(bare, entries("haproxy-rfc5424.log"));
}

/// Before 1.7, `Tq` counts from the end of the request before on a kept connection: 12 s of silence on line 2.
#[test]
fn in_old_logs_the_idle_time_is_no_part_of_the_request() {
    check(
        fixture("haproxy-1.5.log"),
        &expect![[r#"
            recognised as haproxy: 8 of the first 8 lines fit. The time is the start of a request; the arrival is when its head was complete, one TR (or Tq) later. It names no time zone and is taken to be in UTC.
            1 08:15:09.125 200 GET "/catalog" total=204 queued=0 service=203 client=127.0.0.1 bytes=8421 route=shop
            5 08:15:13.000 408 "" total=10001 client=127.0.0.1 bytes=212 route=www attempts=0
            3 08:15:17.006 503 POST "/checkout" total=5000 queued=5000 client=127.0.0.1 bytes=212 route=shop attempts=0 refused
            4 08:15:20.440 GET "/catalog" total=1201 queued=1200 client=::1 bytes=0 route=shop attempts=0 left
            2 08:15:21.333 200 GET "/catalog/7" total=398 queued=310 service=88 client=127.0.0.1 bytes=512 route=shop
            6 08:15:22.503 502 GET "/report\"x" total=1000 queued=0 client=127.0.0.1 bytes=204 route=shop attempts=2
            7 08:15:24.001 200 GET "/stream" total=16 queued=0 service=15 client=127.0.0.1 bytes=0 route=shop
            8 08:15:24.800 200 GET "/cut/off/by/the/len" total=9 queued=0 service=9 client=127.0.0.1 bytes=64 route=shop
        "#]],
    );
}

#[test]
fn the_zone_can_be_said() {
    let line = "127.0.0.1:1 [04/Jul/2014:08:15:09.118] w b/s 0/0/0/1/1 200 1 - - ---- 1/1/0/0/0 0/0 \"GET / HTTP/1.1\"\n";
    let options = Options { zone: "America/New_York".parse().unwrap(), ..Options::default() };
    check_with(
        line,
        options,
        &expect![[r#"
        recognised as haproxy: 1 of the first 1 lines fit. The time is the start of a request; the arrival is when its head was complete, one TR (or Tq) later. It names no time zone and is taken to be in America/New_York.
        1 12:15:09.118 200 GET "/" total=1 queued=0 service=1 client=127.0.0.1 bytes=1 route=b
    "#]],
    );
}

#[test]
fn option_httpslog_adds_fields_at_the_end() {
    let line = "::1:1 [04/Jul/2014:08:15:09.118] w~ b/s 0/0/0/1/1 200 1 - - ---- 1/1/0/0/0 0/0 \"GET / HTTP/1.1\" 0/0000000000000000/0/0/0 shop.test/TLSv1.3/TLS_AES_256\n";
    let options = Options { format: Choice::Known(Format::Haproxy), ..Options::default() };
    check_with(
        line,
        options,
        &expect![[r#"
            read as haproxy: 1 of the first 1 lines fit. The time is the start of a request; the arrival is when its head was complete, one TR (or Tq) later. It names no time zone and is taken to be in UTC.
            1 08:15:09.118 200 GET "/" total=1 queued=0 service=1 client=::1 bytes=1 route=b
        "#]],
    );
}
