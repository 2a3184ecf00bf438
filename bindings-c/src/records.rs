//! Structs that cross the border. Each begins with its size, as the program was compiled, so that it can grow.

use std::ffi::c_char;
use std::mem::size_of;
use std::ptr;

use crate::arguments::MOST_ITEMS;
use crate::error::Failure;

/// A struct that a program passes or has filled in.
///
/// # Safety
/// It is `repr(C)`, begins with `struct_size: usize`, and consists of numbers, raw pointers, and arrays of them.
pub(crate) unsafe trait Record: Copy {
    /// What it is called in messages.
    const NAME: &'static str;
    /// How large it was when it was published first.
    const LEAST: usize = size_of::<Self>();
    /// The value of options that a program does not set.
    const DEFAULT: Self;
}

/// The size that the program gave, if it can be.
///
/// # Safety
/// `record` points to at least a `usize`.
unsafe fn given_size<R: Record>(record: *const R) -> Result<usize, Failure> {
    // SAFETY: as the caller promises; records begin with their size.
    let size = unsafe { record.cast::<usize>().read_unaligned() };
    if (R::LEAST..=size_of::<R>()).contains(&size) {
        return Ok(size);
    }
    Err(Failure::invalid(format!(
        "struct_size {size} of {} is wrong; set it with the init function, or to sizeof with the header of this version",
        R::NAME
    )))
}

/// Reads a record; what the program does not know yet gets its default. NULL is the default.
///
/// # Safety
/// `record` is NULL or points to a record with its size in it.
pub(crate) unsafe fn read<R: Record>(record: *const R) -> Result<R, Failure> {
    let mut value = R::DEFAULT;
    if !record.is_null() {
        // SAFETY: as the caller promises.
        let size = unsafe { given_size(record) }?;
        // SAFETY: both have at least this size; any bits are a valid record.
        unsafe { ptr::copy_nonoverlapping(record.cast::<u8>(), (&raw mut value).cast::<u8>(), size) };
    }
    Ok(value)
}

/// Reads an array of records, all of the same size.
///
/// # Safety
/// `records` is NULL or points to `count` records with their size in them.
pub(crate) unsafe fn all<R: Record>(what: &str, records: *const R, count: usize) -> Result<Vec<R>, Failure> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if records.is_null() || count > MOST_ITEMS {
        return Err(Failure::invalid(format!("{what} is NULL, or {count} are more than {MOST_ITEMS}")));
    }
    // SAFETY: as the caller promises.
    let size = unsafe { given_size(records) }?;
    let one = |index| {
        let record = records.cast::<u8>().wrapping_add(index * size).cast::<R>();
        // SAFETY: as the caller promises, since all before it have this size.
        unsafe {
            if given_size(record)? != size {
                return Err(Failure::invalid(format!("{what} differ in their struct_size")));
            }
            read(record)
        }
    };
    (0..count).map(one).collect()
}

/// Fails as [`write()`] would.
///
/// # Safety
/// `record` is NULL or points to a record with its size in it.
pub(crate) unsafe fn check<R: Record>(record: *const R) -> Result<(), Failure> {
    if record.is_null() {
        return Err(Failure::invalid(format!("the pointer to the {} is NULL", R::NAME)));
    }
    // SAFETY: as the caller promises.
    unsafe { given_size(record) }.map(drop)
}

/// Fills in a record, as far as the program knows it. Its size stays.
///
/// # Safety
/// `record` is NULL or points to a record with its size in it.
pub(crate) unsafe fn write<R: Record>(record: *mut R, value: &R) -> Result<(), Failure> {
    // SAFETY: as the caller promises.
    let size = unsafe {
        check(record)?;
        given_size(record)?
    };
    let start = size_of::<usize>();
    // SAFETY: both have at least this size; the first field is the size itself.
    unsafe {
        ptr::copy_nonoverlapping(
            ptr::from_ref(value).cast::<u8>().add(start),
            record.cast::<u8>().add(start),
            size - start,
        );
    }
    Ok(())
}

/// Makes a program's struct the default. One that is too small or too large is refused when it is used.
///
/// # Safety
/// `record` is NULL or points to `size` writable bytes.
pub(crate) unsafe fn init<R: Record>(record: *mut R, size: usize) {
    if record.is_null() || size < size_of::<usize>() {
        return;
    }
    let value = R::DEFAULT;
    // SAFETY: as the caller promises; no more than both have.
    unsafe {
        ptr::copy_nonoverlapping(
            ptr::from_ref(&value).cast::<u8>(),
            record.cast::<u8>(),
            size.min(size_of::<R>()),
        );
        record.cast::<usize>().write_unaligned(size);
    }
}

/// Writes to a place of the program's, if it is one.
///
/// # Safety
/// `place` is NULL or points to a writable `T`.
pub(crate) unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: as the caller promises.
        unsafe { place.write_unaligned(value) };
    }
}

/// Fails for a place that must be given.
pub(crate) fn needed<T>(place: *const T, what: &str) -> Result<(), Failure> {
    if place.is_null() { Err(Failure::invalid(format!("the pointer to {what} is NULL"))) } else { Ok(()) }
}

/// Copies text into a fixed place, with a NUL at its end; what does not fit is cut off. Its length there.
pub(crate) fn fill<const SIZE: usize>(place: &mut [c_char; SIZE], text: &str) -> usize {
    let mut end = text.len().min(SIZE - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    for (to, from) in place.iter_mut().zip(text.as_bytes().iter().take(end).chain([&0])) {
        *to = c_char::from_ne_bytes([*from]);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Grown {
        struct_size: usize,
        old: i64,
        new: i64,
    }

    // SAFETY: numbers only.
    unsafe impl Record for Grown {
        const NAME: &'static str = "grown";
        const LEAST: usize = 16;
        const DEFAULT: Self = Self { struct_size: size_of::<Self>(), old: -1, new: -2 };
    }

    fn with_size(struct_size: usize) -> Grown {
        Grown { struct_size, old: 5, new: 6 }
    }

    #[test]
    fn an_older_program_gets_defaults_for_what_is_new() {
        // SAFETY: all are whole records, or NULL.
        unsafe {
            assert_eq!(read(&with_size(16)).unwrap(), Grown { struct_size: 16, old: 5, new: -2 });
            assert_eq!(read(&with_size(24)).unwrap(), with_size(24));
            assert_eq!(read::<Grown>(ptr::null()).unwrap(), Grown::DEFAULT);
        }
    }

    #[test]
    fn other_sizes_are_refused() {
        for size in [0, 8, 15, 25, usize::MAX] {
            let mut record = with_size(size);
            // SAFETY: it is a whole record.
            unsafe {
                assert!(read(&record).is_err(), "{size}");
                assert!(write(&mut record, &Grown::DEFAULT).is_err(), "{size}");
                assert!(all("array", &record, 1).is_err(), "{size}");
            }
        }
        // SAFETY: NULL is allowed.
        unsafe {
            assert!(write(ptr::null_mut(), &Grown::DEFAULT).is_err());
            assert!(all::<Grown>("array", ptr::null(), 1).is_err());
            assert!(all("array", &with_size(24), usize::MAX).is_err());
        }
    }

    #[test]
    fn an_array_is_as_far_apart_as_the_program_says() {
        let old: [(usize, i64); 2] = [(16, 1), (16, 2)];
        // SAFETY: both are whole records of the older size.
        let read = unsafe { all("array", old.as_ptr().cast::<Grown>(), 2) }.unwrap();
        assert_eq!(read.iter().map(|one| (one.old, one.new)).collect::<Vec<_>>(), [(1, -2), (2, -2)]);
        let mixed = [with_size(24), with_size(16)];
        // SAFETY: as above.
        assert!(unsafe { all("array", mixed.as_ptr(), 2) }.is_err());
    }

    #[test]
    fn an_older_program_is_not_written_beyond_its_struct() {
        let mut record = with_size(16);
        // SAFETY: points to a whole record.
        unsafe { write(&mut record, &Grown { struct_size: 24, old: 7, new: 8 }) }.unwrap();
        assert_eq!(record, Grown { struct_size: 16, old: 7, new: 6 });
        // SAFETY: points to a whole record.
        unsafe { init(&mut record, 16) };
        assert_eq!(record, Grown { struct_size: 16, old: -1, new: 6 });
    }

    #[test]
    fn text_is_cut_between_characters() {
        let mut place: [c_char; 4] = [1; 4];
        assert_eq!(fill(&mut place, "aéé"), 3);
        assert_eq!(place[3], 0);
        assert_eq!(fill(&mut place, "aaé"), 2);
        assert_eq!(fill(&mut place, ""), 0);
        assert_eq!(place[0], 0);
    }
}
