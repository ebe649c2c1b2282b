//! A GPU: its memory and its kernels.
//!
//! The kernels are in `kernels/`, one module per file. Each is written once, and compiled for CUDA and, as C++, for the
//! [emulator], which runs them in tests. This crate knows only addresses and bytes; the caller of a launch defines
//! their meaning.

// A dry run copies nothing, so it reads no address.
#![cfg_attr(not(any(feature = "cuda", feature = "emulator")), allow(dead_code))]

// The derives name this crate, also in the crate itself.
extern crate self as candle_plan_device;

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
mod mirror;
mod turn;

pub use buffer::Buffer;
pub use command::Command;
pub use error::{Error, Result};
pub use faults::{Fault, Report};
pub use gemm::{Gemm, Kind, Matrix};
pub use gpu::Gpu;
pub use launch::{Grid, Symbol, BLOCK, MOST_BLOCKS};
pub use memory::Download;
pub use mirror::{is_mirror, Mirror};
pub use turn::Turn;
