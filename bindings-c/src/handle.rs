//! Handles: numbers that stand for objects. A number that was freed or never given out stands for nothing.
//!
//! A handle is the place of its object in a table, and how often that place was given out before. So each handle is
//! given out once, and an old or invented one is noticed; of which kind an object is, the object knows.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Failure;
use crate::fork;

/// An object that a handle can stand for.
pub(crate) trait Kind: Any + Send + Sync {
    /// What it is called in messages.
    const NAME: &'static str;
}

type Object = Arc<dyn Any + Send + Sync>;

/// Bits of a handle for the place; the others, but the sign, are for the turn.
const PLACE_BITS: u32 = 24;
const MOST_PLACES: usize = 1 << PLACE_BITS;
/// A place that was given out so often is not given out again.
const LAST_TURN: u64 = (1 << (63 - PLACE_BITS)) - 1;

struct Slot {
    /// Counts from one, so that no handle is zero.
    turn: u64,
    object: Option<Object>,
}

struct Table {
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Objects that stay when their handles are freed, in the order in which they came.
    shared: Vec<(String, Object)>,
}

/// No call of the core is made, and no object dropped, while it is locked.
static TABLE: Mutex<Table> = Mutex::new(Table { slots: Vec::new(), free: Vec::new(), shared: Vec::new() });

/// The table, held still.
pub(crate) struct Held(#[allow(dead_code, reason = "dropped to let go")] MutexGuard<'static, Table>);

pub(crate) fn hold() -> Held {
    Held(table())
}

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Table {
    fn insert(&mut self, object: Object) -> Option<i64> {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.slots.len() < MOST_PLACES => {
                self.slots.push(Slot { turn: 1, object: None });
                self.slots.len() - 1
            }
            None => return None,
        };
        let slot = self.slots.get_mut(place)?;
        slot.object = Some(object);
        i64::try_from(slot.turn << PLACE_BITS | place as u64).ok()
    }

    fn slot(&mut self, handle: i64) -> Option<(usize, &mut Slot)> {
        let bits = u64::try_from(handle).ok()?;
        let place = usize::try_from(bits & (MOST_PLACES as u64 - 1)).ok()?;
        let slot = self.slots.get_mut(place).filter(|slot| slot.turn == bits >> PLACE_BITS)?;
        Some((place, slot))
    }

    fn get<K: Kind>(&mut self, handle: i64) -> Option<Object> {
        let (_, slot) = self.slot(handle)?;
        slot.object.as_ref().filter(|object| object.is::<K>()).cloned()
    }

    fn take<K: Kind>(&mut self, handle: i64) -> Option<Object> {
        let (place, slot) = self.slot(handle)?;
        slot.object.as_ref().filter(|object| object.is::<K>())?;
        self.empty(place)
    }

    fn take_all(&mut self) -> Vec<Object> {
        (0..self.slots.len()).filter_map(|place| self.empty(place)).collect()
    }

    fn empty(&mut self, place: usize) -> Option<Object> {
        let slot = self.slots.get_mut(place)?;
        let object = slot.object.take()?;
        slot.turn += 1;
        if slot.turn <= LAST_TURN {
            self.free.push(place);
        }
        Some(object)
    }
}

/// A new handle.
pub(crate) fn insert<K: Kind>(object: K) -> Result<i64, Failure> {
    fork::install();
    let object: Object = Arc::new(object);
    // Dropped after the table is free again, should there be no place.
    let kept = Arc::clone(&object);
    let handle = table().insert(kept);
    handle.ok_or_else(|| Failure::internal("too many handles"))
}

/// A new handle of the object that is shared under this key, if there is one.
pub(crate) fn shared(key: &str) -> Option<Result<i64, Failure>> {
    let mut table = table();
    let object = table.shared.iter().find(|(other, _)| other == key).map(|(_, object)| Arc::clone(object))?;
    Some(table.insert(object).ok_or_else(|| Failure::internal("too many handles")))
}

/// A new handle; its object stays under this key, with at most `most` others, when the handle is freed.
pub(crate) fn share<K: Kind>(key: String, object: K, most: usize) -> Result<i64, Failure> {
    fork::install();
    let object: Object = Arc::new(object);
    let kept = Arc::clone(&object);
    let mut table = table();
    let handle = table.insert(kept).ok_or_else(|| Failure::internal("too many handles"));
    let gone = (table.shared.len() >= most).then(|| table.shared.remove(0));
    table.shared.push((key, object));
    drop(table);
    // Not while the table is locked.
    drop(gone);
    handle
}

/// Its object is given to nobody else any more.
pub(crate) fn unshare<K: Kind>(object: &Arc<K>) {
    let same = |(_, other): &mut (String, Object)| std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(object));
    let gone: Vec<_> = table().shared.extract_if(.., same).collect();
    // Not while the table is locked.
    drop(gone);
}

/// The object of a handle. It lives on until the call is over, even if another thread frees the handle meanwhile.
pub(crate) fn get<K: Kind>(handle: i64) -> Result<Arc<K>, Failure> {
    let object = table().get::<K>(handle);
    object.and_then(|object| object.downcast().ok()).ok_or_else(|| Failure::handle(K::NAME))
}

/// Takes a handle out of use, and gives its object; only one of those who try gets it.
pub(crate) fn take<K: Kind>(handle: i64) -> Result<Arc<K>, Failure> {
    let object = table().take::<K>(handle);
    object.and_then(|object| object.downcast().ok()).ok_or_else(|| Failure::handle(K::NAME))
}

/// Takes all handles out of use. What is shared stays.
pub(crate) fn free_all() {
    let objects = table().take_all();
    // Not while the table is locked.
    drop(objects);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Apple;
    #[derive(Debug)]
    struct Pear;

    impl Kind for Apple {
        const NAME: &'static str = "apple";
    }

    impl Kind for Pear {
        const NAME: &'static str = "pear";
    }

    #[test]
    fn a_handle_is_good_until_it_is_taken() {
        let handle = insert(Apple).unwrap();
        assert!(handle > 0);
        assert!(get::<Apple>(handle).is_ok());
        assert!(take::<Apple>(handle).is_ok());
        assert!(get::<Apple>(handle).is_err() && take::<Apple>(handle).is_err());
        let next = insert(Apple).unwrap();
        assert_ne!(next, handle);
        assert!(get::<Apple>(handle).is_err());
    }

    #[test]
    fn a_handle_of_another_kind_is_refused_and_stays() {
        let handle = insert(Apple).unwrap();
        let message = format!("{:?}", get::<Pear>(handle).unwrap_err());
        assert!(message.contains("no handle of a pear"), "{message}");
        assert!(take::<Pear>(handle).is_err());
        assert!(take::<Apple>(handle).is_ok());
    }

    #[test]
    fn invented_handles_stand_for_nothing() {
        let handle = insert(Apple).unwrap();
        for forged in [0, -1, 1, i64::MIN, i64::MAX, handle ^ (1 << 40), -handle] {
            assert!(get::<Apple>(forged).is_err() && take::<Apple>(forged).is_err(), "{forged}");
        }
        assert!(take::<Apple>(handle).is_ok());
    }

    #[test]
    fn what_is_shared_outlives_its_handles() {
        let first = share("apple".into(), Apple, 2).unwrap();
        let object = get::<Apple>(first).unwrap();
        assert!(take::<Apple>(first).is_ok());
        let second = shared("apple").unwrap().unwrap();
        assert!(second != first && Arc::ptr_eq(&object, &get::<Apple>(second).unwrap()));
        assert!(shared("pear").is_none());
        for key in ["pear", "quince"] {
            assert!(share(key.into(), Pear, 2).is_ok());
        }
        assert!(shared("apple").is_none() && shared("quince").is_some());
        assert!(get::<Apple>(second).is_ok());
        let third = shared("quince").unwrap().unwrap();
        unshare(&get::<Pear>(third).unwrap());
        assert!(shared("quince").is_none() && shared("pear").is_some());
    }

    #[test]
    fn all_are_taken_at_once() {
        let mut table = Table { slots: vec![], free: vec![], shared: vec![("a".into(), Arc::new(Apple))] };
        let apple = table.insert(Arc::new(Apple)).unwrap();
        let pear = table.insert(Arc::new(Pear)).unwrap();
        assert!(table.take::<Apple>(apple).is_some());
        assert_eq!(table.take_all().len(), 1);
        assert!(table.get::<Pear>(pear).is_none() && table.take_all().is_empty());
        assert_eq!((table.free.len(), table.shared.len()), (2, 1));
    }

    #[test]
    fn a_place_that_is_used_up_is_left_alone() {
        let mut table =
            Table { slots: vec![Slot { turn: LAST_TURN, object: None }], free: vec![0], shared: vec![] };
        let last = table.insert(Arc::new(Apple)).unwrap();
        assert!(last > 0);
        assert!(table.take::<Apple>(last).is_some());
        let next = table.insert(Arc::new(Apple)).unwrap();
        assert_eq!(next, 1 << PLACE_BITS | 1);
    }
}
