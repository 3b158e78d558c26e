//! The laws a pipe obeys: the rows of the link model's validation table for the stages that exist.
//!
//! * `exact`: serialisation, delay, rate, queue and byte conservation, to the nanosecond and the
//!   byte;
//! * `changes`: what a timed change does to the packets around it, and which changes are refused;
//! * `loss`: scripted and random loss, where it strikes, and whether it is as random as it should
//!   be;
//! * `impairments`: every other stage in its place, all of them together, and each switched on and off;
//! * `waiting`: mean waiting times against queueing theory;
//! * `determinism`: the same seed gives the same run, and one stream's draws never shift another's.
//!
//! What they measure stands in `docs/validation.md`, part "link model".

#[path = "../../../tests/support/validation_rows.rs"]
#[expect(dead_code, reason = "a link is the same in every run")]
mod validation_rows;

mod bench;
mod changes;
mod determinism;
mod exact;
mod impairments;
mod loss;
mod waiting;
