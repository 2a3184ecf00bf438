//! Time: the boot clock for deadlines, and a clock that a test can move.

use std::ops::{Add, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A sleeper looks at the clock at least this often: timers stand still while the machine is suspended, deadlines do not.
pub const NAP_MOST: Duration = Duration::from_secs(1);

/// A point on the clock that deadlines are measured by, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The latest moment there is; stands for "no limit".
    pub const FAR: Self = Self(u64::MAX);

    /// The moment `nanos` nanoseconds after the clock's origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Microseconds since the clock's origin.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// How long after `earlier` this is; zero if it is not.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;
    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;
    fn sub(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Where the time comes from.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The machine's clocks. Deadlines use the one that goes on during suspend.
    #[default]
    System,
    /// A clock that stands still until [`ManualClock::advance`] moves it.
    Manual(ManualClock),
}

impl Clock {
    /// The present moment.
    pub fn now(&self) -> Moment {
        match self {
            Self::System => boot_clock(),
            Self::Manual(clock) => clock.now(),
        }
    }

    /// Microseconds of wall time since 1970.
    pub fn wall_micros(&self) -> u64 {
        match self {
            Self::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
            Self::Manual(_) => MANUAL_WALL_ORIGIN + self.now().as_micros(),
        }
    }

    /// Whether it stands still until a test moves it.
    pub(crate) fn stands(&self) -> bool {
        matches!(self, Self::Manual(clock) if !clock.goes_on)
    }

    /// How long a thread may sleep, in real time, before it looks at this clock again: however late the moment, no longer
    /// than [`NAP_MOST`], since timers stand still while the machine is suspended.
    pub(crate) fn nap(&self, until: Moment) -> Duration {
        if self.stands() { MANUAL_NAP } else { until.since(self.now()).min(NAP_MOST) }
    }
}

/// Which boot the boot clock counts from. Empty on systems that do not expose it.
pub(crate) fn read_boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// 2020-01-01 in microseconds: where a manual clock's wall time begins.
const MANUAL_WALL_ORIGIN: u64 = 1_577_836_800_000_000;
/// A manual clock moves without waking sleepers, so they look often.
const MANUAL_NAP: Duration = Duration::from_millis(1);

/// A clock for tests: time passes only by [`ManualClock::advance`]. Clones share the time.
///
/// ```
/// use std::time::Duration;
/// use stanchion::ManualClock;
///
/// let clock = ManualClock::new();
/// clock.advance(Duration::from_secs(30));
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    nanos: Arc<AtomicU64>,
    /// The machine's time is added.
    goes_on: bool,
}

impl ManualClock {
    /// A clock that stands at one second.
    pub fn new() -> Self {
        Self { nanos: Arc::new(AtomicU64::new(1_000_000_000)), goes_on: false }
    }

    /// A clock that goes on with the machine's, and jumps when it is advanced: sleepers sleep on, as when the machine was
    /// suspended.
    #[doc(hidden)]
    pub fn that_goes_on() -> Self {
        Self { goes_on: true, ..Self::new() }
    }

    fn now(&self) -> Moment {
        let moved = Duration::from_nanos(self.nanos.load(Ordering::SeqCst));
        if self.goes_on { boot_clock() + moved } else { Moment::from_nanos(0) + moved }
    }

    /// Moves the time forward.
    pub fn advance(&self, time: Duration) {
        self.nanos.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(0), Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

/// CLOCK_BOOTTIME counts suspended time, so a lease does not outlive a closed laptop.
fn boot_clock() -> Moment {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: nix::time::ClockId = nix::time::ClockId::CLOCK_BOOTTIME;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: nix::time::ClockId = nix::time::ClockId::CLOCK_MONOTONIC;
    // The clocks named above exist on every supported system; zero would only shorten leases.
    let time = nix::time::clock_gettime(CLOCK).map_or(Duration::ZERO, Duration::from);
    Moment(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_goes_forward() {
        let clock = Clock::System;
        let before = clock.now();
        while clock.now() == before {}
        assert!(clock.now() > before);
    }

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let manual = ManualClock::new();
        let clock = Clock::Manual(manual.clone());
        let (moment, wall) = (clock.now(), clock.wall_micros());
        assert_eq!(clock.now(), moment);
        manual.advance(Duration::from_millis(3));
        assert_eq!(clock.now().since(moment), Duration::from_millis(3));
        assert_eq!(clock.wall_micros() - wall, 3_000);
    }

    #[test]
    fn no_sleeper_sleeps_for_longer_than_a_second() {
        let clock = Clock::System;
        assert_eq!(clock.nap(clock.now() + Duration::from_secs(600)), NAP_MOST);
        assert_eq!(clock.nap(Moment::FAR), NAP_MOST);
        assert!(clock.nap(clock.now() + Duration::from_millis(10)) <= Duration::from_millis(10));
    }

    #[test]
    fn moments_saturate() {
        assert_eq!(Moment::FAR + Duration::MAX, Moment::FAR);
        assert_eq!(Moment::from_nanos(5) - Duration::MAX, Moment::from_nanos(0));
    }
}
