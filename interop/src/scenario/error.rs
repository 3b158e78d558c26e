//! What can be wrong with a scenario file, in one line each.

use std::fmt;

/// A scenario file that cannot be used: where, which key, and what is allowed instead.
///
/// Its `Display` is always one line: `FILE:LINE: KEY: what is wrong; what is allowed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file as the user named it, or `built-in NAME`.
    pub file: String,
    /// The line of the offending key or value, from 1.
    pub line: Option<usize>,
    /// The key with its table in front, such as `link.rate`; empty when the whole file is at fault.
    pub key: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with one key of a scenario file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// The text is not TOML.
    #[error("is not valid TOML: {0}")]
    Syntax(String),
    /// No setting has this name.
    #[error("unknown key; allowed are {0}")]
    UnknownKey(String),
    /// A key that must be there is not.
    #[error("is missing; {0}")]
    Missing(String),
    /// The value has another type than expected.
    #[error("is {found}; expected {expected}")]
    WrongType {
        /// The type found, with its article.
        found: &'static str,
        /// What may stand there, with an example.
        expected: String,
    },
    /// The text of a quantity is not understood.
    #[error("{0}")]
    Unit(String),
    /// The value is understood but not allowed.
    #[error("{value} is out of range; allowed is {range}")]
    OutOfRange {
        /// The value as written.
        value: String,
        /// The allowed range in words.
        range: String,
    },
    /// The word is none of those that may stand there.
    #[error("unknown word \"{word}\"; allowed are {allowed}")]
    UnknownWord {
        /// The word as written.
        word: String,
        /// Those that may stand there.
        allowed: String,
    },
    /// No controller has this name.
    #[error("{0}")]
    Controller(String),
    /// Two settings exclude each other.
    #[error("{0}")]
    Conflict(String),
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        // Messages of other crates may hold line breaks; the contract here is one line.
        let problem = self.problem.to_string();
        let words: Vec<&str> = problem.split_whitespace().collect();
        write!(f, ": {}", words.join(" "))
    }
}

impl std::error::Error for ScenarioError {}
