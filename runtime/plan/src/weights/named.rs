//! Weights by name.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use candle_core::{DType as StorageDType, Tensor};

use super::gguf::{self, Metadata};
use super::tensors;
use super::weight::{no_memory, unreadable, Weight};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::value::Array;

/// Weights by name, which a session has instead of those of its plan.
///
/// ```
/// use candle_core::{DType, Device, Tensor};
/// use candle_plan::{Session, Weights};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans/weights.plan");
/// let mut weights = Weights::new(); // `Weights::read("tuned.safetensors")` reads a file.
/// weights.insert_tensor("bias", &Tensor::zeros(3, DType::F32, &Device::Cpu)?)?;
/// let session = Session::builder(path).weights(weights).build()?;
/// assert_eq!(session.weights().len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Weights {
    pub(super) tensors: BTreeMap<String, Weight>,
    /// The metadata of a GGUF file.
    pub(super) metadata: Metadata,
}

impl Weights {
    /// No weights.
    pub fn new() -> Weights {
        Weights::default()
    }

    /// Reads all tensors of a file: a GGUF file if it begins with `GGUF`, and a safetensors file otherwise.
    ///
    /// # Errors
    /// [`Error::Weights`] if the file cannot be read, is damaged, or has a type of elements that no plan has;
    /// [`ErrorKind::Memory`](crate::ErrorKind::Memory) if the host lacks memory for a tensor.
    pub fn read(path: impl AsRef<Path>) -> Result<Weights> {
        let path = path.as_ref();
        let refused = |reason: String| Error::Weights(vec![format!("{}: {reason}", path.display())]);
        let of_file = |error| match error {
            Error::Memory(reason) => no_memory(format!("{}: {reason}", path.display())),
            other => refused(other.to_string()),
        };
        let file = File::open(path).map_err(|error| refused(format!("it cannot be opened: {error}")))?;
        let length = file.metadata().map_err(|error| refused(error.to_string()))?.len();
        Weights::of(BufReader::new(file), length).map_err(of_file)
    }

    /// Reads all tensors of a file with this number of bytes.
    pub(super) fn of(mut file: impl Read + Seek, length: u64) -> Result<Weights> {
        let mut begin = Vec::new();
        file.by_ref().take(4).read_to_end(&mut begin).map_err(unreadable)?;
        file.rewind().map_err(unreadable)?;
        let (tensors, metadata) = match begin[..] == *b"GGUF" {
            true => gguf::read(file)?,
            false => (tensors::read(file, length)?, Metadata::new()),
        };
        Ok(Weights { tensors, metadata })
    }

    /// Adds a weight. It replaces an earlier one of the same name.
    #[doc(hidden)]
    pub fn insert(&mut self, name: impl Into<String>, array: Array) {
        self.tensors.insert(name.into(), Weight::Array(array));
    }

    /// Adds a copy of a Candle tensor on the CPU. It replaces an earlier weight of the same name.
    ///
    /// # Errors
    /// The tensor is not on the CPU, no weight of a plan has its type, or the host lacks memory.
    pub fn insert_tensor(&mut self, name: impl Into<String>, tensor: &Tensor) -> Result<()> {
        let dtype = match tensor.dtype() {
            StorageDType::F16 => DType::Float16,
            StorageDType::BF16 => DType::Bfloat16,
            StorageDType::F32 => DType::Float32,
            StorageDType::F64 => DType::Float64,
            other => {
                return Err(Error::op(format!(
                    "weights are floats, and the tensor is of Candle's type {other:?}: convert it"
                )))
            }
        };
        self.insert(name, Array::from_candle(tensor, dtype)?);
        Ok(())
    }

    /// The names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }
}

impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
