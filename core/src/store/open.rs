//! Opens the store at an address.

use std::sync::Arc;

use crate::base::error::{Error, ErrorKind};
use crate::store::url::Address;
use crate::store::{Opened, Store, StoreConfig, features};

/// Opens an address that is its own, without I/O on the network.
type Opener = fn(&Address, &StoreConfig) -> Opened;

/// The stores of this build. A new one is a folder, a line here, one in `mod.rs` and one in `url.rs`.
const STORES: &[Opener] = &[
    #[cfg(feature = "redis")]
    crate::store::redis::open,
    #[cfg(feature = "quorum")]
    crate::store::quorum::open,
    #[cfg(feature = "sqlite")]
    crate::store::sqlite::open,
];

/// The store at an address, which connects on first use.
///
/// # Errors
/// `InvalidArgument` if this build lacks a part that it needs, which is named.
pub(crate) fn open(address: &Address, config: &StoreConfig) -> Result<Arc<dyn Store>, Error> {
    features::check(address)?;
    let opened = STORES.iter().find_map(|open| open(address, config));
    opened
        .unwrap_or_else(|| Err(Error::new(ErrorKind::Internal, "no store of this build has such addresses")))
}
