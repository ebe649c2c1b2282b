//! Layouts of images: rows, `[N, C, H, W]` or `[N, C, W]`, and blocks of channels, `[N, C / B, H, W, B]` or
//! `[N, C / B, W, B]`. Prepare chooses one [size B](Blocking) of a block for a plan.
//!
//! A plan contains only rows. [Prepare](crate::prepare) keeps a value in blocks where the steps around it gain more
//! than the conversions cost. [`on_blocks`](crate::cpu::on_blocks) tells how an operator would run on blocks.

use candle_plan_kernels::blocking::Blocking;
use serde::Serialize;

use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::types::{Dim, TensorType, Type};

/// The layout of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Rows, the layout of a plan.
    Rows,
    /// Blocks of channels. The lanes beyond C are undefined: no computation that mixes lanes may read them.
    Blocks,
}

/// The sizes of a `float32` image. Unknown sizes other than C count as typical ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// C
    pub channels: usize,
    /// N · H · W
    pub pixels: usize,
    /// The number of dimensions: 3 or 4.
    pub rank: usize,
}

/// The lanes of a vector in the unit of times.
const VECTOR: usize = 16;
/// The assumed size of an unknown spatial axis.
const USUAL: usize = 32;

impl Image {
    /// The image of a value of this type; `None` if the value cannot be kept in blocks.
    pub fn of(kind: &Type) -> Option<Image> {
        let Type::Tensor(tensor) = kind else { return None };
        let rank = tensor.rank().filter(|rank| matches!(rank, 3 | 4) && tensor.dtype == DType::Float32)?;
        let channels = tensor.size(1).filter(|&channels| channels > 0)?;
        let sizes = (2..rank).map(|axis| tensor.size(axis).unwrap_or(USUAL));
        Some(Image { channels, pixels: sizes.fold(tensor.size(0).unwrap_or(1), usize::saturating_mul), rank })
    }

    /// The number of vectors of 16 lanes in blocks.
    pub fn vectors(&self, blocking: Blocking) -> usize {
        self.channels.next_multiple_of(blocking.block()).saturating_mul(self.pixels) / VECTOR
    }

    /// The number of vectors that blocks take beyond those of rows.
    pub fn wasted(&self, blocking: Blocking) -> usize {
        let vectors = self.channels.saturating_mul(self.pixels) / VECTOR;
        self.vectors(blocking).saturating_sub(vectors)
    }
}

/// The dimensions of an image in rows, from those in blocks.
///
/// # Errors
/// They are not the dimensions of an image of `channels` channels in blocks.
pub(crate) fn in_rows(x: &[usize], channels: usize) -> Result<Vec<usize>> {
    match *x {
        [n, blocks, ref plane @ .., block] if block > 0 && blocks == channels.div_ceil(block) => {
            Ok([&[n, channels], plane].concat())
        }
        _ => bail!("{x:?} is not the shape of an image of {channels} channels in blocks"),
    }
}

/// The dimensions of an image in blocks, from those in rows.
pub(crate) fn in_blocks(rows: &[usize], blocking: Blocking) -> Vec<usize> {
    let block = blocking.block();
    let mut dims = [rows, &[block]].concat();
    dims[1] = dims[1].div_ceil(block);
    dims
}

/// The type of an image in blocks, from its type in rows.
pub(crate) fn type_in_blocks(rows: &TensorType, blocking: Blocking) -> TensorType {
    let block = blocking.block();
    let shape = rows.shape.clone().map(|mut dims| {
        dims.push(Some(Dim::Size(block)));
        if let Some(Some(Dim::Size(channels))) = dims.get_mut(1) {
            *channels = channels.div_ceil(block);
        }
        dims
    });
    TensorType { dtype: rows.dtype, shape }
}
