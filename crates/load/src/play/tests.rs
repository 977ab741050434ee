//! The play is told times and answers, and asserted to send what it should, when it should. No clock, no socket.

use std::path::Path;

use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn scenario(clients: &str) -> Scenario {
    let text = format!(
        "story = \"Played.\"\nduration = \"1s\"\n[[service]]\nworkers = 1\ntime = \"1ms\"\n\
         [[clients]]\nname = \"all\"\n{clients}\n"
    );
    Scenario::parse(&text, Path::new("played.toml")).unwrap_or_else(|error| panic!("{error}"))
}

/// What is to be sent by now.
fn sends(play: &mut Play<'_>, now: Duration) -> Vec<Order> {
    play.advance(now);
    std::iter::from_fn(|| play.poll())
        .filter_map(|what| if let Do::Send(order) = what { Some(order) } else { None })
        .collect()
}

fn answer(status: u16, reason: Option<Reason>, retry_after: Option<Duration>) -> Heard {
    Heard::Answer(Answer { status, reason, retry_after, retry_after_ms: None })
}

/// Latency counts from when a request was to be sent, the naive figure from when it was, and the lag is the difference.
#[test]
fn a_late_generator_makes_times_worse_and_never_better() {
    let scenario = scenario("rate = \"10/s\"\nspacing = \"even\"");
    let mut play = Play::new(&scenario, "test", 100);
    assert!(sends(&mut play, ms(99)).is_empty());
    // It looks again only after 350 ms: three were due at 100, 200 and 300 ms.
    let due = sends(&mut play, ms(350));
    assert_eq!(due.iter().map(|order| order.intended).collect::<Vec<_>>(), [ms(100), ms(200), ms(300)]);
    for order in due {
        play.sent(order.intended, ms(350) - order.intended, None);
        play.heard(ms(360), order.key, Some(ms(350)), answer(200, None, None));
    }
    let report = play.finish(ms(1_000));
    let sending = report.sending.as_deref().cloned().unwrap_or_default();
    let near = |time: Duration, millis: u64| assert!(time.abs_diff(ms(millis)) <= ms(1), "{time:?}");
    near(report.all.served.max(), 260);
    near(sending.naive.max(), 10);
    near(sending.lag.max(), 250);
    near(sending.lag.quantile(0.3), 50);
    assert_eq!((report.all.offered, report.all.goodput, sending.statuses[&200]), (3, 3, 3));
}

#[test]
fn whoever_is_impatient_leaves_and_what_comes_then_is_nobodys() {
    let scenario =
        scenario("burst = [{ at = \"0s\", count = 1 }]\ntimeout = \"100ms\"\nretry = { attempts = 2 }");
    let mut play = Play::new(&scenario, "test", 100);
    let first = sends(&mut play, ms(0))[0];
    play.advance(ms(100));
    assert_eq!(play.poll(), Some(Do::Cancel(first.key)));
    let second = sends(&mut play, ms(100))[0];
    assert_eq!((second.attempt, second.intended, second.number), (2, ms(100), first.number));
    play.heard(ms(110), first.key, None, answer(200, None, None));
    assert!(play.is_current(second.key) && !play.is_current(first.key));
    play.heard(ms(150), second.key, Some(ms(100)), answer(200, None, None));
    assert!(play.is_over(ms(1_000), ms(0)));
    let report = play.finish(ms(1_000));
    assert_eq!((report.all.goodput, report.all.left, report.all.attempts), (1, 1, 2));
    assert_eq!(report.sending.map(|sending| sending.errors[WireError::Timeout as usize]), Some(1));
}

/// The obedient come back when they were told, the rude at once; a reason of ours can forbid it.
#[test]
fn obedient_and_rude() {
    let told = Some(Duration::from_secs(2));
    let full = answer(503, Some(Reason::QueueFull), told);
    let spent = answer(503, Some(Reason::RetryBudget), None);
    for (honours, heard, again) in [
        (true, full, Some(2_000)),
        (false, full, Some(0)),
        (true, spent, None),
        (false, spent, Some(0)),
        (true, answer(404, None, None), None),
        (true, answer(429, None, told), Some(2_000)),
        (true, answer(500, None, None), Some(0)),
        (true, Heard::Nothing(WireError::Connect), Some(0)),
    ] {
        let retry = format!("retry = {{ attempts = 2, honours_retry_after = {honours} }}");
        let scenario = scenario(&format!("burst = [{{ at = \"0s\", count = 1 }}]\n{retry}"));
        let mut play = Play::new(&scenario, "test", 100);
        let first = sends(&mut play, ms(0))[0];
        play.heard(ms(10), first.key, None, heard);
        let next = sends(&mut play, ms(60_000)).first().map(|order| order.intended);
        assert_eq!(next, again.map(|wait| ms(10 + wait)), "{honours} {heard:?}");
    }
}

/// Those who have our own client come back behind the time that they were told, are patient for a call and not for each
/// attempt, and do not come back for a time that is too long.
#[test]
fn with_our_own_client() {
    let told = |seconds| answer(503, Some(Reason::QueueFull), Some(Duration::from_secs(seconds)));
    for (heard, again) in [
        (told(1), Some(1_010..=1_510)),
        (told(3), None),
        (answer(404, None, None), None),
        (answer(500, None, None), None),
        (answer(504, None, None), None),
        (answer(503, None, None), Some(10..=110)),
        (Heard::Nothing(WireError::Connect), Some(10..=110)),
    ] {
        let scenario = scenario(
            "burst = [{ at = \"0s\", count = 1 }]\ntimeout = \"2s\"\nretry = { resilient = 1, attempts = 2 }",
        );
        let mut play = Play::new(&scenario, "test", 100);
        let first = sends(&mut play, ms(0))[0];
        play.heard(ms(10), first.key, None, heard);
        let next = sends(&mut play, ms(1_999)).first().copied();
        let at = next.map(|order| order.intended.as_millis());
        assert_eq!(at.is_some(), again.is_some(), "{heard:?}");
        if let (Some(at), Some(again), Some(next)) = (at, again, next) {
            assert!(again.contains(&at), "{heard:?}: {at}");
            play.advance(ms(2_000));
            assert_eq!(play.poll(), Some(Do::Cancel(next.key)), "two seconds are for both attempts");
        }
        assert!(play.is_over(ms(2_001), ms(0)), "{heard:?}");
    }
}

/// To the millisecond is for our own client alone: others read whole seconds, if they read anything.
#[test]
fn who_reads_milliseconds() {
    let told = Some(Duration::from_secs(1));
    let heard = Answer { status: 503, reason: None, retry_after: told, retry_after_ms: Some(ms(250)) };
    for (retry, again) in [("resilient = 1", 260..=385), ("honours_retry_after = true", 1_010..=1_010)] {
        let scenario = scenario(&format!(
            "burst = [{{ at = \"0s\", count = 1 }}]\ntimeout = \"2s\"\nretry = {{ {retry}, attempts = 2 }}"
        ));
        let mut play = Play::new(&scenario, "test", 100);
        let first = sends(&mut play, ms(0))[0];
        play.heard(ms(10), first.key, None, Heard::Answer(heard));
        let next = sends(&mut play, ms(1_999))[0];
        assert!(again.contains(&next.intended.as_millis()), "{retry}: {:?}", next.intended);
        let ours = retry.starts_with("resilient");
        assert_eq!(next.deadline, ours.then_some(ms(2_000)), "one deadline for both tries, or one for each");
    }
}

/// A caller who has seen too much fail makes first tries only, until that is forgotten.
#[test]
fn who_has_seen_too_much_fail_does_not_try_again() {
    let breaker = "breaker_percent = 50, breaker_window = \"200ms\"";
    let scenario =
        scenario(&format!("rate = \"100/s\"\nspacing = \"even\"\nretry = {{ attempts = 2, {breaker} }}"));
    let mut play = Play::new(&scenario, "test", 100);
    let mut tried_again = Vec::new();
    for number in 1..=35 {
        let now = ms(number * 10);
        while let Some(order) = sends(&mut play, now).first().copied() {
            if order.attempt == 2 {
                tried_again.push(number);
            }
            let good = !matches!(number, 3..=17 | 31);
            play.heard(now, order.key, None, answer(if good { 200 } else { 503 }, None, None));
        }
    }
    // After two good answers the third is one of three. With its second try and the fourth it is three of five, and from
    // then on it gets worse. The 31st is the only one that has failed since the twentieth.
    assert_eq!(tried_again, [3, 31]);
}

/// What is counted as refused is what a gateway of ours refused; what the service did by itself is broken off.
#[test]
fn endings_are_told_apart() {
    let scenario = scenario("burst = [{ at = \"0s\", count = 6 }]");
    let mut play = Play::new(&scenario, "test", 100);
    let orders = sends(&mut play, ms(0));
    for (order, heard) in orders.iter().zip([
        answer(204, None, None),
        answer(503, Some(Reason::QueueFull), None),
        answer(504, Some(Reason::UpstreamTimeout), None),
        answer(502, Some(Reason::UpstreamReset), None),
        answer(503, None, None),
        Heard::Nothing(WireError::Closed),
    ]) {
        play.heard(ms(10), order.key, None, heard);
    }
    let all = play.finish(ms(1_000)).all;
    assert_eq!((all.goodput, all.refusals(), all.broken, all.failed, all.pending()), (1, 1, 3, 5, 0));
    assert_eq!(all.rejected[Reason::UpstreamTimeout as usize], 1);
    assert_eq!(all.let_in, 4, "the one that was refused and the one without an answer may not have been");
}

/// What is more than may be outstanding is not sent, and that is said.
#[test]
fn what_is_outstanding_has_a_bound() {
    let scenario = scenario("burst = [{ at = \"0s\", count = 10 }]");
    let mut play = Play::new(&scenario, "test", 4);
    assert_eq!(sends(&mut play, ms(0)).len(), 4);
    assert_eq!(play.outstanding(), 4);
    let report = play.finish(ms(1_000));
    assert_eq!((report.all.offered, report.all.attempts, report.all.failed), (10, 4, 6));
    let sending = report.sending.unwrap_or_default();
    assert_eq!((sending.unsent, sending.lag_p99()), (6, Duration::MAX));
    assert!(sending.limited_in_words().is_some_and(|words| words.contains("6 attempts were never sent")));
}

/// The patience of those who have their answer is not kept until it would have ended: a quick service before patient clients
/// would fill the memory, however few requests are outstanding.
#[test]
fn what_is_planned_has_a_bound() {
    for retry in
        ["", "retry = { attempts = 3, backoff = \"fixed\", base = \"1ms\" }", "retry = { resilient = 1 }"]
    {
        let scenario = scenario(&format!("rate = \"1000/s\"\nspacing = \"even\"\ntimeout = \"1h\"\n{retry}"));
        let mut play = Play::new(&scenario, "test", 100);
        for now in 1..1_000 {
            for (number, order) in sends(&mut play, ms(now)).into_iter().enumerate() {
                let status = if number == 0 && order.attempt == 1 { 503 } else { 200 };
                play.heard(ms(now), order.key, Some(ms(now)), answer(status, None, None));
            }
            // Each request has one plan at most, and beside them there are the next to come and the next look.
            assert!(play.planned() <= play.outstanding() + 2, "{retry}: {now} ms: {}", play.planned());
        }
    }
}

/// An answer that comes when nobody comes any more counts, but has no place in a course over time that has ended.
#[test]
fn late_answers_do_not_tower_at_the_end() {
    let scenario = scenario("burst = [{ at = \"900ms\", count = 2 }]");
    let mut play = Play::new(&scenario, "test", 100);
    let orders = sends(&mut play, ms(900));
    play.heard(ms(950), orders[0].key, None, answer(200, None, None));
    assert!(!play.is_over(ms(1_400), ms(500)) && play.is_over(ms(1_500), ms(500)));
    play.heard(ms(1_400), orders[1].key, None, answer(200, None, None));
    let report = play.finish(ms(1_400));
    let over_time: u64 = report.series.buckets.iter().map(|bucket| bucket.goodput).sum();
    assert_eq!((report.all.goodput, over_time, report.watched), (2, 1, ms(1_000)));
}

/// Those who wait for an answer before they ask again do so, and stop at the end.
#[test]
fn users_go_round() {
    let scenario = scenario("users = 2\nthink = \"100ms\"\nuntil = \"500ms\"");
    let mut play = Play::new(&scenario, "test", 100);
    let mut rounds = 0;
    for now in (0..1_000).step_by(10) {
        for order in sends(&mut play, ms(now)) {
            rounds += 1;
            play.heard(ms(now + 5), order.key, None, answer(200, None, None));
        }
        assert!(play.outstanding() <= 2);
    }
    assert!((8..=12).contains(&rounds), "{rounds}");
    assert!(play.is_over(ms(1_000), ms(0)));
}

/// The same seed brings the same requests at the same moments as in the simulator, which asks the same crowds.
#[test]
fn the_warm_up_is_not_counted() {
    let scenario = scenario("rate = \"10/s\"\nspacing = \"even\"");
    let scenario = Scenario { warmup: ms(500), ..scenario };
    let mut play = Play::new(&scenario, "test", 100);
    for order in sends(&mut play, ms(1_000)) {
        play.sent(order.intended, ms(7), None);
        play.heard(ms(1_000), order.key, Some(ms(1_000)), answer(200, None, None));
    }
    let report = play.finish(ms(1_000));
    assert_eq!((report.all.goodput, report.watched), (6, ms(500)));
    assert_eq!(report.sending.map(|sending| sending.lag.count()), Some(6));
}
