//! What the demo prints, and what it checks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::buyers::Buyers;
use super::ledger::LedgerError;
use super::sale::Sale;
use super::store::DemoStore;
use crate::{AT_A_TIME, BUYERS, ITEMS, Outcome, PROCESSES};

/// Fairness is judged over the first half of the grants. In the end every process has served its share.
const JUDGED: usize = BUYERS / 2;

pub fn opening(store: &DemoStore, buyers: &Buyers) {
    println!(
        "Flash sale: {ITEMS} items, {} buyers, {PROCESSES} processes ({}), each with {AT_A_TIME} buyers at a time.\n\
         Each buyer reads the stock from a file, pays if something is left, and writes the stock back.\n\
         Who gets the lock also gets a fence, a number larger than that of everybody before: the file refuses a smaller one.\n\
         Store of the lock: {}.",
        grouped(BUYERS),
        buyers.count(1..=PROCESSES),
        store.describe(),
    );
}

pub fn progress(elapsed: Duration, served: usize) {
    println!(
        "   {:>5.1} s   {:>5} of {} buyers served",
        elapsed.as_secs_f64(),
        grouped(served),
        grouped(BUYERS)
    );
}

/// Prints who got what; whether everything is as it must be.
pub fn locked_sale(sale: &Sale, languages: &Buyers) -> Outcome<bool> {
    println!("\n   item   buyer   process       fence");
    for (visit, item) in sale.sales() {
        let (process, language) = (visit.process, languages.language(visit.process));
        println!(
            "   {item:>4}   {:>5}   {process} {language:<10}  {}",
            visit.buyer,
            visit.fence.unwrap_or(0)
        );
    }
    let buyers: BTreeSet<_> = sale.sales().map(|(visit, _)| visit.buyer).collect();
    let items: BTreeSet<_> = sale.sales().map(|(_, item)| item).collect();
    let sold = sale.sales().count();
    println!(
        "\n   buyers served: {}\n   sold {sold} of {ITEMS}, to {} different buyers: {}",
        languages.count(sale.visits.iter().map(|visit| visit.process)),
        buyers.len(),
        languages.count(sale.sales().map(|(visit, _)| visit.process)),
    );

    let served: BTreeSet<_> = sale.visits.iter().map(|visit| visit.buyer).collect();
    let everybody = served.len() == BUYERS && sale.visits.len() == BUYERS;
    let fences: Vec<u64> = sale.visits.iter().filter_map(|visit| visit.fence).collect();
    let rising = fences.len() == BUYERS && fences.windows(2).all(|pair| pair[0] < pair[1]);
    let (yes, no) = ("every one larger than the one before", "NOT every one larger than the one before");
    println!("   fences: {}, {}", grouped(fences.len()), if rising { yes } else { no });
    let refused = late_writer(sale)?;

    let rate = sale.visits.len() as f64 / sale.took.as_secs_f64();
    println!(
        "   speed: {} grants in {:.2} s, {rate:.0} per second",
        grouped(fences.len()),
        sale.took.as_secs_f64()
    );
    fairness(sale);
    Ok(sold == ITEMS && buyers.len() == ITEMS && items.len() == ITEMS && everybody && rising && refused)
}

/// A buyer whose lease ended long ago tries to write: the ledger must refuse.
fn late_writer(sale: &Sale) -> Outcome<bool> {
    let Some(first) = sale.visits.first() else { return Ok(false) };
    match sale.ledger.set_stock(ITEMS, first.fence) {
        Err(LedgerError::StaleFence { shown, .. }) => {
            println!("   a late write with the first fence, {shown}: refused by the ledger");
            Ok(true)
        }
        Err(error) => Err(error.into()),
        Ok(()) => {
            println!("   a late write with the first fence: NOT refused by the ledger");
            Ok(false)
        }
    }
}

fn fairness(sale: &Sale) {
    let judged = &sale.visits[..JUDGED.min(sale.visits.len())];
    let grants: Vec<usize> = (1..=PROCESSES)
        .map(|process| judged.iter().filter(|visit| visit.process == process).count())
        .collect();
    println!(
        "   fairness: Jain index {:.3} over the first {} grants; per process {grants:?}\n\
         \x20            (1 = equal shares, {:.3} = one process got all)",
        jain(&grants),
        grouped(judged.len()),
        1.0 / PROCESSES as f64,
    );
    let wait = |at: usize| sale.waits.get(at).map_or(0.0, Duration::as_secs_f64) * 1e3;
    println!("   waits: half below {:.0} ms, longest {:.0} ms", wait(BUYERS / 2), wait(BUYERS - 1));
}

/// Jain's index: the square of the sum over n times the sum of squares.
fn jain(shares: &[usize]) -> f64 {
    let sum: f64 = shares.iter().map(|share| *share as f64).sum();
    let squares: f64 = shares.iter().map(|share| (*share as f64).powi(2)).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 0.0 }
}

pub fn unlocked_sale(sale: &Sale) {
    println!("\n   sold {} of {ITEMS}", sale.sales().count());
    match buyers_per_item(sale).into_iter().max_by_key(|(_, buyers)| *buyers) {
        Some((item, buyers)) if buyers > 1 => println!("   item {item} alone was sold to {buyers} buyers"),
        _ => println!("   nobody collided this time; that is luck, run it again"),
    }
}

pub fn side_by_side(locked: &Sale, unlocked: &Sale) {
    let row = |what: &str, of: &dyn Fn(&Sale) -> String| {
        println!("   {what:<28}{:>15}{:>18}", of(locked), of(unlocked));
    };
    println!("   {:<28}{:>15}{:>18}", "", "with the lock", "without the lock");
    row("buyers served", &|sale| grouped(sale.visits.len()));
    row("items in stock", &|_| ITEMS.to_string());
    row("items paid for", &|sale| grouped(sale.sales().count()));
    row("items sold more than once", &|sale| {
        buyers_per_item(sale).values().filter(|buyers| **buyers > 1).count().to_string()
    });
    row("buyers who paid for nothing", &|sale| {
        grouped(sale.sales().count().saturating_sub(buyers_per_item(sale).len()))
    });
    row("time", &|sale| format!("{:.2} s", sale.took.as_secs_f64()));
}

fn buyers_per_item(sale: &Sale) -> BTreeMap<usize, usize> {
    let mut buyers = BTreeMap::new();
    for (_, item) in sale.sales() {
        *buyers.entry(item).or_default() += 1;
    }
    buyers
}

pub fn verdict(right: bool) {
    if right {
        println!("\nThe sale with the lock was right: {ITEMS} items, {ITEMS} buyers, one each.");
    } else {
        println!("\nThe sale with the lock was WRONG. Please report this, with what is printed above.");
    }
}

/// 2000 as 2,000.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
