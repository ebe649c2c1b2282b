//! The parts of the Python extensions, which only convert arrays and errors.
//!
//! An extension is a crate of its own, which makes a Python module of these parts: `compiler._runtime` for the CPU, and
//! `compiler._runtime_cuda` and `compiler._runtime_emulator`, which register the backend of a GPU.

#![deny(unsafe_code)]

#[allow(unsafe_code)] // Reads the elements of NumPy arrays, which Python owns.
mod arrays;
mod custom;
#[allow(unsafe_code)] // Borrows tensors of other Python libraries, which own the memory.
mod device_arrays;
#[allow(unsafe_code)] // Reads and writes DLPack's structures, and calls their function pointers.
mod dlpack;
mod errors;
#[allow(unsafe_code)] // Maps plan files, whose users promise not to change them.
mod files;
pub mod functions;
#[allow(unsafe_code)] // Allocates with mimalloc, and asks it what it does with free pages.
mod memory;
mod outputs;
mod session;
mod state;
mod weights;

pub use candle_plan::internal::{MAX_THREADS, MOST_RESIZED_AXES, MOST_WINDOW_AXES};
pub use device_arrays::DeviceArray;
pub use errors::{DeviceError, InputError, LimitError, OpError, PlanError, RunError};
pub use session::{Cancel, Session};
pub use state::State;
pub use weights::WeightFile;
