//! What can go wrong with a file, and what several processes on one file may rely on.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{
    CLIENT, SECOND, Scratch, Stranger, acquire_of, name, open_file, open_with_mode, refusal, soon, token,
};
use crate::base::clock::Clock;
use crate::base::error::ErrorKind;
use crate::base::name::LockKind;
use crate::base::wake::Hub;
use crate::protocol::{
    Acquire, ClientId, Extend, ExtendReply, FailureKind, Fence, Holder, Reply, Request, WaiterReply, Waiters,
};
use crate::store::Store;
use crate::store::sqlite::database::is_connected;
use crate::store::sqlite::schema::VERSION;

/// Tells the test binary, when it runs itself, to be one of several processes.
const WORKER: &str = "STANCHION_TEST_WORKER";
const ROUNDS: u64 = 50;

#[test]
fn processes_and_threads_exclude_each_other() {
    let scratch = Scratch::new();
    fs::write(scratch.0.join("count"), "0 0").unwrap();
    let children: Vec<_> = (0..3)
        .map(|_| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            let (_, module) = module_path!().split_once("::").unwrap();
            command.args(["--exact", &format!("{module}::worker")]).env(WORKER, &scratch.0);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    std::thread::scope(|scope| {
        for number in 1..=2 {
            scope.spawn({
                let directory = &scratch.0;
                move || count_up(directory, number)
            });
        }
    });
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let text = fs::read_to_string(scratch.0.join("count")).unwrap();
    assert_eq!(text.split(' ').next().unwrap(), (5 * ROUNDS).to_string());
}

/// Not a test of its own: what each process of the test above does.
#[test]
fn worker() {
    if let Some(directory) = std::env::var_os(WORKER) {
        count_up(Path::new(&directory), u64::from(std::process::id()) + 100);
    }
}

/// Counts in a plain file, which goes wrong unless the lock excludes; fences must grow.
fn count_up(directory: &Path, number: u64) {
    let store = open_file(&directory.join("locks.db"));
    for round in 0..ROUNDS {
        let number = number * 1_000 + round;
        let fence = loop {
            if let Some(fence) = store.try_acquire("counter", number) {
                break fence;
            }
            std::thread::sleep(Duration::from_micros(200));
        };
        let text = fs::read_to_string(directory.join("count")).unwrap();
        let (count, last) = text.split_once(' ').unwrap();
        assert!(fence > Fence::new(last.parse().unwrap()));
        let count = count.parse::<u64>().unwrap() + 1;
        fs::write(directory.join("count"), format!("{count} {fence}")).unwrap();
        store.release("counter", number);
    }
}

#[test]
fn a_reboot_ends_leases_and_waits_and_keeps_fences() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    let first = store.try_acquire("a", 1).unwrap();
    store.wait_for("a", 2);
    store.leave("a", 3);
    let ahead = Fence::new(first.get() + 1_000_000_000_000);
    store.sql(&format!("UPDATE lock SET fence = {ahead}; UPDATE store SET boot = 'an earlier one'"));
    let waiters = Request::Waiters(Waiters { name: name("a") });
    assert_eq!(store.ask(waiters), Reply::Waiters(Vec::new()));
    let holder = Request::Holder(Holder { name: name("a") });
    assert_eq!(store.ask(holder.clone()), Reply::Holder(Vec::new()));
    assert_eq!(store.list(LockKind::Exclusive, 0, soon()).unwrap().1, vec![]);
    assert_eq!(store.try_acquire("a", 4), Some(ahead.next()));
    assert_eq!(store.count("SELECT count(*) FROM waiter"), 0);
    assert_eq!(store.count("SELECT count(*) FROM ended"), 0);
    assert!(matches!(store.ask(holder), Reply::Holder(held) if held.len() == 1));
}

#[test]
fn a_waiter_of_an_older_library_is_unknown_but_shown() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    store.try_acquire("a", 1).unwrap();
    store.wait_for("a", 2);
    // As version 3 did it.
    store.sql(
        "INSERT INTO waiter (lock, arrival, token, polled, offered, client, seq, weight)
         SELECT lock, arrival + 1, 'older', polled, 0, 7, 1, 2 FROM waiter",
    );
    let Reply::Waiters(waiters) = store.ask(Request::Waiters(Waiters { name: name("a") })) else { panic!() };
    assert_eq!(waiters.len(), 2);
    assert!(!waiters[0].owner.is_empty() && waiters[0].waiting.is_some() && waiters[0].since_ms > 0);
    let unknown = WaiterReply { owner: String::new(), since_ms: 0, waiting: None, weight: 2 };
    assert_eq!(waiters[1], unknown);
}

#[test]
fn a_newer_file_works_unless_it_says_otherwise() {
    let scratch = Scratch::new();
    open_file(&scratch.file()).try_acquire("a", 1).unwrap();
    let newer = Stranger::open(&scratch.file());
    let version = VERSION + 1;
    newer.sql(&format!(
        "PRAGMA user_version = {version}; CREATE TABLE topic (id); ALTER TABLE lock ADD COLUMN mode DEFAULT 0"
    ));
    assert_eq!(open_file(&scratch.file()).try_acquire("a", 2), None);
    newer.sql(&format!("UPDATE store SET least_version = {version}, least_library = '9.8.7'"));
    let failure = refusal(&scratch.file());
    assert_eq!(failure.kind, FailureKind::Final(ErrorKind::Unsupported));
    assert!(failure.message.contains("9.8.7"), "{failure:?}");
}

#[test]
fn damaged_and_foreign_files_are_refused_by_name_and_left_alone() {
    let scratch = Scratch::new();
    for (text, kind) in [
        ("not a database, but quite long ".repeat(100), ErrorKind::Corrupt),
        ("x".into(), ErrorKind::Corrupt),
    ] {
        fs::write(scratch.file(), &text).unwrap();
        let failure = refusal(&scratch.file());
        assert_eq!(failure.kind, FailureKind::Final(kind));
        assert!(failure.message.contains(scratch.file().to_str().unwrap()), "{failure:?}");
        assert_eq!(fs::read_to_string(scratch.file()).unwrap(), text);
    }
    fs::remove_file(scratch.file()).unwrap();
    Stranger::open(&scratch.file()).sql("CREATE TABLE theirs (id)");
    let before = fs::read(scratch.file()).unwrap();
    assert_eq!(refusal(&scratch.file()).kind, FailureKind::Final(ErrorKind::WrongType));
    assert_eq!(fs::read(scratch.file()).unwrap(), before);
}

#[test]
fn damage_in_the_middle_is_an_error_and_never_a_grant() {
    let scratch = Scratch::new();
    open_file(&scratch.file()).try_acquire("a", 1).unwrap();
    assert!(!is_connected(&scratch.file()));
    let mut file = fs::OpenOptions::new().read(true).write(true).open(scratch.file()).unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    file.seek(SeekFrom::Start(4_096)).unwrap();
    file.write_all(&vec![0x5a; bytes.len() - 4_096]).unwrap();
    drop(file);
    let store = open_with_mode(&scratch.file(), 0o600);
    let failure =
        store.and_then(|store| store.perform(&Request::Acquire(acquire_of("a", 2)), soon())).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Final(ErrorKind::Corrupt), "{failure:?}");
}

#[test]
fn a_long_writer_is_waited_for_until_the_deadline_and_no_longer() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    let writer = Stranger::open(&scratch.file());
    writer.sql("BEGIN IMMEDIATE");
    let acquire = |number, wait| {
        let begun = Instant::now();
        let result = store.perform(&Request::Acquire(acquire_of("a", number)), Clock::System.now() + wait);
        (result, begun.elapsed())
    };
    std::thread::scope(|scope| {
        let patient = scope.spawn(|| acquire(1, 20 * SECOND));
        let (result, took) = acquire(2, Duration::from_millis(100));
        let failure = result.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Refused);
        assert!(failure.message.contains("locked by another process"), "{failure:?}");
        assert!(took >= Duration::from_millis(100) && took < 5 * SECOND, "{took:?}");
        writer.sql("COMMIT");
        assert!(patient.join().unwrap().0.is_ok());
    });
}

#[test]
fn reading_does_not_wait_for_a_writer() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    store.try_acquire("a", 1).unwrap();
    let writer = Stranger::open(&scratch.file());
    writer.sql("BEGIN IMMEDIATE");
    let holder = Request::Holder(Holder { name: name("a") });
    assert!(
        matches!(store.perform(&holder, Clock::System.now()), Ok(Reply::Holder(held)) if held.len() == 1)
    );
    writer.sql("COMMIT");
}

#[test]
fn an_unlinked_file_is_noticed_and_its_leases_are_lost() {
    for whole in [false, true] {
        let scratch = Scratch::new();
        let store = open_file(&scratch.file());
        let first = store.try_acquire("a", 1).unwrap();
        fs::remove_file(scratch.file()).unwrap();
        if whole {
            for side in ["locks.db-wal", "locks.db-shm"] {
                fs::remove_file(scratch.0.join(side)).unwrap();
            }
        }
        let extend = Request::Extend(Extend::new(name("a"), token(1), SECOND));
        assert_eq!(store.ask(extend), Reply::Extend(ExtendReply::Gone(Default::default())));
        assert!(store.try_acquire("a", 2).unwrap() > first);
        assert!(scratch.file().exists());
    }
}

#[test]
fn a_new_file_does_not_inherit_the_side_files_of_an_unlinked_one() {
    let scratch = Scratch::new();
    open_file(&scratch.file());
    let still_open = Stranger::open(&scratch.file());
    still_open.sql("UPDATE store SET boot = 'another world'");
    fs::remove_file(scratch.file()).unwrap();
    let store = open_file(&scratch.file());
    assert!(store.try_acquire("a", 1).is_some());
    still_open.sql("UPDATE store SET boot = 'still another world'");
    assert_eq!(store.try_acquire("a", 2), None);
    assert_eq!(store.count("SELECT count(*) FROM store WHERE boot LIKE '%world'"), 0);
}

#[test]
fn a_new_file_has_the_wanted_mode_whatever_the_umask() {
    for mode in [0o600, 0o666] {
        let scratch = Scratch::new();
        let store = open_with_mode(&scratch.file(), mode).unwrap();
        store.try_acquire("a", 1).unwrap();
        for file in ["locks.db", "locks.db-wal", "locks.db-shm"] {
            let found = fs::metadata(scratch.0.join(file)).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{file} has {found:o}");
        }
    }
}

#[test]
fn one_file_has_one_database_whatever_the_path() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    store.try_acquire("a", 1).unwrap();
    symlink(&scratch.0, scratch.0.join("directory")).unwrap();
    symlink(scratch.file(), scratch.0.join("link.db")).unwrap();
    for path in ["directory/locks.db", "link.db", "directory/../locks.db"] {
        // `..` after a link leads elsewhere, as it does for every program.
        let path = scratch.0.join(path);
        if path.exists() {
            assert_eq!(open_file(&path).try_acquire("a", 2), None);
        }
    }
    fs::hard_link(scratch.file(), scratch.0.join("other.db")).unwrap();
    assert_eq!(refusal(&scratch.0.join("other.db")).kind, FailureKind::Final(ErrorKind::Unsupported));
}

#[test]
fn paths_that_cannot_work_say_why() {
    let scratch = Scratch::new();
    let failure = refusal(&scratch.0.join("missing/locks.db"));
    assert_eq!(failure.kind, FailureKind::Final(ErrorKind::StoreUnavailable));
    assert!(failure.message.contains("missing does not exist"), "{failure:?}");
    assert_eq!(refusal(&scratch.0).kind, FailureKind::Final(ErrorKind::InvalidArgument));
    assert_eq!(refusal(Path::new("/dev/null")).kind, FailureKind::Final(ErrorKind::InvalidArgument));
    symlink("nowhere", scratch.0.join("dangling")).unwrap();
    assert_eq!(refusal(&scratch.0.join("dangling")).kind, FailureKind::Final(ErrorKind::InvalidArgument));
    fs::write(scratch.file(), "").unwrap();
    fs::set_permissions(scratch.file(), fs::Permissions::from_mode(0o400)).unwrap();
    // Root may write to anything.
    if nix::unistd::access(&scratch.file(), nix::unistd::AccessFlags::W_OK).is_err() {
        assert_eq!(refusal(&scratch.file()).kind, FailureKind::Final(ErrorKind::Denied));
    }
}

#[test]
fn an_offer_by_another_process_is_heard_once_and_soon() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    store.try_acquire("a", 1).unwrap();
    store.wait_for("a", 2);
    let mut hints = store.listen(soon()).unwrap().unwrap();
    let mut heard = Vec::new();
    let mut read = |heard: &mut Vec<u64>, patience| hints.read(patience, &mut |seq| heard.push(seq)).unwrap();
    read(&mut heard, Duration::from_millis(60));
    assert!(heard.is_empty());
    let other = Stranger::open(&scratch.file());
    other.sql("UPDATE waiter SET offered = 1");
    let begun = Instant::now();
    read(&mut heard, 20 * SECOND);
    assert!(begun.elapsed() < 2 * SECOND);
    other.sql("UPDATE lock SET owner = 'x'");
    read(&mut heard, Duration::from_millis(60));
    assert_eq!(heard, [2], "an offer is told once");
    other.sql(&format!("UPDATE waiter SET polled = polled + 1 WHERE client = {}", CLIENT.0));
    read(&mut heard, 20 * SECOND);
    assert_eq!(heard, [2, 2], "a new offer is told again");
}

#[test]
fn two_clients_of_one_process_hint_each_other_without_reading_the_channel() {
    let scratch = Scratch::new();
    let (here, there) = (open_file(&scratch.file()), open_file(&scratch.0.join(".").join("locks.db")));
    here.try_acquire("a", 1).unwrap();
    let hub = Hub::new(ClientId(10));
    there.database.join(&hub).unwrap();
    let place = hub.enter();
    there.ask(Request::Acquire(Acquire { waiter: Some(place.waiter()), ..acquire_of("a", 2) }));
    here.release("a", 1);
    assert!(place.take_hint());
}

#[test]
fn a_reader_of_the_channel_looks_up_when_a_hint_came_directly() {
    let scratch = Scratch::new();
    let store = open_file(&scratch.file());
    store.try_acquire("a", 1).unwrap();
    store.wait_for("a", 2);
    let mut hints = store.listen(soon()).unwrap().unwrap();
    hints.read(Duration::from_millis(1), &mut |_| {}).unwrap();
    store.release("a", 1);
    let begun = Instant::now();
    hints.read(20 * SECOND, &mut |_| {}).unwrap();
    assert!(begun.elapsed() < 2 * SECOND);
}
