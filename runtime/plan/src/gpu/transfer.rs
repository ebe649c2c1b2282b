//! The step that moves a value to a device, or to the host.

use candle_plan_device::Gpu;

use crate::array::transfer;
pub(crate) use crate::array::transfer::download;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::value::Value;

/// A tensor of the host, on a GPU.
///
/// # Errors
/// It is no tensor, or the GPU has no room for it.
pub(crate) fn upload(gpu: &Gpu, value: &Value) -> Result<Value> {
    Ok(transfer::upload(gpu, value.tensor()?)?.into())
}

/// The name of the step that [`Transfer`] runs.
pub(crate) const TRANSFER: &str = "Transfer";

/// Moves a tensor to the other side.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub gpu: Gpu,
    /// Whether it goes to the host.
    pub home: bool,
}

impl Kernel for Transfer {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let value = call.value(0)?;
        let array = value.tensor()?;
        Ok(vec![match (self.home, array.is_on_device()) {
            (true, true) => download(array)?.into(),
            (false, false) => upload(&self.gpu, value)?,
            _ => value.clone(), // an input that the caller of the run gave on the device
        }])
    }
}
