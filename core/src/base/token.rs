//! The random secret that proves a lease is yours.

use std::fmt;

use crate::base::error::{Error, ErrorKind};

/// Sixteen nines: old lockers that read a lock's value as a Unix time see one far in the future.
pub(crate) const FAR_FUTURE: &str = "9999999999999999";
/// Decimal digits that hold any 128-bit number.
const DIGITS: usize = 39;
/// How long every token is.
pub(crate) const LENGTH: usize = FAR_FUTURE.len() + DIGITS;

/// The value a lock's key holds during a cooldown: a number of a token's shape that no token has.
pub(crate) const COOLDOWN_MARKER: &str = "9999999999999999000000000000000000000000000000000000000";

/// A 128-bit random secret; whoever knows it can extend, release or resume the lease.
///
/// The text form is decimal, so that programs which store a Unix time in the same key can still
/// parse it. `Debug` hides it; [`Token::as_str`] is the only way to its text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Token(Box<str>);

impl Token {
    /// A fresh random token.
    pub(crate) fn random() -> Result<Self, Error> {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes).map_err(|error| {
            Error::new(ErrorKind::Internal, "the system's random source failed").with_source(error)
        })?;
        Ok(Self::from_bits(u128::from_le_bytes(bytes)))
    }

    /// The token made of these bits. Zero is the cooldown marker's, so it is never a token.
    pub(crate) fn from_bits(bits: u128) -> Self {
        Self(format!("{FAR_FUTURE}{:0DIGITS$}", bits.max(1)).into())
    }

    /// The token of a later try of the same call, as secret as this one.
    pub(crate) fn of_try(&self, number: u32) -> Self {
        let bits: u128 = self.0[FAR_FUTURE.len()..].parse().unwrap_or_default();
        Self::from_bits(bits.wrapping_add(u128::from(number) << 96))
    }

    /// Reads a token's text form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        (text != COOLDOWN_MARKER && Self::has_shape(text.as_bytes())).then(|| Self(text.into()))
    }

    /// Whether a stored value was written by this library (a token or the cooldown marker).
    pub(crate) fn has_shape(value: &[u8]) -> bool {
        value.len() == LENGTH
            && value.starts_with(FAR_FUTURE.as_bytes())
            && value.iter().all(u8::is_ascii_digit)
    }

    /// The printable form. It is a secret: keep it out of logs.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_has_the_shape_and_parses_back() {
        for bits in [1, 7, u128::MAX] {
            let token = Token::from_bits(bits);
            assert!(Token::has_shape(token.as_str().as_bytes()));
            assert_eq!(Token::parse(token.as_str()), Some(token));
        }
    }

    #[test]
    fn the_cooldown_marker_is_nobodys_token() {
        assert!(Token::has_shape(COOLDOWN_MARKER.as_bytes()));
        assert_eq!(Token::parse(COOLDOWN_MARKER), None);
        assert_ne!(Token::from_bits(0).as_str(), COOLDOWN_MARKER);
    }

    #[test]
    fn old_lockers_read_a_time_far_in_the_future() {
        let token = Token::from_bits(12345);
        assert!(token.as_str().parse::<f64>().is_ok_and(|time| time > 4e12));
    }

    #[test]
    fn debug_shows_no_secret() {
        assert_eq!(format!("{:?}", Token::from_bits(42)), "Token(..)");
    }
}
