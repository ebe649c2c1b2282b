//! The Python extension `compiler._runtime`, which runs plans on the CPU.

#![forbid(unsafe_code)]

use pyo3::pymodule;

#[pymodule]
mod _runtime {
    #[pymodule_export]
    use candle_plan_python::functions::{
        allocated, capsule, check, checked_inputs, error_kinds, infer, keeps_pages, levels, number_inputs, ops,
        placed_steps, plan_json, schema, usable_processors, verify,
    };
    #[pymodule_export]
    use candle_plan_python::{Cancel, DeviceArray, Session, State, WeightFile};
    #[pymodule_export]
    use candle_plan_python::{DeviceError, InputError, LimitError, OpError, PlanError, RunError};
    #[pymodule_export]
    const MAX_THREADS: usize = candle_plan_python::MAX_THREADS;
    #[pymodule_export]
    const MOST_RESIZED_AXES: usize = candle_plan_python::MOST_RESIZED_AXES;
    #[pymodule_export]
    const MOST_WINDOW_AXES: usize = candle_plan_python::MOST_WINDOW_AXES;
}
