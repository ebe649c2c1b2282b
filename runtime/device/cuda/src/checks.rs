//! Checks whether a GPU can be opened; the error states the reason in one sentence.

use std::ffi::{c_char, c_int, CStr};

use candle_plan_device::{Error, Result};

use crate::cublas::BLAS;
use crate::driver::{
    cuDeviceGet, cuDeviceGetAttribute, cuDeviceGetCount, cuDeviceGetName, cuDriverGetVersion, cuInit, CAPABILITY,
    DRIVER, NOT_INITIALIZED, NO_DEVICE,
};
use crate::failure::Failure;

/// The CUDA version that the kernels are compiled with, as the driver encodes it; the advice if it is missing; the
/// oldest supported compute capability.
const VERSION: c_int = 13_000;
const ADVICE: &str = "install NVIDIA's driver 580 or newer";
const OLDEST: (u32, u32) = (8, 0);
/// The error in a process that was forked after the GPU was opened.
pub(super) const FORKED: &str = "a forked process cannot use the GPU of its parent: start it with `spawn`";

/// A GPU that can be opened.
pub(super) struct UsableGpu {
    pub device: c_int,
    /// The compute capability.
    pub capability: (u32, u32),
}

pub(super) fn check_libraries() -> Result<()> {
    match BLAS.is_there() {
        true => Ok(BLAS.check()?),
        false => Err(Error::Unavailable(format!("{} is not found: pip install 'candle-compiler[cuda]'", BLAS.name()))),
    }
}

/// Initializes the driver, and finds GPU number `ordinal`.
///
/// # Errors
/// [`Error::Unavailable`]: the reason.
pub(super) fn find(ordinal: usize) -> Result<UsableGpu> {
    if !DRIVER.is_there() {
        return Err(Error::Unavailable(format!(
            "there is no NVIDIA driver on this machine ({}): {ADVICE}",
            DRIVER.name()
        )));
    }
    let mut version = 0;
    // SAFETY: the call writes one number.
    let known = unsafe { cuDriverGetVersion(&raw mut version) };
    if known.is_ok() && version < VERSION {
        let (major, minor) = (version / 1000, version % 1000 / 10);
        return Err(Error::Unavailable(format!(
            "the driver is for CUDA {major}.{minor}, and 13.0 is needed: {ADVICE}"
        )));
    }
    DRIVER.check()?;
    let absent = |reason: String| Err(Error::Unavailable(reason));
    match (count(), c_int::try_from(ordinal)) {
        (Ok(count), Ok(ordinal)) if ordinal < count => of_capability(ordinal),
        (Ok(1), _) => absent(format!("there is no GPU {ordinal}: the driver has one, number 0")),
        (Ok(count), _) if count > 1 => absent(format!("there is no GPU {ordinal}: the driver has 0 to {}", count - 1)),
        (Ok(_) | Err(Failure::Driver(NO_DEVICE)), _) => {
            absent("the driver finds no GPU: see whether `nvidia-smi` lists one".to_string())
        }
        (Err(Failure::Driver(NOT_INITIALIZED)), _) => absent(FORKED.to_string()),
        (Err(error), _) => absent(format!("the driver does not start ({error}): see what `nvidia-smi` says")),
    }
}

fn count() -> std::result::Result<c_int, Failure> {
    let mut count = 0;
    // SAFETY: the second call writes one number.
    unsafe { cuInit(0).and_then(|()| cuDeviceGetCount(&raw mut count)) }.map(|()| count)
}

fn of_capability(ordinal: c_int) -> Result<UsableGpu> {
    let mut device = 0;
    // SAFETY: the call writes one number.
    unsafe { cuDeviceGet(&raw mut device, ordinal) }?;
    let [major, minor] = CAPABILITY.map(|which| attribute(device, which));
    let capability = (major?.unsigned_abs(), minor?.unsigned_abs());
    if capability < OLDEST {
        let ((major, minor), name) = (capability, name(device)?);
        return Err(Error::Unavailable(format!("{name} has compute capability {major}.{minor}, and 8.0 is needed")));
    }
    Ok(UsableGpu { device, capability })
}

/// Returns an attribute of a device from [`find`].
pub(super) fn attribute(device: c_int, which: c_int) -> std::result::Result<c_int, Failure> {
    let mut value = 0;
    // SAFETY: the call writes one number.
    unsafe { cuDeviceGetAttribute(&raw mut value, which, device) }.map(|()| value)
}

fn name(device: c_int) -> Result<String> {
    let mut name: [c_char; 128] = [0; 128];
    // SAFETY: the call writes at most 128 bytes, the last one a null byte.
    unsafe { cuDeviceGetName(name.as_mut_ptr(), 128, device) }?;
    name[127] = 0;
    // SAFETY: the text ends with a null byte.
    Ok(unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned())
}
