//! The start and the end of a run on a GPU: the copies of inputs and outputs between the device and the host.

use candle_plan_device::{Gpu, Turn};
use candle_plan_kernels::threads::Threads;

use crate::array::transfer::{downloaded, upload};
use crate::error::{Error, Result};
use crate::executable::Executable;
use crate::value::{Array, Value};

/// Where the tensors among a run's outputs go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outputs {
    /// To the host.
    Host,
    /// To the session's device, each in memory of its own. For the CPU, this is the host.
    Device,
}

/// Where each result of a run goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    /// The place of the results that the caller receives.
    pub given: Outputs,
    /// The index of the first result that stays on the session's device instead, where the caller's state keeps it.
    pub kept: usize,
}

impl Places {
    fn of(self, at: usize) -> Outputs {
        if at < self.kept {
            self.given
        } else {
            Outputs::Device
        }
    }
}

impl Executable {
    /// Copies the inputs that host steps read from the device to the host. The other inputs stay where they are.
    ///
    /// # Errors
    /// An input lies on another device, or the device fails.
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
        let sources = on_device(&inputs, reads);
        if !sources.is_empty() {
            let copies = downloaded(&sources, |parts| Ok(gpu.download(parts)?));
            replace(&mut inputs, copies.map_err(|error| self.device_error(error))?);
        }
        Ok(inputs)
    }

    /// Waits once, until all work of the run is done, and returns its outputs on the host or the device.
    ///
    /// # Errors
    /// A step's kernel found a fault, the run failed, or the device fails.
    pub(crate) fn leave(&self, gpu: &Gpu, turn: &Turn, run: Result<Vec<Value>>, places: Places) -> Result<Vec<Value>> {
        let mut finished = None;
        let run = run.and_then(|values| {
            let mut values = self.own_on_device(gpu, values, places)?;
            let sources = on_device(&values, |at| places.of(at) == Outputs::Host);
            let copies = downloaded(&sources, |parts| {
                finished = Some(turn.finish(parts));
                Ok(())
            });
            replace(&mut values, copies.map_err(|error| self.device_error(error))?);
            Ok(values)
        });
        let finished = finished.unwrap_or_else(|| turn.finish(Vec::new()));
        match (finished, run) {
            (Ok(Some(report)), _) => Err(self.fault(&report)),
            (_, Err(error)) => Err(error),
            (Err(error), Ok(_)) => Err(self.device_error(error.into())),
            (Ok(None), Ok(values)) => Ok(values),
        }
    }

    /// Puts the tensors that stay on the device there. The caller may write to those that it receives, so each of them has
    /// memory of its own. Nobody writes to those that a state keeps, so they may share memory of the runtime.
    fn own_on_device(&self, gpu: &Gpu, values: Vec<Value>, places: Places) -> Result<Vec<Value>> {
        let own = |(at, value): (usize, Value)| match &value {
            _ if places.of(at) == Outputs::Host => Ok(value),
            Value::Tensor(array) if !array.is_on_device() => Ok(upload(gpu, array)?.into()),
            Value::Tensor(array) if at < places.kept && !array.is_alone() || at >= places.kept && !array.is_whole() => {
                Ok(array.copy_on_device(gpu)?.into())
            }
            _ => Ok(value),
        };
        let packed = |(at, value): (usize, Value)| match value {
            Value::Grown(grown) if at < places.kept => Ok((at, grown.to_array(&Threads::serial())?.into())),
            value => Ok((at, value)),
        };
        let owned = values.into_iter().enumerate().map(|value| packed(value).and_then(own));
        owned.collect::<Result<_>>().map_err(|error| self.device_error(error))
    }

    /// Turns a message of the device into an error that belongs to no step.
    fn device_error(&self, error: Error) -> Error {
        match error {
            Error::Op(reason) | Error::Gpu(reason) => self.device.refused(reason),
            error => error,
        }
    }
}

/// Returns the tensors of `values` that are on a device, and whose index `is_wanted` selects, with these indices.
fn on_device(values: &[Value], is_wanted: impl Fn(usize) -> bool) -> Vec<(usize, Array)> {
    let tensor = |(at, value): (usize, &Value)| match value {
        Value::Tensor(source) if source.is_on_device() && is_wanted(at) => Some((at, source.clone())),
        _ => None,
    };
    values.iter().enumerate().filter_map(tensor).collect()
}

/// Replaces values by their copies.
fn replace(values: &mut [Value], copies: Vec<(usize, Array)>) {
    for (at, copy) in copies {
        values[at] = copy.into();
    }
}
