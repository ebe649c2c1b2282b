//! Matrix products.

use bytemuck::{Pod, Zeroable};

use crate::launch::{Grid, Symbol, BLOCK, MOST_BLOCKS};
use crate::mirror::Mirror;

/// The element types of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum GemmKind {
    F16,
    Bf16,
    F32,
    F64,
    /// A and B have 16-bit elements, C has `f32`.
    F16ToF32,
    Bf16ToF32,
}

impl GemmKind {
    /// The name in kernel symbols.
    pub fn name(self) -> &'static str {
        match self {
            GemmKind::F16 => "f16",
            GemmKind::Bf16 => "bf16",
            GemmKind::F32 => "f32",
            GemmKind::F64 => "f64",
            GemmKind::F16ToF32 => "f16_f32",
            GemmKind::Bf16ToF32 => "bf16_f32",
        }
    }
}

impl GemmKind {
    /// The size in bytes of an element of A and B, and of C.
    fn sizes(self) -> [u64; 2] {
        match self {
            GemmKind::F16 | GemmKind::Bf16 => [2, 2],
            GemmKind::F16ToF32 | GemmKind::Bf16ToF32 => [2, 4],
            GemmKind::F32 => [4, 4],
            GemmKind::F64 => [8, 8],
        }
    }
}

/// `C[i] = alpha · A[i] · B[i] + beta · C[i]` for `batch` products. A is `[m, k]`, B is `[k, n]` and C is `[m, n]`, all
/// row-major. Sums of 16-bit elements use `f32`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Gemm {
    pub kind: GemmKind,
    pub m: u32,
    pub n: u32,
    pub k: u32,
    pub batch: u32,
    pub a: Matrix,
    pub b: Matrix,
    pub c: Matrix,
    pub alpha: f32,
    /// If 0, C may be uninitialized.
    pub beta: f32,
}

/// The location of the matrices of a batch.
#[derive(Debug, Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Matrix in "gemm.cu")]
pub struct Matrix {
    /// The address of the first matrix's first element.
    pub address: u64,
    /// The stride of the batch, in elements; 0 if all products share the matrix.
    pub next: u64,
    /// The stride of rows in elements, or of columns if the matrix is transposed.
    pub row: u32,
    /// 1 if the matrix is transposed (column-major), else 0.
    pub transposed: u32,
}

impl Matrix {
    /// The matrices of the products from `first` on; elements have `size` bytes.
    fn behind(self, first: u32, size: u64) -> Matrix {
        Matrix { address: self.address + u64::from(first) * self.next * size, ..self }
    }
}

/// The parameters of `gemm.cu`.
#[derive(Debug, Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Gemm in "gemm.cu")]
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

/// The side of the square of results that a block computes; equals `TILE` in `gemm.cu`.
const TILE: u32 = 64;

impl Gemm {
    /// Splits the products into batches of at most `most`.
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

    /// Returns the kernel that computes the products without a library, its grid and its parameters.
    pub fn launch(&self) -> (Symbol, Grid, impl Pod) {
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
        let gemm = Gemm { kind: GemmKind::F16ToF32, m: 1, n: 1, k: 1, batch: 7, a, b, c, alpha: 1.0, beta: 0.0 };
        let parts: Vec<_> =
            gemm.parts(3).map(|part| (part.batch, [part.a, part.b, part.c].map(|m| m.address))).collect();
        assert_eq!(parts, [(3, [1000, 5000, 9000]), (3, [1060, 5000, 9036]), (1, [1120, 5000, 9072])]);
        assert_eq!(Gemm { batch: 0, ..gemm }.parts(3).count(), 0);
    }
}
