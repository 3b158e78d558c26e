//! The cubic curve of RFC 9438 section 4.2, in integers.
//!
//! ```text
//!   W_cubic(t) = C (t - K)^3 + W_max        K = cbrt((W_max - cwnd_epoch) / C)        C = 0.4 segments/s^3
//!
//!   W_max  - - - - - - - - - - - .--'''''''--.- - - - - /
//!                         .-'                       .-'
//!                      .'         concave | convex
//!   cwnd_epoch  ------/
//!                 t = 0                 t = K
//! ```
//!
//! Integers and not floats, because two builds, two machines and a browser must draw the same curve to the byte.
//! Time is counted in ticks of 2^-20 s (0.95 µs) so that the cube is divided by shifts. One tick off moves the
//! curve by 3 C (t-K)^2 x 2^-20 segments: 0.0002 segments 12 s away from the plateau.

use std::time::Duration;

use units::ByteCount;

/// The curve of one epoch.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct CubicCurve {
    /// `W_max`.
    plateau: ByteCount,
    /// `K`, in ticks, rounded up: the curve begins at or just below `cwnd_epoch`.
    plateau_at: u64,
    /// What counts as a segment. It stays for the epoch: a new datagram size must not bend the curve.
    segment: ByteCount,
}

impl CubicCurve {
    /// Draws the curve that starts at `window` and is level at `plateau`.
    ///
    /// If the window is there already, the plateau is the window and `K` is zero (RFC 9438 sections 4.2 and 4.10).
    pub(crate) fn new(window: ByteCount, plateau: ByteCount, segment: ByteCount) -> Self {
        let plateau = plateau.max(window);
        // K^3 = (W_max - cwnd_epoch) / (2/5 segment) s^3; times 2^60 it is in cubic ticks. The product is at
        // most 2^64 x 5 x 2^60 < 2^127.
        let distance = u128::from((plateau - window).as_u64());
        let cube =
            ((distance * 5) << (3 * TICK_BITS)).div_ceil(2 * u128::from(segment.as_u64().max(1)));
        Self {
            plateau,
            plateau_at: cube_root_ceil(cube),
            segment,
        }
    }

    /// Returns `W_cubic(t)`; below the plateau it is rounded down, above it too.
    pub(crate) fn at(&self, t: Duration) -> ByteCount {
        let t = ticks(t);
        let away = u128::from(t.abs_diff(self.plateau_at));
        // At most 2^54 ticks (2^64 ns) away; the square is 2^108 before its shift. The cube may not fit from
        // 2^46 ticks (two years) on and saturates, far above any window. Shifting in between loses 2^-20 s^2.
        let square = (away * away) >> TICK_BITS;
        let cube = square.saturating_mul(away) >> TICK_BITS;
        let fifths = cube.saturating_mul(2 * u128::from(self.segment.as_u64()));
        let offset = |wide: u128| ByteCount::new(u64::try_from(wide).unwrap_or(u64::MAX));
        if t < self.plateau_at {
            self.plateau - offset((fifths >> TICK_BITS).div_ceil(5))
        } else {
            self.plateau + offset((fifths >> TICK_BITS) / 5)
        }
    }

    /// Returns `K`.
    pub(crate) fn time_to_plateau(&self) -> Duration {
        let whole = self.plateau_at >> TICK_BITS;
        let rest = self.plateau_at & ((1 << TICK_BITS) - 1);
        Duration::from_secs(whole) + Duration::from_nanos((rest * 1_000_000_000) >> TICK_BITS)
    }
}

/// A tick is 2^-20 s.
const TICK_BITS: u32 = 20;

/// Converts to ticks, rounded down: 2^20 ticks a second, and 10^9 ns = 2^9 x 1,953,125 ns.
///
/// A span beyond 2^34 s (544 years) saturates there.
fn ticks(span: Duration) -> u64 {
    let whole = span.as_secs().min(1 << 34) << TICK_BITS;
    let rest = (u64::from(span.subsec_nanos()) << (TICK_BITS - 9)) / 1_953_125;
    whole + rest
}

/// Returns the smallest integer whose cube is at least `cube`.
///
/// It tries each bit from the top, as in long division; 43 steps, once per epoch. The largest root is
/// cbrt(2^127) < 2^43, and the cube of anything below 2^42.6 fits 128 bits.
fn cube_root_ceil(cube: u128) -> u64 {
    let mut root = 0_u64;
    for bit in (0..43).rev() {
        let candidate = root | (1 << bit);
        let wide = u128::from(candidate);
        if wide.checked_pow(3).is_some_and(|tried| tried <= cube) {
            root = candidate;
        }
    }
    let wide = u128::from(root);
    if wide * wide * wide < cube {
        root + 1
    } else {
        root
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: ByteCount = ByteCount::new(1_200);

    fn curve(window: u64, plateau: u64) -> CubicCurve {
        CubicCurve::new(SEGMENT * window, SEGMENT * plateau, SEGMENT)
    }

    fn millis(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[track_caller]
    fn assert_k(curve: CubicCurve, wanted: Duration) {
        let off = curve.time_to_plateau().abs_diff(wanted);
        assert!(
            off <= millis(1),
            "K is {:?}, wanted {wanted:?}",
            curve.time_to_plateau()
        );
    }

    #[test]
    fn cube_roots_are_exact_at_cubes_and_rounded_up_elsewhere() {
        for (cube, root) in [
            (0, 0),
            (1, 1),
            (2, 2),
            (8, 2),
            (27, 3),
            (28, 4),
            (1_000, 10),
            (1_000_000, 100),
            (1_000_000_000, 1_000),
            ((1 << 32) - 1, 1_626),
            (u128::from(u64::MAX), 2_642_246),
            (1 << 126, 1 << 42),
        ] {
            assert_eq!(cube_root_ceil(cube), root, "cube root of {cube}");
        }
    }

    // RFC 9438 section 4.2: K = cbrt((W_max - cwnd_epoch) / C).
    #[test]
    fn the_time_to_the_plateau_follows_from_the_distance_to_it() {
        assert_k(curve(70, 100), millis(4_217));
        assert_k(curve(70, 85), millis(3_347));
        assert_k(curve(7, 10), millis(1_957));
        assert_k(curve(700, 1_000), millis(9_086));
        // 2,304 segments and 0.7 of them: the quotient is a cube.
        let twelve = CubicCurve::new(
            ByteCount::new(1_935_360),
            ByteCount::new(2_764_800),
            SEGMENT,
        );
        assert_k(twelve, millis(12_000));
    }

    #[test]
    fn the_curve_goes_through_its_anchors_within_a_hundredth_of_a_segment() {
        let curve = curve(1_792, 2_560);
        for (t_ms, hundredths) in [
            (0, 179_200),
            (2_000, 210_632),
            (6_000, 245_374),
            (10_000, 255_427),
            (12_429, 256_000),
            (15_000, 256_680),
            (20_000, 273_359),
            (24_600, 328_122),
        ] {
            let wanted = SEGMENT.scale(hundredths, 100);
            let got = curve.at(millis(t_ms));
            // The anchors have two decimals at t = 0 and one elsewhere.
            assert!(
                got.as_u64().abs_diff(wanted.as_u64()) <= 60,
                "at {t_ms} ms: {got}, wanted {wanted}"
            );
        }
    }

    #[test]
    fn the_curve_never_begins_above_the_window() {
        for window in 2..3_000 {
            for plateau in [window, window + 1, window * 10 / 7, window * 50] {
                let start = curve(window, plateau).at(Duration::ZERO);
                assert!(
                    start <= SEGMENT * window,
                    "{window} to {plateau} begins at {start}"
                );
                assert!(
                    start + ByteCount::new(20) >= SEGMENT * window,
                    "{window} to {plateau} begins at {start}"
                );
            }
        }
    }

    #[test]
    fn a_window_above_the_plateau_is_the_plateau() {
        let curve = curve(20, 10);
        assert_eq!(curve.plateau, SEGMENT * 20);
        assert_eq!(curve.time_to_plateau(), Duration::ZERO);
        assert_eq!(curve.at(Duration::ZERO), SEGMENT * 20);
        assert_eq!(curve.at(Duration::from_secs(5)), SEGMENT * 70);
    }

    #[test]
    fn extreme_arguments_saturate() {
        let far = CubicCurve::new(ByteCount::ZERO, ByteCount::MAX, ByteCount::new(1));
        assert!(far.at(Duration::ZERO) < ByteCount::MAX);
        assert_eq!(far.at(Duration::MAX), ByteCount::MAX);
        let wide = CubicCurve::new(
            ByteCount::new(1 << 40),
            ByteCount::ZERO,
            ByteCount::new(65_527),
        );
        assert_eq!(wide.at(Duration::MAX), ByteCount::MAX);
        assert!(wide.at(Duration::from_secs(1_000_000)) > ByteCount::new(1 << 60));
    }
}
