//! Where and why reading ended.

use std::fmt;

/// The one thing that ended the reading of a file. Everything before it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The record that could not be read; the header is record 1.
    pub record: u64,
    /// Where it begins, in bytes of the text, which is that after decompression.
    pub offset: u64,
    /// What is wrong with it.
    pub kind: FaultKind,
}

/// What may be wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// There is nothing in it.
    Empty,
    /// It is neither a JSON text sequence nor a JSON document.
    NotQlog,
    /// It ends in the middle of a record: the program that wrote it was stopped, or the file was cut.
    Truncated,
    /// A record is longer than the limit, in bytes.
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// A record is no JSON; the text says why.
    NotJson(String),
    /// A record is JSON but no event; the text says why.
    NotAnEvent(&'static str),
    /// The file cannot be read or decompressed any further; the text says why.
    Io(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {}, byte {}: ", self.record, self.offset)?;
        match &self.kind {
            FaultKind::Empty => write!(f, "the file is empty"),
            FaultKind::NotQlog => write!(
                f,
                "this is not qlog; allowed are a JSON text sequence, a JSON document and lines of JSON, \
                 also compressed with gzip or zstd"
            ),
            FaultKind::Truncated => write!(f, "the file ends in the middle of a record"),
            FaultKind::TooLong { limit } => {
                write!(f, "the record is longer than {limit} bytes, the limit")
            }
            FaultKind::NotJson(why) => write!(f, "not JSON: {why}"),
            FaultKind::NotAnEvent(why) => write!(f, "no event: {why}"),
            FaultKind::Io(why) => write!(f, "the file cannot be read any further: {why}"),
        }
    }
}

impl std::error::Error for Fault {}
