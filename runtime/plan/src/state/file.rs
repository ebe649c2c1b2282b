//! States in files of the format safetensors. A tensor has the name of its input.

use std::collections::HashMap;

use bytemuck::cast_slice_mut;
use safetensors::tensor::{Metadata, SafeTensorError, TensorView};
use safetensors::{serialize, SafeTensors};

use super::pairs::NamedPair;
use super::State;
use crate::array::words;
use crate::by_width;
use crate::error::{Error, Result};
use crate::read::{check_bits, stored_as};
use crate::value::{scratch, Array, Value};

/// The value of the metadata key `format`.
const FORMAT: &str = "candle-state";
/// The only version of the format.
const VERSION: &str = "1";

impl State {
    /// The values as the bytes of a file, which a state of any plan of the same model can load. A value whose sizes the
    /// first run decides is not in the file.
    ///
    /// # Errors
    /// [`Error::State`] if the format cannot hold them; also if the device fails, or there is not enough memory.
    pub fn save(&self) -> Result<Vec<u8>> {
        let values = self.to_host()?;
        let mut views = Vec::with_capacity(values.len());
        for (name, value) in &values {
            let array = value.tensor()?;
            let view = TensorView::new(stored_as(array.dtype())?, array.dims().to_vec(), array.bytes_on_host()?);
            views.push((*name, view.map_err(refused)?));
        }
        scratch::<u8>(views.iter().map(|(_, view)| view.data().len()).sum())?;
        let metadata = [("format", FORMAT), ("state_version", VERSION), ("model", self.pairs.model.as_str())];
        let metadata: HashMap<String, String> = metadata.map(|(key, value)| (key.into(), value.into())).into();
        serialize(views, Some(metadata)).map_err(refused)
    }

    /// Replaces the values by those of a [saved](State::save) file. The bytes are not trusted.
    ///
    /// # Errors
    /// [`Error::StateFile`] if the file is damaged or of another format, [`Error::State`] if it is of another model or
    /// version, [`Error::Input`] if a value does not fit its input. The state is then as it was.
    pub fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
        self.check_header(&metadata)?;
        let mut values = vec![None; self.values.len()];
        for (name, view) in SafeTensors::deserialize(bytes).map_err(damaged)?.iter() {
            let at = self.pairs.find(name)?.at();
            values[at] = Some(value_of(&self.pairs.list[at], &view)?);
        }
        self.values = values;
        Ok(())
    }

    fn check_header(&self, metadata: &Metadata) -> Result<()> {
        let field =
            |key: &str| metadata.metadata().as_ref().and_then(|fields| fields.get(key)).map_or("", String::as_str);
        let refused = |reason: &str| Err(Error::State(format!("cannot load the state: {reason}")));
        match (field("format"), field("state_version"), field("model")) {
            (format, ..) if format != FORMAT => Err(Error::StateFile("the file is no saved state".to_string())),
            (_, version, _) if version != VERSION => refused("its version is newer: upgrade candle-compiler"),
            (.., model) if model != self.pairs.model => refused("it belongs to another model"),
            _ => Ok(()),
        }
    }
}

/// The value of a pair that a file holds.
fn value_of(pair: &NamedPair, view: &TensorView) -> Result<Value> {
    let dtype = pair.kind.tensor()?.dtype;
    let (name, expected) = (&pair.input.name, stored_as(dtype)?);
    if view.dtype() != expected {
        let found = view.dtype();
        return Err(Error::State(format!("cannot load the state: {name:?} is {found:?}, and not {expected:?}")));
    }
    let damaged = |error: Error| Error::StateFile(format!("{name:?}: {error}"));
    check_bits(dtype, view.data()).map_err(damaged)?;
    let array: Array = by_width!(dtype, W => {
        let words = words::alloc_uninit::<W>(view.shape())?;
        if words.len() * size_of::<W>() != view.data().len() {
            return Err(damaged(Error::op("its size differs from its shape")));
        }
        let words = words.overwrite(|words| cast_slice_mut(words).copy_from_slice(view.data()));
        words::array(words, view.shape(), dtype)
    })?;
    let value = Value::from(array);
    pair.check(&value, " in the file")?;
    Ok(value)
}

fn refused(error: SafeTensorError) -> Error {
    Error::State(format!("a file cannot hold the state: {error}"))
}

fn damaged(error: SafeTensorError) -> Error {
    Error::StateFile(format!("the file is damaged or of another format ({error})"))
}
