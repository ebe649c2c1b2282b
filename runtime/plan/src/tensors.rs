//! Candle's tensors: runs take them as inputs without a copy, and outputs become such tensors, on the device of the inputs.

use std::collections::HashMap;

use candle_core::{Device, Module, Storage, Tensor};

use crate::array::backing::bytes_of;
use crate::bail;
use crate::error::{Error, Result};
use crate::lend::{lend_tensor_on_host, Lent};
use crate::request::Request;
use crate::session::Session;
use crate::value::{Array, Value};

impl Session {
    /// [`Session::run_named`] with Candle's tensors.
    ///
    /// A tensor whose elements are in row-major order without gaps is not copied, even if it is a part of a larger
    /// storage. Of another tensor, only its elements are copied. Operations that would write to a tensor in place wait
    /// until the run has ended. An output is not copied, unless it shares its memory with an input, a constant or
    /// another output. Gradients do not pass through a run.
    ///
    /// All inputs are on one device of Candle, and the outputs come back on it. A plan without inputs returns tensors on
    /// the CPU. For tensors on the CPU, a session on a GPU copies the inputs to the GPU and the outputs back. With the
    /// feature `candle-cuda`, the tensors may be on the session's GPU. Then a run copies to the host only what the host
    /// needs: values for steps on the host, and inputs of booleans or of elements of 2 or 4 bits, to check them. Outputs
    /// of steps on the host are copied to the GPU.
    ///
    /// A tensor's type is the [storage dtype](crate::DType::storage_dtype) of the declared type: `U8` for
    /// booleans, for example.
    ///
    /// # Errors
    /// As [`Session::run_named`]; also if a tensor has another type, if the tensors are not on one device, if this device
    /// is neither the CPU nor the session's GPU, or if an output is not a numeric tensor.
    ///
    /// ```
    /// use candle_core::{DType, Device, Tensor};
    /// use candle_plan::Session;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans/v1.plan");
    /// let session = Session::builder(path).build()?;
    /// let x = Tensor::zeros((1, 4), DType::F32, &Device::Cpu)?;
    /// let outputs = session.run_tensors([("x", &x)])?;
    /// assert_eq!(outputs["y"].to_vec2::<f32>()?, [[0.5, 0.5]]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn run_tensors<'a, N: AsRef<str>>(
        &self,
        inputs: impl IntoIterator<Item = (N, &'a Tensor)>,
    ) -> Result<HashMap<String, Tensor>> {
        let inputs: Vec<(N, &Tensor)> = inputs.into_iter().collect();
        let device = device_of(&inputs)?;
        // The guards keep others from writing to the tensors until no value of the run is left.
        let guards: Vec<_> = inputs.iter().map(|(_, tensor)| tensor.storage_and_layout()).collect();
        let lent = inputs.iter().zip(&guards).map(|((name, tensor), (storage, _))| {
            let value = self.borrowed(name.as_ref(), tensor, storage).map_err(|error| match error {
                Error::Op(message) => Error::op(format!("input {:?}: {message}", name.as_ref())),
                other => other,
            });
            Ok((name, value?))
        });
        let lent = self.ordered(lent.collect::<Result<Vec<_>>>()?)?;
        let request = if device.is_cpu() { Request::default() } else { Request::default().on_device() };
        let outputs = self.run_request(lent, &request)?;
        let tensor = |((name, _), value): ((&str, _), Value)| match value {
            Value::Tensor(array) => Ok((name.to_string(), returned(array, &device)?)),
            other => Err(Error::op(format!("output {name:?} is {}, not a numeric tensor", other.describe()))),
        };
        self.outputs().zip(outputs).map(tensor).collect()
    }

    /// The elements of a tensor whose storage is locked, as a value. The value must not outlive the lock.
    fn borrowed(&self, name: &str, tensor: &Tensor, storage: &Storage) -> Result<Value> {
        let Some(dtype) = self.inputs().find(|&(known, _)| known == name).and_then(|(_, kind)| kind.dtype()) else {
            return Ok(Value::None); // The check of the inputs refuses the name.
        };
        let stored = dtype.storage_dtype()?;
        if tensor.dtype() != stored {
            bail!("expected {dtype}, a Candle tensor of {stored:?}, found one of {:?}", tensor.dtype());
        }
        // SAFETY: the layout describes elements in the storage, and the caller drops the value before the lock.
        unsafe {
            match storage {
                Storage::Cpu(storage) => {
                    let start = bytes_of(storage).as_ptr().expose_provenance() as u64;
                    lend_tensor_on_host(Lent::of(tensor, start, dtype, Box::new(())))
                }
                #[cfg(feature = "candle-cuda")]
                Storage::Cuda(storage) => self.borrowed_on_gpu(tensor, storage, dtype),
                _ => bail!("the tensor is on {:?}: bring it to the CPU with Tensor::to_device", tensor.device()),
            }
        }
    }
}

/// The device that all inputs are on: the CPU if there are none.
fn device_of<N: AsRef<str>>(inputs: &[(N, &Tensor)]) -> Result<Device> {
    let Some((first, tensor)) = inputs.first() else { return Ok(Device::Cpu) };
    let device = tensor.device();
    let Some((name, other)) = inputs.iter().find(|(_, other)| !other.device().same_device(device)) else {
        return Ok(device.clone());
    };
    let names = (first.as_ref(), name.as_ref());
    let [one, two] = [device, other.device()].map(|device| format!("{:?}", device.location()));
    let places = if one == two { format!("two devices of Candle at {one}") } else { format!("{one} and {two}") };
    bail!("inputs {:?} and {:?} are on {places}: bring them to one device with Tensor::to_device", names.0, names.1)
}

/// An output as a tensor on the device of the inputs.
fn returned(array: Array, device: &Device) -> Result<Tensor> {
    match device {
        #[cfg(feature = "candle-cuda")]
        Device::Cuda(device) => {
            let stored = array.dtype().storage_dtype()?;
            array.into_cuda(device, stored)
        }
        _ => array.into_candle(),
    }
}

/// A plan with one input and one output as a layer of a model of Candle.
impl Module for Session {
    /// # Errors
    /// As [`Session::run_tensors`]; also if the plan has not one input and one output.
    fn forward(&self, xs: &Tensor) -> candle_core::Result<Tensor> {
        let names: Vec<&str> = self.inputs().chain(self.outputs()).map(|(name, _)| name).collect();
        let ([input, _], 1) = (&names[..], self.inputs().count()) else {
            let (inputs, outputs) = (self.inputs().count(), self.outputs().count());
            candle_core::bail!("a layer has one input and one output, and the plan has {inputs} and {outputs}");
        };
        let outputs = self.run_tensors([(input, xs)]).map_err(candle_core::Error::wrap)?;
        outputs.into_values().next().ok_or_else(|| candle_core::Error::msg("the plan returned nothing"))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::*;

    const PLAN: &[u8] = include_bytes!("../tests/plans/rows.plan");

    fn session() -> Session {
        Session::from_bytes(PLAN).threads(1).build().expect("a sound plan")
    }

    fn x(rows: usize) -> Tensor {
        let numbers: Vec<f32> = (0..rows * 4).map(|at| at as f32 / 3.0).collect();
        Tensor::from_vec(numbers, (rows, 4), &Device::Cpu).expect("as many numbers")
    }

    fn rows(tensor: &Tensor) -> Vec<Vec<f32>> {
        tensor.to_vec2().expect("float32 of two dimensions")
    }

    #[test]
    fn views_have_the_results_of_their_rows() {
        let (session, all) = (session(), x(6));
        let wanted = rows(&session.forward(&all).expect("it runs"));
        for (start, length) in [(0, 6), (2, 3), (5, 1), (1, 0)] {
            let part = all.narrow(0, start, length).expect("rows");
            assert_eq!(rows(&session.forward(&part).expect("it runs")), wanted[start..start + length]);
        }
        let turned = all.t().and_then(|t| t.contiguous()).and_then(|t| t.t()).expect("a view with strides");
        assert!(!turned.is_contiguous());
        assert_eq!(rows(&session.forward(&turned).expect("it runs")), wanted);
    }

    #[test]
    fn contiguous_tensors_are_lent_and_others_copied() {
        let (session, all) = (session(), x(6));
        let part = all.narrow(0, 2, 3).expect("rows");
        let turned = all.t().and_then(|t| t.contiguous()).and_then(|t| t.t()).expect("a view with strides");
        for (tensor, is_lent) in [(&all, true), (&part, true), (&turned, false)] {
            let (storage, layout) = tensor.storage_and_layout();
            let Storage::Cpu(cpu) = &*storage else { panic!("not on the CPU") };
            let value = session.borrowed("x", tensor, &storage).expect("it is float32");
            let found = value.tensor().and_then(|array| array.read::<f32>()).expect("numbers").as_ptr();
            let start = bytes_of(cpu).as_ptr().addr() + 4 * layout.start_offset();
            assert_eq!(found.addr() == start, is_lent, "{layout:?}");
        }
    }

    #[test]
    fn other_tensors_are_refused() {
        let session = session();
        let wrong = |tensor: &Tensor| session.forward(tensor).expect_err("it is wrong").to_string();
        let integers = x(1).to_dtype(DType::I64).expect("numbers");
        let said = "input \"x\": expected float32, a Candle tensor of F32, found one of I64";
        assert!(wrong(&integers).starts_with(said), "{}", wrong(&integers));
        let narrow = x(1).narrow(1, 0, 3).expect("columns");
        let said = "input \"x\": expected float32 [batch, 4], found float32 [1, 3]";
        assert!(wrong(&narrow).starts_with(said), "{}", wrong(&narrow));
        let error = session.run_tensors([("z", &x(1))]).expect_err("there is no such input").to_string();
        assert_eq!(error, "input \"z\": expected one of [\"x\"], found another name");
    }
}
