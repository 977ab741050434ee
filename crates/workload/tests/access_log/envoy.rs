//! Envoy and Istio, as text and as JSON: one slot too few, so that Envoy refuses.

use expect_test::expect;
use tidegate_workload::access_log::Options;

use super::{check, fixture, read};

#[test]
fn default_text() {
    check(
        fixture("envoy.log"),
        &expect![[r#"
        recognised as envoy: 28 of the first 28 lines fit. The time is the start of a request, and the arrival.
        1 05:55:13.668 200 GET "/orders/1" total=10 service=7 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        2 05:55:13.694 200 GET "/orders/2" total=49 service=6 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        3 05:55:13.758 200 GET "/orders/3" total=51 service=6 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        4 05:55:13.825 200 GET "/orders/6" total=51 service=7 host=[::1]:9150 client=127.0.0.1 bytes=3
        5 05:55:13.891 200 GET "/search" total=52 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        6 05:55:13.956 200 POST "/checkout" total=48 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        7 05:55:14.018 404 GET "/missing/thing" total=46 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        8 05:55:14.077 500 GET "/broken" total=47 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        9 05:55:14.137 200 GET "/work" total=294 service=250 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        10 05:55:14.449 GET "/work" total=152 host=127.0.0.1:9150 client=127.0.0.1 bytes=0 left
        11 05:55:15.313 504 GET "/work" total=798 host=127.0.0.1:9150 client=127.0.0.1 bytes=24
        12 05:55:16.947 503 GET "/work" total=0 host=127.0.0.1:9150 client=127.0.0.1 bytes=81 attempts=0 refused
        16 05:55:16.947 200 GET "/work" total=222 service=221 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        13 05:55:16.948 503 GET "/work" total=0 host=127.0.0.1:9150 client=127.0.0.1 bytes=81 attempts=0 refused
        14 05:55:16.948 503 GET "/work" total=0 host=127.0.0.1:9150 client=127.0.0.1 bytes=81 attempts=0 refused
        15 05:55:16.948 503 GET "/work" total=0 host=127.0.0.1:9150 client=127.0.0.1 bytes=81 attempts=0 refused
        17 05:55:16.952 200 GET "/work" total=223 service=222 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        18 05:55:17.193 200 GET "/limited/a" total=47 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        19 05:55:17.253 429 GET "/limited/b" total=0 host=127.0.0.1:9150 client=127.0.0.1 bytes=18 attempts=0 refused
        20 05:55:17.267 200 GET "/flaky/1" total=48 service=6 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        21 05:55:17.326 200 GET "/flaky/2" total=46 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        22 05:55:17.390 503 GET "/dead/1" total=23 host=127.0.0.1:9150 client=127.0.0.1 bytes=121
        23 05:55:17.424 200 GET "/none/1" total=6 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        24 05:55:17.548 400 "" total=0 bytes=11 attempts=0
        25 05:55:18.447 200 GET "/orders/1" total=6 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        26 05:55:18.465 200 GET "/orders/2" total=47 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        27 05:55:18.524 200 GET "/orders/3" total=48 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
        28 05:55:18.582 200 GET "/orders/4" total=49 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3
    "#]],
    );
}

#[test]
fn istio_text() {
    check(
        fixture("istio.log"),
        &expect![[r#"
            recognised as istio: 28 of the first 28 lines fit. The time is the start of a request, and the arrival.
            1 05:55:13.668 200 GET "/orders/1" total=10 service=7 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            2 05:55:13.694 200 GET "/orders/2" total=49 service=6 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            3 05:55:13.758 200 GET "/orders/3" total=51 service=6 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            4 05:55:13.825 200 GET "/orders/6" total=51 service=7 host=[::1]:9150 client=::1 bytes=3 route=orders
            5 05:55:13.891 200 GET "/search" total=52 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            6 05:55:13.956 200 POST "/checkout" total=48 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            7 05:55:14.018 404 GET "/missing/thing" total=46 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            8 05:55:14.077 500 GET "/broken" total=47 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            9 05:55:14.137 200 GET "/work" total=294 service=250 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            10 05:55:14.449 GET "/work" total=152 host=127.0.0.1:9150 client=127.0.0.1 bytes=0 route=orders left
            11 05:55:15.313 504 GET "/work" total=798 host=127.0.0.1:9150 client=127.0.0.1 bytes=24 route=orders
            12 05:55:16.947 503 GET "/work" total=0 host=127.0.0.1:9150 client=127.0.0.1 bytes=81 route=orders attempts=0 refused
            16 05:55:16.947 200 GET "/work" total=222 service=221 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            13 05:55:16.948 503 GET "/work" total=0 host=127.0.0.1:9150 client=127.0.0.1 bytes=81 route=orders attempts=0 refused
            14 05:55:16.948 503 GET "/work" total=0 host=127.0.0.1:9150 client=127.0.0.1 bytes=81 route=orders attempts=0 refused
            15 05:55:16.948 503 GET "/work" total=0 host=127.0.0.1:9150 client=127.0.0.1 bytes=81 route=orders attempts=0 refused
            17 05:55:16.952 200 GET "/work" total=223 service=222 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            18 05:55:17.193 200 GET "/limited/a" total=47 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            19 05:55:17.253 429 GET "/limited/b" total=0 host=127.0.0.1:9150 client=127.0.0.1 bytes=18 route=orders attempts=0 refused
            20 05:55:17.267 200 GET "/flaky/1" total=48 service=6 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            21 05:55:17.326 200 GET "/flaky/2" total=46 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            22 05:55:17.390 503 GET "/dead/1" total=23 host=127.0.0.1:9150 client=127.0.0.1 bytes=121 route=dead
            23 05:55:17.424 200 GET "/none/1" total=6 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            24 05:55:17.548 400 "" total=0 client=127.0.0.1 bytes=11 attempts=0
            25 05:55:18.447 200 GET "/orders/1" total=6 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            26 05:55:18.465 200 GET "/orders/2" total=47 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            27 05:55:18.524 200 GET "/orders/3" total=48 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
            28 05:55:18.582 200 GET "/orders/4" total=49 service=5 host=127.0.0.1:9150 client=127.0.0.1 bytes=3 route=orders
        "#]],
    );
}

#[test]
fn json_says_the_same_as_istio_text() {
    let entries = |name| read(fixture(name), Options::default()).0;
    assert_eq!(entries("envoy-json.log"), entries("istio.log"));
}

#[test]
fn envoy_gateway_spells_its_keys_otherwise() {
    check(
        concat!(
            r#"{"start_time":"2025-03-14T08:26:53.512Z","method":"GET","x-envoy-origin-path":"/a?b=1","#,
            r#""response_code":"200","response_flags":"-","bytes_sent":"15","duration":"12","#,
            r#""x-envoy-upstream-service-time":null,"x-forwarded-for":"127.0.0.7, 127.0.0.8",":authority":"shop.test","#,
            r#""upstream_host":"127.0.0.1:8080","upstream_cluster":"httproute/shop/rule/0"}"#,
            "\n",
            r#"{"start_time":"2025-03-14T08:26:54.512Z","method":"GET","x-envoy-origin-path":"/b","#,
            r#""response_code":"0","response_flags":"UpstreamRemoteReset,DownstreamRemoteReset","duration":"12"}"#,
            "\n",
        ),
        &expect![[r#"
            recognised as envoy-json: 2 of the first 2 lines fit. The time is the start of a request, and the arrival.
            1 08:26:53.512 200 GET "/a" total=12 host=shop.test client=127.0.0.8 bytes=15 route=httproute/shop/rule/0
            2 08:26:54.512 GET "/b" total=12 left
        "#]],
    );
}
