//! Memory of candle-plan: buffers whose size a model decides, the budget of a run, mapped files, and an allocator for
//! tensors. Values and kernels use it. It knows neither.

pub mod allocator;
pub mod buffer;
pub mod machine;
pub mod mapping;
pub mod uninit;
