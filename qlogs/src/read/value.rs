//! Values as other programs write them: numbers also as text, times as fractions.

use std::time::Duration;

use serde_json::Value;
use units::Timestamp;

/// A text, and nothing else.
pub(crate) fn text(value: Option<&Value>) -> Option<String> {
    value?.as_str().map(str::to_owned)
}

/// A finite number, also one written as text.
pub(crate) fn number(value: Option<&Value>) -> Option<f64> {
    let number = match value? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    number.filter(|number| number.is_finite())
}

/// A whole number from 0 to 2^64 - 1, also one written as text or with a fraction of zero.
pub(crate) fn whole(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    if let Some(number) = value.as_u64() {
        return Some(number);
    }
    if let Some(number) = value.as_str().and_then(|text| text.parse().ok()) {
        return Some(number);
    }
    let number = number(Some(value))?;
    let is_whole = (0.0..EXACT).contains(&number) && number.fract().abs() < f64::MIN_POSITIVE;
    is_whole.then(|| nanos_of(number))
}

/// A span in a unit of so many nanoseconds; negative ones are none.
pub(crate) fn span(value: Option<&Value>, unit_ns: f64) -> Option<Duration> {
    let number = number(value)?;
    (number >= 0.0).then(|| Duration::from_nanos(nanos_of(number * unit_ns)))
}

/// An instant in a unit of so many nanoseconds; what is before zero is zero.
pub(crate) fn instant(number: f64, unit_ns: f64) -> Timestamp {
    Timestamp::from_nanos(nanos_of(number * unit_ns))
}

/// 2^53: below it a double holds every whole number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Rounded to the nearest; below 2^53 ns, which is 104 days, a time with up to six decimals of a
/// millisecond is exact.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and a negative number becomes 0, as documented by the callers"
)]
fn nanos_of(number: f64) -> u64 {
    number.round() as u64
}
