//! Devices: where values are and steps run.

use candle_plan_device::Gpu;
use candle_plan_kernels::isa::Isa;

use crate::error::{Error, Result};

/// An available device.
#[derive(Debug, Clone)]
pub enum Device {
    /// The processor, which is the host itself.
    Cpu,
    /// A GPU, with memory of its own.
    Gpu(Gpu),
}

/// Why a step runs on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It belongs there: control flow, strings, sequences, arithmetic on sizes.
    Nature,
    /// The device has no kernel for it.
    NoKernel,
}

impl Device {
    /// Opens the device of this name: `cpu`, or a GPU of a [registered](candle_plan_device::register) backend, such as `cuda`
    /// (the first GPU) or `cuda:N`.
    ///
    /// # Errors
    /// [`Error::Device`]: it does not exist, the program has no such backend, or it lacks the requested instruction set.
    pub fn open(name: &str) -> Result<Device> {
        let refused = |reason: String| Error::Device { device: name.to_string(), reason };
        if name == Device::Cpu.name() {
            return Isa::check().map(|()| Device::Cpu).map_err(refused);
        }
        let (backend, ordinal) = name.split_once(':').unwrap_or((name, "0"));
        let opened = ordinal.parse().ok().map(|ordinal| candle_plan_device::open(backend, ordinal));
        match opened {
            Some(Some(gpu)) => gpu.map(Device::Gpu).map_err(|error| refused(error.to_string())),
            Some(None) if backend == "cuda" => Err(refused("this runtime runs on the processor alone".to_string())),
            _ => Err(refused("it is not known".to_string())),
        }
    }

    /// Waits until the device has done all work that it was given.
    ///
    /// # Errors
    /// The device fails.
    pub fn finish(&self) -> Result<()> {
        match self {
            Device::Cpu => Ok(()),
            Device::Gpu(gpu) => gpu.finish().map_err(|error| self.refused(error.to_string())),
        }
    }

    /// An error of the device that belongs to no step.
    pub(crate) fn refused(&self, reason: String) -> Error {
        Error::Device { device: self.name().to_string(), reason }
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        match self {
            Device::Cpu => "cpu",
            Device::Gpu(gpu) => gpu.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unavailable_device_is_rejected() {
        for (name, reason) in
            [("cuda", "processor alone"), ("cuda:1", "processor alone"), ("cuda:x", "not known"), ("tpu", "not known")]
        {
            let error = Device::open(name).expect_err("no such device").to_string();
            assert!(error.contains(&format!("{name:?}")) && error.contains(reason), "{error}");
        }
    }
}
