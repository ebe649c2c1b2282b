//! The tensors of GGUF files, which Candle reads.

use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::Device;

use super::weight::Weight;
use crate::error::{Error, Result};
use crate::size::{element_count, scratch};

/// The numbers and texts that describe a file, by name.
pub type Metadata = BTreeMap<String, serde_json::Value>;

/// Reads all tensors, in the types that the file has, and the metadata without lists, such as those of a tokenizer.
///
/// # Errors
/// The file is damaged, or the host lacks memory for a tensor.
pub fn read(mut file: impl Read + Seek) -> Result<(BTreeMap<String, Weight>, Metadata)> {
    let content = candle(|| Content::read(&mut file)).map_err(damaged)?;
    let mut tensors = BTreeMap::new();
    for (name, info) in &content.tensor_infos {
        let named = |reason: String| Error::op(format!("{name:?}: {reason}"));
        if element_count(info.shape.dims()).map_err(|error| named(error.to_string()))? == 0 {
            return Err(named("it has no elements".to_string()));
        }
        scratch::<u8>(info.shape.elem_count() / info.ggml_dtype.block_size() * info.ggml_dtype.type_size())?;
        let tensor = candle(|| info.read(&mut file, content.tensor_data_offset, &Device::Cpu));
        let tensor = tensor.map_err(|error| named(Error::from(error).to_string()))?;
        tensors.insert(name.clone(), Weight::Quantized(Arc::new(tensor)));
    }
    let described = content.metadata.iter().filter_map(|(name, value)| Some((name.clone(), plain(value)?)));
    Ok((tensors, described.collect()))
}

/// A number or text as JSON.
fn plain(value: &Value) -> Option<serde_json::Value> {
    Some(match value {
        Value::U8(number) => (*number).into(),
        Value::I8(number) => (*number).into(),
        Value::U16(number) => (*number).into(),
        Value::I16(number) => (*number).into(),
        Value::U32(number) => (*number).into(),
        Value::I32(number) => (*number).into(),
        Value::U64(number) => (*number).into(),
        Value::I64(number) => (*number).into(),
        Value::F32(number) => (*number).into(),
        Value::F64(number) => (*number).into(),
        Value::Bool(is_true) => (*is_true).into(),
        Value::String(text) => text.as_str().into(),
        Value::Array(_) => return None,
    })
}

/// Runs a function of Candle, which panics for some damaged files: an alignment of 0, for example.
fn candle<R>(work: impl FnOnce() -> candle_core::Result<R>) -> candle_core::Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| candle_core::bail!("Candle's reader panicked"))
}

fn damaged(error: candle_core::Error) -> Error {
    Error::op(format!("it is a damaged GGUF file ({})", Error::from(error)))
}
