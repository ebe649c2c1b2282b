//! The step that copies a value to a GPU or to the host.

use candle_plan_device::Gpu;

use crate::array::transfer;
pub(crate) use crate::array::transfer::download;
use crate::bail;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::value::Value;

/// Copies a tensor from the host to a GPU.
///
/// # Errors
/// The value is not a tensor, or the GPU lacks memory for it.
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
        Ok(vec![self.copied(call.value(0)?)?])
    }
}

impl Transfer {
    /// Returns the tensor on the other side. The caller of the run may have provided it there, in a sequence.
    ///
    /// # Errors
    /// The value is not a tensor or is on another GPU, or the copy fails.
    fn copied(&self, value: &Value) -> Result<Value> {
        let array = value.tensor()?;
        Ok(match (self.to_host, array.is_on_device()) {
            (true, true) => download(array)?.into(),
            (false, false) => upload(&self.gpu, value)?,
            (false, true) if array.device() != self.gpu.name() => {
                bail!("the tensor is on {}, not on {} or the host", array.device(), self.gpu.name())
            }
            _ => value.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tensor;

    #[test]
    fn a_tensor_of_another_gpu_is_an_error() {
        let open = || candle_plan_device_emulator::open().expect("enough memory");
        let (step, x) = (Transfer { gpu: open(), to_host: false }, tensor(&[1f32, 2.0], &[2]));
        let [here, there] = [open(), Gpu::dry_run().expect("it needs nothing")].map(|gpu| upload(&gpu, &x));
        assert_eq!(step.copied(&here.expect("enough memory")).expect("the same GPU").dims().expect("a tensor"), [2]);
        let error = step.copied(&there.expect("it needs nothing")).expect_err("another GPU").to_string();
        assert_eq!(error, "the tensor is on dry run, not on emulator or the host");
    }
}
