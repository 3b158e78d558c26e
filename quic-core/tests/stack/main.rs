//! The whole stack in virtual time, through its public interface: two endpoints and a link.

mod bbr3;
mod common;
mod determinism;
mod endings;
mod pacing;
mod streams;
mod transfer;
