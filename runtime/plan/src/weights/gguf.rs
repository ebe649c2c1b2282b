//! The tensors of GGUF files, which Candle reads.

use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::sync::Arc;

use candle_core::quantized::gguf_file::Content;
use candle_core::Device;

use super::weight::Weight;
use crate::error::{Error, Result};
use crate::size::{element_count, scratch};

/// Reads all tensors, in the types that the file has.
///
/// # Errors
/// The file is damaged, or the host lacks memory for a tensor.
pub fn read(mut file: impl Read + Seek) -> Result<BTreeMap<String, Weight>> {
    let content = Content::read(&mut file).map_err(damaged)?;
    let mut tensors = BTreeMap::new();
    for (name, info) in &content.tensor_infos {
        let named = |reason: String| Error::op(format!("{name:?}: {reason}"));
        element_count(info.shape.dims()).map_err(|error| named(error.to_string()))?;
        scratch::<u8>(info.shape.elem_count() / info.ggml_dtype.block_size() * info.ggml_dtype.type_size())?;
        let tensor = info.read(&mut file, content.tensor_data_offset, &Device::Cpu);
        let tensor = tensor.map_err(|error| named(Error::from(error).to_string()))?;
        tensors.insert(name.clone(), Weight::Quantized(Arc::new(tensor)));
    }
    Ok(tensors)
}

fn damaged(error: candle_core::Error) -> Error {
    Error::op(format!("it is a damaged GGUF file ({})", Error::from(error)))
}
