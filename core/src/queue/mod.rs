//! Tasks and claims: checked arguments, requests, and what becomes of a delivery.

pub(crate) mod claim_calls;
pub(crate) mod consumer;
pub(crate) mod dead_tasks;
pub(crate) mod delivery;
pub(crate) mod flow;
pub(crate) mod flow_calls;
pub(crate) mod flow_info;
pub(crate) mod flow_plan;
pub(crate) mod key_limits;
pub(crate) mod queue_calls;
pub(crate) mod queue_options;
pub(crate) mod schedule;
pub(crate) mod schedule_calls;
pub(crate) mod task;
pub(crate) mod task_events;
pub(crate) mod task_settings;
