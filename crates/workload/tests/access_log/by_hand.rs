//! Apache, AWS and Traefik's text: lines written by hand after the layouts.

use expect_test::expect;

use super::{check, fixture};

#[test]
fn apache_common() {
    check(
        fixture("apache-common.log"),
        &expect![[r#"
        recognised as common: 10 of the first 10 lines fit. Apache writes when a request came, nginx when it ended; without a duration in the log, what is written counts as the arrival. It has whole seconds only, so the requests of a second are spread evenly over it, and bursts within a second are lost.
        1 08:26:53.166 200 GET "/" client=127.0.0.1 bytes=5120
        2 08:26:53.500 200 GET "/reports/q1" client=127.0.0.1 bytes=81920
        3 08:26:53.833 200 OPTIONS "*" client=::1
        4 08:26:54.250 404 GET "/café/menü" client=127.0.0.1 bytes=196
        5 08:26:54.750 408 "" client=127.0.0.1
        6 08:26:55.250 400 "" client=127.0.0.1 bytes=226
        7 08:26:55.750 200 GET "/say" client=127.0.0.1 bytes=12
        8 08:26:57.500 503 POST "/orders" client=127.0.0.1 bytes=299
        9 08:26:58.250 204 DELETE "/orders/7" client=127.0.0.1
        10 08:26:58.750 200 GET "/old" client=127.0.0.1 bytes=44
    "#]],
    );
}

#[test]
fn apache_combined() {
    check(
        fixture("apache-combined.log"),
        &expect![[r#"
        recognised as combined: 9 of the first 9 lines fit. Apache writes when a request came, nginx when it ended; without a duration in the log, what is written counts as the arrival. It has whole seconds only, so the requests of a second are spread evenly over it, and bursts within a second are lost.
        1 08:26:53.166 200 GET "/" client=127.0.0.1 bytes=5120
        2 08:26:53.500 200 GET "/reports/q1" client=127.0.0.1 bytes=81920
        3 08:26:53.833 200 OPTIONS "*" client=::1
        4 08:26:54.250 404 GET "/café/menü" client=127.0.0.1 bytes=196
        5 08:26:54.750 408 "" client=127.0.0.1
        6 08:26:55.250 400 "" client=127.0.0.1 bytes=226
        7 08:26:55.750 200 GET "/say" client=127.0.0.1 bytes=12
        8 08:26:57.500 503 POST "/orders" client=127.0.0.1 bytes=299
        9 08:26:58.500 200 GET "/extra" client=127.0.0.1 bytes=44
    "#]],
    );
}

#[test]
fn aws_alb() {
    check(
        fixture("alb.log"),
        &expect![[r#"
            recognised as alb: 5 of the first 5 lines fit. The arrival is the request's creation time; the other time is that of the answer.
            1 08:26:53.300 200 GET "/catalog" total=212.345 service=210 host=shop.test:443 client=127.0.0.1 bytes=8120 route=web
            2 08:26:54.000 503 GET "/catalog" total=0.1 host=shop.test:80 client=::1 bytes=337 route=web attempts=0 refused
            3 08:26:56.250 460 POST "/checkout" total=3000 host=shop.test:443 client=127.0.0.1 bytes=0 route=pay left
            4 08:26:59.990 400 "" total=10 client=127.0.0.1 bytes=272 attempts=0
            5 08:27:00.897 200 GET "/old" total=103 service=101 host=shop.test:80 client=127.0.0.1 bytes=90 route=web
        "#]],
    );
}

#[test]
fn traefik_text() {
    check(
        fixture("traefik.log"),
        &expect![[r#"
        recognised as traefik: 5 of the first 5 lines fit. The time is the start of a request, and the arrival. It has whole seconds only, so the requests of a second are spread evenly over it, and bursts within a second are lost.
        1 08:26:53.250 200 GET "/catalog" total=212 client=127.0.0.1 bytes=8120 route=web@docker
        2 08:26:53.750 502 POST "/checkout" total=1 client=127.0.0.1 bytes=11 route=pay@file
        3 08:26:54.250 429 GET "/catalog" total=0 client=::1 bytes=17 route=web@docker attempts=0 refused
        4 08:26:54.750 404 GET "/nowhere" total=0 client=127.0.0.1 bytes=19 attempts=0
        5 08:26:55.500 499 GET "/slow" total=3002 client=127.0.0.1 bytes=21 route=web@docker left
    "#]],
    );
}
