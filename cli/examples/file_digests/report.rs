//! What the demo prints, and what it checks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::files::Files;
use super::run::{LEASE, Run};
use super::stanchion::Stanchion;

pub fn opening(stanchion: &Stanchion, files: &Files) {
    println!(
        "\nFile digests: a queue with a task for each of {} files, and two workers, one of which is killed.\n\
         Files: {}.\n\
         Store of the queue: {}.\n\n\
         \x20  stanchion enqueue QUEUE --lines < LIST-OF-FILES\n\
         \x20  stanchion work QUEUE -j 4 --until-empty --lease {LEASE} -- sha256sum {{}}     (twice)\n",
        files.paths.len(),
        files.place,
        stanchion.describe(),
    );
    if files.skipped > 0 {
        println!("   {} files were left out: their paths cannot be ids of tasks", files.skipped);
    }
}

/// Prints what happened; whether everything is as it must be.
pub fn result(run: &Run, paths: &[String], expected: &BTreeMap<String, String>) -> bool {
    let mut seen: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for digest in &run.digests {
        seen.entry(&digest.path).or_default().push(&digest.digest);
    }
    let missing = paths.iter().filter(|path| !seen.contains_key(path.as_str())).count();
    let twice = seen.values().filter(|digests| digests.len() == 2).count();
    let oftener = seen.values().filter(|digests| digests.len() > 2).count();
    let is_right = |path: &String| {
        let digests = seen.get(path.as_str()).map_or(&[][..], Vec::as_slice);
        expected.get(path).is_some_and(|expected| digests.iter().all(|digest| digest == expected))
    };
    let differing = paths.iter().filter(|path| !is_right(path)).count();

    println!("   {} files enqueued", run.enqueued);
    println!(
        "   one worker killed (SIGKILL) after {} were done, with {} more in its hands",
        run.done_before,
        run.held.len()
    );
    let back = came_back(run);
    match back.last() {
        Some(last) => println!(
            "   {} of those {} came back to the other worker, the last one {:.1} s after the kill (lease: {LEASE} s)",
            back.len(),
            run.held.len(),
            last.as_secs_f64()
        ),
        None => println!("   NONE of those came back to the other worker"),
    }
    match missing {
        0 => println!(
            "   every file was processed: {twice} of them twice, {} once",
            seen.len() - twice - oftener
        ),
        _ => println!("   {missing} files were NOT processed"),
    }
    match differing {
        0 => println!("   digests compared with a plain sha256sum: all {} equal", paths.len()),
        _ => println!("   digests compared with a plain sha256sum: {differing} DIFFERING"),
    }
    if run.left > 0 {
        println!("   {} tasks are LEFT in the queue", run.left);
    }
    println!("   time: {:.1} s, the wait for the dead worker's lease included", run.took.as_secs_f64());
    let complete = missing + differing == 0 && run.left == 0 && run.enqueued == paths.len() as u64;
    complete && !back.is_empty()
}

/// How long after the kill each of the killed worker's tasks was done by the other one, shortest first.
fn came_back(run: &Run) -> Vec<Duration> {
    let mut waiting: BTreeSet<&str> = run.held.iter().map(String::as_str).collect();
    let after = run.digests.iter().filter(|digest| digest.at > run.killed_at);
    let back = after.filter(|digest| waiting.remove(digest.path.as_str()));
    let mut times: Vec<Duration> = back.map(|digest| digest.at - run.killed_at).collect();
    times.sort_unstable();
    times
}

pub fn verdict(right: bool) {
    if right {
        println!("\nNothing was lost: the killed worker's tasks were done by the other one.");
    } else {
        println!("\nThis was WRONG. Please report it, with what is printed above.");
    }
}
