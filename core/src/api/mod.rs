//! What users see, async and blocking.
//!
//! Each noun is written once, in `nouns/`, and compiled twice: as it stands into [`asynchronous`], and into [`blocking`]
//! without its `async` and `.await`. What the two mean by driving a call, resting, and the like is in the `face.rs` of
//! each, and what only one of them has is in its `only.rs`.
//!
//! What the documentation hides is for the packages of other languages, whose objects cannot be consumed and whose
//! threads are their own: `*_shared`, `let_go`, the hands of a worker.

pub(crate) mod asynchronous;
pub mod blocking;
pub(crate) mod close;
pub mod internals;
pub(crate) mod listing;
pub(crate) mod timing;
pub(crate) mod worker;
