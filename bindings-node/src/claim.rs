//! Claims.

use std::collections::HashMap;
use std::mem;
use std::sync::Mutex;

use napi::bindgen_prelude::{Buffer, ClassInstance, ToNapiValue, Uint8Array};
use napi::sys;
use napi_derive::napi;
use stanchion::{LossReason, Retry};

use crate::bridge::{Bridge, locked};
use crate::convert::{Millis, Text, at_once, millis, wall};
use crate::error::{Failure, invalid, refused};
use crate::flow::FlowInput;

/// How a claim ended, to be settled with others.
#[napi]
pub struct Verdict(Mutex<Option<stanchion::Verdict>>);

impl Verdict {
    fn of(verdict: stanchion::Verdict) -> Self {
        Self(Mutex::new(Some(verdict)))
    }

    /// All of them or none. A verdict can be settled once; the claim itself repeats.
    pub(crate) fn take(verdicts: &[ClassInstance<'_, Self>]) -> napi::Result<Vec<stanchion::Verdict>> {
        let found: Vec<_> = verdicts.iter().map_while(|verdict| locked(&verdict.0).take()).collect();
        if found.len() == verdicts.len() {
            return Ok(found);
        }
        for (verdict, taken) in verdicts.iter().zip(found) {
            *locked(&verdict.0) = Some(taken);
        }
        Err(invalid("the verdict was settled already"))
    }
}

/// When a failed task is tried again: without a delay, by the core's backoff.
fn retry(delay: Option<Millis>) -> Retry {
    delay.map_or(Retry::Backoff, |delay| Retry::After(delay.0))
}

fn text(text: Option<Text>) -> String {
    text.map(|text| text.0).unwrap_or_default()
}

fn loss(claim: &stanchion::Claim) -> Option<Failure> {
    let lost = claim.loss()?.error();
    let name = Some(claim.queue().to_owned());
    let message = format!("task {:?} of queue {:?}: {}", claim.id(), claim.queue(), lost.message());
    Some(Failure { message, name, ..Failure::from(&lost) })
}

/// A claim on a task. When nothing refers to it any more, it counts as failed.
#[napi]
pub struct Claim(pub(crate) stanchion::Claim);

#[napi]
impl Claim {
    #[napi(getter)]
    pub fn id(&self) -> &str {
        self.0.id()
    }

    #[napi(getter)]
    pub fn queue(&self) -> &str {
        self.0.queue()
    }

    #[napi(getter)]
    pub fn payload(&self) -> Buffer {
        self.0.payload().into()
    }

    #[napi(getter, ts_return_type = "Record<string, string>")]
    pub fn headers(&self) -> HashMap<String, String> {
        headers(self.0.headers())
    }

    #[napi(getter)]
    pub fn kind(&self) -> Option<&str> {
        self.0.kind()
    }

    #[napi(getter)]
    pub fn attempt(&self) -> u32 {
        self.0.attempt()
    }

    #[napi(getter)]
    pub fn max_attempts(&self) -> u32 {
        self.0.max_attempts()
    }

    #[napi(getter)]
    pub fn receipt(&self) -> u64 {
        self.0.receipt().get()
    }

    #[napi(getter)]
    pub fn version(&self) -> u64 {
        self.0.version().get()
    }

    #[napi(getter)]
    pub fn priority(&self) -> u32 {
        u32::from(self.0.priority())
    }

    #[napi(getter)]
    pub fn key(&self) -> Option<&str> {
        self.0.key()
    }

    #[napi(getter)]
    pub fn flow(&self) -> Option<&str> {
        self.0.flow()
    }

    #[napi(getter)]
    pub fn due(&self) -> f64 {
        wall(self.0.due())
    }

    #[napi(getter)]
    pub fn remaining(&self) -> f64 {
        millis(self.0.remaining())
    }

    #[napi(getter)]
    pub fn valid(&self) -> bool {
        self.0.is_valid()
    }

    /// Why it was lost, if it was.
    #[napi(getter)]
    pub fn loss_name(&self) -> Option<&'static str> {
        self.0.loss().map(LossReason::name)
    }

    #[napi(getter)]
    pub fn loss(&self) -> Option<Failure> {
        loss(&self.0)
    }

    #[napi]
    pub fn inputs(&self, bridge: Bridge, call: u32) -> napi::Result<()> {
        let claim = self.0.clone();
        bridge.start(call, async move {
            Ok(claim.inputs().await?.into_iter().map(FlowInput::from).collect::<Vec<_>>())
        })
    }

    #[napi]
    pub fn ack(&self, bridge: Bridge, call: u32, result: Option<Uint8Array>) -> napi::Result<()> {
        let (claim, result) = (self.0.clone(), result.map(|result| result.to_vec()));
        bridge.start(call, async move {
            match result {
                Some(result) => claim.ack_with(&result).await,
                None => claim.ack().await,
            }
        })
    }

    #[napi]
    pub fn progress(&self, bridge: Bridge, call: u32, progress: Uint8Array) -> napi::Result<()> {
        let (claim, progress) = (self.0.clone(), progress.to_vec());
        bridge.start(call, async move { claim.progress(&progress).await })
    }

    #[napi]
    pub fn nack(
        &self,
        bridge: Bridge,
        call: u32,
        delay: Option<Millis>,
        reason: Option<Text>,
    ) -> napi::Result<()> {
        let (claim, retry, reason) = (self.0.clone(), retry(delay), text(reason));
        bridge.start(call, async move { claim.nack(retry, &reason).await })
    }

    #[napi]
    pub fn bury(&self, bridge: Bridge, call: u32, reason: Option<Text>) -> napi::Result<()> {
        let (claim, reason) = (self.0.clone(), text(reason));
        bridge.start(call, async move { claim.bury(&reason).await })
    }

    #[napi]
    pub fn put_back(&self, bridge: Bridge, call: u32, delay: Option<Millis>) -> napi::Result<()> {
        let (claim, delay) = (self.0.clone(), at_once(delay));
        bridge.start(call, async move { claim.put_back(delay).await })
    }

    #[napi]
    pub fn throttle(&self, bridge: Bridge, call: u32, time: Millis) -> napi::Result<()> {
        let claim = self.0.clone();
        bridge.start(call, async move { claim.throttle(time.0).await })
    }

    #[napi]
    pub fn extend(&self, bridge: Bridge, call: u32, lease: Millis) -> napi::Result<()> {
        let claim = self.0.clone();
        bridge.start(call, async move { claim.extend(lease.0).await })
    }

    /// Done when the claim is lost (then it says why) or settled.
    #[napi]
    pub fn wait_lost(&self, bridge: Bridge, call: u32) -> napi::Result<()> {
        let claim = self.0.clone();
        bridge.start(call, async move {
            claim.lost().await;
            Ok(loss(&claim))
        })
    }

    #[napi]
    pub fn acked(&self, result: Option<Uint8Array>) -> napi::Result<Verdict> {
        let verdict = result.map_or_else(|| Ok(self.0.acked()), |result| self.0.acked_with(&result));
        verdict.map(Verdict::of).map_err(|error| refused(&error))
    }

    #[napi]
    pub fn nacked(&self, delay: Option<Millis>, reason: Option<Text>) -> napi::Result<Verdict> {
        let verdict = self.0.nacked(retry(delay), &text(reason));
        verdict.map(Verdict::of).map_err(|error| refused(&error))
    }

    #[napi]
    pub fn buried(&self, reason: Option<Text>) -> Verdict {
        Verdict::of(self.0.buried(&text(reason)))
    }

    #[napi]
    pub fn returned(&self, delay: Option<Millis>) -> napi::Result<Verdict> {
        let verdict = self.0.returned(at_once(delay));
        verdict.map(Verdict::of).map_err(|error| refused(&error))
    }

    #[napi]
    pub fn throttled(&self, time: Millis) -> napi::Result<Verdict> {
        self.0.throttled(time.0).map(Verdict::of).map_err(|error| refused(&error))
    }
}

pub(crate) fn headers(headers: &stanchion::Headers) -> HashMap<String, String> {
    headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Claims on their way to JavaScript: if nobody takes them, the tasks go back without counting an attempt.
pub struct Delivered(Vec<stanchion::Claim>);

impl Delivered {
    pub(crate) fn new(claims: Vec<stanchion::Claim>) -> Self {
        Self(claims)
    }
}

impl ToNapiValue for Delivered {
    unsafe fn to_napi_value(env: sys::napi_env, mut delivered: Self) -> napi::Result<sys::napi_value> {
        let claims: Vec<Claim> = mem::take(&mut delivered.0).into_iter().map(Claim).collect();
        // SAFETY: the caller vouches for the environment.
        unsafe { ToNapiValue::to_napi_value(env, claims) }
    }
}

impl Drop for Delivered {
    fn drop(&mut self) {
        self.0.iter().for_each(stanchion::Claim::put_back_unheard);
    }
}
