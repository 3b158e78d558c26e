//! CUBIC and NewReno over links: the whole QUIC stack in virtual time.
//!
//! ```text
//!  bulk        flows that share a link: the fixture
//!  verdict     measured against allowed, and rows for docs/validation.md
//!  slow_start  HyStart++ against slow start until loss                     always
//!  steady      how much of a link one flow uses                            short always, long TIDEGATE_SLOW=1
//!  fairness    two flows on one queue                                      short always, long TIDEGATE_SLOW=1
//!  curve       the window after a scripted drop, fitted against RFC 9438   always
//!  response    the mean window at random loss                              high loss always, the rest TIDEGATE_SLOW=1
//!  prr         the sender's silence after a cut, with and without RFC 9937 always
//! ```
//!
//! What is measured is compared with docs/validation.md, part "links"; `TIDEGATE_WRITE_DOCS=1` writes it there. Each
//! subject has a test in which something is wrong on purpose and has to be found out.

mod bulk;
mod curve;
mod fairness;
mod prr;
mod response;
mod slow_start;
mod steady;
#[expect(dead_code, reason = "nothing here differs from run to run")]
#[path = "../../../tests/support/validation_rows.rs"]
mod validation_rows;
mod verdict;
