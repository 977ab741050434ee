//! Caddy, Traefik and tidegate: an object a line.

use expect_test::expect;

use super::{check, fixture};

#[test]
fn caddy() {
    check(
        fixture("caddy.log"),
        &expect![[r#"
            recognised as caddy: 27 of the first 27 lines fit. The time is the end of a request; the arrival is that less its duration.
            1 05:55:06.663 200 GET "/orders/1" total=7.182 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            2 05:55:06.684 200 GET "/orders/2" total=48.601 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            3 05:55:06.745 200 GET "/orders/3" total=47.144 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            4 05:55:06.805 200 GET "/orders/6" total=50.946 host=[::1]:9140 client=::1 bytes=3
            5 05:55:06.867 200 GET "/search" total=50.048 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            6 05:55:06.930 200 POST "/checkout" total=50.066 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            7 05:55:06.992 404 GET "/missing/thing" total=48.079 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            8 05:55:07.050 500 GET "/broken" total=46.593 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            9 05:55:07.110 200 GET "/work" total=294.22 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            10 05:55:07.416 499 GET "/work" total=151.994 host=127.0.0.1:9140 client=127.0.0.1 bytes=0 left
            11 05:55:08.285 200 GET "/work" total=1502.773 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            14 05:55:10.621 200 GET "/work" total=224.62 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            12 05:55:10.621 200 GET "/work" total=222.063 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            13 05:55:10.623 200 GET "/work" total=222.613 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            16 05:55:10.627 200 GET "/work" total=223.244 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            15 05:55:10.628 200 GET "/work" total=221.741 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            17 05:55:10.628 200 GET "/work" total=222.277 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            18 05:55:10.863 200 GET "/limited/a" total=49.311 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            19 05:55:10.925 200 GET "/limited/b" total=46.713 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            20 05:55:10.988 200 GET "/flaky/1" total=49.867 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            21 05:55:11.053 200 GET "/flaky/2" total=47.002 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            22 05:55:11.115 200 GET "/dead/1" total=49.658 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            23 05:55:11.176 200 GET "/none/1" total=48.17 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            24 05:55:12.242 200 GET "/orders/1" total=8.689 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            25 05:55:12.268 200 GET "/orders/2" total=48.827 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            26 05:55:12.330 200 GET "/orders/3" total=46.606 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
            27 05:55:12.389 200 GET "/orders/4" total=51.881 host=127.0.0.1:9140 client=127.0.0.1 bytes=3
        "#]],
    );
}

#[test]
fn traefik() {
    check(
        fixture("traefik-json.log"),
        &expect![[r#"
            recognised as traefik-json: 3 of the first 3 lines fit. The time is the start of a request, and the arrival.
            1 08:26:53.100 200 GET "/catalog" total=212.345 service=210.123 host=shop.test client=127.0.0.1 bytes=8120 route=web@docker
            3 08:26:53.250 200 GET "/retry" total=900 service=899 host=shop.test client=127.0.0.1 bytes=3 route=web@docker attempts=3
            2 08:26:53.500 429 POST "/checkout" total=0.098 host=shop.test client=::1 bytes=17 route=pay@file attempts=0 refused
        "#]],
    );
}

#[test]
fn tidegate() {
    check(
        fixture("tidegate.log"),
        &expect![[r#"
            recognised as tidegate: 26 of the first 26 lines fit. The time is the end of a request; the arrival is that less `total_ms`.
            1 06:10:27.241 200 GET "/orders/1" total=7.171 service=7.003 client=127.0.0.1 bytes=3 route=/*
            2 06:10:27.259 200 GET "/orders/2" total=49.298 service=6.136 client=127.0.0.1 bytes=3 route=/*
            3 06:10:27.318 200 GET "/orders/3" total=49.96 service=6.137 client=127.0.0.1 bytes=3 route=/*
            4 06:10:27.388 200 GET "/search" total=48.288 service=6.322 client=127.0.0.1 bytes=3 route=/*
            5 06:10:27.447 200 POST "/checkout" total=49.494 service=6.251 client=127.0.0.1 bytes=3 route=/*
            6 06:10:27.508 404 GET "/missing/thing" total=47.857 service=5.998 client=127.0.0.1 bytes=3 route=/*
            7 06:10:27.568 500 GET "/broken" total=48.491 service=6.12 client=127.0.0.1 bytes=3 route=/*
            8 06:10:27.629 200 GET "/work" total=252.044 service=251.89 client=127.0.0.1 bytes=3 route=/*
            9 06:10:27.893 499 GET "/work" total=150.183 client=127.0.0.1 bytes=0 route=/* left
            10 06:10:28.758 504 GET "/work" total=801.749 client=127.0.0.1 bytes=0 route=/*
            14 06:10:30.398 200 GET "/work" total=223.33 service=222.859 client=127.0.0.1 bytes=3 route=/*
            16 06:10:30.398 200 GET "/work" total=444.373 queued=222.788 service=221.453 client=127.0.0.1 bytes=3 route=/*
            15 06:10:30.404 503 GET "/work" total=301.729 queued=301.658 client=127.0.0.1 bytes=0 route=/* attempts=0 refused
            11 06:10:30.404 503 GET "/work" total=0.148 client=127.0.0.1 bytes=0 route=/* attempts=0 refused
            12 06:10:30.405 503 GET "/work" total=0.027 client=127.0.0.1 bytes=0 route=/* attempts=0 refused
            13 06:10:30.405 503 GET "/work" total=0.026 client=127.0.0.1 bytes=0 route=/* attempts=0 refused
            17 06:10:30.860 200 GET "/limited/a" total=47.758 service=6.156 client=127.0.0.1 bytes=3 route=/limited/*
            18 06:10:30.919 429 GET "/limited/b" total=0.064 client=127.0.0.1 bytes=0 route=/limited/* attempts=0 refused
            19 06:10:30.929 200 GET "/flaky/1" total=6.707 service=6.566 client=127.0.0.1 bytes=3 route=/*
            20 06:10:30.952 200 GET "/flaky/2" total=6.229 service=6.094 client=127.0.0.1 bytes=3 route=/*
            21 06:10:30.976 200 GET "/dead/1" total=52.044 service=5.877 client=127.0.0.1 bytes=3 route=/*
            22 06:10:31.039 200 GET "/none/1" total=6.239 service=6.105 client=127.0.0.1 bytes=3 route=/*
            23 06:10:31.182 200 GET "/orders/1" total=6.052 service=5.932 client=127.0.0.1 bytes=3 route=/*
            24 06:10:31.201 200 GET "/orders/2" total=51.122 service=5.841 client=127.0.0.1 bytes=3 route=/*
            25 06:10:31.263 200 GET "/orders/3" total=6.116 service=5.994 client=127.0.0.1 bytes=3 route=/*
            26 06:10:31.279 200 GET "/orders/4" total=53.365 service=5.782 client=127.0.0.1 bytes=3 route=/*
        "#]],
    );
}
