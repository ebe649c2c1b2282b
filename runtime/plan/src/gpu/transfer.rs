//! Values go to a device and come back.

use candle_plan_device::{Download, Gpu};

use crate::by_width;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::value::{Array, Value};
use crate::words::{self, Word};

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
pub(crate) fn download(array: &Array) -> Result<Array> {
    let mut room = room_on_host(array)?;
    let (buffer, range) = array.in_buffer()?;
    buffer.download(range.start, room.bytes_mut()?)?;
    Ok(room)
}

/// Tensors of a GPU that come to the host together, so that the GPU is waited for once.
pub(crate) struct Homecoming {
    tensors: Vec<Arrival>,
}

struct Arrival {
    /// The value's place among the others.
    at: usize,
    away: Array,
    home: Array,
}

impl Homecoming {
    /// The tensors of `values` that lie on a device, where `comes` says so of their place.
    ///
    /// # Errors
    /// There is no memory for them on the host.
    pub fn of(values: &[Value], comes: impl Fn(usize) -> bool) -> Result<Homecoming> {
        let arrival = |(at, value): (usize, &Value)| match value {
            Value::Tensor(away) if away.is_on_device() && comes(at) => {
                Some(room_on_host(away).map(|home| Arrival { at, away: away.clone(), home }))
            }
            _ => None,
        };
        Ok(Homecoming { tensors: values.iter().enumerate().filter_map(arrival).collect::<Result<_>>()? })
    }

    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Makes the copies, by `bring`.
    ///
    /// # Errors
    /// What `bring` says.
    pub fn bring<T>(&mut self, bring: impl FnOnce(Vec<Download>) -> Result<T>) -> Result<T> {
        let parts = self.tensors.iter_mut().map(|Arrival { away, home, .. }| {
            let (buffer, range) = away.in_buffer()?;
            Ok(buffer.part(range.start, home.bytes_mut()?)?)
        });
        bring(parts.collect::<Result<_>>()?)
    }

    /// Puts the copies in the places of the tensors.
    pub fn put(self, values: &mut [Value]) {
        for Arrival { at, home, .. } in self.tensors {
            values[at] = home.into();
        }
    }
}

/// Room on the host for the elements of a tensor.
fn room_on_host(array: &Array) -> Result<Array> {
    fn room<W: Word>(array: &Array) -> Result<Array> {
        words::array(words::room::<W>(array.dims())?, array.dims(), array.dtype())
    }
    by_width!(array.dtype(), W => room::<W>(array))
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
