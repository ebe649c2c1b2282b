//! Executes plans that `candle-compiler` wrote, on [candle](candle_core).
//!
//! One line of data flow: bytes are [read], [verified](verify), [prepared](prepare) and [executed](execute).

#![deny(unsafe_code)]

mod array;
pub mod axes;
pub mod broadcast;
#[allow(unsafe_code)] // Maps plan files, which the caller promises not to change.
pub mod builder;
#[cfg(feature = "candle-cuda")]
#[allow(unsafe_code)] // Lends Candle's tensors, and fills those that it allocates.
pub mod candle_tensors;
pub mod constants;
mod cpu;
pub mod custom;
pub mod device;
pub mod dry_run;
pub mod dtype;
mod epilogue;
pub mod error;
pub mod execute;
mod extent;
pub mod form;
#[allow(unsafe_code)] // Launches kernels, which trust addresses and sizes.
pub mod gpu;
pub mod gpu_run;
mod growing;
pub mod ids;
pub mod infer;
pub mod inputs;
pub mod inspect;
pub mod interrupt;
pub mod kernel;
pub mod layout;
#[allow(unsafe_code)] // Reads memory that belongs to the caller.
pub mod lend;
#[allow(unsafe_code)] // Maps plan files, which the caller promises not to change.
mod mapped;
mod memory;
pub mod movable;
mod newer;
mod operands;
pub mod operator;
pub mod ops;
pub mod pattern;
pub mod plan;
pub mod prepare;
pub mod profile;
pub mod read;
pub mod request;
pub mod session;
mod shared;
mod size;
mod slots;
pub mod stack;
pub mod state;
#[cfg(test)]
#[path = "../tables.rs"]
mod tables;
#[allow(unsafe_code)] // Lends Candle's tensors during a run.
mod tensors;
#[cfg(test)]
pub mod testing;
pub mod text;
pub mod types;
pub mod value;
pub mod verify;
pub mod weights;
pub mod work;
