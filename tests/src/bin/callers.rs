//! Fifty tasks that want the same value. Arguments: URL, folder, how many callers there are in all.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic here fails the test")]

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use stanchion::{CachedOptions, Client, Error};

fn note(path: &Path, text: &str) {
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// As the other languages tell it.
fn monotonic() -> i128 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    i128::from(time.tv_sec()) * 1_000_000_000 + i128::from(time.tv_nsec())
}

async fn compute(folder: PathBuf, everybody: u64) -> Result<Vec<u8>, Error> {
    let begun = Instant::now();
    while fs::metadata(folder.join("arrived")).unwrap().len() < everybody {
        assert!(begun.elapsed() < Duration::from_secs(60), "the others did not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    note(&folder.join("computed"), &format!("rust {}\n", monotonic()));
    Ok(br#"{"price":9.99}"#.to_vec())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = env::args().collect();
    let (url, folder, everybody) =
        (&arguments[1], PathBuf::from(&arguments[2]), arguments[3].parse::<u64>().unwrap());
    let client = Client::open(url).await.unwrap();
    let options = CachedOptions::new(Duration::from_secs(60)).wait(Duration::from_secs(60));
    let call = || {
        let (client, options, folder) = (client.clone(), options.clone(), folder.clone());
        tokio::spawn(async move {
            note(&folder.join("arrived"), "x");
            let compute = || compute(folder, everybody);
            let value = client.cached("price:7", options, compute).await.unwrap();
            json!([serde_json::from_slice::<Value>(&value).unwrap(), monotonic().to_string()])
        })
    };
    let callers: Vec<_> = (0..50).map(|_| call()).collect();
    let mut told = Vec::new();
    for caller in callers {
        told.push(caller.await.unwrap());
    }
    println!("{}", Value::from(told));
}
