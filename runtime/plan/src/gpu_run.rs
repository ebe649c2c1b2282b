//! What a run on a GPU does before its first step and after its last: inputs that lie on the device, and outputs.

use candle_plan_device::{Download, Gpu, Turn};

use crate::array::transfer::{alloc_on_host, upload};
use crate::error::{Error, Result};
use crate::prepare::Executable;
use crate::value::{Array, Value};

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
        let mut home = Downloads::of(&inputs, reads).map_err(|error| self.said(error))?;
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
            let home = Downloads::of(&values, |_| outputs == Outputs::Host).map_err(|error| self.said(error))?;
            Ok((values, home))
        });
        let (told, run) = match run {
            Ok((values, mut home)) => (home.bring(|parts| Ok(turn.finish(parts)?)), Ok((values, home))),
            Err(error) => (turn.finish(Vec::new()).map_err(Error::from), Err(error)),
        };
        match (told, run) {
            (Ok(Some(report)), _) => Err(self.fault(&report)),
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
            Value::Tensor(array) if !array.is_on_device() => Ok(upload(gpu, array)?.into()),
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

/// Tensors of a GPU that come to the host together, so that the GPU is waited for once.
struct Downloads {
    tensors: Vec<Arriving>,
}

struct Arriving {
    /// The value's place among the others.
    at: usize,
    away: Array,
    home: Array,
}

impl Downloads {
    /// The tensors of `values` that lie on a device, where `comes` says so of their place.
    ///
    /// # Errors
    /// There is no memory for them on the host.
    fn of(values: &[Value], comes: impl Fn(usize) -> bool) -> Result<Downloads> {
        let arrival = |(at, value): (usize, &Value)| match value {
            Value::Tensor(away) if away.is_on_device() && comes(at) => {
                Some(alloc_on_host(away).map(|home| Arriving { at, away: away.clone(), home }))
            }
            _ => None,
        };
        Ok(Downloads { tensors: values.iter().enumerate().filter_map(arrival).collect::<Result<_>>()? })
    }

    fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Makes the copies, by `bring`.
    ///
    /// # Errors
    /// What `bring` says.
    fn bring<T>(&mut self, bring: impl FnOnce(Vec<Download>) -> Result<T>) -> Result<T> {
        let parts = self.tensors.iter_mut().map(|Arriving { away, home, .. }| {
            let (buffer, range) = away.in_buffer()?;
            Ok(buffer.part(range.start, home.bytes_mut()?)?)
        });
        bring(parts.collect::<Result<_>>()?)
    }

    /// Puts the copies in the places of the tensors.
    fn put(self, values: &mut [Value]) {
        for Arriving { at, home, .. } in self.tensors {
            values[at] = home.into();
        }
    }
}
