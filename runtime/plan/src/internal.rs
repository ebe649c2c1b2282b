//! The parts of this crate that the other crates of its workspace use.
//!
//! These names are no part of the public interface: any release may change or remove them, without a new major version. A
//! program outside the workspace uses the names at the root of the crate.

pub use crate::array::Array;
pub use crate::candle_device::Chosen;
pub use crate::custom::{Attribute, CustomOps};
pub use crate::gpu::placements;
pub use crate::gpu_run::Outputs;
pub use crate::interrupt::Stop;
pub use crate::kernel::Memory;
pub use crate::lend::{lend_on_host, lend_tensor_on_host, Lent};
pub use crate::ops::resize::MOST_AXES as MOST_RESIZED_AXES;
pub use crate::ops::window::MOST_AXES as MOST_WINDOW_AXES;
pub use crate::plan::schema;
pub use crate::read::{check_bits, describe, read};
pub use crate::session::{placed_steps, usable_processors, Settings, MAX_THREADS};
pub use crate::value::{copied, Strings};
pub use crate::verify::verify;
pub use crate::weights::Stored;

/// The types of an operator's outputs, for a compiler that writes plans.
pub mod infer {
    pub use crate::infer::{check, checked_inputs, infer, number_inputs};
}
