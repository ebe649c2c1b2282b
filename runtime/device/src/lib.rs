//! A GPU: its memory, and the kernels that run there.
//!
//! Kernels lie in `kernels/`, a module a file, each written once: for CUDA, and as C++ for the [emulator], where tests run
//! them. This crate knows addresses and bytes alone; what they mean is said by those who launch.

// A dry run copies nothing: it reads no address.
#![cfg_attr(not(any(feature = "cuda", feature = "emulator")), allow(dead_code))]

mod backend;
mod buffer;
mod command;
#[cfg(feature = "cuda")]
mod cuda;
mod dry_run;
#[cfg(feature = "emulator")]
mod emulator;
mod error;
mod faults;
mod gemm;
mod gpu;
mod launch;
mod memory;
mod turn;

pub use buffer::Buffer;
pub use command::Command;
pub use error::{Error, Result};
pub use faults::{Fault, Report};
pub use gemm::{Gemm, Kind, Matrix};
pub use gpu::Gpu;
pub use launch::{Grid, Symbol, BLOCK, MOST_BLOCKS};
pub use memory::Download;
pub use turn::Turn;
