//! The generator against servers that answer in one way each.
//!
//! Upper bounds on time leave room for a busy machine; what is exact is the plan, the order and the counts.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use super::*;
use crate::peers::plan::{Spacing, Stretch};

const DONE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\ndone\n";
const FULL: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";

/// A server that gives each connection to `serve`, in a thread of its own.
fn server(serve: fn(BufReader<TcpStream>)) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(BufReader::new(stream)));
        }
    });
    address
}

/// Read one request; false when the client has left.
fn request(stream: &mut BufReader<TcpStream>) -> bool {
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if stream.read_line(&mut line).unwrap_or(0) == 0 {
            return false;
        }
    }
    true
}

fn answers(mut stream: BufReader<TcpStream>, answer: &str) {
    while request(&mut stream) && stream.get_mut().write_all(answer.as_bytes()).is_ok() {}
}

/// `count` clients, two milliseconds apart.
fn clients(count: u32) -> Stream {
    let stretch =
        Stretch { rate: 500.0, length: Duration::from_millis(2) * count + Duration::from_millis(1) };
    Stream { path: "/", header: None, plan: Plan { stretches: vec![stretch], spacing: Spacing::Even } }
}

const fn patience(millis: u64, repetitions: u32) -> Patience {
    Patience { timeout: Duration::from_millis(millis), repetitions }
}

fn endings(samples: &[Sample]) -> Vec<Ending> {
    samples.iter().map(|sample| sample.ending).collect()
}

#[test]
fn everybody_is_sent_when_planned_and_answered() {
    let address = server(|stream| answers(stream, DONE));
    let stream = clients(20);
    let planned: Vec<_> = stream.plan.moments().collect();
    let samples = run(address, &[stream], patience(5000, 0), clock::now()).unwrap().remove(0);
    assert_eq!(endings(&samples), [Ending::Good; 20]);
    // Latency counts from the plan, so the generator's lag is in it.
    assert!(samples.iter().all(|sample| sample.took >= sample.lag), "{samples:?}");
    let mut sent: Vec<_> = samples.iter().map(|sample| sample.planned).collect();
    sent.sort_unstable();
    assert_eq!(sent, planned);
}

#[test]
fn a_client_that_gives_up_tries_again_and_the_others_do_not_wait_for_it() {
    let address = server(|mut stream| while request(&mut stream) {});
    let stream = clients(3);
    let planned: Vec<_> = stream.plan.moments().collect();
    let samples = run(address, &[stream], patience(30, 2), clock::now()).unwrap().remove(0);
    assert_eq!(endings(&samples), [Ending::GaveUp; 9]);
    assert!(samples.iter().all(|sample| sample.took >= Duration::from_millis(30)), "{samples:?}");
    let of = |repetition| {
        let such = samples.iter().filter(|sample| sample.repetition == repetition);
        such.map(|sample| sample.planned).collect::<Vec<_>>()
    };
    // Open loop: nobody has been answered, and everybody came as planned.
    assert_eq!(of(0), planned);
    assert_eq!((of(1).len(), of(2).len()), (3, 3));
    assert!(of(1)[0] >= planned[0] + Duration::from_millis(30) + PAUSE);
}

#[test]
fn a_refusal_is_told_from_a_failure() {
    let refuses = server(|stream| answers(stream, FULL));
    let fails = server(|stream| answers(stream, &FULL.replace("503", "502")));
    let closes = server(drop);
    for (address, ending) in [(refuses, Ending::Refused), (fails, Ending::Failed), (closes, Ending::Failed)] {
        let samples = run(address, &[clients(3)], patience(5000, 1), clock::now()).unwrap().remove(0);
        assert_eq!(endings(&samples), [ending; 6]);
    }
}

/// A server may close a kept connection in the moment when it is used again. That is nobody's refusal.
#[test]
fn a_kept_connection_that_died_costs_no_try() {
    let address = server(|mut stream| {
        // Answers as if the connection were kept, and closes it once it is used again.
        if request(&mut stream) && stream.get_mut().write_all(DONE.as_bytes()).is_ok() {
            request(&mut stream);
        }
    });
    let samples = run(address, &[clients(10)], patience(5000, 0), clock::now()).unwrap().remove(0);
    assert_eq!(endings(&samples), [Ending::Good; 10]);
}

#[test]
fn connections_have_a_bound_and_what_is_not_sent_is_told() {
    let address = server(|mut stream| while request(&mut stream) {});
    let stream = clients(5);
    let mut generator =
        Generator::new(address, std::slice::from_ref(&stream), patience(300, 3), clock::now()).unwrap();
    generator.connections_max = 2;
    let samples = generator.drive(vec![stream.plan.moments().peekable()]).unwrap().remove(0);
    let count = |ending| samples.iter().filter(|sample| sample.ending == ending).count();
    // Who was not sent does not try again: that would be one more request that nobody planned.
    assert_eq!((count(Ending::Unsent), count(Ending::GaveUp)), (3, 8), "{samples:?}");
}

#[test]
fn streams_are_sent_side_by_side_and_told_apart() {
    let address = server(|mut stream| {
        let mut lines = String::new();
        while stream.read_line(&mut lines).unwrap_or(0) > 0 {
            if lines.ends_with("\r\n\r\n") {
                let answer = if lines.contains("x-tenant: b\r\n") { FULL } else { DONE };
                lines.clear();
                if stream.get_mut().write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        }
    });
    let other = Stream { header: Some("x-tenant: b".to_owned()), ..clients(4) };
    let samples = run(address, &[clients(6), other], patience(5000, 0), clock::now()).unwrap();
    assert_eq!(endings(&samples[0]), [Ending::Good; 6]);
    assert_eq!(endings(&samples[1]), [Ending::Refused; 4]);
}
