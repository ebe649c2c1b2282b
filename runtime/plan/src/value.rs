//! What flows between steps.

use std::sync::Arc;

use bytemuck::{cast_slice, cast_slice_mut};
use candle_core::op::BackpropOp;
use candle_core::{CpuStorage, Layout, Storage, Tensor};
use parking_lot::RwLockReadGuard;

use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
pub(crate) use crate::size::no_room;
pub use crate::size::{element_count, list, room, scratch, with_room, MAX_RANK};

/// One value: what an input, an output or a step's result holds.
#[derive(Debug, Clone)]
pub enum Value {
    /// A numeric tensor.
    Tensor(Array),
    /// A tensor of strings.
    Strings(Strings),
    /// A sequence of values of one type.
    Sequence(Vec<Value>),
    /// An optional that holds nothing.
    None,
}

/// A candle tensor and the logical type of its elements.
///
/// The tensor is contiguous in row-major order; it may begin inside a larger storage (a view of outer rows).
#[derive(Debug, Clone)]
pub struct Array {
    tensor: Tensor,
    dtype: DType,
}

/// A tensor of strings, in row-major order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strings {
    /// The dimensions.
    pub dims: Vec<usize>,
    /// The elements; as many as the product of the dimensions.
    pub data: Arc<[String]>,
}

impl Value {
    /// `float32 [1, 3, 224, 224]`, `sequence of 3`, `none`: how errors name a value.
    pub fn describe(&self) -> String {
        match self {
            Value::Tensor(array) => format!("{} {:?}", array.dtype(), array.dims()),
            Value::Strings(strings) => format!("string {:?}", strings.dims),
            Value::Sequence(items) => format!("sequence of {}", items.len()),
            Value::None => "none".to_string(),
        }
    }

    /// The dimensions of a tensor, of numbers or strings.
    ///
    /// # Errors
    /// The value is not a tensor.
    pub fn dims(&self) -> Result<&[usize]> {
        match self {
            Value::Strings(strings) => Ok(&strings.dims),
            value => Ok(value.tensor()?.dims()),
        }
    }

    /// The tensor, or an error that says what this is instead.
    pub fn tensor(&self) -> Result<&Array> {
        match self {
            Value::Tensor(array) => Ok(array),
            other => Err(Error::op(format!("expected a tensor, found {}", other.describe()))),
        }
    }
}

impl From<Array> for Value {
    fn from(array: Array) -> Value {
        Value::Tensor(array)
    }
}

impl Array {
    /// A tensor of shape `dims` that takes `data` over without a copy.
    ///
    /// # Errors
    /// The number of elements is not the product of the dimensions.
    pub fn new<T: Element>(data: Vec<T>, dims: &[usize]) -> Result<Array> {
        let stored: Vec<T::Stored> = bytemuck::allocation::cast_vec(data);
        Array::from_storage(<T::Stored as candle_core::WithDType>::to_cpu_storage_owned(stored), dims, T::DTYPE)
    }

    /// A tensor of one element and no dimensions.
    pub fn scalar<T: Element>(value: T) -> Array {
        let stored: Vec<T::Stored> = bytemuck::allocation::cast_vec(vec![value]);
        let storage = <T::Stored as candle_core::WithDType>::to_cpu_storage_owned(stored);
        Array { tensor: Tensor::from_storage(Storage::Cpu(storage), (), BackpropOp::none(), false), dtype: T::DTYPE }
    }

    /// A tensor whose carrier is given.
    ///
    /// # Errors
    /// The number of elements is not the product of the dimensions, or the storage is not `dtype`'s carrier.
    pub fn from_storage(storage: CpuStorage, dims: &[usize], dtype: DType) -> Result<Array> {
        use candle_core::backend::BackendStorage;
        let found = storage_len(&storage)?;
        if element_count(dims)? != found {
            return Err(Error::op(format!("{found} elements do not fill a tensor of shape {dims:?}")));
        }
        if storage.dtype() != dtype.carrier()? {
            return Err(Error::op(format!("{:?} storage does not carry {dtype}", storage.dtype())));
        }
        Ok(Array { tensor: Tensor::from_storage(Storage::Cpu(storage), dims, BackpropOp::none(), false), dtype })
    }

    /// A candle tensor as a value: copied when it is not contiguous.
    ///
    /// # Errors
    /// The tensor's type is not `dtype`'s carrier.
    pub fn from_candle(tensor: &Tensor, dtype: DType) -> Result<Array> {
        if tensor.dtype() != dtype.carrier()? {
            return Err(Error::op(format!("a {:?} tensor does not carry {dtype}", tensor.dtype())));
        }
        Ok(Array { tensor: tensor.contiguous()?, dtype })
    }

    /// The candle tensor: contiguous, of the carrier's type.
    pub fn candle(&self) -> &Tensor {
        &self.tensor
    }

    /// The logical element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        self.tensor.dims()
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims().len()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.tensor.elem_count()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements in row-major order, without a copy.
    ///
    /// # Errors
    /// `T` is not the logical type, or the tensor is not on the CPU.
    pub fn read<T: Element>(&self) -> Result<Elements<'_, T>> {
        if T::DTYPE != self.dtype {
            return Err(Error::op(format!("expected {}, found {}", T::DTYPE, self.dtype)));
        }
        self.bits()
    }

    /// The elements of the carrier, for types without a Rust type of their own (`U: Element` names the carrier: `u8`).
    ///
    /// # Errors
    /// `U`'s carrier is not this tensor's carrier, or the tensor is not on the CPU.
    pub fn bits<U: Element>(&self) -> Result<Elements<'_, U>> {
        let (storage, layout) = self.tensor.storage_and_layout();
        let (start, end) =
            layout.contiguous_offsets().ok_or_else(|| Error::op("a value between steps is not contiguous"))?;
        let elements = Elements { storage, start, end, element: std::marker::PhantomData };
        elements.check()?;
        Ok(elements)
    }

    /// The elements as 64-bit integers, from any integer or boolean type: how ops read shapes, axes and indices.
    ///
    /// # Errors
    /// The type is not an integer, or a value does not fit.
    #[allow(clippy::unnecessary_fallible_conversions)] // infallible for some of the types
    pub fn to_i64(&self) -> Result<Vec<i64>> {
        match self.dtype {
            DType::Int64 => Ok(self.read::<i64>()?.to_vec()),
            DType::Bool => Ok(self.read::<crate::dtype::Bool>()?.iter().map(|b| i64::from(b.0)).collect()),
            dtype => dispatch!("an index", dtype, [i32, i16, i8, u8, u16, u32, u64], T => {
                let fits = |v: &T| i64::try_from(*v).map_err(|_| Error::op(format!("{v} does not fit in 64 bits")));
                self.read::<T>()?.iter().map(fits).collect()
            }),
        }
    }

    /// The type alone, of a tensor of more than one element: elements cannot be read.
    ///
    /// # Errors
    /// What candle says.
    pub(crate) fn outline(&self) -> Result<Array> {
        if self.len() < 2 {
            return Ok(self.clone());
        }
        let one = Tensor::zeros((), self.tensor.dtype(), &candle_core::Device::Cpu)?;
        Ok(Array { tensor: one.broadcast_as(self.dims())?, dtype: self.dtype })
    }

    /// The same elements under other dimensions, sharing storage.
    ///
    /// # Errors
    /// The dimensions hold another number of elements.
    pub fn reshape(&self, dims: &[usize]) -> Result<Array> {
        if element_count(dims)? != self.len() {
            return Err(Error::op(format!("cannot view {:?} as {dims:?}", self.dims())));
        }
        Ok(Array { tensor: self.tensor.reshape(dims)?, dtype: self.dtype })
    }

    /// Rows `start .. start + length` of the outermost dimension that is not 1, sharing storage.
    ///
    /// # Errors
    /// The range is not inside dimension `axis`, or an axis before it is not 1.
    pub fn narrow_outer(&self, axis: usize, start: usize, length: usize) -> Result<Array> {
        if self.dims().iter().take(axis).any(|&d| d != 1) {
            return Err(Error::op(format!("axis {axis} of {:?} is not the outermost", self.dims())));
        }
        Ok(Array { tensor: self.tensor.narrow(axis, start, length)?, dtype: self.dtype })
    }

    /// The same bits as another logical type with the same carrier (`bool` read as `uint8`, say), sharing storage.
    ///
    /// # Errors
    /// The carriers differ.
    pub fn reinterpret(&self, dtype: DType) -> Result<Array> {
        Array::from_candle(&self.tensor, dtype)
    }

    /// Rewrites the elements where they stand. Only for a value that [`Call::take`](crate::kernel::Call::take) gave away:
    /// prepare has proved that nobody else reads this storage.
    ///
    /// # Errors
    /// `T` is not the logical type, the tensor is not on the CPU, or what `rewrite` returned.
    pub fn update<T: Element>(&self, rewrite: impl FnOnce(&mut [T]) -> Result<()>) -> Result<()> {
        if T::DTYPE != self.dtype {
            return Err(Error::op(format!("expected {}, found {}", T::DTYPE, self.dtype)));
        }
        if self.is_empty() {
            return rewrite(&mut []); // candle refuses to write where a stride is 0
        }
        let cell = Update {
            rewrite: std::cell::RefCell::new(Some(rewrite)),
            failure: Default::default(),
            element: std::marker::PhantomData,
        };
        self.tensor.inplace_op1(&cell)?;
        cell.failure.into_inner().map_or(Ok(()), Err)
    }

    /// The elements, taken out of the storage without a copy where the tensor is all of it. Only for a value whose storage
    /// nobody else reads (see [`Session::exclusive_outputs`](crate::session::Session::exclusive_outputs)).
    ///
    /// # Errors
    /// `T`'s carrier is not this tensor's carrier, or the tensor is not on the CPU.
    pub fn into_elements<T: Element>(self) -> Result<Vec<T>> {
        if self.is_empty() {
            return Ok(self.bits::<T>()?.to_vec());
        }
        let taken = Take::<T> { elements: Default::default() };
        self.tensor.inplace_op1(&taken)?;
        match taken.elements.into_inner() {
            Some(elements) => Ok(bytemuck::allocation::cast_vec(elements)),
            None => Ok(self.bits::<T>()?.to_vec()),
        }
    }

    /// Which storage the view lies in, and how many bytes that has.
    pub(crate) fn storage(&self) -> (usize, usize) {
        use candle_core::backend::BackendStorage;
        let storage = self.tensor.storage_and_layout().0;
        let length = match &*storage {
            Storage::Cpu(storage) => storage_len(storage).unwrap_or(0) * storage.dtype().size_in_bytes(),
            _ => 0,
        };
        (std::ptr::from_ref(&*storage) as usize, length)
    }

    /// Whether both views lie in one storage.
    pub fn shares_storage_with(&self, other: &Array) -> bool {
        let (mine, theirs) = (self.tensor.storage_and_layout().0, other.tensor.storage_and_layout().0);
        std::ptr::eq(&*mine, &*theirs)
    }
}

/// A read lock on a tensor's elements; use it as a slice.
pub struct Elements<'a, T> {
    storage: RwLockReadGuard<'a, Storage>,
    start: usize,
    end: usize,
    element: std::marker::PhantomData<T>,
}

impl<T: Element> Elements<'_, T> {
    fn slice(&self) -> Option<&[T]> {
        let Storage::Cpu(storage) = &*self.storage else { return None };
        let all = storage.as_slice::<T::Stored>().ok()?;
        all.get(self.start..self.end).map(cast_slice)
    }

    fn check(&self) -> Result<()> {
        self.slice().map(|_| ()).ok_or_else(|| Error::op(format!("the tensor's storage does not hold {}", T::DTYPE)))
    }
}

impl<T: Element> std::ops::Deref for Elements<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.slice().unwrap_or_default()
    }
}

struct Update<F, T> {
    rewrite: std::cell::RefCell<Option<F>>,
    failure: std::cell::RefCell<Option<Error>>,
    element: std::marker::PhantomData<T>,
}

impl<F: FnOnce(&mut [T]) -> Result<()>, T: Element> candle_core::InplaceOp1 for Update<F, T> {
    fn name(&self) -> &'static str {
        "update"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        let range = layout.contiguous_offsets();
        let slice = T::stored_mut(storage).zip(range).and_then(|(all, (start, end))| all.get_mut(start..end));
        if let (Some(slice), Some(rewrite)) = (slice, self.rewrite.take()) {
            *self.failure.borrow_mut() = rewrite(cast_slice_mut(slice)).err();
        }
        Ok(())
    }
}

struct Take<T: Element> {
    elements: std::cell::RefCell<Option<Vec<T::Stored>>>,
}

impl<T: Element> candle_core::InplaceOp1 for Take<T> {
    fn name(&self) -> &'static str {
        "take"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        if let (Some(all), Some(range)) = (T::stored_mut(storage), layout.contiguous_offsets()) {
            if range == (0, all.len()) {
                *self.elements.borrow_mut() = Some(std::mem::take(all));
            }
        }
        Ok(())
    }
}

fn storage_len(storage: &CpuStorage) -> Result<usize> {
    Ok(match storage {
        CpuStorage::U8(v) => v.len(),
        CpuStorage::U32(v) => v.len(),
        CpuStorage::I16(v) => v.len(),
        CpuStorage::I32(v) => v.len(),
        CpuStorage::I64(v) => v.len(),
        CpuStorage::F16(v) => v.len(),
        CpuStorage::BF16(v) => v.len(),
        CpuStorage::F32(v) => v.len(),
        CpuStorage::F64(v) => v.len(),
        _ => return Err(Error::op("an unexpected carrier")),
    })
}
