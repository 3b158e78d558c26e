//! The built-in scenarios on the whole stack: each meets its own bands, and each band can be missed.
//!
//! ```text
//!  catalogue   every scenario, three seeds, virtual time                 always
//!  mutants     every band is missed by something that is wrong           always
//!  slow        every scenario with all its seeds, and over real sockets  TIDEGATE_SLOW=1
//!  reality     virtual time beside real sockets                          TIDEGATE_SLOW=1
//!  validation  docs/validation.md says what was measured                 TIDEGATE_SLOW=1
//! ```
//!
//! Each slow test says on standard error whether it ran. `TIDEGATE_WRITE_DOCS=1` beside
//! `TIDEGATE_SLOW=1` writes the measured parts of `docs/validation.md` anew.

mod bench;
mod catalogue;
mod mutants;
mod reality;
mod slow;
mod validation;
