//! detach and resume_lease.

use stanchion::{ErrorKind, LeaseHandle, LockOptions};
use stanchion_tests::on_every_store_of_locks;
use stanchion_tests::wait::{SOON, eventually};

use crate::{fixed, ms, renewed, secs};

on_every_store_of_locks! {
    fn a_handle_carries_the_lease_to_another_client(bench) {
        let (giver, client) = (bench.client(), bench.client());
        let lease = giver.lock("a").acquire(LockOptions::new()).unwrap();
        let (fence, token) = (lease.fence(), lease.token().clone());
        let text = lease.detach(secs(10)).unwrap().to_text();
        let resumed = client.resume_lease(&text.parse::<LeaseHandle>().unwrap()).unwrap();
        assert_eq!((resumed.name(), resumed.fence()), ("a", fence));
        assert_ne!(resumed.token(), &token, "the old secret is worth nothing now");
        assert!(resumed.is_valid() && resumed.remaining() > secs(5));
        assert!(bench.client().lock("a").try_acquire(LockOptions::new()).unwrap().is_none());
        resumed.release().unwrap();
        assert!(!client.lock("a").is_locked().unwrap());
    }

    fn a_handle_works_once_in_any_client(bench) {
        let (one, two) = (bench.client(), bench.client());
        let handle = one.lock("a").acquire(LockOptions::new()).unwrap().detach(secs(30)).unwrap();
        let lease = one.resume_lease(&handle).unwrap();
        for client in [&one, &two] {
            let error = client.resume_lease(&handle).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::LeaseLost);
            assert_eq!((error.operation(), error.name()), (Some("resume"), Some("a")));
        }
        assert!(lease.is_valid());
        lease.extend(secs(30)).unwrap();
        lease.release().unwrap();
    }

    fn a_handle_keeps_the_lock_held_when_nobody_has_it_in_hands(bench) {
        let client = bench.client();
        let handle = bench.client().lock("a").acquire(fixed(secs(5))).unwrap().detach(secs(30)).unwrap();
        let holder = client.lock("a").holder().unwrap().unwrap();
        assert!(holder.remaining.unwrap() > secs(25), "extended to the ttl given");
        assert!(client.lock("a").try_acquire(LockOptions::new()).unwrap().is_none());
        assert!(client.resume_lease(&handle).is_ok());
    }

    fn a_detached_lease_is_not_renewed(bench) {
        let client = bench.client();
        let handle = client.lock("a").acquire(renewed(secs(2))).unwrap().detach(secs(2)).unwrap();
        eventually(SOON, || !client.lock("a").is_locked().unwrap());
        assert!(client.resume_lease(&handle).unwrap_err().is_lost());
        assert!(client.lock("a").try_acquire(LockOptions::new()).unwrap().is_some());
    }

    fn a_resumed_lease_is_renewed_if_the_first_was(bench) {
        let client = bench.client();
        let handle = client.lock("a").acquire(renewed(ms(2_400))).unwrap().detach(ms(2_400)).unwrap();
        let lease = bench.client().resume_lease(&handle).unwrap();
        assert!(!lease.wait_lost(ms(3_400)), "lost: {:?}", lease.loss());
        lease.release().unwrap();
    }

    fn a_resumed_lease_is_fixed_if_the_first_was(bench) {
        let client = bench.client();
        let handle = client.lock("a").acquire(fixed(secs(2))).unwrap().detach(secs(2)).unwrap();
        let lease = bench.client().resume_lease(&handle).unwrap();
        assert!(lease.wait_lost(SOON));
    }

    fn a_handle_of_a_taken_lock_is_lost(bench) {
        let client = bench.client();
        let handle = client.lock("a").acquire(LockOptions::new()).unwrap().detach(secs(30)).unwrap();
        assert!(client.lock("a").break_lease().unwrap());
        let lease = client.lock("a").acquire(LockOptions::new()).unwrap();
        assert_eq!(client.resume_lease(&handle).unwrap_err().kind(), ErrorKind::LeaseLost);
        assert_eq!(client.lock("a").holder().unwrap().unwrap().fence, lease.fence());
        assert!(lease.extend(secs(30)).is_ok(), "the new holder is untouched");
    }

    fn a_lost_lease_makes_no_handle(bench) {
        let client = bench.client();
        let lease = client.lock("a").acquire(fixed(secs(30))).unwrap();
        assert!(client.lock("a").break_lease().unwrap());
        assert_eq!(lease.detach(secs(30)).unwrap_err().kind(), ErrorKind::LeaseLost);
    }

    fn a_handle_of_another_prefix_is_an_invalid_argument(bench) {
        let handle = bench.client().lock("a").acquire(LockOptions::new()).unwrap().detach(secs(30)).unwrap();
        let other = bench.open(bench.builder().lock_prefix("other:"));
        assert_eq!(other.resume_lease(&handle).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }

    fn holder_shows_who_resumed(bench) {
        let giver = bench.open(bench.builder().label("giver"));
        let taker = bench.open(bench.builder().label("taker"));
        let handle = giver.lock("a").acquire(LockOptions::new()).unwrap().detach(secs(30)).unwrap();
        let lease = taker.resume_lease(&handle).unwrap();
        let holder = taker.lock("a").holder().unwrap().unwrap();
        assert_eq!((holder.label.as_str(), holder.fence), ("taker", lease.fence()));
    }
}
