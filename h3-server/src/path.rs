//! From the path of a URL to the names of files, or to nothing.
//!
//! Each segment is percent-decoded once and must then be one plain, visible file name. Whatever
//! could climb, split or end a path (`.`, `..`, an encoded slash, a backslash, NUL) has no
//! meaning here, and the answer is the same as for a file that does not exist.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

/// The longest path, as sent, that is looked at.
const MAX_PATH_BYTES: usize = 4096;

/// What is left as it is when a file name is put into a URL (RFC 3986 section 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Where a path points.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FilePath {
    /// File names from the root on; none for the root itself.
    pub(crate) names: Vec<Vec<u8>>,
    /// Whether the path ended in a slash, and so names a directory.
    pub(crate) is_directory: bool,
}

impl FilePath {
    /// Reads the path of a URL, without its query. `None`: it cannot name a file.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        if path.len() > MAX_PATH_BYTES {
            return None;
        }
        let path = path.strip_prefix('/')?;
        if path.is_empty() {
            return Some(Self {
                names: Vec::new(),
                is_directory: true,
            });
        }
        let (path, is_directory) = match path.strip_suffix('/') {
            Some(path) => (path, true),
            None => (path, false),
        };
        let names = path.split('/').map(file_name).collect::<Option<Vec<_>>>()?;
        Some(Self {
            names,
            is_directory,
        })
    }

    /// The same path as a directory, for a `Location`.
    pub(crate) fn with_slash(&self) -> String {
        let mut path = String::from("/");
        for name in &self.names {
            path.extend(percent_encode(name, UNRESERVED));
            path.push('/');
        }
        path
    }
}

/// Decodes one segment; `None` if it is not a plain, visible file name.
fn file_name(segment: &str) -> Option<Vec<u8>> {
    if !has_valid_escapes(segment.as_bytes()) {
        return None;
    }
    let name: Vec<u8> = percent_decode(segment.as_bytes()).collect();
    let is_hidden = name.first().is_none_or(|&byte| byte == b'.');
    let has_forbidden = name.iter().any(|byte| matches!(byte, b'/' | b'\\' | 0));
    (!is_hidden && !has_forbidden).then_some(name)
}

/// The decoder leaves a broken escape as it is; a file could then be reached by two names.
fn has_valid_escapes(segment: &[u8]) -> bool {
    segment
        .iter()
        .enumerate()
        .filter(|&(_, &byte)| byte == b'%')
        .all(|(at, _)| {
            segment
                .get(at + 1..at + 3)
                .is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str) -> Option<Vec<String>> {
        let path = FilePath::parse(path)?;
        Some(
            path.names
                .iter()
                .map(|name| String::from_utf8_lossy(name).into())
                .collect(),
        )
    }

    #[test]
    fn plain_names_pass_and_are_decoded_once() {
        assert_eq!(names("/"), Some(vec![]));
        assert_eq!(names("/a/b.txt"), Some(vec!["a".into(), "b.txt".into()]));
        assert_eq!(
            names("/a%20b/%C3%A4"),
            Some(vec!["a b".into(), "\u{e4}".into()])
        );
        assert_eq!(
            names("/%2541"),
            Some(vec!["%41".into()]),
            "one decoding, not two"
        );
        assert_eq!(
            names("/a..b/c..."),
            Some(vec!["a..b".into(), "c...".into()])
        );
        assert_eq!(
            FilePath::parse("/%ff").map(|path| path.names),
            Some(vec![vec![0xff]])
        );
    }

    #[test]
    fn hostile_and_hidden_names_point_nowhere() {
        for path in [
            "",
            "a",
            "*",
            "//",
            "//a",
            "/a//b",
            "/.",
            "/..",
            "/../a",
            "/a/../b",
            "/a/./b",
            "/a/..",
            "/%2e%2e/a",
            "/%2E%2e/a",
            "/.%2e/a",
            "/a%2fb",
            "/..%2fetc",
            "/a%5cb",
            "/a\\b",
            "/..\\a",
            "/a%00",
            "/%00",
            "/a%0",
            "/a%",
            "/a%zz",
            "/.hidden",
            "/a/.git/config",
            "/%2ehidden",
            "/.well-known/x",
        ] {
            assert_eq!(names(path), None, "{path:?}");
        }
        assert_eq!(names(&format!("/{}", "a".repeat(MAX_PATH_BYTES))), None);
    }

    #[test]
    fn a_final_slash_names_a_directory() {
        let directory = |path| FilePath::parse(path).map(|path| path.is_directory);
        assert_eq!(directory("/a/"), Some(true));
        assert_eq!(directory("/a"), Some(false));
        let redirect = FilePath::parse("/a%20b/%ff\u{e4}").map(|path| path.with_slash());
        assert_eq!(redirect.as_deref(), Some("/a%20b/%FF%C3%A4/"));
    }
}
