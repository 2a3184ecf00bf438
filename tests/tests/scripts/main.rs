//! Every Redis script on a real server: state before, one call, reply and state after, with all keys.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod acquire;
mod acquire_in_line;
mod break_lease;
mod case;
mod extend;
mod foreign;
mod hand_off;
mod holder;
mod leave;
mod memory_full;
mod release;
mod resume;
mod rights;
mod state;
mod wrong_types;
