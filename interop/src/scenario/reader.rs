//! Reads tables of a scenario file key by key, so that every complaint can name file, line and key.
//!
//! Serde would be shorter, but its messages for a wrong unit or an unknown key inside an inline
//! table name neither the key's path nor the line.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Problem, ScenarioError};

/// The text of one file and its name in messages.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// The line, from 1, on which the byte at `offset` stands.
    pub(super) fn line_of(&self, offset: usize) -> usize {
        let end = offset.min(self.text.len());
        1 + self.text.as_bytes()[..end]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
    }

    /// An error at a known place.
    pub(super) fn error(
        &self,
        span: Option<Range<usize>>,
        key: impl Into<String>,
        problem: Problem,
    ) -> ScenarioError {
        ScenarioError {
            file: self.file.to_owned(),
            line: span.map(|span| self.line_of(span.start)),
            key: key.into(),
            problem,
        }
    }
}

/// One value with the path that leads to it.
#[derive(Clone)]
pub(super) struct Value<'a> {
    pub(super) source: Source<'a>,
    pub(super) key: String,
    pub(super) span: Range<usize>,
    pub(super) value: &'a DeValue<'a>,
}

impl<'a> Value<'a> {
    pub(super) fn error(&self, problem: Problem) -> ScenarioError {
        self.source
            .error(Some(self.span.clone()), self.key.clone(), problem)
    }

    fn wrong_type(&self, expected: impl Into<String>) -> ScenarioError {
        self.error(Problem::WrongType {
            found: type_with_article(self.value),
            expected: expected.into(),
        })
    }

    pub(super) fn out_of_range(
        &self,
        value: impl Display,
        range: impl Into<String>,
    ) -> ScenarioError {
        self.error(Problem::OutOfRange {
            value: value.to_string(),
            range: range.into(),
        })
    }

    /// The text of a string; `example` shows what is expected when it is something else.
    pub(super) fn text(&self, example: &str) -> Result<&'a str, ScenarioError> {
        self.value
            .as_str()
            .ok_or_else(|| self.wrong_type(format!("a text such as \"{example}\"")))
    }

    /// A quantity with its unit.
    pub(super) fn quantity<T>(&self, example: &str) -> Result<T, ScenarioError>
    where
        T: FromStr,
        T::Err: Display,
    {
        self.text(example)?
            .parse()
            .map_err(|error: T::Err| self.error(Problem::Unit(error.to_string())))
    }

    /// A span of time with its unit.
    pub(super) fn duration(&self, example: &str) -> Result<Duration, ScenarioError> {
        units::parse_duration(self.text(example)?)
            .map_err(|error| self.error(Problem::Unit(error.to_string())))
    }

    /// True or false.
    pub(super) fn boolean(&self) -> Result<bool, ScenarioError> {
        self.value
            .as_bool()
            .ok_or_else(|| self.wrong_type("true or false"))
    }

    /// A whole number within `range`.
    pub(super) fn integer(&self, range: RangeInclusive<u64>) -> Result<u64, ScenarioError> {
        let number = self
            .value
            .as_integer()
            .ok_or_else(|| self.wrong_type("a whole number"))?;
        let words = format!("{} to {}", range.start(), range.end());
        // The parser keeps the digits as text; a minus sign is part of them.
        match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(found) if range.contains(&found) => Ok(found),
            _ => Err(self.out_of_range(number.as_str(), words)),
        }
    }

    /// The items of an array, or the value itself when it is not one.
    pub(super) fn one_or_many(&self) -> Vec<Value<'a>> {
        let Some(array) = self.value.as_array() else {
            return vec![self.clone()];
        };
        array.iter().map(|item| self.item(item)).collect()
    }

    /// The items of an array.
    pub(super) fn items(&self, expected: &str) -> Result<Vec<Value<'a>>, ScenarioError> {
        let array = self
            .value
            .as_array()
            .ok_or_else(|| self.wrong_type(expected))?;
        Ok(array.iter().map(|item| self.item(item)).collect())
    }

    fn item(&self, item: &'a Spanned<DeValue<'a>>) -> Value<'a> {
        Value {
            source: self.source,
            key: self.key.clone(),
            span: item.span(),
            value: item.get_ref(),
        }
    }

    /// The value as a table.
    pub(super) fn table(&self, expected: &str) -> Result<Table<'a>, ScenarioError> {
        let table = self
            .value
            .as_table()
            .ok_or_else(|| self.wrong_type(expected))?;
        Ok(Table {
            source: self.source,
            path: self.key.clone(),
            span: Some(self.span.clone()),
            table,
        })
    }
}

/// One table with the path that leads to it; the empty path is the file itself.
pub(super) struct Table<'a> {
    pub(super) source: Source<'a>,
    pub(super) path: String,
    span: Option<Range<usize>>,
    table: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    pub(super) fn root(source: Source<'a>, table: &'a DeTable<'a>) -> Self {
        Self {
            source,
            path: String::new(),
            span: None,
            table,
        }
    }

    /// The path of `key` inside this table.
    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// An error about the table as a whole.
    pub(super) fn error(&self, problem: Problem) -> ScenarioError {
        self.source
            .error(self.span.clone(), self.path.clone(), problem)
    }

    /// An error about a key that may not stand there.
    pub(super) fn error_at(&self, key: &str, problem: Problem) -> ScenarioError {
        self.source.error(self.span.clone(), key, problem)
    }

    pub(super) fn missing(&self, key: &str, hint: &str) -> ScenarioError {
        self.source.error(
            self.span.clone(),
            self.path_of(key),
            Problem::Missing(hint.to_owned()),
        )
    }

    /// Refuses the first key, in file order, that is not one of `allowed`.
    pub(super) fn only(&self, allowed: &[&str]) -> Result<(), ScenarioError> {
        let unknown = self
            .table
            .keys()
            .filter(|key| !allowed.contains(&key.get_ref().as_ref()))
            .min_by_key(|key| key.span().start);
        match unknown {
            None => Ok(()),
            Some(key) => Err(self.source.error(
                Some(key.span()),
                self.path_of(key.get_ref()),
                Problem::UnknownKey(allowed.join(", ")),
            )),
        }
    }

    pub(super) fn find(&self, key: &str) -> Option<Value<'a>> {
        let (key, value) = self
            .table
            .iter()
            .find(|(name, _)| name.get_ref().as_ref() == key)?;
        Some(Value {
            source: self.source,
            key: self.path_of(key.get_ref()),
            span: value.span(),
            value: value.get_ref(),
        })
    }

    pub(super) fn need(&self, key: &str, hint: &str) -> Result<Value<'a>, ScenarioError> {
        self.find(key).ok_or_else(|| self.missing(key, hint))
    }

    /// All entries in file order.
    pub(super) fn entries(&self) -> Vec<(&'a str, Value<'a>)> {
        let mut entries: Vec<_> = self
            .table
            .iter()
            .map(|(key, value)| {
                let name: &'a str = key.get_ref().as_ref();
                let value = Value {
                    source: self.source,
                    key: self.path_of(name),
                    span: value.span(),
                    value: value.get_ref(),
                };
                (key.span().start, name, value)
            })
            .collect();
        entries.sort_by_key(|(start, _, _)| *start);
        entries
            .into_iter()
            .map(|(_, name, value)| (name, value))
            .collect()
    }
}

fn type_with_article(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
