//! The text of a file, byte by byte, with the position; decompressed if need be.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// How much is read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// RFC 1952 section 2.3.1.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// RFC 8878 section 3.1.1.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The byte order mark in UTF-8. RFC 8259 section 8.1 lets a reader ignore it.
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// A text of which one byte at a time is looked at.
pub(super) struct Source<'a> {
    input: Box<dyn Read + 'a>,
    piece: Vec<u8>,
    at: usize,
    end: usize,
    /// The position of the beginning of `piece` in the text.
    base: u64,
    is_compressed: bool,
}

impl<'a> Source<'a> {
    /// Finds out by the first bytes whether the input is compressed.
    pub(super) fn new(mut input: impl Read + 'a) -> io::Result<Self> {
        let mut first = Vec::with_capacity(ZSTD.len());
        input
            .by_ref()
            .take(ZSTD.len() as u64)
            .read_to_end(&mut first)?;
        let is_gzip = first.starts_with(&GZIP);
        let is_zstd = first.starts_with(&ZSTD);
        let whole = Cursor::new(first).chain(input);
        let input: Box<dyn Read + 'a> = if is_gzip {
            Box::new(MultiGzDecoder::new(whole))
        } else if is_zstd {
            let decoder = StreamingDecoder::new(whole)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
            Box::new(decoder)
        } else {
            Box::new(whole)
        };
        let mut source = Self {
            input,
            piece: vec![0; PIECE_BYTES],
            at: 0,
            end: 0,
            base: 0,
            is_compressed: is_gzip || is_zstd,
        };
        for expected in MARK {
            if source.peek()? != Some(expected) {
                break;
            }
            source.skip();
        }
        Ok(source)
    }

    /// Whether the input is compressed.
    pub(super) const fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    /// The next byte, which stays the next one. `None` at the end.
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.at == self.end {
            self.base += self.end as u64;
            self.at = 0;
            self.end = 0;
            self.end = loop {
                match self.input.read(&mut self.piece) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // What a decoder claims is not trusted.
                    other => break other?.min(self.piece.len()),
                }
            };
        }
        Ok(self.piece[..self.end].get(self.at).copied())
    }

    /// Goes past the byte that was looked at.
    pub(super) fn skip(&mut self) {
        if self.at < self.end {
            self.at += 1;
        }
    }

    /// The position of the next byte.
    pub(super) const fn offset(&self) -> u64 {
        self.base + self.at as u64
    }
}
