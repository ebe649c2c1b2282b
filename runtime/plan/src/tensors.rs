//! Candle's tensors on the CPU: runs take them as inputs without a copy, and outputs become such tensors.

use std::collections::HashMap;

use candle_core::{Module, Storage, Tensor};

use crate::array::backing::bytes_of;
use crate::bail;
use crate::error::{Error, Result};
use crate::lend::{lend_tensor_on_host, Lent};
use crate::session::Session;
use crate::value::Value;

impl Session {
    /// [`Session::run_named`] with Candle's tensors on the CPU.
    ///
    /// A tensor whose elements are in row-major order without gaps is not copied, even if it is a part of a larger
    /// storage. Of another tensor, only its elements are copied. Operations that would write to a tensor in place wait
    /// until the run has ended. An output is not copied, unless it shares its memory with an input, a constant or
    /// another output. Gradients do not pass through a run.
    ///
    /// A tensor's type is the [storage dtype](crate::DType::storage_dtype) of the declared type: `U8` for
    /// booleans, for example.
    ///
    /// # Errors
    /// As [`Session::run_named`]; also if a tensor is not on the CPU or has another type, or if an output is not a
    /// numeric tensor.
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
        // The guards keep others from writing to the tensors until no value of the run is left.
        let guards: Vec<_> = inputs.iter().map(|(_, tensor)| tensor.storage_and_layout()).collect();
        let lent = inputs.iter().zip(&guards).map(|((name, tensor), (storage, _))| {
            let value = self.borrowed(name.as_ref(), tensor, storage).map_err(|error| match error {
                Error::Op(message) => Error::op(format!("input {:?}: {message}", name.as_ref())),
                other => other,
            });
            Ok((name, value?))
        });
        let outputs = self.run_named(lent.collect::<Result<Vec<_>>>()?)?;
        let tensor = |(name, value)| match value {
            Value::Tensor(array) => Ok((name, array.into_candle()?)),
            other => Err(Error::op(format!("output {name:?} is {}, not a numeric tensor", other.describe()))),
        };
        outputs.into_iter().map(tensor).collect()
    }

    /// The elements of a tensor whose storage is locked, as a value. The value must not outlive the lock.
    fn borrowed(&self, name: &str, tensor: &Tensor, storage: &Storage) -> Result<Value> {
        let Storage::Cpu(storage) = storage else {
            bail!("the tensor is on {:?}, and only Session::lend_tensor takes it", tensor.device());
        };
        let Some(dtype) = self.inputs().find(|&(known, _)| known == name).and_then(|(_, kind)| kind.dtype()) else {
            return Ok(Value::None); // The check of the inputs refuses the name.
        };
        let stored = dtype.storage_dtype()?;
        if tensor.dtype() != stored {
            bail!("expected {dtype}, a Candle tensor of {stored:?}, found one of {:?}", tensor.dtype());
        }
        let layout = tensor.layout();
        let start = bytes_of(storage).as_ptr().expose_provenance() + layout.start_offset() * stored.size_in_bytes();
        let lent = Lent {
            address: start as u64,
            dims: layout.dims().to_vec(),
            strides: Some(layout.stride().iter().map(|&stride| stride as isize).collect()),
            dtype,
            stream: None,
            owner: Box::new(()),
        };
        // SAFETY: the layout describes elements in the storage, and the caller drops the value before the lock.
        unsafe { lend_tensor_on_host(lent) }
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
    use candle_core::{DType, Device};

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
