//! The device that a session is made for: a name, or a device of Candle.

#[cfg(feature = "candle-cuda")]
use candle_core::{backend::BackendDevice, CudaDevice, DeviceLocation};

use crate::device::Device;
use crate::error::{Error, Result};

/// The device that a session is made for.
#[derive(Debug, Clone, Copy)]
pub enum Chosen<'a> {
    /// The device of this name.
    Name(&'a str),
    /// A device of Candle. On a GPU, the session works on its stream.
    Candle(&'a candle_core::Device),
}

impl<'a> From<&'a str> for Chosen<'a> {
    fn from(name: &'a str) -> Chosen<'a> {
        Chosen::Name(name)
    }
}

impl Chosen<'_> {
    /// Opens the device.
    ///
    /// # Errors
    /// As [`Device::open`]; also if no session runs on such a device of Candle.
    pub(crate) fn open(self) -> Result<Device> {
        match self {
            Chosen::Name(name) => Device::open(name),
            Chosen::Candle(candle_core::Device::Cpu) => Device::open(Device::Cpu.name()),
            #[cfg(feature = "candle-cuda")]
            Chosen::Candle(candle_core::Device::Cuda(device)) => on_stream_of(device),
            Chosen::Candle(device) => {
                let reason = "a session runs on the CPU or, with the feature candle-cuda, on an NVIDIA GPU".to_string();
                Err(Error::Device { device: format!("{:?}", device.location()), reason })
            }
        }
    }

    /// The name of the device; `None` for a GPU of Candle.
    pub fn name(&self) -> Option<&str> {
        match self {
            Chosen::Name(name) => Some(name),
            Chosen::Candle(device) => device.is_cpu().then(|| Device::Cpu.name()),
        }
    }

    /// Whether this is the CPU.
    pub fn is_cpu(self) -> bool {
        match self {
            Chosen::Name(name) => name == Device::Cpu.name(),
            Chosen::Candle(device) => device.is_cpu(),
        }
    }
}

/// The name of a GPU of Candle, as [`Device::open`] takes it.
#[cfg(feature = "candle-cuda")]
pub fn name_of(device: &CudaDevice) -> String {
    match device.location() {
        DeviceLocation::Cuda { gpu_id: 0 } => "cuda".to_string(),
        DeviceLocation::Cuda { gpu_id } => format!("cuda:{gpu_id}"),
        other => format!("{other:?}"),
    }
}

/// The GPU of a Candle device, with the work on that device's stream.
///
/// # Errors
/// The GPU does not open, or each thread has a stream of its own.
#[cfg(feature = "candle-cuda")]
fn on_stream_of(device: &CudaDevice) -> Result<Device> {
    /// `CU_STREAM_PER_THREAD`, which means another stream in each thread.
    const PER_THREAD: u64 = 2;
    let (name, stream) = (name_of(device), device.cuda_stream());
    let handle = stream.cu_stream().addr() as u64;
    let refused = |reason: String| Error::Device { device: name.clone(), reason };
    if handle == PER_THREAD {
        let remedy = "make the device with Device::new_cuda_with_stream";
        return Err(refused(format!("a device of Device::new_cuda has another stream in each thread: {remedy}")));
    }
    let Device::Gpu(gpu) = Device::open(&name)? else { return Err(refused("it is no GPU".to_string())) };
    // SAFETY: it is a stream of the GPU's primary context, which backends use too, and the clone keeps it.
    let shared = unsafe { gpu.on_stream(handle, Box::new(stream)) };
    shared.map(Device::Gpu).map_err(|error| refused(error.to_string()))
}
