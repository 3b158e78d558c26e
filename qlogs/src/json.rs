//! JSON, written straight into a byte buffer: no tree, no allocation of its own, no floats.
//!
//! A comma is due unless the buffer ends in an opening bracket. That is all the state there is, and
//! it is sound because no value this module writes ends in one: text ends in its quote.

use std::io::Write as _;
use std::time::Duration;

/// The largest integer that every JSON reader takes exactly. Readers written in JavaScript keep
/// numbers as doubles, whose 53 bits of precision end here.
pub(crate) const LARGEST_INTEGER: u64 = 1 << 53;

/// Writes one JSON value into a buffer that it does not own.
pub(crate) struct Json<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Json<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// An object where a value is due: the root, or an element of an array.
    pub(crate) fn object(&mut self, fields: impl FnOnce(&mut Self)) {
        self.comma();
        self.braces(b'{', b'}', fields);
    }

    /// A field that is an object.
    pub(crate) fn object_field(&mut self, key: &str, fields: impl FnOnce(&mut Self)) {
        self.key(key);
        self.braces(b'{', b'}', fields);
    }

    /// A field that is an array; `elements` writes them.
    pub(crate) fn array_field(&mut self, key: &str, elements: impl FnOnce(&mut Self)) {
        self.key(key);
        self.braces(b'[', b']', elements);
    }

    /// The element `[low,high]` of an array.
    pub(crate) fn pair(&mut self, low: u64, high: u64) {
        self.comma();
        self.out.push(b'[');
        self.integer(low);
        self.out.push(b',');
        self.integer(high);
        self.out.push(b']');
    }

    /// A field whose text is one of our own words: no character of it needs escaping.
    pub(crate) fn word_field(&mut self, key: &str, word: &str) {
        debug_assert!(
            word.bytes().all(|byte| !needs_escape(byte)),
            "{word:?} is not a plain word"
        );
        self.key(key);
        self.out.push(b'"');
        self.out.extend_from_slice(word.as_bytes());
        self.out.push(b'"');
    }

    /// A field whose text may contain anything.
    pub(crate) fn text_field(&mut self, key: &str, text: &str) {
        self.key(key);
        self.out.push(b'"');
        self.escape(text);
        self.out.push(b'"');
    }

    /// A field whose text is what `value` displays: digits and punctuation, such as an address.
    pub(crate) fn plain_field(&mut self, key: &str, value: impl std::fmt::Display) {
        self.key(key);
        // Writing to a Vec cannot fail.
        let _ = write!(self.out, "\"{value}\"");
    }

    /// A field of lowercase hexadecimal digits.
    pub(crate) fn hex_field(&mut self, key: &str, bytes: &[u8]) {
        self.key(key);
        self.out.push(b'"');
        push_hex(self.out, bytes);
        self.out.push(b'"');
    }

    /// A field that is a whole number; left out above [`LARGEST_INTEGER`].
    pub(crate) fn integer_field(&mut self, key: &str, value: u64) {
        if value <= LARGEST_INTEGER {
            self.key(key);
            self.integer(value);
        }
    }

    /// A field that is a whole number; left out if unknown or above `most`, the largest value the
    /// schema has room for.
    pub(crate) fn integer_field_up_to(&mut self, most: u64, key: &str, value: Option<u64>) {
        if let Some(value) = value.filter(|&value| value <= most) {
            self.integer_field(key, value);
        }
    }

    pub(crate) fn bool_field(&mut self, key: &str, value: bool) {
        self.key(key);
        self.out
            .extend_from_slice(if value { b"true" } else { b"false" });
    }

    pub(crate) fn null_field(&mut self, key: &str) {
        self.key(key);
        self.out.extend_from_slice(b"null");
    }

    /// A field in milliseconds, exact to the nanosecond; left out beyond `u64` nanoseconds
    /// (584 years), which only a broken peer can cause.
    pub(crate) fn millis_field(&mut self, key: &str, duration: Duration) {
        if let Ok(nanos) = u64::try_from(duration.as_nanos()) {
            self.decimal_field(key, nanos, 6);
        }
    }

    /// A field that is the decimal number `units` / 10^`digits`, always with a decimal point: the
    /// schema takes a number without one for an integer and refuses it where it wants a float.
    pub(crate) fn decimal_field(&mut self, key: &str, units: u64, digits: u32) {
        self.key(key);
        let one = 10u64.pow(digits);
        self.integer(units / one);
        self.out.push(b'.');
        let (mut rest, mut place) = (units % one, one);
        // The first digit is written even if it is 0; after it, only what is not yet written of a
        // rest that is not 0, so no zero trails.
        loop {
            place /= 10;
            let digit = u8::try_from(rest / place).unwrap_or(0);
            self.out.push(b'0' + digit);
            rest %= place;
            if rest == 0 {
                break;
            }
        }
    }

    fn key(&mut self, key: &str) {
        self.comma();
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn integer(&mut self, value: u64) {
        self.out
            .extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }

    fn braces(&mut self, open: u8, close: u8, inside: impl FnOnce(&mut Self)) {
        self.out.push(open);
        inside(self);
        self.out.push(close);
    }

    fn comma(&mut self) {
        if !matches!(
            self.out.last().copied(),
            None | Some(b'{' | b'[' | RECORD_SEPARATOR)
        ) {
            self.out.push(b',');
        }
    }

    /// RFC 8259 section 7: the quote, the backslash and everything below U+0020 must be escaped. All
    /// of these are single bytes in UTF-8, so the text between them is copied in one piece.
    fn escape(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        while let Some(at) = rest.iter().position(|&byte| needs_escape(byte)) {
            self.out.extend_from_slice(&rest[..at]);
            match rest[at] {
                b'"' => self.out.extend_from_slice(b"\\\""),
                b'\\' => self.out.extend_from_slice(b"\\\\"),
                b'\n' => self.out.extend_from_slice(b"\\n"),
                b'\r' => self.out.extend_from_slice(b"\\r"),
                b'\t' => self.out.extend_from_slice(b"\\t"),
                control => {
                    self.out.extend_from_slice(b"\\u00");
                    push_hex(self.out, &[control]);
                }
            }
            rest = &rest[at + 1..];
        }
        self.out.extend_from_slice(rest);
    }
}

/// The byte before every record of a JSON text sequence (RFC 7464 section 2.2).
pub(crate) const RECORD_SEPARATOR: u8 = 0x1e;

fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

pub(crate) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 0xf)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(fields: impl FnOnce(&mut Json<'_>)) -> String {
        let mut out = Vec::new();
        Json::new(&mut out).object(fields);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn commas_stand_between_values_and_nowhere_else() {
        let text = written(|json| {
            json.object_field("a", |_| {});
            json.array_field("b", |array| {
                array.object(|element| element.bool_field("x", true));
                array.object(|_| {});
            });
            json.array_field("c", |array| {
                array.pair(1, 2);
                array.pair(3, 3);
            });
            json.word_field("d", "{");
            json.integer_field("e", 0);
        });
        assert_eq!(
            text,
            r#"{"a":{},"b":[{"x":true},{}],"c":[[1,2],[3,3]],"d":"{","e":0}"#
        );
    }

    #[test]
    fn milliseconds_are_exact_and_always_have_a_point() {
        for (nanos, expected) in [
            (0, "0.0"),
            (1, "0.000001"),
            (10, "0.00001"),
            (20_000_000, "20.0"),
            (20_500_000, "20.5"),
            (12_345_678, "12.345678"),
            (9_000_000_000_000_001, "9000000000.000001"),
            (u64::MAX, "18446744073709.551615"),
        ] {
            let text = written(|json| json.millis_field("t", Duration::from_nanos(nanos)));
            assert_eq!(text, format!("{{\"t\":{expected}}}"));
        }
    }

    #[test]
    fn a_duration_beyond_584_years_is_left_out() {
        assert_eq!(written(|json| json.millis_field("t", Duration::MAX)), "{}");
    }

    #[test]
    fn integers_end_at_two_to_the_53() {
        assert_eq!(
            written(|json| json.integer_field("n", 1 << 53)),
            r#"{"n":9007199254740992}"#
        );
        assert_eq!(written(|json| json.integer_field("n", (1 << 53) + 1)), "{}");
        assert_eq!(written(|json| json.integer_field("n", u64::MAX)), "{}");
    }

    #[test]
    fn every_ascii_character_survives_escaping() {
        let text: String = (0u8..128)
            .map(char::from)
            .chain("ü€😀\u{2028}".chars())
            .collect();
        let line = written(|json| json.text_field("s", &text));
        assert!(
            line.bytes().all(|byte| byte >= 0x20),
            "a raw control character in {line:?}"
        );
        let read: serde_json::Value = serde_json::from_str(&line).expect("valid JSON");
        assert_eq!(read["s"], text);
    }
}
