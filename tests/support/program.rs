//! Runs the program as a user does.

use std::process::{Command, Output};

/// What a run of the program left.
pub(crate) struct Ended {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn tidegate(words: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    // The width of a terminal is no part of these tests.
    command.args(words).env_remove("COLUMNS");
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the program starts");
    Ended {
        status: status.code(),
        out: String::from_utf8(stdout).expect("text"),
        err: String::from_utf8(stderr).expect("text"),
    }
}
