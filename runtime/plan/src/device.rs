//! Devices: where values are and steps run.

use candle_plan_device::Gpu;
use candle_plan_kernels::isa::Isa;

use crate::error::{Error, Result};

/// A device that is there.
#[derive(Debug, Clone)]
pub enum Device {
    /// The processor, which is the host itself.
    Cpu,
    /// One with a memory of its own.
    Gpu(Gpu),
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
    /// The device of this name: `cpu`, `cuda` (the first GPU) or `cuda:N`.
    ///
    /// # Errors
    /// [`Error::Device`]: there is none, this build cannot use it, or it lacks the instruction set that was asked for.
    pub fn open(name: &str) -> Result<Device> {
        let refused = |reason: String| Error::Device { device: name.to_string(), reason };
        let ordinal = name.strip_prefix("cuda:").map_or((name == "cuda").then_some(0), |number| number.parse().ok());
        match (name, ordinal) {
            ("cpu", _) => Isa::check().map(|()| Device::Cpu).map_err(refused),
            #[cfg(feature = "emulator")]
            ("emulator", _) => Gpu::emulator().map(Device::Gpu).map_err(|error| refused(error.to_string())),
            #[cfg(feature = "cuda")]
            (_, Some(ordinal)) => Gpu::cuda(ordinal).map(Device::Gpu).map_err(|error| refused(error.to_string())),
            #[cfg(not(feature = "cuda"))]
            (_, Some(_)) => Err(refused("this runtime runs on the processor alone".to_string())),
            _ => Err(refused("it is not known".to_string())),
        }
    }

    /// Waits until all work is done that was given before.
    ///
    /// # Errors
    /// What the device says of it.
    pub fn finish(&self) -> Result<()> {
        match self {
            Device::Cpu => Ok(()),
            Device::Gpu(gpu) => gpu.finish().map_err(|error| self.refused(error.to_string())),
        }
    }

    /// What the device says that is of no step.
    pub(crate) fn refused(&self, reason: String) -> Error {
        Error::Device { device: self.name().to_string(), reason }
    }

    /// The name.
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
    fn a_device_that_is_not_there_is_refused() {
        for (name, reason) in
            [("cuda", "processor alone"), ("cuda:1", "processor alone"), ("cuda:x", "not known"), ("tpu", "not known")]
        {
            let error = Device::open(name).expect_err("no such device").to_string();
            assert!(error.contains(&format!("{name:?}")) && error.contains(reason), "{error}");
        }
    }
}
