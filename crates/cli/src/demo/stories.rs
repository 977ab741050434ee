//! The experiments, in the article's order.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::Stage;
use super::burst::{Connection, burst};
use super::table::Table;
use crate::clock;
use crate::exit::Failure;

pub(super) struct Story {
    pub(super) title: &'static str,
    pub(super) play: fn(&mut Stage) -> Playing<'_>,
}

type Playing<'a> = Pin<Box<dyn Future<Output = Result<Table, Failure>> + 'a>>;

pub(super) const ALL: &[Story] = &[
    Story {
        title: "A bounded queue: 4 slots, 8 may wait, 50 requests of 200 ms at once",
        play: |stage| Box::pin(bounded_queue(stage)),
    },
    Story { title: "No queue: 4 slots, nobody may wait", play: |stage| Box::pin(no_queue(stage)) },
    Story {
        title: "A long queue: 4 slots, 64 may wait for up to 10 s. Nobody is refused; everybody waits",
        play: |stage| Box::pin(long_queue(stage)),
    },
    Story {
        title: "A wait budget: 4 slots, 64 may wait, but nobody for longer than 500 ms",
        play: |stage| Box::pin(wait_budget(stage)),
    },
    Story {
        title: "A timeout frees the client, not the work: 4 slots, timeout 300 ms, requests of 1000 ms",
        play: |stage| Box::pin(timeout(stage)),
    },
    Story {
        title: "A rate limit: bucket of 20, 10 a second, 60 at once",
        play: |stage| Box::pin(bucket(stage)),
    },
    Story {
        title: "A rate limit in a tight loop: bucket of 100, 50 a second, for two seconds",
        play: |stage| Box::pin(tight_loop(stage)),
    },
];

const WORK: &str = "/work?ms=200";

async fn bounded_queue(stage: &mut Stage) -> Result<Table, Failure> {
    stage.put_in_force("limit = 4", "capacity = 8\nwait = \"10s\"", "timeout = \"10s\"")?;
    stage.forget().await?;
    let shots = burst(stage.clients, 50, WORK).await?;
    let first_served = shots.iter().filter(|shot| shot.status == 200).map(|shot| shot.at).min();
    let last_refused = shots.iter().filter(|shot| shot.status == 503).map(|shot| shot.at).max();
    let before = last_refused < first_served;
    Ok(Table::default()
        .shots(&shots, &["12   p50 439 ms   max 644 ms", "38   p50 70 ms   p99 79 ms"])
        .fact("upstream's most at once", stage.upstream_stat("maxInFlight").await?, "4")
        .statement(
            "every refusal before the first answer",
            if before { "yes" } else { "no" },
            before.into(),
            "yes",
        ))
}

async fn no_queue(stage: &mut Stage) -> Result<Table, Failure> {
    stage.put_in_force("limit = 4", "capacity = 0", "")?;
    stage.forget().await?;
    let shots = burst(stage.clients, 50, WORK).await?;
    Ok(Table::default().shots(&shots, &["4   p50 214 ms", "46   p50 5 ms"]).fact(
        "upstream's most at once",
        stage.upstream_stat("maxInFlight").await?,
        "4",
    ))
}

async fn long_queue(stage: &mut Stage) -> Result<Table, Failure> {
    stage.put_in_force("limit = 4", "capacity = 64\nwait = \"10s\"", "timeout = \"10s\"")?;
    stage.forget().await?;
    let shots = burst(stage.clients, 50, WORK).await?;
    Ok(Table::default().shots(&shots, &["50   p50 1455 ms   max 2689 ms"]).fact(
        "upstream's most at once",
        stage.upstream_stat("maxInFlight").await?,
        "4",
    ))
}

async fn wait_budget(stage: &mut Stage) -> Result<Table, Failure> {
    stage.put_in_force("limit = 4", "capacity = 64\nwait = \"500ms\"", "timeout = \"10s\"")?;
    stage.forget().await?;
    let unknown = burst(stage.clients, 50, WORK).await?;
    let known = burst(stage.clients, 50, WORK).await?;
    Ok(Table::default()
        .heading("while the service time is unknown")
        .shots(&unknown, &["12   p50 411 ms   max 625 ms", "38   p50 620 ms, when a worker came to look"])
        .heading("once it is known")
        .shots(&known, &["", "refused on arrival"])
        .fact("upstream's most at once", stage.upstream_stat("maxInFlight").await?, "4"))
}

async fn timeout(stage: &mut Stage) -> Result<Table, Failure> {
    stage.put_in_force("limit = 4", "capacity = 64\nwait = \"5s\"", "timeout = \"300ms\"")?;
    stage.forget().await?;
    let clients = stage.clients;
    let four = tokio::spawn(async move { burst(clients, 4, "/work?ms=1000").await });
    sleep(Duration::from_millis(400)).await;
    let mut fifth = Connection::open(clients).await?;
    let fifth = tokio::spawn(async move { fifth.get("/work?ms=50").await });
    sleep(Duration::from_millis(200)).await;
    let started = stage.upstream_stat("started").await?;
    let four = four.await.map_err(Failure::runtime)??;
    let fifth = fifth.await.map_err(Failure::runtime)??;
    let after = (fifth.took.as_secs_f64() * 1e3).round();
    let waited = format!("{} after {after} ms", fifth.status);
    let figures = json!({ "status": fifth.status, "after_ms": after });
    Ok(Table::default()
        .shots(&four, &["4   p50 307 ms"])
        .fact(
            "at 600 ms the upstream had been given",
            started,
            "its slots were free at 307 ms, so a retry doubled the load",
        )
        .statement("a fifth request, sent at 400 ms", &waited, figures, "")
        .fact("upstream's most at once", stage.upstream_stat("maxInFlight").await?, "4"))
}

async fn bucket(stage: &mut Stage) -> Result<Table, Failure> {
    let rule = "\n\n[[rate_limit]]\nname = \"demo\"\nkey = \"client-ip\"\nrate = \"10/s\"\nburst = 20";
    stage.put_in_force("limit = 100", "capacity = 64\nwait = \"1s\"", rule)?;
    stage.forget().await?;
    let shots = burst(stage.clients, 60, "/work?ms=1").await?;
    let told = shots.iter().filter_map(|shot| shot.retry_after).max().unwrap_or_default();
    sleep(told).await;
    let again = Connection::open(stage.clients).await?.get("/work?ms=1").await?;
    Ok(Table::default()
        .shots(&shots, &["20   p50 8 ms", "40   p50 5 ms"])
        .fact("told to come back after, in seconds", told.as_secs(), "1 or more")
        .fact("came back then", again.status, "200"))
}

async fn tight_loop(stage: &mut Stage) -> Result<Table, Failure> {
    let rule = "\n\n[[rate_limit]]\nname = \"demo\"\nkey = \"global\"\nrate = \"50/s\"\nburst = 100";
    stage.put_in_force("limit = 100", "capacity = 64\nwait = \"1s\"", rule)?;
    let end = clock::now() + Duration::from_secs(2);
    let clients = stage.clients;
    let asking: Vec<_> = (0..4)
        .map(|_| {
            tokio::spawn(async move {
                let mut connection = Connection::open(clients).await?;
                let (mut admitted, mut asked) = (0, 0);
                while clock::now() < end {
                    asked += 1;
                    admitted += u64::from(connection.get("/work?ms=0").await?.status == 200);
                }
                Ok::<_, Failure>((admitted, asked))
            })
        })
        .collect();
    let (mut admitted, mut asked) = (0, 0);
    for task in asking {
        let (one_admitted, one_asked) = task.await.map_err(Failure::runtime)??;
        admitted += one_admitted;
        asked += one_asked;
    }
    Ok(Table::default().fact("admitted", admitted, "199").fact("of", asked, "71 million, without a network"))
}

impl Stage {
    /// Lets the upstream begin to count anew.
    async fn forget(&self) -> Result<(), Failure> {
        Connection::open(self.upstream).await?.json("POST", "/reset").await.map(drop)
    }

    async fn upstream_stat(&self, name: &str) -> Result<Value, Failure> {
        let stats = Connection::open(self.upstream).await?.json("GET", "/stats").await?;
        Ok(stats[name].clone())
    }
}
