//! The step that copies a value to a GPU or to the host.

use candle_plan_device::Gpu;

use crate::array::transfer;
pub(crate) use crate::array::transfer::download;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::value::Value;

/// Copies a tensor from the host to a GPU.
///
/// # Errors
/// The value is not a tensor, or the GPU has no room for it.
pub(crate) fn upload(gpu: &Gpu, value: &Value) -> Result<Value> {
    Ok(transfer::upload(gpu, value.tensor()?)?.into())
}

/// The name of a [`Transfer`] step.
pub(crate) const TRANSFER: &str = "Transfer";

/// Copies a tensor to the other side.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub gpu: Gpu,
    /// Whether the tensor is copied to the host, not to the GPU.
    pub to_host: bool,
}

impl Kernel for Transfer {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let value = call.value(0)?;
        let array = value.tensor()?;
        Ok(vec![match (self.to_host, array.is_on_device()) {
            (true, true) => download(array)?.into(),
            (false, false) => upload(&self.gpu, value)?,
            _ => value.clone(), // an input that the caller of the run provided on the device
        }])
    }
}
