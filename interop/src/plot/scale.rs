//! Axes: which values are shown where, and which of them get a label.

use units::math::mul_div;

use super::canvas::Px;

/// How values lie on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// From zero to `top`, with a label every `step`.
    Linear { step: u64, top: u64 },
    /// From `bottom` (above 0) to `top`, with a label at each power of ten.
    Log { bottom: u64, top: u64 },
}

/// A place on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tick {
    pub(super) value: u64,
    pub(super) has_label: bool,
}

impl Scale {
    /// A linear axis that ends at `top` and has at most `labels` steps, each 1, 2 or 5 times a
    /// power of ten.
    pub(super) fn linear(top: u64, labels: u64) -> Self {
        let top = top.max(1);
        let wanted = top.div_ceil(labels.max(1));
        Self::Linear {
            step: round_up(wanted),
            top,
        }
    }

    /// A logarithmic axis around these values, which ends at 1, 2 or 5 times a power of ten.
    pub(super) fn log(smallest: u64, largest: u64) -> Self {
        let bottom = round_down(mul_div(smallest, 9, 10).max(1));
        Self::Log {
            bottom,
            top: round_up(mul_div(largest, 11, 10).max(bottom + 1)),
        }
    }

    /// How far from the low end a value lies on an axis of this length. Values beyond an end lie
    /// on it.
    pub(super) fn position(&self, value: u64, length: Px) -> Px {
        let length = u64::try_from(length.as_tenths()).unwrap_or(0);
        let tenths = match *self {
            Self::Linear { top, .. } => {
                // Rounded to the nearest tenth.
                mul_div(value.min(top), 2 * length, top).div_ceil(2)
            }
            Self::Log { bottom, top } => {
                let log = |value: u64| log2(value) - log2(bottom);
                mul_div(log(value.clamp(bottom, top)), length, log(top))
            }
        };
        Px::tenths(i64::try_from(tenths).unwrap_or(i64::MAX))
    }

    /// The ticks from the low end upwards.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        match *self {
            Self::Linear { step, top } => (0..=top / step)
                .map(|index| Tick {
                    value: index * step,
                    has_label: true,
                })
                .collect(),
            Self::Log { bottom, top } => {
                let mut ticks = Vec::new();
                let mut decade = power_of_ten(bottom);
                while decade <= top {
                    for digit in 1..10 {
                        let value = decade.saturating_mul(digit);
                        if (bottom..=top).contains(&value) {
                            ticks.push(Tick {
                                value,
                                has_label: digit == 1,
                            });
                        }
                    }
                    decade = match decade.checked_mul(10) {
                        Some(decade) => decade,
                        None => break,
                    };
                }
                if ticks.iter().filter(|tick| tick.has_label).count() < 2 {
                    for tick in &mut ticks {
                        tick.has_label = true;
                    }
                }
                ticks
            }
        }
    }
}

/// The largest power of ten that is at most `value` (above 0).
fn power_of_ten(value: u64) -> u64 {
    10_u64.pow(value.max(1).ilog10())
}

/// The smallest of 1, 2 and 5 times a power of ten that is at least `value`.
pub(super) fn round_up(value: u64) -> u64 {
    let decade = power_of_ten(value);
    [1, 2, 5, 10]
        .into_iter()
        .filter_map(|digit| decade.checked_mul(digit))
        .find(|candidate| *candidate >= value)
        .unwrap_or(u64::MAX)
}

/// The largest of 1, 2 and 5 times a power of ten that is at most `value` (above 0).
fn round_down(value: u64) -> u64 {
    let decade = power_of_ten(value);
    [5, 2, 1]
        .into_iter()
        .filter_map(|digit| decade.checked_mul(digit))
        .find(|candidate| *candidate <= value)
        .unwrap_or(1)
}

/// The binary logarithm of `value` (0 counts as 1) with 16 binary places, rounded down.
///
/// Digit by digit: squaring a mantissa between 1 and 2 doubles its logarithm, and whether the square
/// reaches 2 is the next digit. In integers, because the logarithms of the standard library may
/// differ in their last digit between platforms, and pictures must not.
fn log2(value: u64) -> u64 {
    let value = value.max(1);
    let whole = value.ilog2();
    // 63 binary places.
    let mut mantissa = u128::from(value) << (63 - whole);
    let mut log = u64::from(whole);
    for _ in 0..16 {
        mantissa = (mantissa * mantissa) >> 63;
        let is_two = mantissa >> 64 == 1;
        log = 2 * log + u64::from(is_two);
        mantissa >>= u32::from(is_two);
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale) -> Vec<u64> {
        scale
            .ticks()
            .iter()
            .filter(|tick| tick.has_label)
            .map(|tick| tick.value)
            .collect()
    }

    #[test]
    fn logarithms_are_right_to_their_sixteenth_place() {
        assert_eq!(log2(0), 0);
        assert_eq!(log2(1), 0);
        assert_eq!(log2(1 << 40), 40 << 16);
        // log2(10) = 3.321928..., log2(3) = 1.584962...; times 65,536 and rounded down.
        assert_eq!(log2(10), 217_705);
        assert_eq!(log2(3), 103_872);
        assert_eq!(log2(u64::MAX), (64 << 16) - 1);
    }

    #[test]
    fn linear_labels_are_round_and_few() {
        assert_eq!(labels(Scale::linear(108, 6)), [0, 20, 40, 60, 80, 100]);
        assert_eq!(
            labels(Scale::linear(3_400, 10)),
            [0, 500, 1_000, 1_500, 2_000, 2_500, 3_000]
        );
        assert_eq!(labels(Scale::linear(0, 5)), [0, 1]);
        assert_eq!(labels(Scale::linear(u64::MAX, 1)), [0, u64::MAX]);
    }

    #[test]
    fn linear_positions_are_proportional_and_stay_on_the_axis() {
        let scale = Scale::linear(200, 4);
        let at = |value| scale.position(value, Px::whole(100));
        assert_eq!(at(0), Px::whole(0));
        assert_eq!(at(50), Px::whole(25));
        assert_eq!(at(200), Px::whole(100));
        assert_eq!(at(u64::MAX), Px::whole(100));
    }

    #[test]
    fn decades_are_equally_long_on_a_logarithmic_axis() {
        let scale = Scale::log(2_000, 900_000);
        assert_eq!(
            scale,
            Scale::Log {
                bottom: 1_000,
                top: 1_000_000
            }
        );
        let at = |value| scale.position(value, Px::whole(300));
        assert_eq!(at(0), Px::whole(0));
        assert_eq!(at(10_000), Px::whole(100));
        assert_eq!(at(100_000), Px::whole(200));
        assert_eq!(at(u64::MAX), Px::whole(300));
        assert_eq!(labels(scale), [1_000, 10_000, 100_000, 1_000_000]);
        assert_eq!(scale.ticks().len(), 28);
    }

    #[test]
    fn a_logarithmic_axis_without_decades_labels_what_it_has() {
        assert_eq!(labels(Scale::log(25, 35)), [20, 30, 40, 50]);
    }
}
