//! Constructed connections: what limited them, their figures, and what the oracles say.

mod limits;
mod oracles;
mod summary;
mod tape;
