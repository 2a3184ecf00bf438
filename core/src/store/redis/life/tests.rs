//! Servers that start, are started again, have their clocks stepped, and turn out to be one.

use super::*;
use crate::base::clock::ManualClock;

const REJOIN: Duration = Duration::from_secs(60);
const DAY: u64 = 24 * 3600;

fn info(run_id: &str, uptime: u64) -> Value {
    let text =
        format!("# Server\r\nredis_version:8.0.0\r\nrun_id:{run_id}\r\nuptime_in_seconds:{uptime}\r\n");
    Value::BulkString(text.into_bytes())
}

fn noted(known: Option<u64>, seen: Option<u64>) -> Value {
    let text = |number: Option<u64>| match number {
        Some(number) => Value::BulkString(number.to_string().into_bytes()),
        None => Value::Nil,
    };
    Value::Array(vec![text(known), text(seen)])
}

fn nothing() -> Value {
    noted(None, None)
}

/// Three members of one client.
fn client(rejoin_after: Duration) -> (Vec<Life>, ManualClock) {
    let clock = ManualClock::new();
    let places = ["a:1", "b:1", "c:1"].map(str::to_owned).to_vec();
    let lives = Lives::new(places, rejoin_after, Clock::Manual(clock.clone()));
    ((0..3).map(|number| lives.life(number)).collect(), clock)
}

/// Whether it votes, told this by the server and by the notes that are there; and what is noted then.
fn vetted(life: &Life, info: &Value, notes: &Value) -> (Result<(), FailureKind>, String) {
    match life.meet(info) {
        Ok(None) => (Ok(()), String::new()),
        Ok(Some(_)) => {
            let (write, verdict) = life.judge(notes);
            let words = |command: &Cmd| String::from_utf8_lossy(&command.get_packed_command()).into_owned();
            let written = write.first().map(words).unwrap_or_default();
            (verdict.map_err(|failure| failure.kind), written)
        }
        Err(failure) => (Err(failure.kind), failure.message),
    }
}

const OUT: Result<(), FailureKind> = Err(FailureKind::NotSent);

/// It came back empty, and its clock was stepped by two minutes: what it says of its uptime proves nothing.
#[test]
fn a_stepped_clock_lets_no_server_vote() {
    let (lives, clock) = client(REJOIN);
    assert_eq!(vetted(&lives[0], &info("old", 9 * DAY), &nothing()).0, Ok(()));
    for uptime in [0, 60, 61, 120, 9_999] {
        assert_eq!(vetted(&lives[0], &info("new", uptime), &nothing()).0, OUT, "{uptime}");
    }
    clock.advance(REJOIN - Duration::from_millis(1));
    assert_eq!(vetted(&lives[0], &info("new", 9_999), &nothing()).0, OUT);
    clock.advance(Duration::from_millis(1));
    let (verdict, written) = vetted(&lives[0], &info("new", 1), &nothing());
    assert_eq!(verdict, Ok(()), "by the client's own clock it is time");
    assert!(written.contains("known") && written.contains("60000"), "{written}");
    assert_eq!(vetted(&lives[0], &info("newer", 120), &nothing()).0, OUT, "and again with each life");
}

/// A client that has just begun knows what others have noted, and what the server says that is beyond any step.
#[test]
fn a_new_client_takes_others_word() {
    for (uptime, notes, expected) in [
        (120, nothing(), OUT),
        (120, noted(Some(60_000), None), Ok(())),
        (120, noted(Some(59_999), None), OUT),
        (DAY + 59, nothing(), OUT),
        (DAY + 60, nothing(), Ok(())),
    ] {
        let (lives, _) = client(REJOIN);
        assert_eq!(vetted(&lives[0], &info("x", uptime), &notes).0, expected, "{uptime} {notes:?}");
    }
    let (lives, _) = client(Duration::ZERO);
    assert_eq!(vetted(&lives[0], &info("x", 0), &nothing()).0, Ok(()));
}

/// Programs that end soon, and those that try to open until they can, go on where others of the machine were.
#[test]
fn a_machine_remembers_when_it_first_saw_a_life() {
    let (first, clock) = client(REJOIN);
    let began = clock_micros(&clock);
    let (verdict, written) = vetted(&first[0], &info("x", 0), &nothing());
    assert_eq!(verdict, OUT);
    assert!(written.contains(&began.to_string()), "{written}");
    let (second, clock) = client(REJOIN);
    clock.advance(Duration::from_secs(59));
    assert_eq!(vetted(&second[0], &info("x", 0), &noted(None, Some(began))), (OUT, String::new()));
    assert_eq!(second[0].rest(), Duration::from_secs(1));
    clock.advance(Duration::from_secs(1));
    assert_eq!(vetted(&second[0], &info("x", 0), &noted(None, Some(began))).0, Ok(()));
}

fn clock_micros(clock: &ManualClock) -> u64 {
    Clock::Manual(clock.clone()).now().as_micros()
}

#[test]
fn what_is_left_is_known_from_one_answer() {
    let (lives, clock) = client(REJOIN);
    assert_eq!(lives[0].rest(), Duration::ZERO, "nothing is known");
    assert_eq!(vetted(&lives[0], &info("x", 7), &nothing()).0, OUT);
    clock.advance(Duration::from_secs(20));
    assert_eq!(lives[0].rest(), Duration::from_secs(40));
    assert_eq!(vetted(&lives[0], &info("x", DAY + 60), &nothing()).0, Ok(()));
    assert_eq!(lives[0].rest(), Duration::ZERO);
}

#[test]
fn one_server_has_one_vote_under_all_its_names() {
    let (lives, _) = client(Duration::ZERO);
    assert_eq!(vetted(&lives[0], &info("x", 9), &nothing()).0, Ok(()));
    let (verdict, told) = vetted(&lives[1], &info("x", 9), &nothing());
    assert_eq!(verdict, Err(FailureKind::Final(ErrorKind::InvalidArgument)));
    assert!(told.contains("b:1 and a:1"), "{told}");
    assert_eq!(vetted(&lives[0], &info("x", 9), &nothing()).0, Ok(()), "under its first name it votes");
    assert_eq!(vetted(&lives[1], &info("y", 9), &nothing()).0, Ok(()));
    // Later a name leads elsewhere: connections that it made before are not used any more.
    let era = lives[1].era();
    assert!(vetted(&lives[1], &info("x", 9), &nothing()).0.is_err());
    assert_ne!(lives[1].era(), era);
    // Two that have changed places vote again when each was found.
    assert_eq!(vetted(&lives[0], &info("y", 9), &nothing()).0, Ok(()));
    assert_eq!(vetted(&lives[1], &info("x", 9), &nothing()).0, Ok(()));
}

#[test]
fn a_server_that_does_not_tell_its_life_is_refused_for_good() {
    let (lives, _) = client(REJOIN);
    let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    for told in [
        text("run_id:x\r\n"),
        text("uptime_in_seconds:9"),
        text("run_id:x\r\nuptime_in_seconds:soon"),
        Value::Nil,
    ] {
        let verdict = vetted(&lives[0], &told, &nothing()).0;
        assert_eq!(verdict, Err(FailureKind::Final(ErrorKind::Unsupported)), "{told:?}");
    }
}
