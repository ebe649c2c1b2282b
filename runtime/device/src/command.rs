//! The commands of a run, as a dry run records them.

use crate::gemm::Kind;
use crate::launch::{Grid, Symbol};

/// What a GPU is given to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Launch a kernel.
    Launch(Symbol, Grid),
    /// Multiply `batch` pairs of matrices, `[m, k] · [k, n]`, in the library.
    Multiply {
        /// The types of the elements.
        kind: Kind,
        /// Rows of the result.
        m: u32,
        /// Columns of the result.
        n: u32,
        /// Products that are added up for each of its elements.
        k: u32,
        /// How many products.
        batch: u32,
    },
    /// Copy so many bytes from the host.
    Upload(usize),
    /// Copy so many bytes to the host, which waits for them.
    Download(usize),
    /// Copy so many bytes within the GPU.
    Copy(usize),
}
