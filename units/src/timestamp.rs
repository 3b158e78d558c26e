//! Points in time.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::time::Duration;

use crate::math::{NANOS_PER_SECOND, saturate};

/// A point in time, in nanoseconds since the run began.
///
/// 64 bits of nanoseconds last 584 years. A span between two points is a [`Duration`]; adding one
/// saturates at [`Timestamp::MAX`], which therefore also stands for "never".
///
/// ```
/// use std::time::Duration;
/// use units::Timestamp;
///
/// let sent_at = Timestamp::from_millis(5);
/// let acked_at = sent_at + Duration::from_millis(20);
/// assert_eq!(acked_at.saturating_since(sent_at), Duration::from_millis(20));
/// assert_eq!(sent_at.saturating_since(acked_at), Duration::ZERO);
/// assert_eq!(acked_at.to_string(), "0.025000000 s");
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The instant the run began.
    pub const ZERO: Self = Self(0);
    /// The last instant there is.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the run began.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant `micros` microseconds after the run began, at most [`Timestamp::MAX`].
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// The instant `millis` milliseconds after the run began, at most [`Timestamp::MAX`].
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// The instant `secs` seconds after the run began, at most [`Timestamp::MAX`].
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(NANOS_PER_SECOND))
    }

    /// Nanoseconds since the run began.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to this instant; zero if `earlier` is in fact later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The instant `span` before this one; [`Timestamp::ZERO`] if that is before the run began.
    #[must_use]
    pub fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(saturate(span.as_nanos())))
    }

    /// The instant `span` after this one, or `None` if it is beyond [`Timestamp::MAX`].
    #[must_use]
    pub fn checked_add(self, span: Duration) -> Option<Self> {
        let nanos = u64::try_from(span.as_nanos()).ok()?;
        self.0.checked_add(nanos).map(Self)
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    /// The instant `span` later, at most [`Timestamp::MAX`].
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(saturate(span.as_nanos())))
    }
}

impl AddAssign<Duration> for Timestamp {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl fmt::Display for Timestamp {
    /// Seconds with all nine decimals, so that a column of timestamps lines up.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format_args!(
            "{}.{:09} s",
            self.0 / NANOS_PER_SECOND,
            self.0 % NANOS_PER_SECOND
        )
        .to_string();
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_constructor_names_its_unit() {
        assert_eq!(
            Timestamp::from_secs(2),
            Timestamp::from_nanos(2_000_000_000)
        );
        assert_eq!(Timestamp::from_millis(2), Timestamp::from_nanos(2_000_000));
        assert_eq!(Timestamp::from_micros(2), Timestamp::from_nanos(2_000));
    }

    #[test]
    fn arithmetic_stops_at_both_ends() {
        assert_eq!(Timestamp::MAX + Duration::from_nanos(1), Timestamp::MAX);
        assert_eq!(Timestamp::ZERO + Duration::MAX, Timestamp::MAX);
        assert_eq!(
            Timestamp::from_secs(1).saturating_sub(Duration::MAX),
            Timestamp::ZERO
        );
        assert_eq!(Timestamp::from_secs(u64::MAX), Timestamp::MAX);
    }

    #[test]
    fn checked_add_says_when_it_does_not_fit() {
        let almost = Timestamp::from_nanos(u64::MAX - 1);
        assert_eq!(
            almost.checked_add(Duration::from_nanos(1)),
            Some(Timestamp::MAX)
        );
        assert_eq!(almost.checked_add(Duration::from_nanos(2)), None);
        assert_eq!(Timestamp::ZERO.checked_add(Duration::MAX), None);
    }

    #[test]
    fn adding_in_place_is_adding() {
        let mut at = Timestamp::from_millis(1);
        at += Duration::from_millis(2);
        assert_eq!(at, Timestamp::from_millis(3));
    }

    #[test]
    fn display_has_nine_decimals_at_any_value() {
        assert_eq!(Timestamp::ZERO.to_string(), "0.000000000 s");
        assert_eq!(
            Timestamp::from_nanos(1_234_567_890).to_string(),
            "1.234567890 s"
        );
        assert_eq!(Timestamp::MAX.to_string(), "18446744073.709551615 s");
    }
}
