//! The shop's ledger: three plain files. It locks nothing. Whoever writes must hold the lock, and shows
//! the fence of its lease: the ledger refuses a fence smaller than one it has seen.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use crate::ITEMS;

/// Numbers are written with this many digits, in place, so that a reader never sees half of one.
const DIGITS: usize = 20;
/// How long the bank takes to say yes. The sale without the lock goes wrong with zero here too, but on a
/// fast disk not every time.
const BANK: Duration = Duration::from_micros(500);

pub struct Ledger {
    folder: PathBuf,
    stock: File,
    fence: File,
    journal: File,
}

/// One line of the journal: a buyer who was served.
#[derive(Clone, Debug)]
pub struct Visit {
    pub process: usize,
    pub buyer: usize,
    /// The fence of the lease; `None` in the sale without the lock.
    pub fence: Option<u64>,
    /// The number of what was bought, counted from 1; `None` if it was sold out.
    pub item: Option<usize>,
}

/// Why the ledger did not do as it was told.
#[derive(Debug)]
pub enum LedgerError {
    /// The writer's lease is older than one that was here already.
    StaleFence { shown: u64, seen: u64 },
    /// A file could not be read or written.
    File(io::Error),
}

impl Ledger {
    /// A new ledger, with everything in stock.
    pub fn create(folder: &Path) -> Result<Self, LedgerError> {
        fs::create_dir_all(folder)?;
        let ledger = Self::open(folder)?;
        write_number(&ledger.stock, ITEMS as u64)?;
        write_number(&ledger.fence, 0)?;
        Ok(ledger)
    }

    pub fn open(folder: &Path) -> Result<Self, LedgerError> {
        let open = |name| {
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(folder.join(name))
        };
        let journal = OpenOptions::new().append(true).create(true).open(folder.join("journal"))?;
        Ok(Self { folder: folder.to_owned(), stock: open("stock")?, fence: open("fence")?, journal })
    }

    /// How many items are left.
    pub fn stock(&self, fence: Option<u64>) -> Result<usize, LedgerError> {
        self.admit(fence)?;
        Ok(usize::try_from(read_number(&self.stock)?).unwrap_or(usize::MAX))
    }

    pub fn set_stock(&self, left: usize, fence: Option<u64>) -> Result<(), LedgerError> {
        self.admit(fence)?;
        write_number(&self.stock, left as u64)
    }

    /// Waits for the bank and puts a receipt on the disk.
    pub fn take_payment(&self, buyer: usize) -> Result<(), LedgerError> {
        thread::sleep(BANK);
        let mut receipt = File::create(self.folder.join(format!("receipt-{buyer}")))?;
        writeln!(receipt, "buyer {buyer} has paid")?;
        Ok(receipt.sync_all()?)
    }

    pub fn note(&self, visit: &Visit) -> Result<(), LedgerError> {
        self.admit(visit.fence)?;
        // One write of a short line at the end of the file: lines never mix.
        Ok((&self.journal).write_all(format!("{visit}\n").as_bytes())?)
    }

    /// Everybody who was served, in the order in which it happened.
    pub fn journal(&self) -> Result<Vec<Visit>, LedgerError> {
        let text = fs::read_to_string(self.folder.join("journal"))?;
        text.lines().map(|line| line.parse().map_err(|()| damaged("journal"))).collect()
    }

    /// Refuses whoever comes too late. The lock keeps this check and the write after it together; a
    /// database would do both in one statement.
    fn admit(&self, fence: Option<u64>) -> Result<(), LedgerError> {
        let Some(shown) = fence else { return Ok(()) };
        let seen = read_number(&self.fence)?;
        if shown < seen {
            return Err(LedgerError::StaleFence { shown, seen });
        }
        if shown > seen { write_number(&self.fence, shown) } else { Ok(()) }
    }
}

fn read_number(file: &File) -> Result<u64, LedgerError> {
    let mut digits = [0; DIGITS];
    file.read_exact_at(&mut digits, 0)?;
    let number = std::str::from_utf8(&digits).ok().and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| damaged("number"))
}

fn write_number(file: &File, number: u64) -> Result<(), LedgerError> {
    Ok(file.write_all_at(format!("{number:0DIGITS$}").as_bytes(), 0)?)
}

fn damaged(what: &str) -> LedgerError {
    LedgerError::File(io::Error::new(io::ErrorKind::InvalidData, format!("the {what} makes no sense")))
}

impl fmt::Display for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, buyer, fence, item } = self;
        write!(f, "{process} {buyer} {} {}", fence.unwrap_or(0), item.unwrap_or(0))
    }
}

impl FromStr for Visit {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let numbers: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
        let [process, buyer, fence, item] = numbers.map_err(|_| ())?[..] else { return Err(()) };
        let small = |number: u64| usize::try_from(number).map_err(|_| ());
        Ok(Self {
            process: small(process)?,
            buyer: small(buyer)?,
            fence: (fence > 0).then_some(fence),
            item: Some(small(item)?).filter(|item| *item > 0),
        })
    }
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StaleFence { shown, seen } => {
                write!(f, "the ledger refused fence {shown}: it has seen {seen}")
            }
            Self::File(error) => write!(f, "the ledger's files: {error}"),
        }
    }
}

impl std::error::Error for LedgerError {}

impl From<io::Error> for LedgerError {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}
