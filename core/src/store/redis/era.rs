//! Whose connections these are: those of a former master are not used any more.

/// What belongs to the time of one master. Eras never come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Era(pub(crate) u64);
