//! The start and the end of a run on a GPU: the copies of inputs and outputs between the device and the host.

use candle_plan_device::{Download, Gpu, Turn};
use candle_plan_kernels::threads::Threads;

use crate::array::transfer::{alloc_on_host, upload};
use crate::error::{Error, Result};
use crate::prepare::Executable;
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
    /// All results go to one place.
    pub fn all(given: Outputs) -> Places {
        Places { given, kept: usize::MAX }
    }

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
        let mut downloads = Downloads::of(&inputs, reads).map_err(|error| self.device_error(error))?;
        if !downloads.is_empty() {
            downloads.transfer(|parts| Ok(gpu.download(parts)?)).map_err(|error| self.device_error(error))?;
            downloads.replace(&mut inputs);
        }
        Ok(inputs)
    }

    /// Waits once, until all work of the run is done, and returns its outputs on the host or the device.
    ///
    /// # Errors
    /// A step's kernel found a fault, the run failed, or the device fails.
    pub(crate) fn leave(&self, gpu: &Gpu, turn: &Turn, run: Result<Vec<Value>>, places: Places) -> Result<Vec<Value>> {
        let run = run.and_then(|values| {
            let values = self.own_on_device(gpu, values, places)?;
            let is_given = |at| places.of(at) == Outputs::Host;
            let downloads = Downloads::of(&values, is_given).map_err(|error| self.device_error(error))?;
            Ok((values, downloads))
        });
        let (finished, run) = match run {
            Ok((values, mut downloads)) => {
                (downloads.transfer(|parts| Ok(turn.finish(parts)?)), Ok((values, downloads)))
            }
            Err(error) => (turn.finish(Vec::new()).map_err(Error::from), Err(error)),
        };
        match (finished, run) {
            (Ok(Some(report)), _) => Err(self.fault(&report)),
            (_, Err(error)) => Err(error),
            (Err(error), Ok(_)) => Err(self.device_error(error)),
            (Ok(None), Ok((mut values, downloads))) => {
                downloads.replace(&mut values);
                Ok(values)
            }
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

/// Tensors of a GPU that are copied to the host together, so that the host waits only once.
struct Downloads {
    tensors: Vec<Pending>,
}

struct Pending {
    /// The index of the value.
    at: usize,
    source: Array,
    target: Array,
}

impl Downloads {
    /// The tensors of `values` that lie on a device, and whose index `is_wanted` selects.
    ///
    /// # Errors
    /// There is not enough memory on the host.
    fn of(values: &[Value], is_wanted: impl Fn(usize) -> bool) -> Result<Downloads> {
        let arrival = |(at, value): (usize, &Value)| match value {
            Value::Tensor(source) if source.is_on_device() && is_wanted(at) => {
                Some(alloc_on_host(source).map(|target| Pending { at, source: source.clone(), target }))
            }
            _ => None,
        };
        Ok(Downloads { tensors: values.iter().enumerate().filter_map(arrival).collect::<Result<_>>()? })
    }

    fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Makes the copies with `copy`.
    ///
    /// # Errors
    /// `copy` fails.
    fn transfer<T>(&mut self, copy: impl FnOnce(Vec<Download>) -> Result<T>) -> Result<T> {
        let parts = self.tensors.iter_mut().map(|Pending { source, target, .. }| {
            let (buffer, range) = source.in_buffer()?;
            Ok(buffer.part(range.start, target.bytes_mut()?)?)
        });
        copy(parts.collect::<Result<_>>()?)
    }

    /// Replaces the tensors by their copies.
    fn replace(self, values: &mut [Value]) {
        for Pending { at, target, .. } in self.tensors {
            values[at] = target.into();
        }
    }
}
