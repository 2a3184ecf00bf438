//! A disk that is full.

use std::process::Command;

use super::harness::{Place, Running};

/// Fills a small disk by tasks of 1 MiB, and then does what needs little or makes room. What each printed, with its code.
const SCRIPT: &str = r#"
mount -t tmpfs -o size=24m tmpfs "$DISK" || exit 99
cd "$DISK"
head -c 1048576 /dev/zero > payload
tell() { "$STANCHION" "$@" 2>&1; echo "code $?"; }
number=0
while "$STANCHION" enqueue q "t$number" --payload - < payload > /dev/null 2> error; do number=$((number + 1)); done
cat error
tell run lock -- echo inside
tell queues remove q t0
tell queues purge q --yes
tell enqueue q again --payload - < payload
tell work q --until-empty -- true
"#;

#[test]
fn what_makes_room_works_on_a_full_disk() {
    let place = Place::new();
    std::fs::create_dir(place.path("disk")).unwrap();
    // A mount of its own, which ends with the shell.
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", SCRIPT]);
    command.env("DISK", place.path("disk")).env("STANCHION", place.stanchion::<&str>(&[]).get_program());
    command.env("STANCHION_URL", format!("sqlite:{}", place.path("disk/locks.db").display()));
    let outcome = Running::start(command).finish();
    if outcome.code == 99 || outcome.err.contains("unshare failed") {
        println!("skipped: this machine lets nobody mount: {}", outcome.err.trim());
        return;
    }
    let lines: Vec<&str> = outcome.out.lines().collect();
    assert!(lines[0].contains("free space") && lines[0].contains("are kept for acks"), "{outcome:?}");
    let rest = lines[1..].join("\n");
    assert!(rest.starts_with("inside\ncode 0\n"), "{outcome:?}");
    assert_eq!(rest.matches("code 0").count(), 5, "{outcome:?}");
}
