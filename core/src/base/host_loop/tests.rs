//! A loop whose host is the test.

use std::collections::HashSet;
use std::future::pending;
use std::sync::atomic::AtomicUsize;

use super::*;

/// Notes what is asked of it.
#[derive(Default)]
struct Noting {
    watched: Mutex<HashSet<u64>>,
    watched_for_writes: Mutex<HashSet<u64>>,
    wakes: AtomicUsize,
}

impl Host for Noting {
    fn watch(&self, _: RawFd, number: u64) -> bool {
        locked(&self.watched).insert(number)
    }

    fn watch_writes(&self, number: u64, yes: bool) {
        let mut all = locked(&self.watched_for_writes);
        let changed = if yes { all.insert(number) } else { all.remove(&number) };
        assert!(changed, "asked for twice");
    }

    fn unwatch(&self, number: u64) {
        assert!(locked(&self.watched).remove(&number));
    }

    fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
    }
}

fn new() -> (Arc<HostLoop>, Arc<Noting>) {
    let host = Arc::new(Noting::default());
    (HostLoop::new(Arc::clone(&host) as Arc<dyn Host>), host)
}

/// A task that ends when the waker it puts down is used.
fn waits(
    place: &Arc<Mutex<Option<Waker>>>,
    done: &Arc<AtomicBool>,
) -> impl Future<Output = ()> + Send + 'static {
    let (place, done) = (Arc::clone(place), Arc::clone(done));
    let mut began = false;
    poll_fn(move |context| {
        if mem::replace(&mut began, true) {
            done.store(true, Ordering::Release);
            return Poll::Ready(());
        }
        *locked(&place) = Some(context.waker().clone());
        Poll::Pending
    })
}

/// As many turns as it wants: on a machine that stands still, one ends early.
fn settle(turns: &Arc<HostLoop>) {
    while turns.turn() {}
}

#[test]
fn a_waker_of_another_thread_wakes_the_loop_once() {
    let (turns, host) = new();
    let (place, done) = (Arc::default(), Arc::default());
    turns.spawn(waits(&place, &done));
    settle(&turns);
    assert_eq!(host.wakes.load(Ordering::Relaxed), 0);
    let waker: Waker = locked(&place).take().unwrap();
    std::thread::spawn(move || {
        waker.wake_by_ref();
        waker.wake();
    })
    .join()
    .unwrap();
    assert_eq!(host.wakes.load(Ordering::Relaxed), 1);
    assert!(!done.load(Ordering::Acquire), "only in a turn");
    settle(&turns);
    assert!(done.load(Ordering::Acquire));
}

#[test]
fn what_becomes_ready_in_a_turn_goes_on_in_it_without_a_wake() {
    let (turns, host) = new();
    let (place, done) = (Arc::default(), Arc::default());
    turns.spawn(waits(&place, &done));
    let place_of = Arc::clone(&place);
    turns.spawn(async move {
        let waker: Option<Waker> = locked(&place_of).take();
        waker.unwrap().wake();
    });
    settle(&turns);
    assert!(done.load(Ordering::Acquire));
    assert_eq!(host.wakes.load(Ordering::Relaxed), 0);
}

#[test]
fn a_turn_ends_while_there_is_more_to_do_and_asks_for_the_next() {
    let (turns, host) = new();
    turns.spawn(poll_fn(|context| {
        context.waker().wake_by_ref();
        Poll::Pending
    }));
    assert!(turns.turn());
    assert_eq!(host.wakes.load(Ordering::Relaxed), 0);
}

#[test]
fn a_task_that_panics_ends_no_other() {
    let (turns, _) = new();
    let done = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&done);
    turns.spawn(async move {
        HostLoop::spawn_beside(async { panic!("on purpose") });
        HostLoop::spawn_beside(async move {
            counted.fetch_add(1, Ordering::Relaxed);
        });
    });
    settle(&turns);
    assert_eq!(done.load(Ordering::Relaxed), 1);
    struct Explodes;
    impl Drop for Explodes {
        fn drop(&mut self) {
            panic!("on purpose, at its end");
        }
    }
    turns.spawn(async { panic!("on purpose, from outside") });
    turns.spawn(async {
        let _ends = Explodes;
    });
    let counted = Arc::clone(&done);
    turns.spawn(async move {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    settle(&turns);
    assert_eq!(done.load(Ordering::Relaxed), 2);
}

#[test]
fn a_turn_that_panics_is_over() {
    let (turns, host) = new();
    let mut breaks = pin!(poll_fn(|context| -> Poll<()> {
        context.waker().wake_by_ref();
        panic!("on purpose, of the host's own future")
    }));
    let broken = std::panic::AssertUnwindSafe(|| turns.turn_for(breaks.as_mut()));
    std::panic::catch_unwind(broken).unwrap_err();
    assert!(!HostLoop::is_in_turn());
    assert_eq!(host.wakes.load(Ordering::Relaxed), 1, "what it was woken for is to come");
    Waker::from(Arc::clone(&turns.alarm)).wake();
    assert_eq!(host.wakes.load(Ordering::Relaxed), 2);
}

#[test]
fn tasks_begin_in_their_order_though_turns_are_long() {
    let (turns, _) = new();
    let begun = Arc::new(Mutex::new(Vec::new()));
    for number in 0..10 {
        let begun = Arc::clone(&begun);
        turns.spawn(async move {
            std::thread::sleep(TURN_MOST / 2);
            locked(&begun).push(number);
        });
    }
    settle(&turns);
    assert_eq!(*locked(&begun), (0..10).collect::<Vec<_>>());
}

#[test]
fn a_crowd_of_tasks_that_are_ready_goes_on_in_several_turns() {
    let (turns, _) = new();
    let places: Vec<_> = (0..FRESH).map(|_| Arc::default()).collect();
    let done = Arc::new(AtomicUsize::new(0));
    for place in &places {
        let begins = waits(place, &Arc::default());
        let done = Arc::clone(&done);
        turns.spawn(async move {
            begins.await;
            std::thread::sleep(TURN_MOST / 8);
            done.fetch_add(1, Ordering::Relaxed);
        });
    }
    settle(&turns);
    places.iter().for_each(|place| locked(place).take().unwrap().wake());
    assert!(turns.turn());
    let first = done.load(Ordering::Relaxed);
    assert!(first < FRESH, "{first}");
    settle(&turns);
    assert_eq!(done.load(Ordering::Relaxed), FRESH);
}

#[test]
fn a_crowd_of_new_tasks_begins_in_several_turns() {
    let (turns, _) = new();
    let begun = Arc::new(AtomicUsize::new(0));
    for _ in 0..3 * FRESH {
        let begun = Arc::clone(&begun);
        turns.spawn(async move {
            std::thread::sleep(TURN_MOST / 16);
            begun.fetch_add(1, Ordering::Relaxed);
        });
    }
    assert!(turns.turn());
    let first = begun.load(Ordering::Relaxed);
    assert!(first <= FRESH, "{first}");
    settle(&turns);
    assert_eq!(begun.load(Ordering::Relaxed), 3 * FRESH);
}

#[test]
fn what_a_full_socket_does_not_take_goes_out_when_it_has_room() {
    const SIZE: usize = 4 << 20;
    let (turns, host) = new();
    let (near, far) = UnixStream::pair().unwrap();
    far.set_nonblocking(true).unwrap();
    turns.spawn(async move {
        let mut stream = HostStream::new(Socket::Unix(near)).unwrap();
        let mut left = SIZE;
        while left > 0 {
            let bytes = vec![7; left];
            left -= poll_fn(|context| Pin::new(&mut stream).poll_write(context, &bytes)).await.unwrap();
        }
        pending::<()>().await;
    });
    settle(&turns);
    let (mut arrived, mut buffer) = (0, vec![0; 1 << 20]);
    while arrived < SIZE {
        match (&far).read(&mut buffer) {
            Ok(count) => arrived += count,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                let waits: Vec<u64> = locked(&host.watched_for_writes).iter().copied().collect();
                assert_eq!(waits.len(), 1, "nobody waits for room, and {arrived} bytes have arrived");
                turns.ready(waits[0], false, true);
                settle(&turns);
            }
        }
    }
    settle(&turns);
    assert!(locked(&host.watched_for_writes).is_empty());
    turns.end();
    assert!(locked(&host.watched).is_empty());
}

/// Reads a socket for ever, and counts the bytes.
async fn read(socket: UnixStream, arrived: Arc<AtomicUsize>) {
    let mut stream = HostStream::new(Socket::Unix(socket)).unwrap();
    let mut bytes = [0; 10];
    loop {
        let mut buffer = ReadBuf::new(&mut bytes);
        poll_fn(|context| Pin::new(&mut stream).poll_read(context, &mut buffer)).await.unwrap();
        arrived.fetch_add(buffer.filled().len(), Ordering::Relaxed);
    }
}

#[test]
fn a_socket_is_read_when_the_loop_says_so_and_to_its_end() {
    let (turns, host) = new();
    let (near, far) = UnixStream::pair().unwrap();
    let arrived = Arc::new(AtomicUsize::new(0));
    turns.spawn(read(near, Arc::clone(&arrived)));
    settle(&turns);
    (&far).write_all(&[1; 35]).unwrap();
    settle(&turns);
    assert_eq!(arrived.load(Ordering::Relaxed), 0);
    let number = *locked(&host.watched).iter().next().unwrap();
    let wakes = host.wakes.load(Ordering::Relaxed);
    turns.ready(number, true, false);
    assert_eq!(host.wakes.load(Ordering::Relaxed), wakes, "whoever says so takes a turn anyway");
    settle(&turns);
    assert_eq!(arrived.load(Ordering::Relaxed), 35);
}

#[test]
fn whoever_catches_up_after_a_long_turn_waits_until_the_sockets_are_read() {
    let (turns, _) = new();
    let (near, far) = UnixStream::pair().unwrap();
    let arrived = Arc::new(AtomicUsize::new(0));
    turns.spawn(read(near, Arc::clone(&arrived)));
    settle(&turns);
    (&far).write_all(&[1; 35]).unwrap();
    let mut judging = pin!(async {
        std::thread::sleep(2 * TURN_MOST);
        HostLoop::catch_up().await;
        arrived.load(Ordering::Relaxed)
    });
    let found = loop {
        if let Poll::Ready(found) = turns.turn_for(judging.as_mut()) {
            break found;
        }
    };
    assert_eq!(found, 35);
}

#[test]
fn whoever_catches_up_does_not_wait_for_a_socket_that_nobody_reads() {
    let (turns, _) = new();
    let (near, _far) = UnixStream::pair().unwrap();
    turns.spawn(async {
        let _stream = HostStream::new(Socket::Unix(near)).unwrap();
        pending::<()>().await;
    });
    let done = Arc::new(AtomicBool::new(false));
    let says = Arc::clone(&done);
    turns.spawn(async move {
        HostLoop::catch_up().await;
        says.store(true, Ordering::Release);
    });
    settle(&turns);
    assert!(done.load(Ordering::Acquire));
}
