//! Settings of a queue, and limits of keys.

use napi::bindgen_prelude::ClassInstance;
use napi_derive::napi;

use crate::bridge::Bridge;
use crate::convert::{Flag, Millis, Text, Whole, millis};
use crate::error::invalid;
use crate::queue::Queue;

/// Keys of a page, if nothing is said.
const PAGE: usize = 100;

/// So many per time.
#[napi]
pub struct Rate(stanchion::Rate);

#[napi]
impl Rate {
    #[napi(constructor)]
    pub fn new(count: Whole, per: Millis, burst: Option<Whole>) -> napi::Result<Self> {
        let rate = stanchion::Rate::new(small("count", count)?, per.0);
        Ok(Self(match burst {
            Some(burst) => rate.burst(small("burst", burst)?),
            None => rate,
        }))
    }
}

/// Settings to change. Those that can be absent in the queue, too, are set one by one.
#[napi]
pub struct QueueConfig(stanchion::QueueConfig);

#[napi]
impl QueueConfig {
    #[napi(constructor)]
    pub fn new(
        dead_max: Option<Whole>,
        dead_age: Option<Millis>,
        dead_bytes: Option<Whole>,
        intake: Option<Flag>,
        events: Option<Whole>,
    ) -> Self {
        let mut settings = stanchion::QueueConfig::new();
        if let Some(Whole(count)) = dead_max {
            settings = settings.dead_max(count);
        }
        if let Some(age) = dead_age {
            settings = settings.dead_age(age.0);
        }
        if let Some(Whole(bytes)) = dead_bytes {
            settings = settings.dead_bytes(bytes);
        }
        if let Some(intake) = intake {
            settings = settings.intake(intake.0);
        }
        if let Some(Whole(count)) = events {
            settings = settings.events(count);
        }
        Self(settings)
    }

    #[napi]
    pub fn max_len(&mut self, most: Option<Whole>) {
        self.0 = self.0.clone().max_len(most.map(|most| most.0));
    }

    #[napi]
    pub fn max_running(&mut self, most: Option<Whole>) {
        self.0 = self.0.clone().max_running(most.map(|most| most.0));
    }

    #[napi]
    pub fn rate(&mut self, rate: Option<ClassInstance<'_, Rate>>) {
        self.0 = self.0.clone().rate(rate.map(|rate| rate.0));
    }

    #[napi]
    pub fn key_concurrency(&mut self, most: Option<Whole>) -> napi::Result<()> {
        let most = most.map(|most| small("keyConcurrency", most)).transpose()?;
        self.0 = self.0.clone().key_concurrency(most);
        Ok(())
    }

    #[napi]
    pub fn key_rate(&mut self, rate: Option<ClassInstance<'_, Rate>>) {
        self.0 = self.0.clone().key_rate(rate.map(|rate| rate.0));
    }
}

fn small(name: &str, Whole(count): Whole) -> napi::Result<u32> {
    u32::try_from(count).map_err(|_| invalid(format!("{name} is not below 2^32")))
}

/// A rate that is in force; `per` is milliseconds.
#[napi(object, object_from_js = false)]
pub struct RateInfo {
    pub count: u32,
    pub per: f64,
    pub burst: u32,
}

impl From<stanchion::Rate> for RateInfo {
    fn from(rate: stanchion::Rate) -> Self {
        Self { count: rate.count, per: millis(rate.per), burst: rate.burst }
    }
}

/// What a key has of its own.
#[napi(object, object_from_js = false)]
pub struct KeyLimits {
    pub concurrency: Option<u32>,
    pub rate: Option<RateInfo>,
    pub weight: u32,
}

/// What is known of a key; `opens_in` is milliseconds.
#[napi(object, object_from_js = false)]
pub struct KeyInfo {
    pub key: String,
    pub running: f64,
    pub in_line: f64,
    pub held: f64,
    pub opens_in: Option<f64>,
    pub limits: Option<KeyLimits>,
}

impl From<stanchion::KeyInfo> for KeyInfo {
    fn from(info: stanchion::KeyInfo) -> Self {
        let own = |own: stanchion::KeyLimits| KeyLimits {
            concurrency: own.concurrency,
            rate: own.rate.map(RateInfo::from),
            weight: own.weight,
        };
        Self {
            key: info.key,
            running: info.running as f64,
            in_line: info.in_line as f64,
            held: info.held as f64,
            opens_in: info.opens_in.map(millis),
            limits: info.limits.map(own),
        }
    }
}

/// Some keys, and where the next ones begin.
#[napi(object, object_from_js = false)]
pub struct KeyPage {
    pub keys: Vec<KeyInfo>,
    pub next: Option<String>,
}

impl From<stanchion::KeyPage> for KeyPage {
    fn from(page: stanchion::KeyPage) -> Self {
        Self { keys: page.keys.into_iter().map(KeyInfo::from).collect(), next: page.next }
    }
}

#[napi]
impl Queue {
    #[napi]
    pub fn configure(&self, bridge: Bridge, call: u32, settings: &QueueConfig) -> napi::Result<()> {
        let (queue, settings) = (self.0.clone(), settings.0.clone());
        bridge.start(call, async move { queue.configure(settings).await })
    }

    /// With none given, what it has is taken away.
    #[napi]
    pub fn limit_key(
        &self,
        bridge: Bridge,
        call: u32,
        key: Text,
        concurrency: Option<Whole>,
        rate: Option<ClassInstance<'_, Rate>>,
        weight: Option<Whole>,
    ) -> napi::Result<()> {
        let is_given = concurrency.is_some() || rate.is_some() || weight.is_some();
        let mut limits = stanchion::KeyLimits::new();
        if let Some(most) = concurrency {
            limits = limits.concurrency(small("concurrency", most)?);
        }
        if let Some(rate) = rate {
            limits = limits.rate(rate.0);
        }
        if let Some(weight) = weight {
            limits = limits.weight(small("weight", weight)?);
        }
        let queue = self.0.clone();
        bridge.start(call, async move { queue.limit_key(&key.0, is_given.then_some(limits)).await })
    }

    #[napi]
    pub fn get_key(&self, bridge: Bridge, call: u32, key: Text) -> napi::Result<()> {
        let queue = self.0.clone();
        bridge.start(call, async move { queue.get_key(&key.0).await.map(KeyInfo::from) })
    }

    #[napi]
    pub fn list_keys(
        &self,
        bridge: Bridge,
        call: u32,
        page: Option<Text>,
        max: Option<Whole>,
    ) -> napi::Result<()> {
        let (queue, max) = (self.0.clone(), max.map_or(PAGE, |max| max.narrow(usize::MAX)));
        bridge.start(call, async move {
            let from = page.as_ref().map(|page| &*page.0);
            queue.list_keys(from, max).await.map(KeyPage::from)
        })
    }
}
