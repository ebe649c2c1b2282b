//! A GPU: its memory, and the kernels that run there.
//!
//! Kernels lie in `kernels/`, a module a file, each written once: for CUDA, and as C++ for the [emulator], where tests run
//! them. This crate knows addresses and bytes alone; what they mean is said by those who launch.

mod backend;
#[cfg(feature = "cuda")]
mod cuda;
mod dry_run;
#[cfg(feature = "emulator")]
mod emulator;
mod gemm;

pub use backend::{Buffer, Error, Fault, Gpu, Grid, Result, Symbol, Turn, BLOCK, MOST_BLOCKS};
pub use dry_run::Command;
pub use gemm::{Gemm, Kind, Matrix};
