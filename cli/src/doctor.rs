//! `stanchion doctor`: what the store is like, and which promises hold on it.

use serde_json::{Value, json};
use stanchion::{Finding, Health};

use crate::arguments::Globals;
use crate::exit;
use crate::failure::Failure;
use crate::output::print;
use crate::report::Report;
use crate::store;
use crate::text::{plain, table};

const HEADINGS: [&str; 4] = ["CHECK", "HEALTH", "PROMISE", "FOUND"];

/// Examines the store; the exit code says whether a promise does not hold.
pub fn doctor(globals: &Globals, report: &Report) -> Result<u8, Failure> {
    let findings = store::open(globals, report)?.doctor()?;
    let text = if globals.json { as_json(&findings) } else { as_text(&findings) };
    print(text.as_bytes())?;
    let is_bad = findings.iter().any(|finding| finding.health == Health::Bad);
    Ok(if is_bad { exit::REFUSED } else { exit::DONE })
}

fn as_json(findings: &[Finding]) -> String {
    let finding = |finding: &Finding| {
        json!({
            "check": finding.what,
            "health": finding.health.name(),
            "promise": finding.promise,
            "found": finding.found,
            "advice": finding.advice,
        })
    };
    format!("{}\n", Value::from(findings.iter().map(finding).collect::<Vec<_>>()))
}

fn as_text(findings: &[Finding]) -> String {
    let row = |finding: &Finding| {
        [
            finding.what.to_owned(),
            finding.health.name().to_owned(),
            finding.promise.to_owned(),
            plain(&finding.found),
        ]
    };
    let mut text = table(HEADINGS, findings.iter().map(row));
    for finding in findings {
        if let Some(advice) = &finding.advice {
            text.push_str(&format!("\n{}: {}\n", finding.what, plain(advice)));
        }
    }
    text
}
