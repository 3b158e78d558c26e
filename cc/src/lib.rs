//! Congestion controllers and what they stand on, as pure state machines.
//!
//! Nothing here knows a clock, a socket or the QUIC stack: time comes in as an argument, chance as a seed, news as
//! events, and what is allowed is read back. That makes every behaviour a test of a few lines.
//!
//! | part | what it is |
//! |---|---|
//! | [`controller`] | the contract: what a controller is told and what it answers |
//! | [`event`] | the news: packets sent, one digested datagram of feedback |
//! | [`state`] | states, and the door through which they change |
//! | [`algorithm`] | the table of controllers by name |
//! | [`new_reno`], [`cubic`] | the loss-based controllers; [`loss_based`] is the frame they share |
//! | [`bbr3`] | the model-based controller |
//! | [`options`] | what can be switched on and off in them |
//! | [`fixed`] | a fixed rate, for measurements |
//! | [`rtt`], [`delivery`], [`round`], [`recovery`], [`pacer`] | the arithmetic any sender needs |
//! | [`testing`] | a path of one bottleneck-free hop, to tell a controller a story and see what it does |
//!
//! ```
//! use cc::testing::TestPath;
//! use cc::{Algorithm, State};
//! use std::time::Duration;
//!
//! let mut path = TestPath::new(Algorithm::CUBIC);
//! path.send(10);
//! path.wait(Duration::from_millis(100));
//! path.ack(9);
//! path.lose(1);
//! assert_eq!(path.state(), State::Recovery);
//! ```

pub mod algorithm;
pub mod bbr3;
pub mod controller;
pub mod cubic;
pub mod delivery;
pub mod event;
#[cfg(feature = "mutants")]
pub mod faults;
pub mod fixed;
pub mod loss_based;
pub mod new_reno;
pub mod options;
pub mod pacer;
#[cfg(feature = "quinn")]
pub mod quinn;
pub mod recovery;
pub mod round;
pub mod rtt;
pub mod state;
pub mod testing;
#[cfg(feature = "mutants")]
pub mod zoo;

mod cubic_curve;
mod hystart;
mod prr;
mod undo;
mod window_use;

pub use algorithm::{Algorithm, AlgorithmError};
pub use bbr3::Bbr3;
#[cfg(feature = "mutants")]
pub use bbr3::Bbr3Fault;
pub use controller::{Controller, PathModel};
pub use cubic::Cubic;
pub use delivery::RateSample;
pub use event::{AckedPacket, FeedbackEvent, LostPacket, SentEvent};
#[cfg(feature = "mutants")]
pub use faults::{Fault, FaultCounters};
pub use fixed::{Fixed, FixedConfig};
pub use new_reno::NewReno;
pub use options::LossBasedOptions;
pub use pacer::Pacer;
pub use recovery::Episode;
pub use round::RoundCounter;
pub use rtt::RttEstimator;
pub use state::{State, Transition, Trigger};
#[cfg(feature = "mutants")]
pub use zoo::{Defect, Victim};
