//! Softmax of short rows of `f32`: as many rows at a time as a vector has lanes, with one vector per column.

use super::function::Function;
use crate::isa::Isa;
use crate::rewrite::Rewrite;
use crate::vector::{dispatch_isa, math, Vector};

/// The maximum number of elements in a row.
pub(super) const MOST: usize = 8;
/// The maximum number of lanes of a vector.
const LANES: usize = 16;

/// Computes softmax or its logarithm for every `n` elements; `0 < n ≤ MOST`.
pub(super) fn softmax(isa: Isa, function: Function, n: usize, rows: Rewrite<f32>) {
    assert!(n <= MOST && rows.len().is_multiple_of(n), "whole short rows");
    dispatch_isa!(isa, (function: Function = function, n: usize = n, rows: Rewrite<f32> = rows), V => all_rows::<V>(function, n, rows));
}

#[inline(always)]
fn all_rows<V: Vector>(function: Function, n: usize, mut rows: Rewrite<f32>) {
    let mut columns = [[0.0; LANES]; MOST];
    for first in (0..rows.len()).step_by(V::LANES * n) {
        let len = (V::LANES * n).min(rows.len() - first);
        for (r, row) in rows.source()[first..first + len].chunks_exact(n).enumerate() {
            row.iter().zip(&mut columns).for_each(|(&x, column)| column[r] = x);
        }
        normalize::<V>(function, &mut columns[..n]);
        for (r, row) in rows.target()[first..first + len].chunks_exact_mut(n).enumerate() {
            row.iter_mut().zip(&columns).for_each(|(x, column)| *x = column[r]);
        }
    }
}

/// Computes softmax or its logarithm in every lane of the columns.
#[inline(always)]
fn normalize<V: Vector>(function: Function, columns: &mut [[f32; LANES]]) {
    // SAFETY: a column has at least as many elements as a vector.
    unsafe {
        let largest = |max: V, column: &[f32; LANES]| V::load(column.as_ptr()).greater(max);
        let max = columns.iter().fold(V::splat(f32::NEG_INFINITY), largest);
        let exp = |column: &[f32; LANES]| math::exp_of_nonpositive(V::load(column.as_ptr()) - max);
        let sum = columns.iter().fold(V::splat(0.0), |sum, column| sum + exp(column));
        let mut logs = [0.0; LANES];
        if function == Function::LogSoftmax {
            sum.store(logs.as_mut_ptr());
            logs.iter_mut().for_each(|sum| *sum = sum.ln());
        }
        let (log, factor) = (V::load(logs.as_ptr()), V::splat(1.0) / sum);
        for column in columns {
            let y = match function {
                Function::Softmax => exp(column) * factor,
                Function::LogSoftmax => V::load(column.as_ptr()) - max - log,
            };
            y.store(column.as_mut_ptr());
        }
    }
}
