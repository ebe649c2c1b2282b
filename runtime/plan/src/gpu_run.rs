//! What a run on a GPU does before its first step and after its last: inputs that lie on the device, and outputs.

use candle_plan_device::{Gpu, Turn};

use crate::error::{Error, Result};
use crate::gpu::{upload, Homecoming};
use crate::prepare::Executable;
use crate::value::Value;

/// Where the tensors among a run's outputs are to lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outputs {
    /// On the host.
    Host,
    /// On the session's device, each in memory of its own. The processor is its own host.
    Device,
}

impl Executable {
    /// The inputs, of which those that steps of the host read lie on the host.
    ///
    /// # Errors
    /// One lies on another device, or what the device says.
    pub(crate) fn enter(&self, gpu: &Gpu, mut inputs: Vec<Value>) -> Result<Vec<Value>> {
        for ((name, kind), value) in self.inputs().zip(&inputs) {
            if let Value::Tensor(array) = value {
                if array.is_on_device() && array.device() != gpu.name() {
                    let (name, expected) = (name.to_string(), format!("{kind} on {} or the host", gpu.name()));
                    let found = format!("{} on {}", value.describe(), array.device());
                    return Err(Error::Input { name, expected, found });
                }
            }
        }
        let reads = |at: usize| self.reads_on_host.get(at).copied().unwrap_or(true);
        let mut home = Homecoming::of(&inputs, reads).map_err(|error| self.said(error))?;
        if !home.is_empty() {
            home.bring(|parts| Ok(gpu.download(parts)?)).map_err(|error| self.said(error))?;
            home.put(&mut inputs);
        }
        Ok(inputs)
    }

    /// The outputs of a run where they are to lie, when all of its work is done: it waits once.
    ///
    /// # Errors
    /// That of a step whose kernel found a fault, the run's, or what the device says.
    pub(crate) fn leave(
        &self,
        gpu: &Gpu,
        turn: &Turn,
        run: Result<Vec<Value>>,
        outputs: Outputs,
    ) -> Result<Vec<Value>> {
        let run = run.and_then(|values| {
            let values = if outputs == Outputs::Device { self.settled(gpu, values)? } else { values };
            let home = Homecoming::of(&values, |_| outputs == Outputs::Host).map_err(|error| self.said(error))?;
            Ok((values, home))
        });
        let (told, run) = match run {
            Ok((values, mut home)) => (home.bring(|parts| Ok(turn.finish(parts)?)), Ok((values, home))),
            Err(error) => (turn.finish(Vec::new()).map_err(Error::from), Err(error)),
        };
        match (told, run) {
            (Ok(Some(mark)), _) => Err(self.fault(mark)),
            (_, Err(error)) => Err(error),
            (Err(error), Ok(_)) => Err(self.said(error)),
            (Ok(None), Ok((mut values, home))) => {
                home.put(&mut values);
                Ok(values)
            }
        }
    }

    /// The outputs with every tensor on the device, in memory that is its own: the caller may write there.
    fn settled(&self, gpu: &Gpu, values: Vec<Value>) -> Result<Vec<Value>> {
        let settled = |value: Value| match &value {
            Value::Tensor(array) if !array.is_on_device() => upload(gpu, &value),
            Value::Tensor(array) if !array.is_alone() => Ok(array.copy_on_device(gpu)?.into()),
            _ => Ok(value),
        };
        values.into_iter().map(settled).collect::<Result<_>>().map_err(|error| self.said(error))
    }

    /// What the device says that is of no step.
    fn said(&self, error: Error) -> Error {
        match error {
            Error::Op(reason) => self.device.refused(reason),
            error => error,
        }
    }
}
