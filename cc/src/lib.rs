//! Congestion controllers and what they stand on, as pure state machines.
