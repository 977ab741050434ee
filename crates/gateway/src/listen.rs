//! The accept loop. It outlives whatever accepting can fail with.
//!
//! Workers share one listening socket. With one socket each (`SO_REUSEPORT`), the kernel would choose a worker by a
//! hash, and a connection could wait behind a busy one while another is idle.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener as AsyncListener;

use crate::connection;
use crate::gateway::Stage;
use crate::worker::Worker;

const BACK_OFF_MIN: Duration = Duration::from_millis(10);
const BACK_OFF_MAX: Duration = Duration::from_secs(1);

pub(crate) async fn accept_until_draining(worker: &Arc<Worker>, listener: TcpListener) {
    let mut stage = worker.stage.clone();
    tokio::select! {
        () = accept(worker, listener) => {}
        _ = stage.wait_for(|stage| *stage != Stage::Serving) => {}
    }
}

async fn accept(worker: &Arc<Worker>, listener: TcpListener) {
    let shared = &worker.shared;
    let listener = match AsyncListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return shared.log.notice(&format!("a worker cannot listen: {error}")),
    };
    let mut back_off = BACK_OFF_MIN;
    loop {
        // The place comes first: at the cap the excess waits in the kernel, where it costs nothing here.
        let Ok(place) = shared.places.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, peer)) => {
                back_off = BACK_OFF_MIN;
                tokio::spawn(connection::serve(worker.clone(), stream, peer, place));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                // Out of descriptors or memory. Waiting lets others give some back; trying at once would only spin.
                shared.metrics.accept_errors.add(1);
                shared.log.notice(&format!("cannot accept, waiting {back_off:?}: {error}"));
                tokio::time::sleep(back_off).await;
                back_off = (back_off * 2).min(BACK_OFF_MAX);
            }
        }
    }
}

/// Errors that concern only the connection that would have been accepted (accept(2)).
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted, WouldBlock};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted | WouldBlock)
}

/// How many connections wait in the kernel to be accepted on this port: what Linux shows as the receive queue of a
/// listening socket. `None` where it cannot be told.
pub(crate) fn backlog(port: u16) -> Option<u32> {
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"].into_iter().find_map(|table| {
        let table = std::fs::read_to_string(table).ok()?;
        backlog_in(&table, port)
    })
}

/// One line of the table: `sl  local_address rem_address st tx_queue:rx_queue …`, in hexadecimal; state 0A listens.
fn backlog_in(table: &str, port: u16) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next()?.rsplit_once(':')?.1;
        let listens = fields.nth(1)? == "0A";
        let queued = fields.next()?.split_once(':')?.1;
        let ours = listens && u16::from_str_radix(local, 16) == Ok(port);
        if ours { u32::from_str_radix(queued, 16).ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::backlog_in;

    #[test]
    fn reads_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n   \
                     0: 0100007F:1FA6 0100007F:9999 01 00000000:00000007 00:00000000 00000000     0\n   \
                     1: 0100007F:1FA6 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0\n";
        assert_eq!(backlog_in(table, 8102), Some(3));
        assert_eq!(backlog_in(table, 80), None);
    }
}
