//! What a queue was like in the last hour and day: a bounded series in memory, and in the store as a cached value, so that a
//! dashboard that was restarted knows the past. Each minute the store's copy is written anew.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use stanchion::{Begun, CachedOptions, Client};

use crate::web::look::QueueLook;

/// Points of a minute each, and of a quarter of an hour each.
const MINUTES: usize = 60;
const QUARTERS: usize = 96;
const MINUTE_S: u64 = 60;
const QUARTER_S: u64 = 900;
/// For how long the store keeps it after the last dashboard has ended.
const KEPT: Duration = Duration::from_secs(2 * 86_400);
/// Of the layout in the store; another one is not read.
const VERSION: u64 = 1;

/// What a queue was like in one span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Which span, counted from 1970.
    pub span: u64,
    /// At most.
    pub ready: u64,
    /// For how many seconds the first in line had been due, at most.
    pub late: u64,
    /// Totals at its end.
    pub enqueued: u64,
    pub acked: u64,
    pub died: u64,
}

/// What a look says for the history.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    at: SystemTime,
    attended: bool,
    point: Point,
}

/// The series of a queue.
#[derive(Clone, Debug, Default)]
pub struct History {
    minutes: VecDeque<Point>,
    quarters: VecDeque<Point>,
    /// How many tasks had died before it began.
    died_before: Option<u64>,
    /// When somebody waited for its tasks, or had some, last.
    attended: Option<SystemTime>,
    was_read: bool,
    /// The minute of the last copy in the store.
    kept: u64,
}

impl Sample {
    /// Of a queue as it is now.
    pub fn of(queue: &QueueLook) -> Self {
        let (stats, at) = (&queue.stats, SystemTime::now());
        let late =
            queue.due_since.and_then(|due| at.duration_since(due).ok()).map_or(0, |late| late.as_secs());
        let (enqueued, acked, died) = (stats.enqueued, stats.acked, stats.died);
        let point = Point { span: 0, ready: stats.ready, late, enqueued, acked, died };
        Self { at, attended: stats.waiters + stats.claimed > 0, point }
    }
}

impl History {
    /// Notes a sample.
    pub fn add(&mut self, sample: &Sample) {
        let seconds = sample.at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.died_before.get_or_insert(sample.point.died);
        put(&mut self.minutes, Point { span: seconds / MINUTE_S, ..sample.point });
        put(&mut self.quarters, Point { span: seconds / QUARTER_S, ..sample.point });
        self.bound();
        if sample.attended {
            self.attended = Some(sample.at);
        }
    }

    /// The oldest points go.
    fn bound(&mut self) {
        while self.minutes.len() > MINUTES {
            let gone = self.minutes.pop_front();
            self.died_before = gone.map(|gone| gone.died).or(self.died_before);
        }
        while self.quarters.len() > QUARTERS {
            self.quarters.pop_front();
        }
    }

    /// Reads what the store has, once, and writes it anew each minute. That it may fail changes nothing for who looks.
    pub async fn keep(&mut self, client: &Client, queue: &str) {
        let name = format!("stanchion-web:{queue}");
        let options = || CachedOptions::new(KEPT).beta(0.0).wait(Duration::ZERO).label("stanchion web");
        if !self.was_read {
            self.was_read = true;
            match client.begin_cached(&name, options()).await {
                Ok(Begun::Value(bytes)) => self.take_in(&bytes),
                Ok(Begun::Compute(ticket)) => drop(ticket.release().await),
                Err(_) => {}
            }
        }
        let Some(minute) = self.minutes.back().map(|last| last.span).filter(|minute| *minute != self.kept)
        else {
            return;
        };
        self.kept = minute;
        if client.invalidate(&name).await.is_ok()
            && let Ok(Begun::Compute(ticket)) = client.begin_cached(&name, options()).await
        {
            drop(ticket.store(self.stored()).await);
        }
    }

    /// The points of the last hour, or of the last day.
    pub fn points(&self, day: bool) -> impl Iterator<Item = &Point> {
        if day { self.quarters.iter() } else { self.minutes.iter() }
    }

    /// What each span added to a total.
    pub fn rates(&self, day: bool, total: fn(&Point) -> u64) -> Vec<u64> {
        let points: Vec<u64> = self.points(day).map(total).collect();
        points.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect()
    }

    /// How many tasks have died since then, as far as the series goes back.
    pub fn died_within(&self, time: Duration) -> Option<u64> {
        let last = self.minutes.back()?;
        let first = last.span.saturating_sub(time.as_secs() / MINUTE_S);
        let before = self.minutes.iter().take_while(|point| point.span < first).last();
        Some(last.died.saturating_sub(before.map_or(self.died_before?, |before| before.died)))
    }

    /// When somebody worked on it last, if it is known.
    pub fn attended_until(&self) -> Option<SystemTime> {
        self.attended
    }

    fn stored(&self) -> Vec<u8> {
        let series = |points: &VecDeque<Point>| -> Vec<Value> {
            let fields = |point: &Point| {
                json!([point.span, point.ready, point.late, point.enqueued, point.acked, point.died])
            };
            points.iter().map(fields).collect()
        };
        let attended = self.attended.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        json!({
            "v": VERSION,
            "died_before": self.died_before,
            "attended": attended.map(|since| since.as_secs()),
            "minutes": series(&self.minutes),
            "quarters": series(&self.quarters),
        })
        .to_string()
        .into_bytes()
    }

    /// What is older than what is known already.
    fn take_in(&mut self, bytes: &[u8]) {
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
        if value["v"] != VERSION {
            return;
        }
        for (name, points) in [("minutes", &mut self.minutes), ("quarters", &mut self.quarters)] {
            let first = points.front().map_or(u64::MAX, |first| first.span);
            let older: Vec<Point> = value[name].as_array().into_iter().flatten().filter_map(read).collect();
            let older: VecDeque<Point> = older.into_iter().filter(|point| point.span < first).collect();
            let younger = std::mem::replace(points, older);
            points.extend(younger);
        }
        let attended = value["attended"].as_u64().map(Duration::from_secs);
        let attended = attended.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
        self.attended = self.attended.or(attended);
        self.bound();
    }
}

fn read(value: &Value) -> Option<Point> {
    let field = |place: usize| value.get(place)?.as_u64();
    Some(Point {
        span: field(0)?,
        ready: field(1)?,
        late: field(2)?,
        enqueued: field(3)?,
        acked: field(4)?,
        died: field(5)?,
    })
}

fn put(points: &mut VecDeque<Point>, point: Point) {
    match points.back_mut() {
        Some(last) if last.span >= point.span => {
            *last = Point {
                span: last.span,
                ready: last.ready.max(point.ready),
                late: last.late.max(point.late),
                ..point
            };
        }
        _ => points.push_back(point),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, died: u64) -> Sample {
        let point = Point { died, ready: died, enqueued: 2 * died, ..Point::default() };
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        Sample { at, attended: seconds < 300, point }
    }

    #[test]
    fn it_is_bounded_and_known_again() {
        let mut history = History::default();
        for minute in 0..3_000 {
            history.add(&at(minute * 60, minute));
        }
        assert_eq!((history.minutes.len(), history.quarters.len()), (MINUTES, QUARTERS));
        assert_eq!(history.died_within(Duration::from_secs(3_600)), Some(60));
        assert_eq!(history.died_within(Duration::from_secs(60)), Some(2));
        assert_eq!(history.rates(false, |point| point.enqueued), vec![2; MINUTES - 1]);
        let stored = history.stored();
        assert!(stored.len() < 8_192, "{} bytes", stored.len());
        let mut again = History::default();
        again.add(&at(3_001 * 60, 3_005));
        again.take_in(&stored);
        assert_eq!(again.minutes.len(), MINUTES);
        assert_eq!(again.died_within(Duration::from_secs(120)), Some(7));
        assert_eq!(again.attended_until(), Some(SystemTime::UNIX_EPOCH + Duration::from_secs(240)));
    }

    #[test]
    fn what_is_no_history_changes_nothing() {
        let mut history = History::default();
        for bytes in [
            &b"{"[..],
            b"[]",
            b"{\"v\":2}",
            b"{\"v\":1,\"minutes\":[[1],\"x\",{}]}",
            b"{\"v\":1,\"attended\":18446744073709551615}",
        ] {
            history.take_in(bytes);
            assert!(history.minutes.is_empty());
        }
    }
}
