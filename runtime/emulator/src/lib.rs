//! The Python extension `compiler._runtime_emulator`, which runs plans on a GPU that the CPU emulates, for tests.

#![deny(unsafe_code)]

#[allow(unsafe_code)] // Reads the elements of NumPy arrays, which Python owns.
#[path = "../../src/arrays.rs"]
mod arrays;
#[allow(unsafe_code)] // Borrows tensors of other Python libraries, which own the memory.
#[path = "../../src/device_arrays.rs"]
mod device_arrays;
#[allow(unsafe_code)] // Reads and writes DLPack's structures, and calls their function pointers.
#[path = "../../src/dlpack.rs"]
mod dlpack;
#[path = "../../src/errors.rs"]
mod errors;
#[allow(unsafe_code)] // Maps plan files, whose users promise not to change them.
#[path = "../../src/files.rs"]
mod files;
#[allow(unsafe_code)] // States what mimalloc does with free pages.
#[path = "../../src/memory.rs"]
mod memory;
#[path = "../../src/outputs.rs"]
mod outputs;
#[path = "../../src/session.rs"]
mod session;
#[path = "../../src/state.rs"]
mod state;

use pyo3::pymodule;

#[pymodule]
mod _runtime_emulator {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::device_arrays::DeviceArray;
    #[pymodule_export]
    use super::errors::{DeviceError, InputError, OpError, PlanError, RunError};
    #[pymodule_export]
    use super::session::{Cancel, Session};
    #[pymodule_export]
    use super::state::State;

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        candle_plan_device_emulator::register();
        Ok(())
    }
}
