//! The dimensions of matrix products.

use crate::bail;
use crate::error::Result;
use crate::value::element_count;

/// The dimensions of an operand, after a transposition of its matrices if they are stored `transposed`.
pub(crate) fn ordered<D: Clone>(dims: &[D], transposed: bool) -> Result<Vec<D>> {
    let mut dims = dims.to_vec();
    match dims.len() {
        _ if !transposed => {}
        0 | 1 => bail!("an operand of {} dimensions has no matrices to be transposed", dims.len()),
        rank => dims.swap(rank - 2, rank - 1),
    }
    Ok(dims)
}

/// The elements of each matrix of a stack.
pub(crate) fn matrix_size(stack: &[usize]) -> usize {
    stack.iter().rev().take(2).product()
}

/// The sizes of a product of two stacks of matrices, `[m, k]` and `[k, n]`.
pub(crate) struct Factors {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// The batch dimensions of each stack.
    pub stacks: [Vec<usize>; 2],
    /// Whether each operand is a vector, whose axis the result lacks.
    are_vectors: [bool; 2],
}

impl Factors {
    /// The sizes for operands of these dimensions, whose matrices may be stored transposed.
    ///
    /// # Errors
    /// The operands do not multiply.
    pub fn new(a: &[usize], b: &[usize], transposed: [bool; 2]) -> Result<Factors> {
        let (a, b) = (&ordered(a, transposed[0])?[..], &ordered(b, transposed[1])?[..]);
        let (Some((&k, a_rest)), Some((&last, b_rest))) = (a.split_last(), b.split_last()) else {
            bail!("a matrix product takes no scalars");
        };
        let (m, a_stack) = a_rest.split_last().map_or((1, a_rest), |(&m, stack)| (m, stack));
        let (rows, n, b_stack) = b_rest.split_last().map_or((last, 1, b_rest), |(&rows, stack)| (rows, last, stack));
        if k != rows {
            bail!("a matrix of {k} columns does not multiply one of {rows} rows: {a:?} and {b:?}");
        }
        let stacks = [a_stack.to_vec(), b_stack.to_vec()];
        Ok(Factors { m, n, k, stacks, are_vectors: [a.len() == 1, b.len() == 1] })
    }

    /// The dimensions of the product, whose batch dimensions are `stack`.
    ///
    /// # Errors
    /// The product has too many elements.
    pub fn result(&self, mut stack: Vec<usize>) -> Result<Vec<usize>> {
        stack.extend((!self.are_vectors[0]).then_some(self.m));
        stack.extend((!self.are_vectors[1]).then_some(self.n));
        element_count(&stack)?;
        Ok(stack)
    }
}
