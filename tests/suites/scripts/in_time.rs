//! Two stores are asked the same; what one of them has let end while the machine stood still says nothing.

use std::time::Duration;

use stanchion_tests::wait::{SOON, eventually};

/// They differed after so long: if leases or offers may have ended by then, that says nothing.
pub struct Difference {
    pub after: Duration,
    pub story: String,
}

/// Plays a sequence, and again under another name if it took too long.
pub fn in_time<T>(limit: Duration, mut play: impl FnMut(&str) -> Result<T, Difference>) {
    let mut round = 0;
    eventually(SOON, || {
        round += 1;
        match play(&format!("round{round}")) {
            Ok(_) => true,
            Err(difference) if difference.after < limit => panic!("{}", difference.story),
            Err(_) => false,
        }
    });
}
