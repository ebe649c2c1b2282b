//! Devices: where values lie and steps run.
//!
//! What is given to a run, and what it gives, lies on the host. With another device than the processor,
//! [prepare](crate::prepare) places every step: an op says with [`Kernel::on_device`] how it runs there, and steps that
//! move values stand where a value is needed on the other side.

use candle_core::backend::{BackendDevice, BackendStorage};
use candle_core::{CudaDevice, CudaStorage, DType as Carrier, Error as Candle, Storage};
use candle_plan_kernels::isa::Isa;
use half::{bf16, f16};

use crate::error::{Error, Result};
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::types::Type;
use crate::value::{Array, Value};
#[cfg(test)]
use crate::words;

/// A device that is there.
#[derive(Debug, Clone)]
pub enum Device {
    /// The processor, which is the host itself.
    Cpu,
    /// One of NVIDIA's.
    Cuda(CudaDevice),
    /// The processor again, as if its memory were another: what tests place steps on.
    #[cfg(test)]
    StandIn,
}

/// How an op runs on a device that is not the host.
pub enum OnDevice {
    /// Not at all, by its nature: what it does concerns the host.
    Host,
    /// Not yet: there is no kernel.
    NoKernel,
    /// By its own `run`, on whichever side input 0 lies: it gives a view.
    View,
    /// By this kernel.
    Kernel(Box<dyn Kernel>),
}

/// What an op needs of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The elements, where the op runs.
    Elements,
    /// The elements, on the host wherever the op runs: axes, sizes and the like.
    Numbers,
    /// The dimensions alone.
    Dims,
}

/// Why a step runs on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It belongs there: control flow, texts, sequences, arithmetic of sizes.
    Nature,
    /// The device has no kernel for it.
    NoKernel,
}

impl Device {
    /// The device of this name, "cpu" or "cuda" (the first of its kind).
    ///
    /// # Errors
    /// [`Error::Device`]: there is none, this build cannot use it, or it lacks the instruction set that was asked for.
    pub fn open(name: &str) -> Result<Device> {
        let refused = |reason: String| Error::Device { device: name.to_string(), reason };
        match name {
            "cpu" => Isa::check().map(|()| Device::Cpu).map_err(refused),
            "cuda" => match CudaDevice::new(0) {
                Ok(device) => Ok(Device::Cuda(device)),
                Err(Candle::NotCompiledWithCudaSupport) => {
                    Err(refused("this runtime runs on the processor alone".to_string()))
                }
                Err(error) => Err(refused(Error::from(error).to_string())),
            },
            _ => Err(refused("it is not known".to_string())),
        }
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Cuda(_) => "cuda",
            #[cfg(test)]
            Device::StandIn => "stand-in",
        }
    }

    /// A value of the host, on the device.
    ///
    /// # Errors
    /// The device has no room for it.
    pub fn upload(&self, value: &Value) -> Result<Value> {
        match self {
            Device::Cpu => Ok(value.clone()),
            Device::Cuda(device) => {
                let array = value.tensor()?;
                Ok(array.placed(Storage::Cuda(uploaded(device, array)?)).into())
            }
            #[cfg(test)]
            Device::StandIn => Ok(words::copy(value.tensor()?)?.into()),
        }
    }

    /// A value of the device, on the host.
    ///
    /// # Errors
    /// What the device says; also of steps before, which it may still have been computing.
    pub fn download(&self, value: &Value) -> Result<Value> {
        match self {
            Device::Cpu => Ok(value.clone()),
            Device::Cuda(_) => {
                let home = value.tensor()?.moved(|storage| match storage {
                    Storage::Cuda(storage) => Ok(Storage::Cpu(storage.to_cpu_storage()?)),
                    _ => Err(Error::op("the tensor is not on the device")),
                });
                Ok(home?.into())
            }
            #[cfg(test)]
            Device::StandIn => Ok(words::copy(value.tensor()?)?.into()),
        }
    }
}

/// The elements of a tensor of the host, from where they lie.
fn uploaded(device: &CudaDevice, array: &Array) -> Result<CudaStorage> {
    Ok(match array.dtype().carrier()? {
        Carrier::I16 => device.storage_from_slice(array.bits::<i16>()?)?,
        Carrier::I32 => device.storage_from_slice(array.bits::<i32>()?)?,
        Carrier::U32 => device.storage_from_slice(array.bits::<u32>()?)?,
        Carrier::I64 => device.storage_from_slice(array.bits::<i64>()?)?,
        Carrier::F16 => device.storage_from_slice(array.bits::<f16>()?)?,
        Carrier::BF16 => device.storage_from_slice(array.bits::<bf16>()?)?,
        Carrier::F32 => device.storage_from_slice(array.bits::<f32>()?)?,
        Carrier::F64 => device.storage_from_slice(array.bits::<f64>()?)?,
        _ => device.storage_from_slice(array.bits::<u8>()?)?,
    })
}

/// Moves a tensor to the other side.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub device: Device,
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
        Ok(vec![if self.home { self.device.download(value)? } else { self.device.upload(value)? }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_is_refused() {
        for (name, reason) in [("cuda", "processor alone"), ("tpu", "not known"), ("", "not known")] {
            let error = Device::open(name).expect_err("no such device").to_string();
            assert!(error.contains(&format!("{name:?}")) && error.contains(reason), "{error}");
        }
    }
}
