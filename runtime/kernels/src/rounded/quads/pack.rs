//! The right operand in quads.

use half::bf16;

use super::sizes::{QUAD, WIDTH};
use crate::gemm::Lines;
use crate::isa::{Isa, Level};
use crate::rounded::case::Halves;
use crate::threads::Threads;

/// The proof that this processor has the extension `bf16`. Only this module creates it, from an [`Isa`] and a query of the
/// processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuadSums(());

impl QuadSums {
    /// Returns the proof, if the level is NEON and this processor has the instructions.
    pub fn of(isa: Isa) -> Option<QuadSums> {
        let has = isa.level() == Level::Neon && std::arch::is_aarch64_feature_detected!("bf16");
        has.then_some(QuadSums(()))
    }
}

/// A matrix in panels of [`WIDTH`] columns.
#[derive(Debug, Clone)]
pub(crate) struct PackedQuads {
    pub(super) sums: QuadSums,
    pub(super) k: usize,
    pub(super) n: usize,
    /// Numbers of 16 bits: `[panel][quad][column][number]`. Zeros follow the last row and the last column.
    numbers: Lines,
}

/// Numbers that are worth several threads.
const SPLIT: usize = 1 << 17;

impl PackedQuads {
    /// Packs a matrix.
    ///
    /// # Panics
    /// The data do not fit the sizes.
    pub fn new(sums: QuadSums, threads: &Threads, matrix: &Halves) -> PackedQuads {
        let Halves { k, n, data, .. } = *matrix;
        assert_eq!(data.len(), k * n, "{k} x {n} numbers");
        let panel = k.div_ceil(QUAD) * QUAD * WIDTH;
        let len = n.div_ceil(WIDTH) * panel;
        let serial = Threads::serial();
        let threads = if len > SPLIT { threads } else { &serial };
        let numbers = Lines::overwritten(len / 2, |numbers| {
            threads.for_each_chunk(bytemuck::cast_slice_mut(numbers), panel, |i, numbers| {
                numbers.fill(bf16::ZERO);
                pack(matrix, i * WIDTH, numbers);
            });
        });
        PackedQuads { sums, k, n, numbers }
    }

    /// The quads of a column.
    pub(super) fn quads(&self) -> usize {
        self.k.div_ceil(QUAD)
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.numbers[..])
    }

    /// The address of a quad of a panel.
    pub(super) fn at(&self, panel: usize, quad: usize) -> *const u16 {
        self.numbers.as_ptr().cast::<u16>().wrapping_add((panel * self.quads() + quad) * WIDTH * QUAD)
    }
}

/// Writes the columns from `first` on to a panel of zeros.
fn pack(matrix: &Halves, first: usize, numbers: &mut [bf16]) {
    let Halves { k, n, data, transposed } = *matrix;
    let count = WIDTH.min(n - first);
    for (quad, numbers) in numbers.chunks_exact_mut(WIDTH * QUAD).enumerate() {
        let rows = quad * QUAD..k.min((quad + 1) * QUAD);
        for (column, numbers) in numbers.chunks_exact_mut(QUAD).take(count).enumerate() {
            let column = first + column;
            if transposed {
                numbers[..rows.len()].copy_from_slice(&data[column * k..][rows.clone()]);
            } else {
                numbers.iter_mut().zip(rows.clone()).for_each(|(number, row)| *number = data[row * n + column]);
            }
        }
    }
}
