//! The table and the file.

use std::fs;
use std::time::Duration;

use serde_json::json;

/// Where the figures are written to.
const FILE: &str = "target/bench.json";

/// All figures so far.
#[derive(Default)]
pub struct Report {
    rows: Vec<serde_json::Value>,
}

impl Report {
    /// A figure beside its baseline.
    pub fn compare(&mut self, name: &str, ours: f64, baseline: f64, unit: &str) {
        let ratio = ours / baseline;
        println!("{name:<58} {ours:>11.3} {baseline:>11.3} {unit:<10} ratio {ratio:.3}");
        self.rows
            .push(json!({"name": name, "ours": ours, "baseline": baseline, "ratio": ratio, "unit": unit}));
    }

    /// A figure that has no baseline.
    pub fn note(&mut self, name: &str, ours: f64, unit: &str) {
        println!("{name:<58} {ours:>11.3} {:>11} {unit:<10}", "-");
        self.rows.push(json!({"name": name, "ours": ours, "baseline": null, "ratio": null, "unit": unit}));
    }

    /// A heading in the table.
    pub fn section(&mut self, title: &str) {
        println!("\n{title:<58} {:>11} {:>11}", "ours", "baseline");
    }

    /// Writes target/bench.json.
    pub fn finish(self) {
        let text = serde_json::to_string_pretty(&self.rows).unwrap();
        fs::create_dir_all("target").unwrap();
        fs::write(FILE, text + "\n").unwrap();
        println!("\nwritten to {FILE}");
    }
}

/// The ratio of each figure of the last report that has a baseline.
pub fn ratios() -> Vec<(String, f64)> {
    let rows: Vec<serde_json::Value> = serde_json::from_str(&fs::read_to_string(FILE).unwrap()).unwrap();
    let ratio = |row: &serde_json::Value| Some((row["name"].as_str()?.to_owned(), row["ratio"].as_f64()?));
    rows.iter().filter_map(ratio).collect()
}

/// The value below which this part of the samples lies.
pub fn percentile(samples: &mut [Duration], part: f64) -> Duration {
    samples.sort_unstable();
    let last = samples.len().saturating_sub(1);
    samples[(last as f64 * part).round() as usize]
}

/// Jain's fairness index: 1 if all are equal, 1/n if one has everything.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

/// Processor time of this process so far.
pub fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}
