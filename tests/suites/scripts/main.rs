//! Every Redis script on a real server: state before, one call, reply and state after, with all keys.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod acquire;
mod acquire_all;
mod acquire_in_line;
mod break_lease;
mod cached;
mod case;
mod extend;
mod foreign;
mod hand_off;
mod holder;
mod in_time;
mod leave;
mod limiter;
mod line;
mod lives;
mod memory_full;
mod packed;
mod permits;
mod permits_faults;
mod prolonged;
mod queue_abandon;
mod queue_cancel;
mod queue_case;
mod queue_claim;
mod queue_dead;
mod queue_enqueue;
mod queue_events;
mod queue_extend_claim;
mod queue_faults;
mod queue_keys;
mod queue_look;
mod queue_move;
mod queue_result;
mod queue_schedules;
mod queue_settings;
mod queue_settle;
mod queue_state;
mod release;
mod resume;
mod rights;
mod state;
mod waiters;
mod wrong_types;
