//! Arguments and results.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use napi::bindgen_prelude::{BigInt, FromNapiValue, Utf16String};
use napi::{ValueType, sys, type_of};

use crate::error::invalid;

/// Milliseconds beyond this do not fit anywhere; the core has narrower limits of its own.
const MOST_MILLIS: f64 = 1e18;
/// The largest number up to which a JavaScript number counts exactly.
const MOST_EXACT: f64 = 9_007_199_254_740_991.0;

/// Declares how a value is shown in the types, and that it checks itself while it is converted.
macro_rules! converted {
    ($name:ident, $type:expr) => {
        impl napi::bindgen_prelude::TypeName for $name {
            fn type_name() -> &'static str {
                stringify!($name)
            }

            fn value_type() -> napi::ValueType {
                $type
            }
        }

        impl napi::bindgen_prelude::ValidateNapiValue for $name {
            unsafe fn validate(
                _: napi::sys::napi_env,
                _: napi::sys::napi_value,
            ) -> napi::Result<napi::sys::napi_value> {
                Ok(std::ptr::null_mut())
            }
        }
    };
}

pub(crate) use converted;

/// A time span: milliseconds.
#[derive(Clone, Copy)]
pub struct Millis(pub(crate) Duration);

converted!(Millis, ValueType::Number);

impl FromNapiValue for Millis {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        // SAFETY: the caller vouches for both.
        let number = unsafe { number(env, value, "a time span is a number of milliseconds")? };
        let span = Some(number).filter(|number| (0.0..=MOST_MILLIS).contains(number));
        let span = span.and_then(|number| Duration::try_from_secs_f64(number / 1_000.0).ok());
        span.map(Self).ok_or_else(|| invalid(format!("{number} is no time span in milliseconds")))
    }
}

/// A point in time: milliseconds since 1970.
#[derive(Clone, Copy)]
pub struct Wall(pub(crate) SystemTime);

converted!(Wall, ValueType::Number);

impl FromNapiValue for Wall {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        // SAFETY: the caller vouches for both.
        let number =
            unsafe { number(env, value, "a time is a Date or a number of milliseconds since 1970")? };
        let wrong = || invalid(format!("{number} is no time in milliseconds since 1970"));
        if !number.is_finite() || number > MOST_MILLIS {
            return Err(wrong());
        }
        // The core takes any time before 1970 for long past.
        let since = Duration::try_from_secs_f64(number.max(0.0).round() / 1_000.0).map_err(|_| wrong())?;
        UNIX_EPOCH.checked_add(since).map(Self).ok_or_else(wrong)
    }
}

/// Any number.
#[derive(Clone, Copy)]
pub struct Real(pub(crate) f64);

converted!(Real, ValueType::Number);

impl FromNapiValue for Real {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        // SAFETY: the caller vouches for both.
        unsafe { number(env, value, "a number is expected") }.map(Self)
    }
}

/// A whole number from zero on: a number that counts exactly, or a bigint.
#[derive(Clone, Copy)]
pub struct Whole(pub(crate) u64);

converted!(Whole, ValueType::Number);

impl FromNapiValue for Whole {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        if type_of!(env, value)? == ValueType::BigInt {
            // SAFETY: the caller vouches for both, and the type was checked.
            let (_, whole, exact) = unsafe { BigInt::from_napi_value(env, value)? }.get_u64();
            return exact.then_some(Self(whole)).ok_or_else(|| invalid("the bigint is no count of 64 bits"));
        }
        // SAFETY: the caller vouches for both.
        let number = unsafe { number(env, value, "a count is a whole number")? };
        if number.fract() != 0.0 || !(0.0..=MOST_EXACT).contains(&number) {
            return Err(invalid(format!("{number} is no count")));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
        Ok(Self(number as u64))
    }
}

impl Whole {
    /// As a smaller type; what does not fit becomes its largest value, which the core refuses.
    pub(crate) fn narrow<T: TryFrom<u64>>(self, largest: T) -> T {
        T::try_from(self.0).unwrap_or(largest)
    }
}

/// Text without lone surrogates.
pub struct Text(pub(crate) String);

converted!(Text, ValueType::String);

impl FromNapiValue for Text {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        let found = type_of!(env, value)?;
        if found != ValueType::String {
            return Err(invalid(format!("a text is expected, not {}", shown(found))));
        }
        // SAFETY: the caller vouches for both, and the type was checked.
        let text = unsafe { String::from_napi_value(env, value)? };
        // Node puts this character in the place of a lone surrogate: two names could become one.
        if !text.contains(char::REPLACEMENT_CHARACTER) {
            return Ok(Self(text));
        }
        // SAFETY: as above.
        let units = unsafe { Utf16String::from_napi_value(env, value)? };
        String::from_utf16(&units).map(Self).map_err(|_| invalid("a text has a lone surrogate"))
    }
}

/// Yes or no, and nothing that is merely truthy.
#[derive(Clone, Copy)]
pub struct Flag(pub(crate) bool);

converted!(Flag, ValueType::Boolean);

impl FromNapiValue for Flag {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        let found = type_of!(env, value)?;
        if found != ValueType::Boolean {
            return Err(invalid(format!("true or false is expected, not {}", shown(found))));
        }
        // SAFETY: the caller vouches for both, and the type was checked.
        unsafe { bool::from_napi_value(env, value) }.map(Self)
    }
}

/// A number and nothing that could be made one.
///
/// # Safety
/// As of [`FromNapiValue::from_napi_value`].
unsafe fn number(env: sys::napi_env, value: sys::napi_value, otherwise: &str) -> napi::Result<f64> {
    let found = type_of!(env, value)?;
    if found != ValueType::Number {
        return Err(invalid(format!("{otherwise}, not {}", shown(found))));
    }
    // SAFETY: the caller vouches for both, and the type was checked.
    unsafe { f64::from_napi_value(env, value) }
}

fn shown(found: ValueType) -> String {
    match found {
        ValueType::Undefined | ValueType::Null => found.to_string().to_lowercase(),
        ValueType::Object => "an object".into(),
        _ => format!("a {}", found.to_string().to_lowercase()),
    }
}

/// The time of an option that may be absent.
pub(crate) fn span(millis: Option<Millis>) -> Option<Duration> {
    millis.map(|Millis(span)| span)
}

/// A delay or a wait; without one, none.
pub(crate) fn at_once(millis: Option<Millis>) -> Duration {
    span(millis).unwrap_or_default()
}

/// Milliseconds, with fractions.
pub(crate) fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1_000.0
}

/// Milliseconds since 1970.
pub(crate) fn wall(time: SystemTime) -> f64 {
    millis(time.duration_since(UNIX_EPOCH).unwrap_or_default()).round()
}
