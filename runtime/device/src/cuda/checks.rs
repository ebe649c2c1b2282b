//! Whether a GPU can be opened, and in one sentence why not.

use candle_core::cuda_backend::cudarc::cublas::sys as blas;
use candle_core::cuda_backend::cudarc::curand;
use candle_core::cuda_backend::cudarc::driver::result::{self, DriverError};
use candle_core::cuda_backend::cudarc::driver::sys::{self, CUresult};

use super::errors::{failed, unavailable};
use crate::backend::Result;

/// The version of CUDA whose PTX the modules are, as the driver counts; what has it; the oldest GPUs that they run on.
const VERSION: i32 = 13_000;
const DRIVER: &str = "install NVIDIA's driver 580 or newer";
const OLDEST: (i32, i32) = (8, 0);

/// Whether the libraries can be opened: cudarc panics where one is missing.
pub(super) fn check_libraries() -> Result<()> {
    // SAFETY: each opens a library of NVIDIA's.
    let (blas, rand) = unsafe { (blas::is_culib_present(), curand::sys::is_culib_present()) };
    for (library, is_there) in [("libcublas.so.13", blas), ("libcurand.so.10", rand)] {
        if !is_there {
            return Err(unavailable(format!("{library} is not found: pip install 'candle-compiler[cuda]'")));
        }
    }
    Ok(())
}

pub(super) fn check_driver(ordinal: usize) -> Result<()> {
    // SAFETY: it opens the driver's library.
    if !unsafe { sys::is_culib_present() } {
        return Err(unavailable(format!("there is no NVIDIA driver on this machine (libcuda.so.1): {DRIVER}")));
    }
    let mut version = 0;
    // SAFETY: it writes one number.
    let known = unsafe { sys::cuDriverGetVersion(&raw mut version) }.result();
    if known.is_ok() && version < VERSION {
        let (major, minor) = (version / 1000, version % 1000 / 10);
        return Err(unavailable(format!("the driver is for CUDA {major}.{minor}, and 13.0 is needed: {DRIVER}")));
    }
    match result::init().and_then(|()| result::device::get_count()) {
        Ok(count) if i32::try_from(ordinal).is_ok_and(|ordinal| ordinal < count) => check_capability(ordinal),
        Ok(1) => Err(unavailable(format!("there is no GPU {ordinal}: the driver has one, number 0"))),
        Ok(count) if count > 1 => {
            Err(unavailable(format!("there is no GPU {ordinal}: the driver has 0 to {}", count - 1)))
        }
        Ok(_) | Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => {
            Err(unavailable("the driver finds no GPU: see whether `nvidia-smi` lists one".to_string()))
        }
        Err(error) => Err(unavailable(format!("the driver does not start ({error}): see what `nvidia-smi` says"))),
    }
}

fn check_capability(ordinal: usize) -> Result<()> {
    use sys::CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
    };
    let device = result::device::get(i32::try_from(ordinal).unwrap_or(i32::MAX)).map_err(failed)?;
    // SAFETY: the device is there.
    let [major, minor] = [MAJOR, MINOR].map(|which| unsafe { result::device::get_attribute(device, which) });
    let (major, minor) = (major.map_err(failed)?, minor.map_err(failed)?);
    if (major, minor) < OLDEST {
        let name = result::device::get_name(device).map_err(failed)?;
        return Err(unavailable(format!("{name} has compute capability {major}.{minor}, and 8.0 is needed")));
    }
    Ok(())
}
