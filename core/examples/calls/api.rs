//! The API: as those of others are, a bucket of calls that is filled again all the time.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;

/// A client that says nothing for so long is none.
const PATIENCE: Duration = Duration::from_secs(10);

pub struct Api {
    address: SocketAddr,
    bucket: Arc<Mutex<Bucket>>,
}

struct Bucket {
    calls: f64,
    filled: Instant,
    first: Option<Instant>,
}

impl Api {
    /// How many are allowed; as many at once after a calm second.
    pub const PER_SECOND: u32 = 20;

    pub fn start() -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let full = Bucket { calls: f64::from(Self::PER_SECOND), filled: Instant::now(), first: None };
        let api = Self { address: listener.local_addr()?, bucket: Arc::new(Mutex::new(full)) };
        let bucket = Arc::clone(&api.bucket);
        // It ends with the program.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let bucket = Arc::clone(&bucket);
                // A client that goes away in the midst of it has itself to blame.
                thread::spawn(move || drop(answer(&stream, &bucket)));
            }
        });
        Ok(api)
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// From the first call to the last.
    pub fn busy(&self) -> Option<Duration> {
        let bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        Some(bucket.filled.duration_since(bucket.first?))
    }
}

impl Bucket {
    fn take(&mut self) -> bool {
        let now = Instant::now();
        let per_second = f64::from(Api::PER_SECOND);
        let more = now.duration_since(self.filled).as_secs_f64() * per_second;
        (self.calls, self.filled) = ((self.calls + more).min(per_second), now);
        self.first.get_or_insert(now);
        let is_allowed = self.calls >= 1.0;
        if is_allowed {
            self.calls -= 1.0;
        }
        is_allowed
    }
}

fn answer(stream: &TcpStream, bucket: &Mutex<Bucket>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream).lines();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let status = match bucket.lock().unwrap_or_else(PoisonError::into_inner).take() {
        true => "200 OK",
        false => "429 Too Many Requests",
    };
    write!(&*stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}
