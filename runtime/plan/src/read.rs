//! Bytes → plan. The bytes are not trusted: version first, then sizes, then the checksum, the JSON, and the constants. For
//! a large file, another thread computes the checksum meanwhile ([`checksum`](crate::checksum)): the code that reads and
//! prepares a plan must stand any bytes.
//!
//! The reader goes from front to back, and reads each constant into its final storage, so that memory never holds two
//! copies of a file. Large constants of a file stay in it: they are read once for a check, and later through a memory
//! mapping.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::sync::Arc;

use bytemuck::{cast_slice_mut, Pod};
use candle_core::CpuStorage;
use candle_plan_memory::mapping::Mapping;
use candle_plan_memory::uninit::Uninit;
use safetensors::tensor::{Metadata, SafeTensorError, TensorInfo};
use safetensors::Dtype;

use crate::array::backing::{Backing, Part};
use crate::checksum::{unreadable, Checker, Checksum};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::newer;
use crate::plan::{Constant, Plan, FORMAT, VERSION};
use crate::types::TensorType;
use crate::value::{element_count, Array, Strings, Value};

/// The maximum number of bytes of a header, the same as in the safetensors package.
pub(crate) const MAX_HEADER: u64 = 100_000_000;

/// The bytes of the smallest constant that stays in its file. For a smaller one, whole pages would be too large.
const LARGE: usize = 64 << 10;

/// The bytes of a [`Start`].
const START: usize = 9;
/// The advice for a damaged plan.
const AGAIN: &str = "copy it or compile it again";

/// Reads a plan and its constants from the bytes of a plan file.
///
/// # Errors
/// [`Error::Read`] if the bytes are not a plan, have a newer version, do not match their checksum, or cannot be read;
/// [`Error::Verify`] with every constant that breaks the format.
pub fn read(bytes: &[u8]) -> Result<(Plan, Vec<Value>)> {
    read_from(Cursor::new(bytes), bytes.len() as u64, None, Checker::Reader)
}

/// Reads a plan and its constants from a plan file. Large constants stay in its mapping; without one, they are copied.
/// With [`Checker::Thread`], the caller also runs [`check`].
///
/// # Errors
/// As [`read`].
pub(crate) fn read_file(file: &File, mapping: Option<Mapping>, checker: Checker) -> Result<(Plan, Vec<Value>)> {
    let length = file.metadata().map_err(unreadable)?.len();
    read_from(file, length, mapping.filter(|mapping| mapping.bytes().len() > LARGE).map(Arc::new), checker)
}

fn read_from(
    mut source: impl Read + Seek,
    length: u64,
    file: Option<Arc<Mapping>>,
    checker: Checker,
) -> Result<(Plan, Vec<Value>)> {
    let header = Header::read(&mut source, length)?;
    let checksum = (checker == Checker::Reader).then(|| header.checksum()).transpose()?;
    let mut body = Body { source, start: header.length, file, checksum };
    let mut stored = HashMap::new();
    for name in header.metadata.offset_keys() {
        let Some(info) = header.metadata.info(&name) else { continue };
        stored.insert(name, body.next(info)?);
    }
    if let Some(checksum) = body.checksum {
        checksum.check(header.field("sha256")?)?;
    }
    let plan = header.plan()?;
    drop(header);
    let constants = constants(&plan, stored)?;
    Ok((plan, constants))
}

/// Checks the header and the checksum of a plan file of `length` bytes.
///
/// # Errors
/// [`Error::Read`], as in [`read`].
pub(crate) fn check(mut source: impl Read, length: u64) -> Result<()> {
    checked(&mut source, length).map(|_| ())
}

fn checked(source: &mut impl Read, length: u64) -> Result<Header> {
    let header = Header::read(source, length)?;
    let mut checksum = header.checksum()?;
    checksum.add_next(source, header.metadata.data_len())?;
    checksum.check(header.field("sha256")?)?;
    Ok(header)
}

/// The JSON text of the plan in a plan file, without its constants.
///
/// # Errors
/// [`Error::Read`], as in [`read`].
pub fn describe(bytes: &[u8]) -> Result<String> {
    let mut source = bytes;
    let header = checked(&mut source, bytes.len() as u64)?;
    serde_json::to_string(&header.plan()?).map_err(|error| invalid(error.to_string()))
}

/// The header of a plan file, before the constants.
struct Header {
    metadata: Metadata,
    /// Its length in bytes, including the 8 bytes for the size of its JSON.
    length: usize,
}

impl Header {
    /// Reads the header. Its offsets must cover all the other bytes, and its version must be supported.
    fn read(source: &mut impl Read, length: u64) -> Result<Header> {
        let start = Start::read(source, length)?;
        let rest = length - 8;
        let size = start.size(rest).map_err(|error| start.refused(error))?;
        let mut text = vec![0; size];
        text[0] = start.bytes[8];
        source.read_exact(&mut text[1..]).map_err(unreadable)?;
        let metadata = metadata_of(&text, rest - size as u64).map_err(|error| start.refused(error))?;
        let header = Header { metadata, length: size + 8 };
        if header.field("format")? != FORMAT {
            return Err(not_a_plan(format!("its format is {:?}, not {FORMAT:?}", header.field("format")?)));
        }
        check_version(header.field("plan_version")?)?;
        Ok(header)
    }

    fn field(&self, key: &str) -> Result<&str> {
        let metadata = self.metadata.metadata().as_ref().ok_or_else(|| not_a_plan("it has no metadata".into()))?;
        let found = metadata.get(key).ok_or_else(|| not_a_plan(format!("its metadata has no {key:?}")))?;
        Ok(found)
    }

    /// Starts the checksum of a plan file, which covers the plan's JSON and the tensors' bytes, with the JSON.
    fn checksum(&self) -> Result<Checksum> {
        Ok(Checksum::of(self.field("plan")?))
    }

    fn plan(&self) -> Result<Plan> {
        let text = self.field("plan")?;
        let plan: Plan = serde_json::from_str(text).map_err(|error| newer::refused(text, &error))?;
        Ok(Plan { sha256: self.field("sha256")?.to_string(), ..plan })
    }
}

/// The first bytes of a file: the length of the header's JSON, and the first byte of this JSON.
struct Start {
    bytes: [u8; START],
}

impl Start {
    /// # Errors
    /// The file has fewer bytes.
    fn read(source: &mut impl Read, length: u64) -> Result<Start> {
        if length < START as u64 {
            let state = if length == 0 { "empty" } else { "cut short" };
            return Err(damaged(format!("the file is {state}: {AGAIN}")));
        }
        let mut bytes = [0; START];
        source.read_exact(&mut bytes).map_err(unreadable)?;
        Ok(Start { bytes })
    }

    /// The number of bytes of the header's JSON, in a file with `rest` bytes from its beginning on.
    fn size(&self, rest: u64) -> std::result::Result<usize, SafeTensorError> {
        let [size @ .., _] = self.bytes;
        match u64::from_le_bytes(size) {
            0 => Err(SafeTensorError::HeaderTooSmall),
            size if size > MAX_HEADER => Err(SafeTensorError::HeaderTooLarge),
            size if size > rest => Err(SafeTensorError::InvalidHeaderLength),
            size => usize::try_from(size).map_err(|_| SafeTensorError::HeaderTooLarge),
        }
    }

    /// The error for a file that has no whole header, or not as many bytes as its header states.
    fn refused(&self, error: SafeTensorError) -> Error {
        match self.bytes {
            [_, _, _, _, 0, 0, 0, 0, b'{'] => damaged(format!("the file is cut short or damaged: {AGAIN}")),
            [.., b'{'] => not_a_plan(format!("it is not a plan, because its header is wrong ({error})")),
            _ => not_a_plan("it is not a plan, but a file of another format".into()),
        }
    }
}

/// The header with this JSON, in front of `data` bytes of tensors.
pub(crate) fn metadata_of(text: &[u8], data: u64) -> std::result::Result<Metadata, SafeTensorError> {
    let text = std::str::from_utf8(text).map_err(SafeTensorError::InvalidHeader)?;
    let metadata: Metadata = serde_json::from_str(text).map_err(SafeTensorError::InvalidHeaderDeserialization)?;
    match metadata.data_len() as u64 == data {
        true => Ok(metadata),
        false => Err(SafeTensorError::MetadataIncompleteBuffer),
    }
}

/// The tensors of a plan file, behind the header.
struct Body<R> {
    source: R,
    /// The offset of the tensors in the file.
    start: usize,
    /// The file, if constants may stay in it.
    file: Option<Arc<Mapping>>,
    /// The checksum of the bytes read so far, if the reader computes it.
    checksum: Option<Checksum>,
}

/// A tensor of the file.
struct Stored {
    dtype: Dtype,
    dims: Vec<usize>,
    elements: Backing,
}

impl<R: Read + Seek> Body<R> {
    /// Reads the next tensor.
    fn next(&mut self, info: &TensorInfo) -> Result<Stored> {
        let elements = match self.part(info) {
            Some(part) => {
                self.skip(info.data_offsets.1 - info.data_offsets.0)?;
                Backing::File(part)
            }
            None => {
                let storage = Backing::host(copied(&mut self.source, info)?);
                if let Some(checksum) = &mut self.checksum {
                    checksum.add(storage.bytes().unwrap_or_default());
                }
                storage
            }
        };
        Ok(Stored { dtype: info.dtype, dims: info.shape.clone(), elements })
    }

    /// The part of the file that holds the tensor, if it is large and its elements are aligned as in memory.
    fn part(&self, info: &TensorInfo) -> Option<Part> {
        let (begin, end) = info.data_offsets;
        let (first, last) = (self.start.checked_add(begin)?, self.start.checked_add(end)?);
        let is_aligned = first.is_multiple_of(info.dtype.bitsize().div_ceil(8));
        let file = self.file.as_ref().filter(|_| end - begin >= LARGE && is_aligned && cfg!(target_endian = "little"));
        Part::new(file?, first..last)
    }

    /// Skips the next `size` bytes, and adds them to the checksum.
    fn skip(&mut self, size: usize) -> Result<()> {
        match &mut self.checksum {
            Some(checksum) => checksum.add_next(&mut self.source, size),
            None => self.source.seek_relative(size as i64).map_err(unreadable),
        }
    }
}

/// Reads the next tensor into storage of its storage dtype. A type that no constant has is read as bytes.
pub(crate) fn copied(source: &mut impl Read, info: &TensorInfo) -> Result<CpuStorage> {
    let size = info.data_offsets.1.saturating_sub(info.data_offsets.0);
    Ok(match info.dtype {
        Dtype::I16 | Dtype::U16 => CpuStorage::I16(filled(source, size)?),
        Dtype::I32 => CpuStorage::I32(filled(source, size)?),
        Dtype::U32 => CpuStorage::U32(filled(source, size)?),
        Dtype::I64 | Dtype::U64 => CpuStorage::I64(filled(source, size)?),
        Dtype::F16 => CpuStorage::F16(filled(source, size)?),
        Dtype::BF16 => CpuStorage::BF16(filled(source, size)?),
        Dtype::F32 => CpuStorage::F32(filled(source, size)?),
        Dtype::F64 => CpuStorage::F64(filled(source, size)?),
        _ => CpuStorage::U8(filled(source, size)?),
    })
}

/// Reads the next `size` bytes. The check of the header guarantees a whole number of elements.
fn filled<T: Pod>(source: &mut impl Read, size: usize) -> Result<Vec<T>> {
    let memory = Uninit::try_new(size / size_of::<T>()).ok_or_else(|| no_memory(size))?;
    memory.try_overwrite(|data| source.read_exact(cast_slice_mut(data)).map_err(unreadable))
}

fn not_a_plan(reason: String) -> Error {
    Error::Read { kind: ErrorKind::NotAPlan, reason }
}

fn damaged(reason: String) -> Error {
    Error::Read { kind: ErrorKind::Damaged, reason }
}

fn invalid(reason: String) -> Error {
    Error::Read { kind: ErrorKind::Invalid, reason }
}

fn no_memory(size: usize) -> Error {
    Error::Read { kind: ErrorKind::Memory, reason: format!("there is no memory for a constant of {size} bytes") }
}

fn check_version(text: &str) -> Result<()> {
    match text.parse::<u32>() {
        Ok(version) if (1..=VERSION).contains(&version) => Ok(()),
        Ok(version) if version > VERSION => {
            let reason = format!(
                "it is of version {version}, and this runtime reads up to version {VERSION}: upgrade candle-compiler"
            );
            Err(Error::Read { kind: ErrorKind::Version, reason })
        }
        _ => Err(not_a_plan(format!("its version {text:?} is not a number from 1"))),
    }
}

/// The plan's constants. The file's tensors hold the numbers.
fn constants(plan: &Plan, mut stored: HashMap<String, Stored>) -> Result<Vec<Value>> {
    let mut violations = Vec::new();
    let mut values = Vec::with_capacity(plan.constants.len());
    for (index, constant) in plan.constants.iter().enumerate() {
        match constant_of(constant, stored.remove(&index.to_string())) {
            Ok(value) => values.push(value),
            Err(error) => violations.push(format!("constant {index}: {error}")),
        }
    }
    violations.extend(stored.keys().map(|name| format!("tensor {name:?} is not a constant of the plan")));
    if violations.is_empty() {
        Ok(values)
    } else {
        violations.sort();
        Err(Error::Verify(violations))
    }
}

fn constant_of(constant: &Constant, stored: Option<Stored>) -> Result<Value> {
    match (constant, stored) {
        (Constant::Tensor(kind), Some(stored)) => Ok(tensor_of(kind, stored)?.into()),
        (Constant::Tensor(_), None) => Err(Error::op("the file has no tensor for it")),
        (Constant::Strings { .. }, Some(_)) => Err(Error::op("it holds strings, and the file has a tensor for it")),
        (Constant::Strings { shape, data }, None) => {
            if element_count(shape)? != data.len() {
                return Err(Error::op(format!("{} strings do not fill the shape {shape:?}", data.len())));
            }
            Ok(Value::Strings(Strings { dims: shape.clone(), data: data.clone().into() }))
        }
    }
}

fn tensor_of(kind: &TensorType, stored: Stored) -> Result<Array> {
    let dims = kind.sizes().ok_or_else(|| Error::op("its shape is not known"))?;
    let expected = stored_as(kind.dtype)?;
    if stored.dims != dims || stored.dtype != expected {
        let (dtype, found) = (stored.dtype, &stored.dims);
        return Err(Error::op(format!("expected {expected:?} {dims:?}, the file has {dtype:?} {found:?}")));
    }
    check_bits(kind.dtype, stored.elements.bytes().unwrap_or_default())?;
    Array::lying_in(stored.elements, &dims, kind.dtype)
}

/// The safetensors type that stores a constant of a logical type. A type that safetensors lacks has one byte per
/// element.
pub(crate) fn stored_as(dtype: DType) -> Result<Dtype> {
    Ok(match dtype {
        DType::Bool => Dtype::BOOL,
        DType::Int8 => Dtype::I8,
        DType::Int16 => Dtype::I16,
        DType::Int32 => Dtype::I32,
        DType::Int64 => Dtype::I64,
        DType::Uint16 => Dtype::U16,
        DType::Uint32 => Dtype::U32,
        DType::Uint64 => Dtype::U64,
        DType::Float16 => Dtype::F16,
        DType::Bfloat16 => Dtype::BF16,
        DType::Float32 => Dtype::F32,
        DType::Float64 => Dtype::F64,
        DType::String => return Err(Error::op("strings are not stored as a tensor")),
        _ => Dtype::U8,
    })
}

/// Tells which bytes are values of the type; `None` if all are, or if a value has more bytes.
fn valid_bits(dtype: DType) -> Option<fn(u8) -> bool> {
    Some(match dtype {
        DType::Bool => |byte| byte <= 1,
        DType::Uint2 => |byte| byte < 4,
        DType::Uint4 | DType::Float4E2M1Fn => |byte| byte < 16,
        DType::Int2 => |byte| (-2..2).contains(&(byte as i8)),
        DType::Int4 => |byte| (-8..8).contains(&(byte as i8)),
        _ => return None,
    })
}

/// Whether [`check_bits`] can reject a byte of the type.
#[cfg(feature = "candle-cuda")]
pub fn has_invalid_bits(dtype: DType) -> bool {
    valid_bits(dtype).is_some()
}

/// Rejects bytes that no value of the type has.
pub fn check_bits(dtype: DType, bytes: &[u8]) -> Result<()> {
    let Some(valid) = valid_bits(dtype) else { return Ok(()) };
    match bytes.iter().position(|&byte| !valid(byte)) {
        Some(at) => Err(Error::op(format!("byte {at} is {}, which no {dtype} has", bytes[at]))),
        None => Ok(()),
    }
}
