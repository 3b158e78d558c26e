//! The seam between the laboratory and whatever plays a run.

use std::path::Path;
use std::time::Duration;

use cc::Algorithm;

use crate::record::Recording;
use crate::scenario::{Case, Scenario};

/// One run to play.
#[derive(Debug, Clone, Copy)]
pub struct PlayRequest<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Which of its downloads.
    pub case: &'a Case,
    /// The controller of the server, which sends the download.
    pub algorithm: &'a Algorithm,
    /// The seed of every random draw.
    pub seed: u64,
    /// When the run ends whatever happens.
    pub limit: Duration,
    /// An existing, empty directory for the qlog of this run, if it is wanted.
    pub qlog_dir: Option<&'a Path>,
}

/// A run that could not be played at all: no sockets, no disk space, a broken set-up.
///
/// A download that fails inside a run is not one of these but [`crate::results::Outcome::Failed`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlayError(
    /// What is wrong, in one line.
    pub String,
);

/// Plays runs: in virtual time, over real sockets, or from a script in tests.
pub trait Player: Sync {
    /// Plays one run from beginning to end.
    ///
    /// # Errors
    /// The run could not be played at all.
    fn play(&self, request: &PlayRequest<'_>) -> Result<Recording, PlayError>;

    /// Whether the runs take real time and real sockets.
    fn is_real(&self) -> bool {
        false
    }
}
