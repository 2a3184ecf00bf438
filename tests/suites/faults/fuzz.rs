//! Whatever is given to the library, it answers, and soon: URLs and options that no one wrote by hand, and servers that
//! answer with nonsense to every verb. A panic, a hang, or memory taken for what was only announced is a failure.
//!
//! A few seconds with a fixed seed; `make fuzz` goes on for longer, with other seeds.

use std::env;
use std::time::{Duration, Instant};

use fastrand::Rng;

mod replies;
mod urls;

/// How many rounds a run without a time has.
const ROUNDS: usize = 2;
/// What all rounds begin with, if nobody says otherwise.
const SEED: u64 = 20_260_801;

/// How long to go on, and with which seed.
struct Budget {
    rng: Rng,
    end: Option<Instant>,
    rounds: usize,
}

impl Budget {
    fn new(salt: u64) -> Self {
        let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let seconds = number("STANCHION_FUZZ_SECONDS");
        let seed = number("STANCHION_FUZZ_SEED").unwrap_or(SEED);
        Self {
            rng: Rng::with_seed(seed ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            end: seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)),
            rounds: 0,
        }
    }

    /// Whether there is one more round; `each` are made at least.
    fn goes_on(&mut self, each: usize) -> bool {
        self.rounds += 1;
        self.end.map_or(self.rounds <= each, |end| Instant::now() < end)
    }
}
