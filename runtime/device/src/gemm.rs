//! Products of matrices.

use bytemuck::{Pod, Zeroable};

use crate::launch::{Grid, Symbol, BLOCK, MOST_BLOCKS};

/// The elements of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    F16,
    Bf16,
    F32,
    F64,
    /// A and B of 16 bits, C of `f32`.
    F16ToF32,
    Bf16ToF32,
}

impl Kind {
    /// As kernels are named.
    pub fn name(self) -> &'static str {
        match self {
            Kind::F16 => "f16",
            Kind::Bf16 => "bf16",
            Kind::F32 => "f32",
            Kind::F64 => "f64",
            Kind::F16ToF32 => "f16_f32",
            Kind::Bf16ToF32 => "bf16_f32",
        }
    }
}

impl Kind {
    /// The bytes of an element of A and B, and of C.
    fn sizes(self) -> [u64; 2] {
        match self {
            Kind::F16 | Kind::Bf16 => [2, 2],
            Kind::F16ToF32 | Kind::Bf16ToF32 => [2, 4],
            Kind::F32 => [4, 4],
            Kind::F64 => [8, 8],
        }
    }
}

/// `C[i] = alpha · A[i] · B[i] + beta · C[i]` for `batch` products. A is `[m, k]`, B `[k, n]`, C `[m, n]`, in rows; sums
/// of 16-bit elements are of `f32`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Gemm {
    pub kind: Kind,
    pub m: u32,
    pub n: u32,
    pub k: u32,
    pub batch: u32,
    pub a: Matrix,
    pub b: Matrix,
    pub c: Matrix,
    pub alpha: f32,
    /// With 0, C need not hold numbers.
    pub beta: f32,
}

/// Where a matrix of each product lies; as `gemm.cu` takes it.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Matrix {
    /// The first element of the first.
    pub address: u64,
    /// Elements from one product's matrix to the next product's; 0 where all have the same.
    pub next: u64,
    /// Elements from one row to the next, or from one column where it is transposed.
    pub row: u32,
    /// 1 where it stands transposed, in columns; else 0.
    pub transposed: u32,
}

impl Matrix {
    /// The matrices of the products from `first` on, of elements of `size` bytes.
    fn behind(self, first: u32, size: u64) -> Matrix {
        Matrix { address: self.address + u64::from(first) * self.next * size, ..self }
    }
}

/// The parameters of `gemm.cu`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Params {
    a: Matrix,
    b: Matrix,
    c: Matrix,
    m: u32,
    n: u32,
    k: u32,
    batch: u32,
    alpha: f32,
    beta: f32,
}

/// A side of the square of results that a block computes, as `TILE` in `gemm.cu`.
const TILE: u32 = 64;

impl Gemm {
    /// The same products, no more than `most` at once.
    pub(crate) fn parts(self, most: u32) -> impl Iterator<Item = Gemm> {
        let [operand, result] = self.kind.sizes();
        (0..self.batch).step_by(most as usize).map(move |first| Gemm {
            batch: most.min(self.batch - first),
            a: self.a.behind(first, operand),
            b: self.b.behind(first, operand),
            c: self.c.behind(first, result),
            ..self
        })
    }

    /// The kernel that computes it without a library, how it is launched, and its parameters.
    pub(crate) fn launch(&self) -> (Symbol, Grid, Params) {
        let Gemm { kind, m, n, k, batch, a, b, c, alpha, beta } = *self;
        let symbol = Symbol { module: "gemm", name: "gemm", kind: kind.name() };
        let grid = Grid {
            blocks: [n.div_ceil(TILE), m.div_ceil(TILE).min(MOST_BLOCKS), batch.min(MOST_BLOCKS)],
            threads: BLOCK,
        };
        let params = Params { a, b, c, m, n, k, batch, alpha, beta };
        (symbol, grid, params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_products_are_several_launches() {
        let matrix = |address, next| Matrix { address, next, row: 1, transposed: 0 };
        let (a, b, c) = (matrix(1000, 10), matrix(5000, 0), matrix(9000, 3));
        let gemm = Gemm { kind: Kind::F16ToF32, m: 1, n: 1, k: 1, batch: 7, a, b, c, alpha: 1.0, beta: 0.0 };
        let parts: Vec<_> =
            gemm.parts(3).map(|part| (part.batch, [part.a, part.b, part.c].map(|m| m.address))).collect();
        assert_eq!(parts, [(3, [1000, 5000, 9000]), (3, [1060, 5000, 9036]), (1, [1120, 5000, 9072])]);
        assert_eq!(Gemm { batch: 0, ..gemm }.parts(3).count(), 0);
    }
}
