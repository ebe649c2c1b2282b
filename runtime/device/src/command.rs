//! The commands of a run, as recorded by a dry run.

use crate::gemm::GemmKind;
use crate::launch::{Grid, Symbol};

/// A command for a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Launch a kernel.
    Launch(Symbol, Grid),
    /// Multiply `batch` pairs of matrices, `[m, k] · [k, n]`, in the library.
    Multiply {
        /// The types of the elements.
        kind: GemmKind,
        /// Rows of the result.
        m: u32,
        /// Columns of the result.
        n: u32,
        /// Length of the summed dimension.
        k: u32,
        /// Number of products.
        batch: u32,
    },
    /// Copy this many bytes from the host.
    Upload(usize),
    /// Copy this many bytes to the host, which waits for them.
    Download(usize),
    /// Copy this many bytes within the GPU.
    Copy(usize),
}
