//! End a wait: remove the entry, and the grant if one was made meanwhile.

use crate::protocol::{Leave, Reply};
use crate::store::sqlite::hand_off::hand_off;
use crate::store::sqlite::keys::row_key;
use crate::store::sqlite::line::{look_along, tidy};
use crate::store::sqlite::step::{Performed, Step};

/// Like leave.lua.
pub(super) fn leave(step: &Step<'_>, request: &Leave) -> rusqlite::Result<Performed> {
    let token = request.token.as_str();
    let key = row_key(&request.name);
    let row = match step.lock(&key)? {
        Some(row) => row,
        None => step.create(&key)?,
    };
    if row.crowded {
        step.leave_line(row.id, token)?;
    }
    let wake = match step.value(&row) == Some(token) {
        true => hand_off(step, &row)?,
        // Others are nearer to the head now.
        false if row.crowded => tidy(step, row.id, &look_along(step, row.id, 0, None)?)?,
        false => Vec::new(),
    };
    step.end_token(&row, token)?;
    Ok(Performed { reply: Reply::Leave, wake })
}
