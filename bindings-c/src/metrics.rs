//! What a client has counted.

use std::ffi::c_char;

use stanchion::Metrics;

use crate::arguments::{stanchion_text, text};
use crate::boundary;
use crate::client::{Client, stanchion_client};
use crate::error::{stanchion_error, stanchion_status};
use crate::handle::{self, Kind};
use crate::listing::beyond;
use crate::records::{needed, put};

/// What a client had counted at one moment. 0 is none.
pub type stanchion_metrics = i64;

/// With the names as texts that a program can be pointed to.
struct Counted {
    metrics: Metrics,
    samples: Vec<(String, f64)>,
}

impl Kind for Counted {
    const NAME: &'static str = "metrics";
}

/// What the client has counted since it was opened in this process, one number for each sample of its Prometheus text. The
/// samples are listed in docs/METRICS.md. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_client_metrics(
    client: stanchion_client,
    out: *mut stanchion_metrics,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the metrics")?;
        let metrics = handle::get::<Client>(client)?.0.metrics()?;
        let samples = metrics.iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let counted = handle::insert(Counted { metrics, samples })?;
        // SAFETY: the caller passes a place as the header says.
        unsafe { put(out, counted) };
        Ok(0)
    })
}

/// All of it in Prometheus' text format, to be served as "text/plain; version=0.0.4". The text lives as long as the handle.
/// Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_metrics_text(
    metrics: stanchion_metrics,
    out: *mut stanchion_text,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the text")?;
        let counted = handle::get::<Counted>(metrics)?;
        // SAFETY: the caller passes a place as the header says.
        unsafe { put(out, stanchion_text::of(counted.metrics.text())) };
        Ok(0)
    })
}

/// The value of a sample, named as in the text with its labels: stanchion_lock_acquires_total{outcome="granted"}.
/// STANCHION_ABSENT: there is none of this name. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_metrics_get(
    metrics: stanchion_metrics,
    name: *const c_char,
    name_len: usize,
    out: *mut f64,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        needed(out, "the value")?;
        // SAFETY: the caller passes a text as the header says.
        let name = unsafe { text("name", name, name_len) }?;
        let Some(value) = handle::get::<Counted>(metrics)?.metrics.get(name) else {
            return Ok(stanchion_status::STANCHION_ABSENT as i32);
        };
        // SAFETY: the caller passes a place as the header says.
        unsafe { put(out, value) };
        Ok(0)
    })
}

/// How many samples there are; 0 if this is no handle of metrics. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_metrics_len(metrics: stanchion_metrics) -> usize {
    boundary::value(0, || handle::get::<Counted>(metrics).map_or(0, |counted| counted.samples.len()))
}

/// One of the samples; its name lives as long as the handle. Does no I/O. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stanchion_metrics_at(
    metrics: stanchion_metrics,
    index: usize,
    name: *mut stanchion_text,
    value: *mut f64,
    err: *mut *mut stanchion_error,
) -> i32 {
    boundary::status(err, || {
        let counted = handle::get::<Counted>(metrics)?;
        let found = counted.samples.get(index).ok_or_else(|| beyond(index, counted.samples.len()))?;
        // SAFETY: the caller passes NULL or places for a text and a number.
        unsafe {
            put(name, stanchion_text::of(&found.0));
            put(value, found.1);
        }
        Ok(0)
    })
}

/// Frees the metrics. 0 and freed handles are harmless. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stanchion_metrics_free(metrics: stanchion_metrics) {
    boundary::value((), || drop(handle::take::<Counted>(metrics)));
}
