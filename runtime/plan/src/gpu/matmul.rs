//! GPU kernels: products of stacks of matrices.

use candle_plan_device::Gpu;

use super::gemm::{Matrices, Product};
use super::integer_product::{is_integer, Group, Integers};
use super::launch::alloc_uninit;
use super::program::{finished, OnGpuProgram};
use super::OnGpu;
use crate::broadcast::shape_from;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::matmul::MatMul;
use crate::ops::matrices::{matrix_size, Factors};
use crate::value::{Array, Value};

/// A [`MatMul`] step.
#[derive(Debug)]
pub(crate) struct MatMulOnGpu {
    transposed: [bool; 2],
    epilogue: Option<OnGpuProgram>,
}

gpu_kernel!(MatMul: "matmul" by |self, operands, gpu| operands.dtype(0).map(|_| self.for_gpu(gpu)).transpose());

impl MatMul {
    /// Returns the step on a GPU.
    ///
    /// # Errors
    /// See [`OnGpuProgram::new`].
    pub(crate) fn for_gpu(&self, gpu: &Gpu) -> Result<MatMulOnGpu> {
        let epilogue = self.epilogue.as_ref().map(|program| OnGpuProgram::new(gpu, program)).transpose()?;
        Ok(MatMulOnGpu { transposed: [self.trans_a, self.trans_b], epilogue })
    }
}

impl OnGpu for MatMulOnGpu {
    fn reads_grown(&self, input: usize, from_end: usize) -> bool {
        input == 1 && from_end == 2
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (a, b) = (call.tensor(0)?, call.storage(1)?);
        let stacks = Stacks::new(a.dims(), call.value(1)?.dims()?, self.transposed, matrix_size(b.dims()))?;
        let y = alloc_uninit(gpu, &stacks.dims, a.dtype())?;
        stacks.multiply(gpu, [a, b, &y], self.transposed)?;
        finished(self.epilogue.as_ref(), call, y)
    }
}

/// A product of two stacks of matrices, `[m, k]` and `[k, n]`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stacks {
    m: usize,
    n: usize,
    k: usize,
    groups: Vec<Group>,
    /// The dimensions of the result.
    pub dims: Vec<usize>,
}

impl Stacks {
    /// Describes the product of stacks of these dimensions, whose matrices may be stored transposed. The matrices of `b` begin
    /// `pitch` elements apart.
    ///
    /// # Errors
    /// The dimensions do not fit.
    pub fn new(a: &[usize], b: &[usize], transposed: [bool; 2], pitch: usize) -> Result<Stacks> {
        let factors = Factors::new(a, b, transposed)?;
        let Factors { mut m, n, k, .. } = factors;
        let [a_stack, b_stack] = factors.stacks.each_ref().map(Vec::as_slice);
        let stack = shape_from(&[a_stack, b_stack])?.to_vec();
        let mut groups = groups(&stack, [a_stack, b_stack], [m * k, pitch, m.saturating_mul(n)]);
        if let Some(last) = groups.pop_if(|last| last.steps[..2] == [m * k, 0] && !transposed[0]) {
            // If consecutive left matrices share one right matrix, they are one tall matrix.
            m *= last.count;
        }
        Ok(Stacks { m, n, k, groups, dims: factors.result(stack)? })
    }

    /// Computes the product of the first two tensors into the third.
    ///
    /// # Errors
    /// The tensors do not have these dimensions, or the device fails.
    pub fn multiply(&self, gpu: &Gpu, [a, b, y]: [&Array; 3], transposed: [bool; 2]) -> Result<()> {
        let Stacks { m, n, k, ref groups, .. } = *self;
        if y.is_empty() {
            return Ok(());
        }
        if is_integer(a.dtype()) {
            let factors = [1.0, 0.0];
            return Integers { m, n, k, transposed, factors, addend: None, groups }.run(gpu, [a, b, y]);
        }
        // One call computes the largest group, and is repeated for the others.
        let largest = (0..groups.len()).max_by_key(|&i| groups[i].count);
        let group = largest.map_or(Group { count: 1, steps: [0; 3] }, |i| groups[i]);
        let outer: Vec<Group> = (0..groups.len()).filter(|&i| Some(i) != largest).map(|i| groups[i]).collect();
        let calls: usize = outer.iter().map(|group| group.count).product();
        let product = Product { batch: group.count, ..Product::of(m, n, k) };
        let place = |tensor, start, side: usize, row, transposed| Matrices {
            tensor,
            start,
            next: group.steps[side],
            row,
            transposed,
        };
        for call in 0..calls {
            let starts = starts(&outer, call);
            let a = place(a, starts[0], 0, if transposed[0] { m } else { k }, transposed[0]);
            let b = place(b, starts[1], 1, if transposed[1] { k } else { n }, transposed[1]);
            product.run(gpu, a, b, place(y, starts[2], 2, n, false))?;
        }
        Ok(())
    }
}

/// Returns the groups of products of two stacks that broadcast to `dims`, from the outermost, as few as possible.
/// `sizes` are the sizes of the matrices of both stacks and of the result.
fn groups(dims: &[usize], stacks: [&[usize]; 2], sizes: [usize; 3]) -> Vec<Group> {
    let mut steps = sizes;
    let mut groups: Vec<Group> = Vec::new();
    for (i, &count) in dims.iter().rev().enumerate() {
        let size = |side: usize| stacks[side].len().checked_sub(i + 1).map_or(1, |axis| stacks[side][axis]);
        let step = |side: usize| if size(side) == 1 { 0 } else { steps[side] };
        let group = Group { count, steps: [step(0), step(1), steps[2]] };
        match groups.last_mut() {
            _ if count == 1 => {}
            Some(inner) if (0..3).all(|side| group.steps[side] == inner.count.saturating_mul(inner.steps[side])) => {
                inner.count = inner.count.saturating_mul(count);
            }
            _ => groups.push(group),
        }
        steps = [0, 1, 2].map(|side| steps[side].saturating_mul(if side == 2 { count } else { size(side) }));
    }
    groups.reverse();
    groups
}

/// Returns where the matrices of call number `call` begin.
fn starts(groups: &[Group], mut call: usize) -> [usize; 3] {
    let mut starts = [0; 3];
    for group in groups.iter().rev() {
        let index = call % group.count;
        call /= group.count;
        starts = [0, 1, 2].map(|side| starts[side] + index * group.steps[side]);
    }
    starts
}

#[cfg(test)]
mod tests {
    use candle_plan_descriptors::program::{Binary, Instruction, Operand, Program};
    use half::{bf16, f16};

    use super::*;
    use crate::dtype::Element;
    use crate::testing::{run, tensor};

    #[test]
    fn stacks_are_multiplied_in_few_calls() {
        let groups = |a: &[usize], b: &[usize], trans_a| {
            let stacks = Stacks::new(a, b, [trans_a, false], matrix_size(b)).expect("they multiply");
            (stacks.m, stacks.groups.iter().map(|group| (group.count, group.steps)).collect::<Vec<_>>())
        };
        assert_eq!(groups(&[4, 5, 2, 3], &[3, 7], false), (40, vec![]));
        assert_eq!(groups(&[4, 5, 3, 2], &[3, 7], true), (2, vec![(20, [6, 0, 14])]));
        assert_eq!(groups(&[4, 5, 2, 3], &[4, 5, 3, 7], false), (2, vec![(20, [6, 21, 14])]));
        assert_eq!(groups(&[4, 5, 2, 3], &[4, 1, 3, 7], false), (10, vec![(4, [30, 21, 70])]));
        assert_eq!(groups(&[4, 1, 2, 3], &[5, 3, 7], false), (2, vec![(4, [6, 0, 70]), (5, [0, 21, 14])]));
    }

    fn check<T: Element>(from: impl Fn(f32) -> T) {
        let numbers = |dims: &[usize]| -> Option<Value> {
            let data: Vec<T> = (0..dims.iter().product()).map(|i: usize| from((i * 7919 % 13) as f32)).collect();
            Some(tensor(&data, dims))
        };
        let cases: [(&[usize], &[usize]); 7] = [
            (&[65, 70], &[70, 67]),
            (&[5, 3, 17], &[17, 66]),
            (&[2, 1, 3, 4, 2, 3], &[1, 5, 1, 4, 3, 2]),
            (&[2, 1, 1, 3, 4], &[4, 1, 4, 2]),
            (&[7, 1, 3], &[7, 3, 1]),
            (&[300], &[300]),
            (&[4, 0, 3], &[3, 2]),
        ];
        for (a, b) in cases {
            let op = MatMul { trans_a: false, trans_b: false, epilogue: None };
            run(&op, &[numbers(a), numbers(b)]).expect("they multiply");
        }
    }

    #[test]
    fn products_match_the_cpu_in_every_type() {
        check::<f32>(|x| x / 4.0);
        check::<f64>(f64::from);
        check::<f16>(f16::from_f32);
        check::<bf16>(bf16::from_f32);
        check::<i32>(|x| x as i32 * 150_000_000 - 7);
        check::<u32>(|x| x as u32);
        check::<i64>(|x| x as i64 * (i64::MAX / 15));
        check::<u64>(|x| x as u64);
    }

    #[test]
    fn an_epilogue_finishes_the_result() {
        let epilogue = Some(Program { code: vec![Instruction::Binary(Binary::Add, Operand::Input(2))] });
        let op = MatMul { trans_a: false, trans_b: false, epilogue };
        let ones = |dims: &[usize]| Some(tensor(&vec![1f32; dims.iter().product()], dims));
        let bias = Some(tensor(&[1f32, 2.0, 3.0], &[3]));
        let y = run(&op, &[ones(&[4, 2, 5]), ones(&[5, 3]), bias]).expect("it runs");
        assert_eq!(y.tensor().unwrap().read::<f32>().unwrap()[21..], [6.0, 7.0, 8.0]);
    }
}
