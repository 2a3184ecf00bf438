//! Every verb there is, for tests that have something by hand for each.

use std::collections::BTreeSet;
use std::panic::Location;

use stanchion::store::redis::script::SCRIPTS;

/// As scripts and the proxy call them: those of permits and of cached values have names of their own.
pub fn all() -> Vec<&'static str> {
    SCRIPTS.all().into_iter().map(|(verb, _)| verb).collect()
}

/// Those of queues.
pub fn of_queues() -> Vec<&'static str> {
    let is_of_queue = |keys: &[String]| keys.first().is_some_and(|key| key == "INTAKE");
    SCRIPTS.all().into_iter().filter(|(_, script)| is_of_queue(&script.keys)).map(|(verb, _)| verb).collect()
}

/// Fails unless a list has all of these verbs, and nothing else.
#[track_caller]
pub fn assert_listed<'a>(verbs: Vec<&'a str>, list: impl IntoIterator<Item = &'a str>) {
    let (verbs, list) = (BTreeSet::from_iter(verbs), BTreeSet::from_iter(list));
    let (missing, unknown) = (&verbs - &list, &list - &verbs);
    let file = Location::caller().file();
    assert!(missing.is_empty(), "{file} has nothing for {missing:?}");
    assert!(unknown.is_empty(), "{file} has something for {unknown:?}, and no verb is called so");
}
