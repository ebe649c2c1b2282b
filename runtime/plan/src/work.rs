//! The work of a step by its op's formula, to compare with the time that it takes.

use std::ops::{Add, Mul};

use serde::Serialize;

use crate::types::{TensorType, Type, Types};

/// Arithmetic and memory traffic of one run of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Work {
    /// Multiplications and additions of the formula; a kernel may use an algorithm with fewer of them. 0 for a
    /// memory-bound op.
    pub operations: u64,
    /// Bytes read and written, each once.
    pub bytes: u64,
}

impl Work {
    /// The work of an op that reads every input and writes every output.
    pub fn moving(inputs: &Types, outputs: &[Type]) -> Option<Work> {
        let read = inputs.inputs.iter().flatten().try_fold(0u64, |sum, kind| Some(sum.saturating_add(bytes(kind)?)))?;
        Some(Work { operations: 0, bytes: read.saturating_add(written(outputs)?) })
    }

    /// The work of an op that writes every output and reads as many bytes of its inputs.
    pub fn picking(outputs: &[Type]) -> Option<Work> {
        Some(Work { operations: 0, bytes: written(outputs)?.saturating_mul(2) })
    }

    /// [`Work::moving`] with the operations of a sum of `products` products.
    pub fn multiplying(inputs: &Types, outputs: &[Type], products: Option<u64>) -> Option<Work> {
        Some(Work { operations: products?.saturating_mul(2), ..Work::moving(inputs, outputs)? })
    }
}

impl Add for Work {
    type Output = Work;

    fn add(self, other: Work) -> Work {
        Work {
            operations: self.operations.saturating_add(other.operations),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

impl Mul<u64> for Work {
    type Output = Work;

    fn mul(self, times: u64) -> Work {
        Work { operations: self.operations.saturating_mul(times), bytes: self.bytes.saturating_mul(times) }
    }
}

/// The number of elements of a tensor, if it is known.
pub fn count(tensor: &TensorType) -> Option<u64> {
    Some(product(&tensor.sizes()?))
}

/// The size of the dimension `from_end` places before the last one, if it is known.
pub fn size_from_end(tensor: &TensorType, from_end: usize) -> Option<u64> {
    tensor.size(tensor.rank()?.checked_sub(from_end + 1)?).map(|size| size as u64)
}

/// The product of sizes.
pub fn product(sizes: &[usize]) -> u64 {
    sizes.iter().fold(1, |product, &size| product.saturating_mul(size as u64))
}

/// The number of products of attention: each element of `Q` and of the output meets every key, new or past, masked or
/// not. The rows of the tensors `keys` are the keys.
pub fn attention(q: &TensorType, y: &TensorType, keys: [Option<&TensorType>; 2]) -> Option<u64> {
    let rows = keys.iter().flatten().try_fold(0, |sum: u64, keys| Some(sum.saturating_add(size_from_end(keys, 1)?)))?;
    Some(count(q)?.saturating_add(count(y)?).saturating_mul(rows))
}

/// The number of products of a recurrent op: all of `W` and `R` meet each of the S · B rows of `X [S, B, I]`.
pub fn recurrent([x, w, r]: [Option<&TensorType>; 3]) -> Option<u64> {
    let rows = count(x?)?.checked_div(size_from_end(x?, 0)?)?;
    Some(rows.saturating_mul(count(w?)?.saturating_add(count(r?)?)))
}

fn written(outputs: &[Type]) -> Option<u64> {
    outputs.iter().try_fold(0u64, |sum, kind| Some(sum.saturating_add(bytes(kind)?)))
}

fn bytes(kind: &Type) -> Option<u64> {
    Some(kind.tensor().ok()?.bytes() as u64)
}
