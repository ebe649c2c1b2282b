//! The compiled modules, as stored by `build.rs`: a cubin for each generation of GPUs, and PTX for GPUs of other
//! generations. A cubin needs no compilation at run time; the driver compiles PTX and caches the result.

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use candle_plan_device::{Error, Result};

/// A module for one architecture.
struct Image {
    module: &'static str,
    /// The compute capability of a cubin: 90 means 9.0. `None` for PTX.
    architecture: Option<u32>,
    /// The uncompressed size in bytes.
    bytes: usize,
    deflated: &'static [u8],
}

const IMAGES: &[Image] = include!(concat!(env!("OUT_DIR"), "/images.rs"));

/// Whether this build has no kernels.
pub(super) fn is_empty() -> bool {
    IMAGES.is_empty()
}

/// Jetson Orin, which does not run the cubins for other GPUs of its generation.
const ORIN: (u32, u32) = (8, 7);

/// Returns a module for a GPU of this compute capability: a cubin, or PTX that ends with a null byte.
///
/// # Errors
/// The module does not exist.
pub(super) fn image(module: &str, capability: (u32, u32)) -> Result<Vec<u8>> {
    let of_module = IMAGES.iter().filter(|image| image.module == module);
    let fitting = of_module.filter(|image| image.architecture.is_none_or(|cubin| runs_on(cubin, capability)));
    // The newest cubin that runs on the GPU, else PTX.
    let image = fitting.max_by_key(|image| image.architecture);
    let image = image.ok_or_else(|| Error::Failed(format!("there is no module {module}")))?;
    let inflated = decompress_to_vec_with_limit(image.deflated, image.bytes);
    inflated.map_err(|error| Error::Failed(format!("the module {module} cannot be inflated: {error}")))
}

/// Whether a cubin runs on a GPU: the major version is equal, and the GPU's minor version is at least the cubin's.
fn runs_on(cubin: u32, capability: (u32, u32)) -> bool {
    let (major, minor) = (cubin / 10, cubin % 10);
    capability.0 == major && capability.1 >= minor && capability != ORIN
}
