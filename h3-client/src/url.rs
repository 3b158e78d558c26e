//! The part of a URL that a download needs.

use std::fmt;
use std::str::FromStr;

use http::Uri;
use http::uri::{Parts, PathAndQuery, Scheme};
use percent_encoding::percent_decode_str;

use crate::error::Error;

/// An `https` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    uri: Uri,
    /// Without the brackets of an IPv6 address.
    host: String,
    port: u16,
}

impl Url {
    /// The host: a name, or an address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; 443 if none is given.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The whole of it, for a request.
    pub const fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Whether one connection can serve both.
    pub fn has_same_authority(&self, other: &Self) -> bool {
        self.host.eq_ignore_ascii_case(&other.host) && self.port == other.port
    }

    /// The name to save it under: the last segment of the path, decoded; `index.html` for a
    /// directory.
    ///
    /// # Errors
    /// That is no file name here (it holds a slash, a NUL, is hidden or is not UTF-8).
    pub fn file_name(&self) -> Result<String, Error> {
        let segment = self.uri.path().rsplit('/').next().unwrap_or("");
        if segment.is_empty() {
            return Ok("index.html".into());
        }
        let name = percent_decode_str(segment).decode_utf8().ok();
        name.filter(|name| !name.starts_with('.') && !name.contains(['/', '\\', '\0']))
            .map(|name| name.into_owned())
            .ok_or_else(|| Error::Url {
                url: self.to_string(),
                problem: "its last part is no plain file name; name one with --output".into(),
            })
    }
}

impl FromStr for Url {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |problem: &str| Error::Url {
            url: text.into(),
            problem: problem.into(),
        };
        let without_fragment = text.split('#').next().unwrap_or(text);
        if without_fragment.contains(|c: char| c.is_whitespace() || !c.is_ascii()) {
            return Err(wrong(
                "write spaces and letters beyond ASCII as %20, %C3%A4, ...",
            ));
        }
        match without_fragment.split_once("://") {
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => {}
            Some(_) => return Err(wrong("only https is spoken here")),
            None => return Err(wrong("it has to begin with https://")),
        }
        let uri: Uri = without_fragment
            .parse()
            .map_err(|error| wrong(&format!("{error}")))?;
        let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("a user or password cannot be part of it"));
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        if host.is_empty() {
            return Err(wrong("it names no host"));
        }
        let port = match authority.port() {
            Some(port) => port.as_str().parse().unwrap_or(0),
            // "https://a:/x" and "https://a:99999/x" have a port that is none.
            None if authority.as_str().len() > authority.host().len() => 0,
            None => 443,
        };
        if port == 0 {
            return Err(wrong("its port is not within 1 to 65535"));
        }
        let mut parts = Parts::default();
        parts.scheme = Some(Scheme::HTTPS);
        parts.authority = Some(authority.clone());
        parts.path_and_query = Some(
            uri.path_and_query()
                .cloned()
                .unwrap_or(PathAndQuery::from_static("/")),
        );
        let uri = Uri::from_parts(parts).map_err(|error| wrong(&error.to_string()))?;
        Ok(Self { uri, host, port })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_port_and_target_are_read() -> Result<(), Error> {
        for (text, host, port, target) in [
            ("https://a.example", "a.example", 443, "https://a.example/"),
            (
                "https://a.example:4433/x?y=1",
                "a.example",
                4433,
                "https://a.example:4433/x?y=1",
            ),
            ("https://[::1]:8443/f", "::1", 8443, "https://[::1]:8443/f"),
            (
                "https://127.0.0.1/f#part",
                "127.0.0.1",
                443,
                "https://127.0.0.1/f",
            ),
            (
                "https://a.example?q",
                "a.example",
                443,
                "https://a.example/?q",
            ),
        ] {
            let url: Url = text.parse()?;
            assert_eq!((url.host(), url.port()), (host, port), "{text}");
            assert_eq!(url.to_string(), target, "{text}");
        }
        Ok(())
    }

    #[test]
    fn other_urls_are_refused_with_the_reason() {
        for (text, words) in [
            ("http://a.example/", "only https"),
            ("a.example/file", "has to begin with https://"),
            ("/file", "has to begin with https://"),
            ("", "has to begin with https://"),
            ("ftp://a.example/", "only https"),
            ("https:///file", "invalid format"),
            ("https://", "empty string"),
            ("https://user@a.example/", "user or password"),
            ("https://a.example:0/", "1 to 65535"),
            ("https://a.example:/", "1 to 65535"),
            ("https://a.example:65536/", "1 to 65535"),
            ("https://a.example/a b", "%20"),
            ("https://a.example/\u{e4}", "%C3%A4"),
        ] {
            match text.parse::<Url>() {
                Ok(url) => panic!("{text:?} is accepted as {url:?}"),
                Err(error) => assert!(error.to_string().contains(words), "{text:?}: {error}"),
            }
        }
    }

    #[test]
    fn the_file_name_is_the_last_segment() -> Result<(), Error> {
        for (text, name) in [
            ("https://a.example", Some("index.html")),
            ("https://a.example/dir/", Some("index.html")),
            ("https://a.example/dir/file.bin?x=/y", Some("file.bin")),
            ("https://a.example/a%20b", Some("a b")),
            ("https://a.example/..%2f..%2fetc", None),
            ("https://a.example/%2e%2e", None),
            ("https://a.example/..", None),
            ("https://a.example/.bashrc", None),
            ("https://a.example/a%5cb", None),
            ("https://a.example/a%00", None),
            ("https://a.example/%ff", None),
        ] {
            let url: Url = text.parse()?;
            assert_eq!(url.file_name().ok().as_deref(), name, "{text}");
        }
        Ok(())
    }

    #[test]
    fn one_connection_serves_one_host_and_port() -> Result<(), Error> {
        let url: Url = "https://A.example/x".parse()?;
        assert!(url.has_same_authority(&"https://a.example:443/y".parse()?));
        assert!(!url.has_same_authority(&"https://a.example:444/x".parse()?));
        assert!(!url.has_same_authority(&"https://b.example/x".parse()?));
        Ok(())
    }
}
