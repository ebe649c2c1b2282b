//! Layouts of images: as they are, `[N, C, H, W]` or `[N, C, W]`, or in blocks of channels, `[N, C / 16, H, W, 16]` or
//! `[N, C / 16, W, 16]`.
//!
//! A plan knows rows alone. [Prepare](crate::prepare) holds a value in blocks where the steps around it gain more than
//! moving it there and back costs; an op says how it would run in blocks with [`Kernel::blocked`].

use candle_plan_kernels::blocked::{self, BLOCK};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::threads::Threads;
use serde::Serialize;

use crate::bail;
use crate::device::on_device;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::{Arity, Call, Constants, Kernel, Types};
use crate::types::{Dim, TensorType, Type};
use crate::value::{element_count, room, Array, Value};

/// A layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// As the plan has it.
    Rows,
    /// In blocks of channels. Lanes beyond C hold anything: nothing that mixes lanes may read them.
    Blocks,
}

/// How an op runs on images in blocks of channels.
pub struct Blocked {
    /// What runs in its place.
    pub kernel: Box<dyn Kernel>,
    /// The number of dimensions that its images have in rows.
    pub rank: usize,
    /// The layout in which it takes each input.
    pub inputs: Vec<Layout>,
    /// The layout in which it gives each output.
    pub outputs: Vec<Layout>,
    /// The time that it saves, in multiply-adds of a vector; negative where it takes longer.
    pub gain: i64,
}

/// The sizes of an image of `float32`. Sizes but C count as usual ones where they are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// C
    pub channels: usize,
    /// N · H · W
    pub pixels: usize,
    /// The number of dimensions: 3 or 4.
    pub rank: usize,
}

/// The size of an axis of an image that is not known.
const USUAL: usize = 32;

impl Image {
    /// The image that a value of this type is; `None` for what cannot be held in blocks.
    pub fn of(kind: &Type) -> Option<Image> {
        let Type::Tensor(tensor) = kind else { return None };
        let rank = tensor.rank().filter(|rank| matches!(rank, 3 | 4) && tensor.dtype == DType::Float32)?;
        let channels = tensor.size(1).filter(|&channels| channels > 0)?;
        let sizes = (2..rank).map(|axis| tensor.size(axis).unwrap_or(USUAL));
        Some(Image { channels, pixels: sizes.fold(tensor.size(0).unwrap_or(1), usize::saturating_mul), rank })
    }

    /// Vectors in blocks.
    pub fn vectors(&self) -> usize {
        self.channels.div_ceil(BLOCK).saturating_mul(self.pixels)
    }

    /// Vectors that are more in blocks than in rows.
    pub fn wasted(&self) -> i64 {
        let vectors = self.channels.saturating_mul(self.pixels) / BLOCK;
        i64::try_from(self.vectors().saturating_sub(vectors)).unwrap_or(i64::MAX)
    }

    /// The layout in which input `i` broadcasts to this image in blocks: as it is, where it is one number. `None`: in none.
    pub fn operand(&self, operands: &Constants, i: usize) -> Option<Layout> {
        let Some(kind) = operands.types.get(i).copied().flatten() else { return Some(Layout::Rows) };
        let tensor = kind.tensor().ok().filter(|tensor| tensor.dtype == DType::Float32)?;
        let rank = tensor.rank().filter(|&rank| rank <= self.rank)?;
        if (0..rank).all(|axis| tensor.size(axis) == Some(1)) {
            return Some(Layout::Rows);
        }
        // A value that is no constant may be in blocks already, as the image that it is.
        let is_image = rank == self.rank || rank + 1 == self.rank && operands.tensor(i).is_some();
        (is_image && tensor.size((rank + 1).checked_sub(self.rank)?) == Some(self.channels)).then_some(Layout::Blocks)
    }
}

/// How an op runs in blocks that computes each element of its one output from the elements of its inputs that stand there.
pub fn elementwise(kernel: impl Kernel + 'static, operands: &Constants, outputs: &[Option<&Type>]) -> Option<Blocked> {
    let image = Image::of(outputs.first().copied().flatten()?)?;
    let inputs = (0..operands.types.len()).map(|i| image.operand(operands, i)).collect::<Option<Vec<_>>>()?;
    if !inputs.contains(&Layout::Blocks) {
        return None;
    }
    let kernel = Box::new(kernel);
    Some(Blocked { kernel, rank: image.rank, inputs, outputs: vec![Layout::Blocks], gain: -image.wasted() })
}

/// Moves an image to the other layout; one of which the first dimension is missing counts as one of a batch of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reorder {
    pub to: Layout,
    pub channels: usize,
    /// The number of dimensions in rows.
    pub rank: usize,
}

impl Kernel for Reorder {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let Some(sizes) = x.sizes() else { return Ok(vec![Type::any(x.dtype)]) };
        Ok(vec![Type::Tensor(TensorType::sized(x.dtype, &self.dims(&sizes)?))])
    }

    on_device!(NoKernel);

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        self.apply(call.tensor(0)?, call.threads).map(|array| vec![array.into()])
    }
}

impl Reorder {
    /// The image in the other layout.
    ///
    /// # Errors
    /// It is no image of so many channels.
    pub fn apply(&self, x: &Array, threads: &Threads) -> Result<Array> {
        let dims = self.dims(x.dims())?;
        let plane = element_count(&dims[2..self.rank])?;
        let images = blocked::Images { batch: dims[0], channels: self.channels, plane };
        let (x, mut out) = (x.read::<f32>()?, room(&dims)?);
        match self.to {
            Layout::Blocks => blocked::to_blocks(Isa::get(), threads, images, x, &mut out),
            Layout::Rows => blocked::from_blocks(Isa::get(), threads, images, x, &mut out, None),
        }
        Array::new(out, &dims)
    }

    /// The dimensions of the result.
    fn dims(&self, x: &[usize]) -> Result<Vec<usize>> {
        match self.to {
            Layout::Rows => in_rows(x, self.channels),
            Layout::Blocks => {
                let mut rows = vec![1; self.rank.saturating_sub(x.len())];
                rows.extend(x);
                if rows.len() != self.rank || rows.get(1) != Some(&self.channels) {
                    bail!("{x:?} is no image of {} channels", self.channels);
                }
                Ok(in_blocks(&rows))
            }
        }
    }
}

/// The dimensions of an image in rows, from those in blocks.
///
/// # Errors
/// They are not those of an image of so many channels.
pub(crate) fn in_rows(x: &[usize], channels: usize) -> Result<Vec<usize>> {
    match x {
        [n, blocks, plane @ .., BLOCK] if *blocks == channels.div_ceil(BLOCK) => Ok([&[*n, channels], plane].concat()),
        _ => bail!("{x:?} is no image of {channels} channels in blocks"),
    }
}

/// The dimensions of an image in blocks, from those in rows.
pub(crate) fn in_blocks(rows: &[usize]) -> Vec<usize> {
    let mut dims = [rows, &[BLOCK]].concat();
    dims[1] = dims[1].div_ceil(BLOCK);
    dims
}

/// The type of an image in blocks, from that in rows.
pub(crate) fn type_in_blocks(rows: &TensorType) -> TensorType {
    let shape = rows.shape.clone().map(|mut dims| {
        dims.push(Some(Dim::Size(BLOCK)));
        if let Some(Some(Dim::Size(channels))) = dims.get_mut(1) {
            *channels = channels.div_ceil(BLOCK);
        }
        dims
    });
    TensorType { dtype: rows.dtype, shape }
}
