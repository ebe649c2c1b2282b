//! GPU kernels: wrapping products of integer matrices.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Symbol};

use super::launch::{count, launch, width, Params};
use super::shapes::{Dims, Strides};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::value::Array;

/// Products whose matrices have equal strides. The total number of products is the product of the groups' counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub count: usize,
    /// The strides between the matrices of the left operand, the right operand and the result.
    pub steps: [usize; 3],
}

/// Whether products of a dtype are computed as integers.
pub(super) fn is_integer(dtype: DType) -> bool {
    matches!(dtype, DType::Int32 | DType::Int64 | DType::Uint32 | DType::Uint64)
}

/// `Y = alpha · A · B + beta · addend` of integers, which wrap.
pub(super) struct Integers<'a> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub transposed: [bool; 2],
    /// Alpha and beta, which are whole numbers.
    pub factors: [f32; 2],
    /// The addend, and the strides of its rows and columns.
    pub addend: Option<(&'a Array, [usize; 2])>,
    pub groups: &'a [Group],
}

/// `Stacks::new` or `Gemm::sizes` checked the sizes of the tensors.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(IntegerProduct in "matmul.cu")]
struct IntegerParams {
    a: u64,
    b: u64,
    addend: u64,
    y: u64,
    alpha: u64,
    beta: u64,
    count: u32,
    m: u32,
    n: u32,
    k: u32,
    a_step: [u32; 2],
    b_step: [u32; 2],
    addend_step: [u32; 2],
    a_next: Strides,
    b_next: Strides,
    batch: Dims,
    padding: u32,
}

impl Integers<'_> {
    /// Computes the product of the first two tensors into the third.
    ///
    /// # Errors
    /// The tensors have too many elements, or the device fails.
    pub fn run(&self, gpu: &Gpu, [a, b, y]: [&Array; 3]) -> Result<()> {
        let Integers { m, n, k, transposed, factors, addend, groups } = *self;
        for tensor in [a, b] {
            count(tensor.len())?;
        }
        let steps = |sizes: [usize; 2], transposed: bool| match transposed {
            true => Ok::<_, Error>([1, count(sizes[0])?]),
            false => Ok([count(sizes[1])?, 1]),
        };
        let [row, column] = addend.map_or([0; 2], |(_, steps)| steps).map(count);
        let strides = |side: usize| Strides::new(groups.iter().map(|group| group.steps[side] as isize));
        let counts: Vec<usize> = groups.iter().map(|group| group.count).collect();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // whole numbers, which wrap
        let [alpha, beta] = factors.map(|factor| factor as i64 as u64);
        let params = IntegerParams {
            a: a.address()?,
            b: b.address()?,
            addend: addend.map_or(Ok(0), |(c, _)| c.address())?,
            y: y.address()?,
            alpha,
            beta,
            count: count(y.len())?,
            m: count(m)?,
            n: count(n)?,
            k: count(k)?,
            a_step: steps([m, k], transposed[0])?,
            b_step: steps([k, n], transposed[1])?,
            addend_step: [row?, column?],
            a_next: strides(0)?,
            b_next: strides(1)?,
            batch: Dims::new(&counts)?,
            padding: 0,
        };
        let symbol = Symbol { module: "matmul", name: "integers", kind: width(y.dtype())? };
        launch(gpu, symbol, Grid::over(params.count), &params)
    }
}
