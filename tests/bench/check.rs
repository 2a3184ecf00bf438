//! Whether a figure got worse: medians of the short sections against the bars of `bars.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::{env, fs};

use serde_json::Value;

use crate::report;

/// So that the program can be asked for it: `bench check`.
pub const CHECK: &str = "check";
/// How often each section runs; the sections take turns, so that a slow moment of the machine hits one run of each.
const RUNS: usize = 5;

/// A ratio that must not be passed.
struct Bar {
    section: String,
    figure: String,
    /// The ratio may not be higher; or else, of a throughput, not lower.
    most: Option<f64>,
    least: Option<f64>,
}

impl Bar {
    fn holds(&self, ratio: f64) -> bool {
        self.most.is_none_or(|most| ratio <= most) && self.least.is_none_or(|least| ratio >= least)
    }
}

/// Runs the sections that have bars, and says which figure is worse than its bar.
pub fn check() -> ExitCode {
    let bars = bars();
    let sections: BTreeSet<&str> = bars.iter().map(|bar| &*bar.section).collect();
    let mut ratios: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for _ in 0..RUNS {
        // Each run has a process and a server of its own: what one leaves behind is not in the next one's figures.
        let status = Command::new(env::current_exe().unwrap()).args(&sections).status().unwrap();
        assert!(status.success(), "a run ended with {status}");
        for (figure, ratio) in report::ratios() {
            ratios.entry(figure).or_default().push(ratio);
        }
    }
    println!("\n{:<58} {:>8} {:>8}", format!("median of {RUNS}"), "ratio", "bar");
    let mut failed = 0;
    for bar in &bars {
        let ratio = ratios.get_mut(&bar.figure).map_or(f64::NAN, |found| median(found));
        let verdict = if bar.holds(ratio) { "ok" } else { "WORSE" };
        failed += usize::from(!bar.holds(ratio));
        let limit = bar.most.or(bar.least).unwrap_or(f64::NAN);
        println!("{:<58} {ratio:>8.3} {limit:>8.3} {verdict}", bar.figure);
    }
    println!("{} passed, {failed} failed", bars.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn bars() -> Vec<Bar> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/bars.json");
    let read: Vec<Value> = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let text = |bar: &Value, name: &str| bar[name].as_str().unwrap().to_owned();
    let bar = |bar: &Value| Bar {
        section: text(bar, "section"),
        figure: text(bar, "figure"),
        most: bar["most"].as_f64(),
        least: bar["least"].as_f64(),
    };
    let bars: Vec<Bar> = read.iter().map(bar).collect();
    for bar in &bars {
        assert!(bar.most.is_some() != bar.least.is_some(), "{}: either most or least", bar.figure);
    }
    bars
}

fn median(ratios: &mut [f64]) -> f64 {
    ratios.sort_unstable_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}
