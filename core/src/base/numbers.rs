//! Fences, receipts and versions: numbers that only grow. Each is a type of its own, so that none is taken for another.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(u64);

        impl $name {
            /// Stands for "there is none"; smaller than every one that was given out.
            pub const NONE: Self = Self(0);

            /// The one with this number, as [`get`](Self::get) returned it.
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// The number: to store it, or to show it to another program.
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// A number that grows with every grant of a lock.
    ///
    /// Store it with what you write, and refuse a write whose fence is smaller than the stored one.
    ///
    /// ```
    /// use stanchion::Fence;
    ///
    /// let lease_fence = Fence::new(1_764_000_000_000_001); // lease.fence()
    /// let column = i64::try_from(lease_fence.get())?; // a BIGINT
    /// assert!(lease_fence >= Fence::new(u64::try_from(column)?));
    /// assert_eq!(lease_fence.to_string(), "1764000000000001");
    /// # Ok::<(), std::num::TryFromIntError>(())
    /// ```
    ///
    /// A receipt is no fence, and cannot be compared with one:
    ///
    /// ```compile_fail,E0308
    /// use stanchion::{Fence, Receipt};
    ///
    /// let fence: Fence = Receipt::new(1);
    /// ```
    ///
    /// ```compile_fail,E0308
    /// use stanchion::{Fence, Receipt};
    ///
    /// assert!(Fence::new(1) < Receipt::new(2));
    /// ```
    Fence
}

number! {
    /// The number of one delivery of a task; every delivery has a larger one. For a task it is what a [`Fence`] is for a
    /// lock.
    Receipt
}

number! {
    /// A number that grows with every accepted enqueue of a task.
    Version
}

impl Fence {
    /// The largest that every store can keep: they count in signed numbers.
    const MAX: Self = Self(i64::MAX as u64);

    /// The least fence that is larger.
    #[must_use]
    pub const fn next(self) -> Self {
        if self.0 < Self::MAX.0 { Self(self.0 + 1) } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_shown_as_numbers_and_know_their_type() {
        assert_eq!(
            format!("{} {:>3} {:?}", Fence::new(7), Receipt::new(8), Version::new(9)),
            "7   8 Version(9)"
        );
        assert_eq!((Fence::NONE.get(), Fence::default()), (0, Fence::NONE));
    }

    #[test]
    fn the_next_fence_is_larger_while_stores_can_keep_it() {
        assert_eq!(Fence::NONE.next(), Fence::new(1));
        assert_eq!(Fence::MAX.next(), Fence::MAX);
        assert_eq!(Fence::new(u64::MAX).next(), Fence::new(u64::MAX));
    }
}
