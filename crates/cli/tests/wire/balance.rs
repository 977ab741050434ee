//! Several endpoints: each request goes to the one with the least in flight, and one that cannot be reached costs
//! nobody an answer.

use crate::client::{ask, get, sent};
use crate::gateway::{Gateway, Policy};
use crate::message::Wire;
use crate::service::{Service, nobody};
use crate::wait::until;

/// Sends requests one after the other, each when the one before has come to one of the two.
async fn send(gateway: &Gateway, services: [&Service; 2], count: usize) -> Vec<Wire> {
    let come = || services.map(|service| service.seen().len()).iter().sum::<usize>();
    let mut clients = Vec::new();
    for _ in 0..count {
        let before = come();
        clients.push(sent(gateway.clients, get("/work")).await);
        until("the request at a service", async || (come() > before).then_some(())).await;
    }
    clients
}

#[tokio::test]
async fn each_request_goes_to_the_endpoint_with_the_least_in_flight() {
    let (one, other) = (Service::held().await, Service::held().await);
    let policy = Policy::before(one.address).and(other.address).limit(8);
    let gateway = Gateway::start(&policy).await;
    let _six = send(&gateway, [&one, &other], 6).await;
    assert_eq!((one.seen().len(), other.seen().len()), (3, 3));

    // Two come free at one of them, so the next two go there.
    one.release(2);
    gateway.until("two slots to be free", |stats| stats.get("in_flight") == 4).await;
    let _two = send(&gateway, [&one, &other], 2).await;
    assert_eq!((one.seen().len(), other.seen().len()), (5, 3));
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_reached_is_passed_over() {
    let service = Service::prompt().await;
    let gateway = Gateway::start(&Policy::before(nobody().await).and(service.address)).await;
    for _ in 0..10 {
        assert_eq!(ask(gateway.clients, get("/work")).await.status(), 200);
    }
    assert_eq!(service.seen().len(), 10);
}
