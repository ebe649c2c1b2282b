//! The Python extension `compiler._runtime_emulator`, which runs plans on a GPU that the CPU emulates, for tests.

#![forbid(unsafe_code)]

use pyo3::pymodule;

#[pymodule]
mod _runtime_emulator {
    use pyo3::prelude::*;

    #[pymodule_export]
    use candle_plan_python::{Cancel, DeviceArray, Session, State};
    #[pymodule_export]
    use candle_plan_python::{DeviceError, InputError, OpError, PlanError, RunError};

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        candle_plan_device_emulator::register();
        Ok(())
    }
}
