//! What the handshake needs to come to its end.

use bytes::Bytes;
use units::Timestamp;

use crate::config::EndpointConfig;

use super::{Faults, config, network::Net, percent, shared};

/// Half of what the client sends is lost, for as long as it takes; a timeout that doubles a dozen times
/// takes hours. In some of these runs the client's Finished is lost, and what it sent in the Data
/// space fills its window: the server cannot acknowledge that before it has the Finished.
///
/// The stream is asked for before the handshake is over, which must wait and not fail.
#[test]
fn what_was_lost_of_the_handshake_is_sent_again_behind_a_full_window() {
    let mut stuck: Vec<u64> = Vec::new();
    for seed in 500..1_000 {
        let patient = |seed| EndpointConfig {
            idle_timeout: None,
            ..config(seed)
        };
        let mut net = Net::new(seed, Faults::NONE, patient(seed), patient(seed + 1_000));
        net.faults.loss = percent(50);
        net.spares_server = true;
        let client = net.connect();
        let server = net.server.clone();
        net.spawn(async move {
            let Some(connection) = server.accept().await else {
                return;
            };
            let Ok(mut stream) = connection.accept_uni().await else {
                return;
            };
            while let Ok(Some(_)) = stream.read_chunk(usize::MAX).await {}
            connection.closed().await;
        });
        let is_done = shared(false);
        let done = is_done.clone();
        net.spawn(async move {
            let Ok(mut stream) = client.open_uni().await else {
                return;
            };
            let data = Bytes::from(vec![0x5a; 3_000]);
            stream.write_chunk(data).await.expect("an open stream");
            stream.finish().expect("an open stream");
            *done.lock().expect("unpoisoned") = stream.stopped().await.is_ok();
        });
        let is_over = |_: &Net| *is_done.lock().expect("unpoisoned");
        if !net.run_until(Timestamp::from_secs(20_000), is_over) {
            stuck.push(seed);
        }
    }
    assert!(stuck.is_empty(), "seeds {stuck:?} did not finish");
}
