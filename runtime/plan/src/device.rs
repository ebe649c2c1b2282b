//! Devices: where values are and steps run.

use candle_plan_device::Gpu;
use candle_plan_kernels::isa::Isa;

use crate::error::{Error, Result};

/// An available device.
#[derive(Debug, Clone)]
pub(crate) enum Device {
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
        let is_number = !ordinal.is_empty() && ordinal.bytes().all(|digit| digit.is_ascii_digit());
        let Some(ordinal) = ordinal.parse().ok().filter(|_| is_number) else {
            return Err(refused(format!("{ordinal:?} is not the number of a GPU")));
        };
        match candle_plan_device::open(backend, ordinal) {
            Some(gpu) => gpu.map(Device::Gpu).map_err(|error| refused(error.to_string())),
            None => Err(refused(without_backend(backend))),
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

/// The sentence for a device whose backend the program lacks, with the remedy.
fn without_backend(backend: &str) -> String {
    let package = match backend {
        "cuda" => "candle-plan-device-cuda, with its feature `kernels`",
        "emulator" => "candle-plan-device-emulator",
        _ => {
            let known = [vec!["cpu"], candle_plan_device::backends()].concat();
            return format!("the program has no backend for it: its devices are {}", known.join(", "));
        }
    };
    format!("the program has no backend for it: add the crate {package}, and call its `register()` first")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unavailable_device_is_rejected() {
        let crates =
            "the program has no backend for it: add the crate candle-plan-device-cuda, with its feature `kernels`";
        for (name, reason) in [
            ("cuda", crates),
            ("cuda:1", crates),
            ("cuda:x", "\"x\" is not the number of a GPU"),
            ("cuda:+1", "\"+1\" is not the number of a GPU"),
            ("cuda:", "\"\" is not the number of a GPU"),
            ("tpu", "the program has no backend for it: its devices are cpu"),
            ("cpu:0", "the program has no backend for it: its devices are cpu"),
        ] {
            let error = Device::open(name).expect_err("no such device").to_string();
            assert!(error.contains(&format!("{name:?}: {reason}")), "{error}");
        }
    }

    #[test]
    fn a_registered_backend_opens_its_own_devices_alone() {
        candle_plan_device_emulator::register();
        assert_eq!(Device::open("emulator").expect("it is registered").name(), "emulator");
        let error = Device::open("emulator:7").expect_err("there is one").to_string();
        assert!(error.ends_with("there is no GPU 7: the emulator is one, number 0"), "{error}");
    }
}
