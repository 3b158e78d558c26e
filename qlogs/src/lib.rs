//! qlog files: the event model and its encoder; the reader of anybody's files ([`read`]).
//!
//! ```text
//!  tap, ledger, controller                             one file per connection and side
//!        |                                                         ^
//!        |  Event, at: Timestamp                                   |  JSON text sequence
//!        v                                                         |
//!     Writer ---- metrics: only what changed ---- encode ---- 64 KiB pieces
//! ```
//!
//! [`Event`] knows nothing of any dialect. The one dialect written is "0.3": main-schema-05,
//! quic-events-04 and h3-events-04 of February 2023, as a JSON text sequence (RFC 7464), because that
//! is a written specification *and* what qvis draws in full. Read `schema.rs` first.
//!
//! # What a file looks like
//!
//! Byte 0 is 0x1E, every record ends in a line feed. The first record is the header; all keys a viewer
//! needs to recognise the format stand in its first 1,024 bytes. Times are milliseconds since the
//! header's reference time, exact to the nanosecond, and never decrease. Identifiers are lowercase
//! hexadecimal. A value that is unknown, unlimited, or an integer above 2^53 is left out.
//! Keys, tokens, connection IDs inside frames, and stream data are not part of the model and so cannot
//! reach a file; IP addresses are cut to their network unless the header says otherwise.
//!
//! # Congestion states
//!
//! `recovery:congestion_state_updated` has `old` (absent in the first event, which gives the initial
//! state) and `new`:
//!
//! | state | meaning |
//! |---|---|
//! | `slow_start` | the window grows by what is acknowledged (RFC 9002 section 7.3.1) |
//! | `congestion_avoidance` | the window grows by the controller's own law (RFC 9002 section 7.3.3, RFC 9438 section 4) |
//! | `recovery` | the window was cut; no packet sent since has been acknowledged (RFC 9002 section 7.3.2) |
//! | `startup` | BBR: the rate doubles every round until the pipe is full (draft-ietf-ccwg-bbr-06 section 5.3.1) |
//! | `drain` | BBR: the queue that made is drained (section 5.3.2) |
//! | `probe_bw_down` | BBR: a little slower than the path (section 5.3.3.1) |
//! | `probe_bw_cruise` | BBR: as fast as the path (section 5.3.3.2) |
//! | `probe_bw_refill` | BBR: as fast as the path, without short-term bounds (section 5.3.3.3) |
//! | `probe_bw_up` | BBR: faster than the path (section 5.3.3.4) |
//! | `probe_rtt` | BBR: little in flight, to see the round-trip time without queues (section 5.3.4) |
//! | `fixed_rate` | the rate is set by hand and reacts to nothing |
//! | `conservative_slow_start` | a quarter of slow start, while a rise of the RTT is looked into (RFC 9406 section 4.2) |
//! | `startup` | BBR doubles the rate each round until the pipe is full (draft-ietf-ccwg-bbr-06 section 5.3.1) |
//! | `drain` | BBR sends at half the rate until the queue of `startup` is gone (section 5.3.2) |
//! | `probe_bw_down` | BBR sends a little less than the path delivers, to leave room (section 5.3.3.1) |
//! | `probe_bw_cruise` | at the rate of the path (section 5.3.3.2) |
//! | `probe_bw_refill` | the same without the short-term bounds, for a round (section 5.3.3.3) |
//! | `probe_bw_up` | at 1.25 times that, to find out whether there is more (section 5.3.3.4) |
//! | `probe_rtt` | with half a product of rate and delay in flight, to see the path without a queue (section 5.3.4) |
//!
//! Why the state changed stands beside `data` in the record, under the key **`cc_trigger`**:
//! quic-events-04 has words for two triggers only and allows no further keys in `data`, while
//! main-schema-05 lets every record carry keys of its own. Where the document has a word,
//! `data.trigger` has that too:
//!
//! | `cc_trigger` | `data.trigger` | meaning |
//! |---|---|---|
//! | `packet_lost` | | a packet sent after the last cut was declared lost |
//! | `ecn_ce` | `ECN` | the peer reported a new Congestion Experienced mark |
//! | `persistent_congestion` | `persistent_congestion` | nothing arrived for too long (RFC 9002 section 7.6) |
//! | `recovery_exited` | | a packet sent after the cut was acknowledged |
//! | `ssthresh_reached` | | slow start filled the window up to the threshold |
//! | `bandwidth_plateau` | | BBR: three rounds without a quarter more delivered |
//! | `loss_too_high` | | BBR: more than 2 % lost or marked |
//! | `precaution` | | BBR: as much in flight as an earlier probe found to be too much |
//! | `drained` | | BBR: no more in flight than the path holds |
//! | `drain_rounds_over` | | BBR: Drain took as long as it may |
//! | `probe_time` | | BBR: the wait between two probes is over |
//! | `clean_probe` | | BBR: a probe that stopped early brought no excess of losses |
//! | `refilled` | | BBR: the round that fills the pipe is over |
//! | `min_rtt_expired` | | BBR: five seconds without a round-trip time as low as the lowest |
//! | `probe_rtt_done` | | BBR: little was in flight for long enough |
//! | `spurious_loss` | | all packets whose loss was answered turned up |
//!
//! In the same way `recovery:parameters_set` has **`cc_algorithm`**, the name of the controller.
//!
//! # Metrics
//!
//! `recovery:metrics_updated` has the fields that changed since the previous one:
//!
//! | name | unit | meaning |
//! |---|---|---|
//! | `min_rtt` | ms | smallest round-trip time seen on the path |
//! | `smoothed_rtt` | ms | its moving average (RFC 9002 section 5.3) |
//! | `latest_rtt` | ms | the latest sample |
//! | `rtt_variance` | ms | its mean deviation (RFC 9002 section 5.3) |
//! | `pto_count` | | probe timeouts in a row |
//! | `congestion_window` | bytes | what the controller allows in flight |
//! | `bytes_in_flight` | bytes | sent, neither acknowledged nor lost |
//! | `ssthresh` | bytes | window at which slow start ends; absent while there is none |
//! | `packets_in_flight` | packets | the same as `bytes_in_flight`, counted in packets |
//! | `pacing_rate` | bit/s | rate at which the pacer releases data; absent while unlimited |
//!
//! A controller with a model of the path (`bbr3`) adds **`cc_model`** beside `data`, also with what changed. The names
//! are the draft's (draft-ietf-ccwg-bbr-06 section 2):
//!
//! | name | unit | meaning |
//! |---|---|---|
//! | `max_bw` | bit/s | largest delivery rate of this cycle of probing and the one before |
//! | `bw_shortterm` | bit/s | bound that recent losses put on the rate; `null` while there is none |
//! | `inflight_longterm` | bytes | what may be in flight according to the losses of the probes; `null` while unknown |
//! | `inflight_shortterm` | bytes | bound that recent losses put on it; `null` while there is none |
//! | `min_rtt` | ms | smallest round-trip time of the last ten seconds |
//! | `extra_acked` | bytes | how much more than expected was acknowledged at once lately |
//! | `round_count` | | round trips so far |

#[cfg(feature = "read")]
pub mod analyse;
#[cfg(feature = "read")]
pub mod check;
#[cfg(feature = "read")]
pub mod csv;
#[cfg(feature = "read")]
pub mod diff;
mod directory;
mod encode;
mod header;
mod json;
#[cfg(feature = "read")]
pub mod oracles;
#[cfg(feature = "read")]
mod ranges;
#[cfg(feature = "read")]
pub mod read;
mod schema;
mod writer;

pub use directory::create_in;
pub use header::{AddressDetail, TraceHeader, VantagePoint, file_name};
pub use schema::{
    Bound, CloseCode, CloseTrigger, ConnectionState, Event, Frame, LossTrigger, Metrics,
    Multiplier, Owner, PacketType, PathModel, RecoveryParameters, TransportParameters,
};
pub use writer::Writer;
