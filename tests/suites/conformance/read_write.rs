//! Read-write locks.

use stanchion::{ErrorKind, HeldAs, LockOptions};
use stanchion_tests::on_every_topology;
use stanchion_tests::wait::{SOON, eventually, task};

use crate::{fixed, ms, renewed, secs};

on_every_topology! {
    fn readers_share_and_keep_the_writer_out(bench) {
        let (one, other) = (bench.client(), bench.client());
        let first = one.reader("a").acquire(fixed(secs(20))).unwrap();
        let second = other.reader("a").acquire(fixed(secs(20))).unwrap();
        assert!(second.fence() > first.fence());
        assert!(other.writer("a").try_acquire(LockOptions::new()).unwrap().is_none());
        first.release().unwrap();
        assert!(one.writer("a").try_acquire(LockOptions::new()).unwrap().is_none());
        second.release().unwrap();
        assert!(one.writer("a").try_acquire(LockOptions::new()).unwrap().is_some());
    }

    fn a_writer_keeps_everybody_out(bench) {
        let (one, other) = (bench.client(), bench.client());
        let writer = one.writer("a").acquire(LockOptions::new()).unwrap();
        assert!(other.writer("a").try_acquire(LockOptions::new()).unwrap().is_none());
        assert!(other.reader("a").try_acquire(LockOptions::new()).unwrap().is_none());
        let busy = other.reader("a").acquire(LockOptions::new().wait(ms(20))).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::LockTimeout);
        writer.release().unwrap();
        assert!(other.reader("a").try_acquire(LockOptions::new()).unwrap().is_some());
    }

    fn kinds_of_one_name_have_nothing_to_do_with_each_other(bench) {
        let client = bench.client();
        let _lock = client.lock("a").acquire(LockOptions::new()).unwrap();
        let _writer = client.writer("a").acquire(LockOptions::new().wait(ms(0))).unwrap();
        let _permit = client.semaphore("a", 1).acquire(LockOptions::new().wait(ms(0))).unwrap();
        assert_eq!(client.lock("a").holder().unwrap().unwrap().held_as, HeldAs::Lease);
    }

    fn a_waiting_writer_is_not_starved_by_later_readers(bench) {
        let client = bench.client();
        let reader = client.reader("a").acquire(LockOptions::new()).unwrap();
        let writer = client.writer("a");
        let writer = task(move || writer.acquire(LockOptions::new().wait(secs(30))).unwrap());
        eventually(SOON, || client.reader("a").waiters() == 1);
        // There would be room for it, but it came after the writer.
        assert!(bench.client().reader("a").try_acquire(LockOptions::new()).unwrap().is_none());
        let late = bench.client().reader("a");
        let late = task(move || late.acquire(LockOptions::new().wait(secs(30))).unwrap());
        eventually(SOON, || client.reader("a").waiters() == 2);
        let first = reader.fence();
        reader.release().unwrap();
        let writer = writer.join();
        assert!(writer.fence() > first);
        assert_eq!(client.writer("a").waiters(), 1, "the reader still waits");
        let fence = writer.fence();
        writer.release().unwrap();
        assert!(late.join().fence() > fence);
    }

    fn a_writers_release_lets_all_waiting_readers_in_at_once(bench) {
        let client = bench.client();
        let writer = client.writer("a").acquire(LockOptions::new()).unwrap();
        let reader = |client: &stanchion_tests::faces::AnyClient| {
            let reader = client.reader("a");
            task(move || reader.acquire(LockOptions::new().wait(secs(30))).unwrap())
        };
        let readers: Vec<_> = (0..20).map(|_| reader(&client)).collect();
        eventually(SOON, || client.writer("a").waiters() == 20);
        writer.release().unwrap();
        // None is released before all are in.
        let leases: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        assert_eq!(client.reader("a").holders().unwrap().len(), 20);
        let mut fences: Vec<_> = leases.iter().map(stanchion_tests::faces::AnyLease::fence).collect();
        fences.sort_unstable();
        fences.dedup();
        assert_eq!(fences.len(), 20, "each has a fence of its own");
    }

    fn a_downgraded_writer_lets_readers_in_and_keeps_its_fence(bench) {
        let (one, other) = (bench.client(), bench.client());
        let writer = one.writer("a").acquire(LockOptions::new()).unwrap();
        let fence = writer.fence();
        let reader = other.reader("a");
        let reader = task(move || reader.acquire(LockOptions::new().wait(secs(30))).unwrap());
        eventually(SOON, || one.writer("a").waiters() == 1);
        writer.downgrade().unwrap();
        let reader = reader.join();
        assert_eq!(writer.fence(), fence);
        assert!(writer.is_valid());
        assert!(other.writer("a").try_acquire(LockOptions::new()).unwrap().is_none());
        writer.downgrade().unwrap();
        reader.downgrade().unwrap();
        writer.release().unwrap();
        reader.release().unwrap();
        assert!(!one.reader("a").is_locked().unwrap());
    }

    fn a_reader_becomes_the_writer_when_nobody_else_reads(bench) {
        let (one, other) = (bench.client(), bench.client());
        let reader = one.reader("a").acquire(fixed(secs(30))).unwrap();
        let second = other.reader("a").acquire(fixed(secs(30))).unwrap();
        let first = reader.fence();
        assert!(!reader.upgrade().unwrap() && !second.upgrade().unwrap(), "neither waits for the other");
        assert_eq!(reader.fence(), first);
        let (last, writer) = (second.fence(), other.writer("a"));
        let writer = task(move || writer.acquire(LockOptions::new().wait(secs(30))).unwrap());
        eventually(SOON, || one.reader("a").waiters() == 1);
        second.release().unwrap();
        assert!(reader.upgrade().unwrap(), "who waits cannot come in before it leaves");
        assert!(reader.fence() > last, "it excludes whom the fence is above");
        assert!(reader.upgrade().unwrap(), "and stays the writer");
        assert!(one.reader("a").try_acquire(LockOptions::new()).unwrap().is_none());
        assert_eq!(one.reader("a").holder().unwrap().unwrap().fence, reader.fence());
        reader.extend(secs(60)).unwrap();
        let fence = reader.fence();
        reader.release().unwrap();
        assert!(writer.join().fence() > fence);
    }

    fn an_upgraded_reader_that_ran_out_learns_that_another_came(bench) {
        let (one, other) = (bench.client(), bench.client());
        let reader = one.reader("a").acquire(fixed(secs(2))).unwrap();
        assert!(reader.upgrade().unwrap());
        let next = other.reader("a").acquire(LockOptions::new()).unwrap();
        assert!(next.fence() > reader.fence());
        assert!(reader.wait_lost(SOON));
        assert_eq!(reader.release().unwrap_err().kind(), ErrorKind::LeaseLost);
        next.release().unwrap();
        // What ran out was counted with its new weight.
        assert!(one.writer("a").try_acquire(LockOptions::new()).unwrap().is_some());
    }

    fn only_a_read_write_lock_is_upgraded(bench) {
        let client = bench.client();
        for lock in [client.lock("a"), client.semaphore("a", 2)] {
            let lease = lock.acquire(LockOptions::new()).unwrap();
            assert_eq!(lease.upgrade().unwrap_err().kind(), ErrorKind::InvalidArgument);
            lease.release().unwrap();
        }
        let reader = client.reader("a").acquire(LockOptions::new()).unwrap();
        client.reader("a").break_lease().unwrap();
        assert_eq!(reader.upgrade().unwrap_err().kind(), ErrorKind::LeaseLost);
    }

    fn only_a_read_write_lock_is_downgraded(bench) {
        let client = bench.client();
        for lock in [client.lock("a"), client.semaphore("a", 2)] {
            let lease = lock.acquire(LockOptions::new()).unwrap();
            assert_eq!(lease.downgrade().unwrap_err().kind(), ErrorKind::InvalidArgument);
            lease.release().unwrap();
        }
        let writer = client.writer("a").acquire(LockOptions::new()).unwrap();
        client.writer("a").break_lease().unwrap();
        assert_eq!(writer.downgrade().unwrap_err().kind(), ErrorKind::LeaseLost);
    }

    fn a_reader_that_ran_out_is_no_readers_loss(bench) {
        let (one, other) = (bench.client(), bench.client());
        let first = one.reader("a").acquire(fixed(ms(60))).unwrap();
        let _second = other.reader("a").acquire(LockOptions::new()).unwrap();
        assert!(first.wait_lost(SOON));
        eventually(SOON, || other.reader("a").holders().unwrap().len() == 1);
        // A later reader took nothing from it.
        assert_eq!(first.release().unwrap_err().kind(), ErrorKind::LeaseExpired);
    }

    fn a_writer_that_ran_out_learns_that_another_came(bench) {
        let (one, other) = (bench.client(), bench.client());
        let writer = one.writer("a").acquire(fixed(ms(60))).unwrap();
        let _reader = other.reader("a").acquire(LockOptions::new()).unwrap();
        assert!(writer.wait_lost(SOON));
        assert_eq!(writer.release().unwrap_err().kind(), ErrorKind::LeaseLost);
    }

    fn renewal_keeps_a_reader_past_its_ttl(bench) {
        let client = bench.client();
        let reader = client.reader("a").acquire(renewed(secs(2))).unwrap();
        let short = bench.client().writer("a").acquire(LockOptions::new().wait(ms(2_500)));
        assert_eq!(short.unwrap_err().kind(), ErrorKind::LockTimeout);
        assert!(reader.is_valid());
        reader.release().unwrap();
    }

    fn breaking_ends_all_readers(bench) {
        let client = bench.client();
        let readers: Vec<_> = (0..3).map(|_| client.reader("a").acquire(fixed(secs(20))).unwrap()).collect();
        assert!(client.reader("a").break_lease().unwrap());
        assert!(!client.reader("a").break_lease().unwrap(), "nobody holds it any more");
        let writer = bench.client().writer("a").acquire(LockOptions::new()).unwrap();
        for reader in readers {
            assert!(reader.fence() < writer.fence());
            assert_eq!(reader.release().unwrap_err().kind(), ErrorKind::LeaseLost);
        }
        writer.release().unwrap();
    }

    fn a_reader_is_handed_over_as_a_reader(bench) {
        let client = bench.client();
        let reader = client.reader("a").acquire(LockOptions::new()).unwrap();
        let fence = reader.fence();
        let handle = reader.detach(secs(20)).unwrap();
        let text = handle.to_text();
        let resumed = bench.client().resume_lease(&text.parse().unwrap()).unwrap();
        assert_eq!(resumed.fence(), fence);
        assert!(client.writer("a").try_acquire(LockOptions::new()).unwrap().is_none());
        assert!(client.reader("a").try_acquire(LockOptions::new()).unwrap().is_some());
        assert_eq!(client.resume_lease(&handle).unwrap_err().kind(), ErrorKind::LeaseLost);
        resumed.release().unwrap();
    }

    fn a_weight_or_a_cooldown_is_refused(bench) {
        let client = bench.client();
        for lock in [client.lock("a"), client.reader("a"), client.writer("a")] {
            let error = lock.acquire(LockOptions::new().weight(2)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
        let error = client.reader("a").acquire(LockOptions::new().adopt_unexpiring(secs(1))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let reader = client.reader("a").acquire(LockOptions::new()).unwrap();
        let error = reader.release_with_cooldown(secs(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(reader.is_valid(), "nothing was done");
        reader.release().unwrap();
    }
}
