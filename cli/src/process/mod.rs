//! Commands that run under a lease: started so that they cannot outlive this process, watched, and stopped
//! when their lease is lost.

mod child;
mod descendants;
mod nursery;
mod signals;
mod supervise;

pub use child::{Child, not_started};
pub use descendants::Kin;
pub use nursery::{End, Nursery};
pub use signals::{ENDING, OF_WORK, PASSED_ON, Signals};
pub use supervise::{Ending, Order, Terms, Trouble, supervise};
