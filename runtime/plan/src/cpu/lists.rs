//! Lists of axes and sizes among a step's inputs: read once where they are constant.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::axes::{self, numbers};
use crate::error::Result;
use crate::kernel::{Call, Constants};

/// The inputs of a step that are constant lists.
pub(super) struct Lists(SmallVec<[Option<Vec<i64>>; 5]>);

impl Lists {
    /// Reads them.
    pub fn of(operands: &Constants) -> Lists {
        let read =
            |i: usize| operands.tensor(i).filter(|list| list.dtype().is_int()).and_then(|list| numbers(list).ok());
        Lists((0..operands.types.len()).map(read).collect())
    }
}

/// The numbers of input `i`: those that were read before, or those of this call.
///
/// # Errors
/// The input is missing, no list, or none of integers.
pub(super) fn list<'a>(lists: Option<&'a Lists>, call: &Call, i: usize) -> Result<Cow<'a, [i64]>> {
    match lists.and_then(|lists| lists.0.get(i)?.as_deref()) {
        Some(numbers) => Ok(Cow::Borrowed(numbers)),
        None => axes::list(call, i).map(Cow::Owned),
    }
}

/// [`list`] of an input that may be absent.
///
/// # Errors
/// As [`list`].
pub(super) fn optional_list<'a>(lists: Option<&'a Lists>, call: &Call, i: usize) -> Result<Option<Cow<'a, [i64]>>> {
    call.optional_tensor(i)?.map(|_| list(lists, call, i)).transpose()
}
