//! What a client remembers about locks between calls.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::base::name::LockName;
use crate::base::wake::locked;
use crate::engine::acquire::ForeignHolder;
use crate::protocol::Fence;

/// Locks remembered; past this, the half with the oldest fences is forgotten.
const CAPACITY: usize = 8_192;

/// Per lock: the highest fence seen, and a foreign value that never expires.
#[derive(Debug, Default)]
pub(crate) struct FenceMemory(Mutex<HashMap<LockName, Known>>);

#[derive(Debug, Default)]
struct Known {
    fence: Fence,
    foreign_holder: Option<ForeignHolder>,
}

impl FenceMemory {
    /// What the next fence must be at least.
    pub(crate) fn min_fence(&self, name: &LockName) -> Fence {
        locked(&self.0).get(name).map_or(Fence::NONE, |known| known.fence.next())
    }

    /// The foreign value that the last call found at the key.
    pub(crate) fn foreign_holder(&self, name: &LockName) -> Option<ForeignHolder> {
        locked(&self.0).get(name)?.foreign_holder.clone()
    }

    pub(crate) fn saw_fence(&self, name: &LockName, fence: Fence) {
        let mut known = locked(&self.0);
        if let Some(known) = known.get_mut(name) {
            known.fence = known.fence.max(fence);
            // The lock was ours: the same value, should it come back, is another holder's.
            known.foreign_holder = None;
            return;
        }
        if known.len() >= CAPACITY {
            forget_oldest(&mut known);
        }
        known.insert(name.clone(), Known { fence, foreign_holder: None });
    }

    pub(crate) fn saw_sighting(&self, name: &LockName, foreign_holder: Option<&ForeignHolder>) {
        let mut known = locked(&self.0);
        if let Some(known) = known.get_mut(name) {
            known.foreign_holder = foreign_holder.cloned();
        } else if let Some(foreign_holder) = foreign_holder
            && known.len() < CAPACITY
        {
            known.insert(
                name.clone(),
                Known { fence: Fence::NONE, foreign_holder: Some(foreign_holder.clone()) },
            );
        }
    }
}

fn forget_oldest(known: &mut HashMap<LockName, Known>) {
    let mut fences: Vec<Fence> = known.values().map(|known| known.fence).collect();
    let middle = fences.len() / 2;
    let (_, median, _) = fences.select_nth_unstable(middle);
    let median = *median;
    known.retain(|_, known| known.fence > median);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::Prefixes;

    #[test]
    fn the_highest_fence_counts() {
        let memory = FenceMemory::default();
        let name = Prefixes::parse("Lock:", "Queue:").unwrap().lock_name("a").unwrap();
        assert_eq!(memory.min_fence(&name), Fence::NONE);
        memory.saw_fence(&name, Fence::new(9));
        memory.saw_fence(&name, Fence::new(5));
        assert_eq!(memory.min_fence(&name), Fence::new(10));
    }

    #[test]
    fn it_stays_bounded_and_keeps_the_newest() {
        let memory = FenceMemory::default();
        let prefixes = Prefixes::parse("Lock:", "Queue:").unwrap();
        let mut last = None;
        for fence in 1..=(CAPACITY as u64 * 3) {
            let name = prefixes.lock_name(&format!("n{fence}")).unwrap();
            memory.saw_fence(&name, Fence::new(fence));
            last = Some(name);
        }
        assert!(locked(&memory.0).len() <= CAPACITY);
        assert_eq!(memory.min_fence(&last.unwrap()), Fence::new(CAPACITY as u64 * 3 + 1));
    }
}
