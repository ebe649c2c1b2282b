//! The rows that `AppendRows` writes.

use std::ops::Range;

use super::rows::WritesRows;
use crate::axes;
use crate::bail;
use crate::error::Result;
use crate::kernel::Call;
use crate::ops::cache::AppendRows;
use crate::value::rows::{Edit, Edits, Mover};
use crate::value::{Array, Grown};

impl WritesRows for AppendRows {
    fn rows_axis(&self, rank: usize, _: usize) -> Option<usize> {
        rank.checked_sub(2).filter(|axis| *axis > 0)
    }

    fn edits(&self, grown: &Grown, call: &Call) -> Result<Edits> {
        self.edits_of(grown.dims(), grown.filled(), call)
    }
}

impl AppendRows {
    /// Computes the output in storage of its own, or in that of the cache if the step may take it.
    ///
    /// # Errors
    /// The inputs do not fit, there is no memory, or the device fails.
    pub(crate) fn append(&self, call: &mut Call, mover: &dyn Mover) -> Result<Array> {
        let (cache, new) = (call.tensor(0)?, call.tensor(1)?);
        if cache.dtype() != new.dtype() {
            bail!("{} rows cannot follow a {} tensor", new.dtype(), cache.dtype());
        }
        let dims = cache.dims().to_vec();
        let axis = AppendRows::check(&dims, new.dims())?;
        let Edits { length, list, .. } = self.edits_of(&dims, dims[axis], call)?;
        let taken = if length == dims[axis] { call.take(0) } else { None };
        let mut grown = match &taken {
            Some(taken) => Grown::of(taken, axis)?,
            None => Grown::of(call.tensor(0)?, axis)?,
        };
        match taken {
            Some(taken) => drop(taken),
            None => grown.move_to(length, mover)?,
        }
        Ok(grown.edited(length, &list, call.tensor(1)?, mover)?.storage().0.clone())
    }

    /// The rows that change in a cache of shape `dims` whose rows from `filled` on are zeros.
    ///
    /// # Errors
    /// The inputs do not fit.
    fn edits_of(&self, dims: &[usize], filled: usize, call: &Call) -> Result<Edits> {
        let new = call.tensor(1)?.dims();
        let axis = AppendRows::check(dims, new)?;
        let lengths = call.tensor(2)?.to_i64()?;
        if lengths.len() != dims[0] {
            bail!("{} lengths do not fit a cache of shape {dims:?}", lengths.len());
        }
        let (held, rows) = (dims[axis], new[axis]);
        let total = axes::dims(&[axes::number("total", call.tensor(3)?)?])?;
        let length = held.max(total[0]);
        let per_batch: usize = dims[1..axis].iter().product();
        let (mut list, mut last) = (Vec::new(), 0);
        for (batches, first) in alike(&lengths) {
            let end = usize::try_from(first).ok().and_then(|first| first.checked_add(rows));
            let Some(end) = end.filter(|&end| end <= length) else {
                bail!("{rows} rows from row {first} on do not fit a cache of {length} rows (batch {})", batches.start);
            };
            let start = end - rows;
            let spans = [
                (held.min(start)..start, None),
                (start..end, Some(0)),
                (end..end.max(filled.min(held)), None),
                (end.max(held)..length, None),
            ];
            let matrices = batches.start * per_batch..batches.end * per_batch;
            let spans = spans.into_iter().filter(|(to, _)| !to.is_empty());
            list.extend(spans.map(|(to, from)| Edit { matrices: matrices.clone(), to, from }));
            last = last.max(end);
        }
        Ok(Edits { length, list, filled: last })
    }
}

/// Runs of equal numbers, with their places.
pub(crate) fn alike(numbers: &[i64]) -> impl Iterator<Item = (Range<usize>, i64)> + '_ {
    let mut start = 0;
    numbers.chunk_by(|a, b| a == b).map(move |run| {
        let places = start..start + run.len();
        start = places.end;
        (places, run[0])
    })
}
