//! Lists of axes and sizes among a step's inputs. Constant lists are read once.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::axes::numbers;
use crate::error::Result;
use crate::kernel::{Call, Constants};

/// The constant lists among a step's inputs.
pub(super) struct Lists(SmallVec<[Option<Vec<i64>>; 5]>);

impl Lists {
    /// Reads the constant lists of integers.
    pub fn of(operands: &Constants) -> Lists {
        let read =
            |i: usize| operands.tensor(i).filter(|list| list.dtype().is_int()).and_then(|list| numbers(list).ok());
        Lists((0..operands.types.len()).map(read).collect())
    }
}

/// Returns the numbers of input `i`: the constants read in advance, otherwise those of this call.
///
/// # Errors
/// The input is missing, or it is not a list of integers.
pub(super) fn list<'a>(lists: &'a Lists, call: &Call, i: usize) -> Result<Cow<'a, [i64]>> {
    match lists.0.get(i).and_then(Option::as_deref) {
        Some(numbers) => Ok(Cow::Borrowed(numbers)),
        None => numbers(call.tensor(i)?).map(Cow::Owned),
    }
}

/// Like [`list`], for an optional input.
///
/// # Errors
/// See [`list`].
pub(super) fn optional_list<'a>(lists: &'a Lists, call: &Call, i: usize) -> Result<Option<Cow<'a, [i64]>>> {
    call.optional_tensor(i)?.map(|_| list(lists, call, i)).transpose()
}
