//! Generated bodies: any length, the same bytes every time, at no cost.
//!
//! The byte at offset `i` depends on `i mod 65,521` only. One block holding four periods is made
//! once; a chunk of the body is a slice of it, so serving a gigabyte copies and computes nothing.
//! 65,521 is the largest prime below 65,536: no two offsets a whole number of packets, pages or
//! power-of-two buffers apart hold the same run of bytes, so data put in the wrong place is seen. A
//! shift by an exact multiple of the period is not; lengths and the final size catch that.

use std::sync::OnceLock;

use bytes::Bytes;
use ring::digest;
use units::ByteCount;

/// After so many bytes the content repeats.
const PERIOD: usize = 65_521;

/// The longest chunk that [`chunk`] gives from any offset: three periods, about 197 kB.
const MAX_CHUNK: usize = 3 * PERIOD;

/// The largest generated body: 1 TB.
pub const MAX_SIZE: ByteCount = ByteCount::new(1_000_000_000_000);

/// The byte at `offset` of every generated body.
pub fn byte_at(offset: u64) -> u8 {
    block()[position(offset)]
}

/// Up to `length` bytes of a generated body from `offset` on. Never copies.
///
/// May give fewer than asked, but at least `min(length, 196,563)`.
pub fn chunk(offset: u64, length: u64) -> Bytes {
    let start = position(offset);
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(MAX_CHUNK);
    block().slice(start..start + length)
}

/// The SHA-256 of a generated body of `size`.
pub fn sha256_of(size: ByteCount) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    let mut offset = 0;
    while offset < size.as_u64() {
        let chunk = chunk(offset, size.as_u64() - offset);
        context.update(&chunk);
        offset += chunk.len() as u64;
    }
    let mut sum = [0; 32];
    sum.copy_from_slice(context.finish().as_ref());
    sum
}

/// Compares a body that arrives in pieces with the generated one.
///
/// ```
/// use h3_server::content::{Verifier, chunk};
/// use units::ByteCount;
///
/// let mut verifier = Verifier::new(ByteCount::kb(100));
/// verifier.update(&chunk(0, 60_000))?;
/// assert!(verifier.finish().is_err(), "40 kB are missing");
/// verifier.update(&chunk(60_000, 40_000))?;
/// verifier.finish()?;
/// # Ok::<(), h3_server::content::Mismatch>(())
/// ```
#[derive(Debug)]
pub struct Verifier {
    size: ByteCount,
    offset: u64,
}

impl Verifier {
    /// A verifier of a body of `size`.
    pub const fn new(size: ByteCount) -> Self {
        Self { size, offset: 0 }
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// A byte is not the generated one, or there are too many.
    pub fn update(&mut self, mut data: &[u8]) -> Result<(), Mismatch> {
        while !data.is_empty() {
            let room = self.size.as_u64().saturating_sub(self.offset);
            if room == 0 {
                return Err(Mismatch::TooLong { size: self.size });
            }
            let expected = chunk(self.offset, room.min(data.len() as u64));
            let (head, tail) = data.split_at(expected.len());
            if head != expected {
                let good = head
                    .iter()
                    .zip(&expected)
                    .take_while(|(a, b)| a == b)
                    .count();
                return Err(Mismatch::Byte {
                    offset: self.offset + good as u64,
                });
            }
            self.offset += head.len() as u64;
            data = tail;
        }
        Ok(())
    }

    /// Whether the body is complete.
    ///
    /// # Errors
    /// Bytes are missing.
    pub fn finish(&self) -> Result<(), Mismatch> {
        if self.offset < self.size.as_u64() {
            return Err(Mismatch::TooShort {
                received: ByteCount::new(self.offset),
                size: self.size,
            });
        }
        Ok(())
    }

    /// How many bytes were taken.
    pub const fn received(&self) -> ByteCount {
        ByteCount::new(self.offset)
    }
}

/// How a body differs from the generated one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// A byte differs.
    #[error("the byte at offset {offset} is wrong")]
    Byte {
        /// The first wrong byte.
        offset: u64,
    },
    /// There are more bytes than expected.
    #[error("there is more than the expected {size}")]
    TooLong {
        /// The expected size.
        size: ByteCount,
    },
    /// Bytes are missing at the end.
    #[error("only {received} of {size} arrived")]
    TooShort {
        /// What arrived.
        received: ByteCount,
        /// The expected size.
        size: ByteCount,
    },
}

fn position(offset: u64) -> usize {
    // Below 65,521, so the cast keeps the value.
    usize::try_from(offset % PERIOD as u64).unwrap_or(0)
}

fn block() -> &'static Bytes {
    static BLOCK: OnceLock<Bytes> = OnceLock::new();
    BLOCK.get_or_init(|| {
        let period: Vec<u8> = (0u64..).take(PERIOD).map(mix).collect();
        Bytes::from(period.repeat(4))
    })
}

/// One output byte of a 64-bit finaliser (two rounds of xor, shift, multiply): every bit of the
/// index reaches it, so neighbouring bytes are unrelated and the content does not compress.
fn mix(index: u64) -> u8 {
    let mut word = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word.to_be_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_any_cut_make_the_same_body() {
        let whole: Vec<u8> = (0..300_000).map(byte_at).collect();
        for step in [1_000, 1_200, 65_521, 65_536, 196_563, 300_000] {
            let mut body = Vec::new();
            while body.len() < whole.len() {
                let room = (whole.len() - body.len()).min(step) as u64;
                let piece = chunk(body.len() as u64, room);
                assert!(!piece.is_empty() && piece.len() as u64 <= room);
                body.extend_from_slice(&piece);
            }
            assert_eq!(body, whole, "cut every {step}");
        }
    }

    #[test]
    fn a_chunk_is_a_slice_of_one_block() {
        let (one, two) = (chunk(0, 10), chunk(65_521, 10));
        assert_eq!(
            one.as_ptr(),
            two.as_ptr(),
            "the second period starts where the first does"
        );
        assert_eq!(chunk(65_520, u64::MAX).len(), MAX_CHUNK);
    }

    #[test]
    fn every_value_occurs_about_equally_often() {
        let mut counts = [0u32; 256];
        for offset in 0..65_521 {
            counts[usize::from(byte_at(offset))] += 1;
        }
        // 256 on average; a fair source stays within five standard deviations (16 each).
        assert!(
            counts.iter().all(|&count| (176..=336).contains(&count)),
            "{counts:?}"
        );
    }

    #[test]
    fn the_checksum_is_that_of_the_bytes() {
        let bytes: Vec<u8> = (0..200_001).map(byte_at).collect();
        let expected = digest::digest(&digest::SHA256, &bytes);
        assert_eq!(sha256_of(ByteCount::new(200_001)), expected.as_ref());
        let nothing = digest::digest(&digest::SHA256, b"");
        assert_eq!(sha256_of(ByteCount::ZERO), nothing.as_ref());
    }

    #[test]
    fn a_flipped_a_missing_and_a_surplus_byte_are_seen() {
        let size = ByteCount::new(70_000);
        let mut body: Vec<u8> = (0..70_000).map(byte_at).collect();
        let mut verifier = Verifier::new(size);
        assert_eq!(verifier.update(&body), Ok(()));
        assert_eq!(verifier.finish(), Ok(()));
        assert_eq!(verifier.update(b"x"), Err(Mismatch::TooLong { size }));

        body[66_000] ^= 1;
        let mut verifier = Verifier::new(size);
        assert_eq!(
            verifier.update(&body),
            Err(Mismatch::Byte { offset: 66_000 })
        );

        let mut verifier = Verifier::new(size);
        assert_eq!(verifier.update(&body[..65_999]), Ok(()));
        let received = ByteCount::new(65_999);
        assert_eq!(
            verifier.finish(),
            Err(Mismatch::TooShort { received, size })
        );
    }

    #[test]
    fn a_shift_by_a_packet_a_page_or_a_buffer_is_seen() {
        for shift in [1, 1_200, 1_350, 1_472, 4_096, 65_536, 262_144] {
            let mut verifier = Verifier::new(ByteCount::mb(1));
            let shifted: Vec<u8> = (shift..shift + 64).map(byte_at).collect();
            assert!(verifier.update(&shifted).is_err(), "shifted by {shift}");
        }
    }
}
