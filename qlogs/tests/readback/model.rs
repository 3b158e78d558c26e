//! BBR's model of the path.

use std::time::Duration;

use qlogs::{Bound, Event, Metrics, PathModel};
use serde_json::json;
use units::{ByteCount, Rate, Timestamp};

use crate::{events, records_named};

#[test]
fn the_model_of_a_path_stands_beside_the_metrics() {
    let first = events::metrics();
    let model = first.model;
    let step = |model| {
        (
            Timestamp::ZERO,
            Event::MetricsUpdated(Metrics { model, ..first }),
        )
    };
    let given = [
        step(model),
        step(model),
        step(PathModel {
            bw_shortterm: Some(Bound::Unset),
            ..model
        }),
        step(PathModel {
            bw_shortterm: Some(Bound::Unset),
            inflight_longterm: Some(Bound::Set(ByteCount::MAX)),
            inflight_shortterm: Some(Bound::Set(ByteCount::new(9))),
            ..model
        }),
        step(PathModel {
            max_bw: Some(Rate::from_kbps(64)),
            bw_shortterm: Some(Bound::Set(Rate::from_kbps(32))),
            inflight_longterm: Some(Bound::Set(ByteCount::new(8))),
            inflight_shortterm: Some(Bound::Unset),
            min_rtt: Some(Duration::from_millis(1)),
            extra_acked: Some(ByteCount::ZERO),
            round_count: Some(8),
        }),
        // A controller without a model says nothing.
        step(PathModel::default()),
    ];
    let records = records_named("recovery:metrics_updated", &given);
    let models: Vec<_> = records.iter().map(|record| &record["cc_model"]).collect();
    let expected = [
        json!({
            "max_bw": 96_000_000, "bw_shortterm": 90_000_000, "inflight_longterm": 120_000,
            "inflight_shortterm": null, "min_rtt": 10.5, "extra_acked": 4_050, "round_count": 7,
        }),
        json!({ "bw_shortterm": null }),
        json!({ "inflight_longterm": null, "inflight_shortterm": 9 }),
        json!({
            "max_bw": 64_000, "bw_shortterm": 32_000, "inflight_longterm": 8,
            "inflight_shortterm": null, "min_rtt": 1.0, "extra_acked": 0, "round_count": 8,
        }),
    ];
    assert_eq!(models, expected.iter().collect::<Vec<_>>());
    assert!(
        records[1..]
            .iter()
            .all(|record| record["data"] == json!({}))
    );
}
