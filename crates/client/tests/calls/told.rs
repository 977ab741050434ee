//! What answers say about trying again: a floor, a spread above it, and a no.

use super::*;

const TWO_SECONDS: Says = Says::Status(503, &[("retry-after", "2")]);

#[tokio::test(start_paused = true)]
async fn nobody_comes_back_before_it_was_told_to() {
    for (says, floor) in [
        (TWO_SECONDS, 2_000),
        (Says::Status(429, &[("retry-after", "1"), ("retry-after-ms", "750")]), 750),
        (Says::Status(200, &[("grpc-status", "14"), ("grpc-retry-pushback-ms", "1200")]), 1_200),
        (
            Says::Status(
                503,
                &[
                    ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                    ("retry-after", "Sun, 06 Nov 1994 08:49:39 GMT"),
                ],
            ),
            2_000,
        ),
    ] {
        let script = Script::new([says, OK]);
        assert_eq!(status(&get(&client(policy(), &script)).await), 200);
        let seen = script.seen();
        let waited = seen[1].at - seen[0].at;
        let floor = Duration::from_millis(floor);
        assert!((floor..floor * 3 / 2 + Duration::from_millis(2)).contains(&waited), "{waited:?}");
    }
}

/// H10. Two hundred clients, each by itself, are told two seconds at the same moment.
#[tokio::test(start_paused = true)]
async fn two_hundred_come_back_spread() {
    let script = Script::new(std::iter::repeat_n(TWO_SECONDS, 200).chain([OK]));
    let began = now();
    let tasks: Vec<_> = (0..200)
        .map(|seed| {
            let calls = ResilientLayer::with(Resilience::seeded(policy(), seed)).layer(script.clone());
            tokio::spawn(async move { status(&get(&calls).await) })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), 200);
    }
    let mut tenths = [0; 10];
    for seen in &script.seen()[200..] {
        let late = (seen.at - began).checked_sub(Duration::from_secs(2)).expect("nobody comes earlier");
        tenths[(late.as_millis() as usize / 100).min(9)] += 1;
    }
    assert!(tenths.iter().all(|count| (8..=32).contains(count)), "{tenths:?}");
}

/// H4. Numbers that overflow elsewhere are a long time, which is longer than anybody waits.
#[tokio::test(start_paused = true)]
async fn a_huge_time_is_not_a_short_one() {
    for value in
        ["9223372037", "18446744073709551615", "99999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"]
    {
        let fields: &'static [(&str, &str)] = Box::leak(Box::new([("retry-after", value)]));
        let script = Script::new([Says::Status(503, fields)]);
        let began = now();
        assert_eq!(status(&get(&client(policy(), &script)).await), 503);
        assert_eq!((script.seen().len(), now() - began), (1, Duration::ZERO), "{value}");
    }
}

/// H6.
#[tokio::test(start_paused = true)]
async fn a_no_is_a_no() {
    for fields in [
        &[("x-should-retry", "false")],
        &[("grpc-retry-pushback-ms", "-1")],
        &[("x-envoy-overloaded", "true")],
        &[("proxy-status", "tidegate; error=connection_limit_reached; details=\"retry_budget\"")],
    ] {
        let script = Script::new([Says::Status(503, fields)]);
        assert_eq!(status(&get(&client(policy(), &script)).await), 503);
        assert_eq!(script.seen().len(), 1, "{fields:?}");
    }
}
