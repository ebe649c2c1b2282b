//! GPU kernels: products and convolutions of 8-bit integers, and requantization to 8 bits.

#[cfg(test)]
mod tests;

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::broadcast::Broadcast;
use candle_plan_device::{Gpu, Grid, Symbol, BLOCK, MOST_BLOCKS};

use super::int8::{
    check_single, product, scratch_of_convolution, scratch_of_product, Channels, Convolution, End, Weights,
};
use super::launch::{alloc_uninit, count, launch, Params};
use super::qlinear_elementwise::{scale, zero_point};
use super::shapes::{Dims, Strides};
use super::OnGpu;
use crate::bail;
use crate::broadcast::shape_from;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::extent::check_broadcast;
use crate::gpu::{gpu_kernel, has_few_dimensions};
use crate::kernel::Call;
use crate::ops::integer::{is_one_each, ConvInteger, MatMulInteger, Requantize};
use crate::ops::qlinear::is_signed;
use crate::types::{Type, Types};
use crate::value::{element_count, Array, Value};

gpu_kernel!(ConvInteger: "qlinear" by |self, operands, _gpu| {
    let is_one = |zero: &Type| zero.tensor().ok()?.sizes().map(|sizes| sizes.iter().product::<usize>() == 1);
    // The CPU broadcasts a zero point of several elements.
    let fits = operands.types.get(2).copied().flatten().is_none_or(|zero| is_one(zero) == Some(true));
    Ok(fits.then(|| ConvIntegerOnGpu::new(self, operands.tensor(1).is_some())))
});

gpu_kernel!(MatMulInteger: "integer" by |self, operands, _gpu| Ok(Some(MatMulIntegerOnGpu::new(operands.tensor(1).is_some()))));

/// `Side` checks that zero points broadcast to operands, and operands to the batch.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(IntegerProduct in "integer.cu")]
struct ProductParams {
    a: u64,
    b: u64,
    a_zero: u64,
    b_zero: u64,
    y: u64,
    m: u32,
    n: u32,
    k: u32,
    batch: u32,
    a_signed: u32,
    b_signed: u32,
    a_zero_row: i32,
    a_zero_term: i32,
    b_zero_term: i32,
    b_zero_column: i32,
    dims: Dims,
    a_next: Strides,
    b_next: Strides,
    a_zero_next: Strides,
    b_zero_next: Strides,
    padding: u32,
}

/// The scales a and b broadcast to the `count` elements of X; the other scale and the zero point have one element.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(Requantize in "integer.cu")]
struct RequantizeParams {
    x: u64,
    a: u64,
    b: u64,
    y_scale: u64,
    y_zero: u64,
    y: u64,
    count: u32,
    y_signed: u32,
    dims: Dims,
    a_strides: Strides,
    b_strides: Strides,
    padding: u32,
}

/// A [`ConvInteger`](crate::ops::integer::ConvInteger) step.
#[derive(Debug)]
pub(crate) struct ConvIntegerOnGpu {
    op: ConvInteger,
    weights: Weights,
}

/// A [`MatMulInteger`](crate::ops::integer::MatMulInteger) step.
#[derive(Debug)]
pub(crate) struct MatMulIntegerOnGpu(Weights);

impl ConvIntegerOnGpu {
    /// Makes a step whose weights may be constant.
    pub fn new(op: &ConvInteger, is_constant: bool) -> ConvIntegerOnGpu {
        ConvIntegerOnGpu { op: op.clone(), weights: Weights::new(is_constant) }
    }
}

impl MatMulIntegerOnGpu {
    /// Makes a step whose right-hand matrix may be constant.
    pub fn new(is_constant: bool) -> MatMulIntegerOnGpu {
        MatMulIntegerOnGpu(Weights::new(is_constant))
    }
}

impl OnGpu for ConvIntegerOnGpu {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        scratch_of_convolution(inputs.tensor(1).ok()?)
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, w, x_zero) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(2)?);
        let shape = self.op.shape(x.dims(), w.dims())?;
        let mut dims = vec![shape.batch, shape.outputs];
        dims.extend(&shape.output[4 - x.rank()..]);
        let taps = shape.kernel[0] * shape.kernel[1];
        let convolution = Convolution {
            shape: &shape,
            channels: Channels::First,
            x,
            x_zero,
            w,
            w_zero: call.optional_tensor(3)?,
            w_strides: [shape.channels / shape.groups * taps, taps, 1],
            bias: call.optional_tensor(4)?,
            end: End::Sums,
        };
        Ok(vec![convolution.run(gpu, &self.weights, &dims)?.into()])
    }
}

impl OnGpu for MatMulIntegerOnGpu {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        scratch_of_product(inputs.tensor(1).ok()?)
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (a, b) = (call.tensor(0)?, call.tensor(1)?);
        let (a_zero, b_zero) = (call.optional_tensor(2)?, call.optional_tensor(3)?);
        if a.rank() < 2 || a_zero.is_some_and(|zero| zero.len() != 1) || !is_one_each(b, b_zero) {
            return Ok(vec![general(gpu, [a, b], [a_zero, b_zero])?.into()]);
        }
        let (Some((&depth, rows)), &[k, n]) = (a.dims().split_last(), b.dims()) else {
            bail!("{:?} times {:?} is no product of matrices", a.dims(), b.dims());
        };
        if depth != k {
            bail!("{:?} times {:?} is no product of matrices", a.dims(), b.dims());
        }
        let product = Convolution {
            shape: &product(rows.iter().product(), k, n),
            channels: Channels::Last,
            x: a,
            x_zero: a_zero,
            w: b,
            w_zero: b_zero,
            w_strides: [1, n, 0],
            bias: None,
            end: End::Sums,
        };
        Ok(vec![product.run(gpu, &self.0, &[rows, &[n]].concat())?.into()])
    }
}

/// An operand of a product as a stack of matrices, with its zero point.
struct Side<'a> {
    zero: Option<&'a Array>,
    dims: Vec<usize>,
    /// The strides of the zero point over `dims`.
    zero_strides: Vec<usize>,
}

impl<'a> Side<'a> {
    /// Makes an operand. A vector becomes a column if `is_column`, otherwise a row.
    fn new(array: &Array, zero: Option<&'a Array>, is_column: bool) -> Result<Side<'a>> {
        let as_matrix = |dims: &[usize]| match (dims, is_column) {
            (&[size], true) => vec![size, 1],
            (&[size], false) => vec![1, size],
            (dims, _) => dims.to_vec(),
        };
        let zero_dims = match zero {
            Some(zero) if zero.len() != 1 && array.rank() == 1 => as_matrix(zero.dims()),
            Some(zero) if zero.len() != 1 => zero.dims().to_vec(),
            _ => Vec::new(),
        };
        let dims = as_matrix(array.dims());
        if dims.is_empty() {
            bail!("a matrix product takes no scalars");
        }
        let zero_strides = strides(&zero_dims, &dims)?;
        Ok(Side { zero, dims, zero_strides })
    }

    fn batch(&self) -> &[usize] {
        &self.dims[..self.dims.len() - 2]
    }

    /// Returns the strides of the operand and of its zero point over a batch.
    fn over(&self, batch: &[usize]) -> Result<[Strides; 2]> {
        let own = self.batch().len();
        let matrix = self.dims[own] * self.dims[own + 1];
        let missing = vec![0; batch.len() - own];
        let of = |strides: &[usize]| {
            let strides = strides.iter().zip(self.batch()).map(|(&stride, &size)| if size == 1 { 0 } else { stride });
            Strides::new(missing.iter().copied().chain(strides).map(|stride| stride as isize))
        };
        let whole: Vec<usize> = strides(self.batch(), self.batch())?.iter().map(|stride| stride * matrix).collect();
        Ok([of(&whole)?, of(&self.zero_strides[..own])?])
    }

    /// Returns the strides of the zero point over the rows and the columns of a matrix.
    fn zero_steps(&self) -> Result<[i32; 2]> {
        let own = self.batch().len();
        let step = |stride: usize| i32::try_from(stride).map_err(|_| Error::op("a zero point is too large"));
        Ok([step(self.zero_strides[own])?, step(self.zero_strides[own + 1])?])
    }
}

/// Returns the strides over `target` of contiguous elements of shape `dims`, which broadcast to it.
fn strides(dims: &[usize], target: &[usize]) -> Result<Vec<usize>> {
    check_broadcast(dims, target)?;
    let missing = target.len() - dims.len();
    let (mut strides, mut stride) = (vec![0; target.len()], 1);
    for axis in (0..dims.len()).rev() {
        if dims[axis] != 1 {
            strides[missing + axis] = stride;
        }
        stride *= dims[axis];
    }
    Ok(strides)
}

/// Returns the sizes `[m, n, k]` of the products of two operands, and the batch to which they broadcast.
fn product_of(left: &Side, right: &Side) -> Result<([usize; 3], Vec<usize>)> {
    let (&[.., m, k], &[.., rows, n]) = (&left.dims[..], &right.dims[..]) else {
        bail!("a matrix product takes no scalars")
    };
    if k != rows {
        bail!("a matrix of {k} columns does not multiply one of {rows} rows: {:?} and {:?}", left.dims, right.dims);
    }
    Ok(([m, n, k], shape_from(&[left.batch(), right.batch()])?.to_vec()))
}

/// Computes a product of stacks of matrices with any zero points that broadcast.
fn general(gpu: &Gpu, [a, b]: [&Array; 2], [a_zero, b_zero]: [Option<&Array>; 2]) -> Result<Array> {
    let (left, right) = (Side::new(a, a_zero, false)?, Side::new(b, b_zero, true)?);
    let ([m, n, k], batch) = product_of(&left, &right)?;
    let mut dims = batch.clone();
    dims.extend((a.rank() > 1).then_some(m));
    dims.extend((b.rank() > 1).then_some(n));
    let y = alloc_uninit(gpu, &dims, DType::Int32)?;
    count(y.len())?;
    count(a.len().max(b.len()))?;
    let ([a_next, a_zero_next], [b_next, b_zero_next]) = (left.over(&batch)?, right.over(&batch)?);
    let ([a_zero_row, a_zero_term], [b_zero_term, b_zero_column]) = (left.zero_steps()?, right.zero_steps()?);
    let zero = |side: &Side| side.zero.map_or(Ok(0), Array::address);
    let params = ProductParams {
        a: a.address()?,
        b: b.address()?,
        a_zero: zero(&left)?,
        b_zero: zero(&right)?,
        y: y.address()?,
        m: count(m)?,
        n: count(n)?,
        k: count(k)?,
        batch: count(element_count(&batch)?)?,
        a_signed: is_signed(a).into(),
        b_signed: is_signed(b).into(),
        a_zero_row,
        a_zero_term,
        b_zero_term,
        b_zero_column,
        dims: Dims::new(&batch)?,
        a_next,
        b_next,
        a_zero_next,
        b_zero_next,
        padding: 0,
    };
    launch_product(gpu, &params)?;
    Ok(y)
}

/// Launches the kernel of a product, which computes in tiles.
fn launch_product(gpu: &Gpu, params: &ProductParams) -> Result<()> {
    /// The side of a tile, as `TILE` in `integer.cu`.
    const TILE: u32 = 64;
    let blocks = [params.m.div_ceil(TILE), params.n.div_ceil(TILE).min(MOST_BLOCKS), params.batch.min(MOST_BLOCKS)];
    let symbol = Symbol { module: "integer", name: "integer_product", kind: "" };
    launch(gpu, symbol, Grid { blocks, threads: BLOCK }, params)
}

gpu_kernel!(Requantize: "integer" if |self, operands| has_few_dimensions(operands));

impl OnGpu for Requantize {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, a, b, zero) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?, call.tensor(4)?);
        check_single(zero)?;
        let refused = |i: usize| {
            let scale = [a, b][i].dims();
            Error::op(format!("{scale:?} does not broadcast to {:?}", x.dims()))
        };
        let broadcast = Broadcast::new(x.dims(), &[a.dims(), b.dims()]).map_err(refused)?;
        let y = alloc_uninit(gpu, x.dims(), zero.dtype())?;
        let params = RequantizeParams {
            x: x.address()?,
            a: a.address()?,
            b: b.address()?,
            y_scale: scale(call, 3)?,
            y_zero: zero_point(zero)?,
            y: y.address()?,
            count: count(x.len())?,
            y_signed: is_signed(zero).into(),
            dims: Dims::new(&broadcast.dims)?,
            a_strides: Strides::of_operand(&broadcast, 0)?,
            b_strides: Strides::of_operand(&broadcast, 1)?,
            padding: 0,
        };
        let symbol = Symbol { module: "integer", name: "requantize_codes", kind: "" };
        launch(gpu, symbol, Grid::over(params.count), &params)?;
        Ok(vec![y.into()])
    }
}
