//! Values go to a device and come back.

use candle_plan_device::Gpu;

use crate::by_width;
use crate::error::Result;
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::types::Type;
use crate::value::{Array, Value};
use crate::words;

/// A tensor of the host, on a GPU.
///
/// # Errors
/// It is no tensor, or the GPU has no room for it.
pub(crate) fn upload(gpu: &Gpu, value: &Value) -> Result<Value> {
    let array = value.tensor()?;
    let bytes = array.bytes_on_host()?;
    Ok(Array::on_device(gpu.uploaded(bytes)?, array.dims(), array.dtype())?.into())
}

/// A tensor of a GPU, on the host.
///
/// # Errors
/// There is no memory for it, or what the GPU says, also of steps before, which it may still have been computing.
pub(crate) fn download(value: &Value) -> Result<Value> {
    fn downloaded<W: words::Word>(array: &Array) -> Result<Array> {
        let mut words = words::room::<W>(array.dims())?;
        array.download(bytemuck::cast_slice_mut(&mut words))?;
        words::array(words, array.dims(), array.dtype())
    }
    let array = value.tensor()?;
    Ok(by_width!(array.dtype(), W => downloaded::<W>(array))?.into())
}

/// Moves a tensor to the other side.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub gpu: Gpu,
    /// Whether it goes to the host.
    pub home: bool,
}

impl Kernel for Transfer {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        Ok(vec![inputs.get(0)?.clone()])
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let value = call.value(0)?;
        Ok(vec![if self.home { download(value)? } else { upload(&self.gpu, value)? }])
    }
}
