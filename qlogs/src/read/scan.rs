//! Cuts a text into JSON values without understanding them: no value is ever held but the one asked
//! for, and that only up to a limit.

use super::fault::FaultKind;
use super::source::Source;
use crate::json::RECORD_SEPARATOR;

/// The limit of one record, in bytes. The longest our own writer makes is below 100 kB.
pub(super) const RECORD_LIMIT: usize = 1024 * 1024;

impl Source<'_> {
    fn look(&mut self) -> Result<Option<u8>, FaultKind> {
        self.peek()
            .map_err(|error| FaultKind::Io(error.to_string()))
    }

    /// The next byte that is neither white space nor one of `also`.
    pub(super) fn next_token(&mut self, also: &[u8]) -> Result<Option<u8>, FaultKind> {
        while let Some(byte) = self.look()? {
            if !byte.is_ascii_whitespace() && !also.contains(&byte) {
                return Ok(Some(byte));
            }
            self.skip();
        }
        Ok(None)
    }

    /// Everything up to the next `end`, which is skipped, or up to the end of the text. `false` if
    /// it was the end of the text.
    pub(super) fn until(&mut self, end: u8, out: &mut Vec<u8>) -> Result<bool, FaultKind> {
        out.clear();
        while let Some(byte) = self.look()? {
            if byte == end {
                // The separator of the next record is left for it, so that its position is right.
                if end != RECORD_SEPARATOR {
                    self.skip();
                }
                return Ok(true);
            }
            push(out, byte)?;
            self.skip();
        }
        Ok(false)
    }

    /// One JSON value, beginning with the next byte, which is not white space. Brackets are counted, not
    /// matched: whoever reads the value finds out.
    pub(super) fn value(&mut self, out: &mut Vec<u8>) -> Result<(), FaultKind> {
        out.clear();
        let mut depth = 0_usize;
        let mut is_text = false;
        while let Some(byte) = self.look()? {
            if is_text {
                push(out, byte)?;
                self.skip();
                match byte {
                    b'\\' => {
                        let Some(escaped) = self.look()? else { break };
                        push(out, escaped)?;
                        self.skip();
                    }
                    b'"' => {
                        is_text = false;
                        if depth == 0 {
                            return Ok(());
                        }
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => is_text = true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth == 0 => return ended(out),
                b'}' | b']' => depth -= 1,
                b',' | b':' if depth == 0 => return ended(out),
                byte if depth == 0 && byte.is_ascii_whitespace() => return ended(out),
                _ => {}
            }
            push(out, byte)?;
            self.skip();
            if depth == 0 && matches!(byte, b'}' | b']') {
                return Ok(());
            }
        }
        Err(FaultKind::Truncated)
    }
}

/// A number or a word ends before what follows it; nothing at all is no value.
fn ended(out: &[u8]) -> Result<(), FaultKind> {
    match out.is_empty() {
        true => Err(FaultKind::NotJson("a value is missing".to_owned())),
        false => Ok(()),
    }
}

fn push(out: &mut Vec<u8>, byte: u8) -> Result<(), FaultKind> {
    if out.len() >= RECORD_LIMIT {
        return Err(FaultKind::TooLong {
            limit: RECORD_LIMIT,
        });
    }
    out.push(byte);
    Ok(())
}
