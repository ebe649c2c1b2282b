//! A GPU: its memory and its kernels.
//!
//! The kernels are in `kernels/`, one module per file. Each is written once. The crate `candle-plan-device-cuda` compiles
//! them for NVIDIA's GPUs, and `candle-plan-device-emulator` compiles them as C++ and runs them in tests. These crates
//! implement the trait [`Backend`]. This crate knows only addresses and bytes; the caller of a launch defines their
//! meaning.

// The derives name this crate, also in the crate itself.
extern crate self as candle_plan_device;

mod backend;
mod backends;
mod buffer;
mod command;
mod dry_run;
mod error;
mod faults;
mod gemm;
mod gpu;
mod launch;
mod memory;
mod mirror;
#[cfg(test)]
mod testing;
mod turn;

pub use backend::Backend;
pub use backends::{backends, open, register, Open};
pub use buffer::Buffer;
pub use command::Command;
pub use error::{Error, Result};
pub use faults::{Fault, Report};
pub use gemm::{Gemm, GemmKind, Matrix};
pub use gpu::Gpu;
pub use launch::{Grid, Symbol, BLOCK, MOST_BLOCKS};
pub use memory::{Download, Memory, Owner};
pub use mirror::{is_mirror, Mirror};
pub use turn::Turn;
