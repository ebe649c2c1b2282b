//! CPU kernels: matrix products.

use candle_plan_kernels::gemm::{self, Bias, Finish, PackedB, ProductSizes, Right, Term};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::products;
use candle_plan_kernels::threads::Threads;

use super::convert::{converted, widened_bytes};
use super::finish::with_finish;
use super::matrices::{form, is_single, matrix, pack_all, plain};
use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use super::product_forms::{float, is_narrow};
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::form::{Alternative, KernelForm};
use crate::kernel::{Call, Kernel};
use crate::ops::matmul::{MatMul, Product};
use crate::ops::matrices::matrix_size;
use crate::types::Types;
use crate::value::{alloc_uninit, Array, Value};

impl HasKernel for MatMul {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        let packed = match operands.constants.tensor(1) {
            Some(b) if is_single(b.dtype()) && b.rank() > 0 => {
                Some(pack_all(b, self.trans_b, is_narrow(operands, self.trans_a))?)
            }
            _ => None,
        };
        Ok(Packed::boxed(self, packed))
    }
}

impl Kernel for Packed<MatMul, Option<Vec<PackedB>>> {
    fn reads_grown(&self, input: usize, from_end: usize) -> bool {
        input == 1 && from_end == 2
    }

    fn is_replaced(&self, input: usize) -> bool {
        self.packed.is_some() && input == 1
    }

    fn form(&self) -> KernelForm {
        let (op, packed) = (&self.op, self.packed.as_ref());
        KernelForm::of(packed, |packed: &Vec<PackedB>| form(packed)).with(op.epilogue.as_ref())
    }

    fn alternatives(&self, inputs: &Types) -> Vec<Alternative> {
        let (op, packed) = (&self.op, self.packed.as_ref());
        float(packed.map(Vec::as_slice), inputs, [op.trans_a, op.trans_b])
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        widened_bytes(&self.op, inputs, |i| self.is_replaced(i))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (op, packed) = (&self.op, self.packed.as_ref());
        let (a, b) = (call.tensor(0)?, call.storage(1)?);
        let product = Product::transposed(a.dims(), call.value(1)?.dims()?, [op.trans_a, op.trans_b])?;
        let out = match a.dtype() {
            DType::Float32 => with_finish(op.epilogue.as_ref(), call, &product.dims, |finish| {
                product.run_f32(call.threads, a, b, packed, finish)
            })?,
            DType::Float16 | DType::Bfloat16 => {
                let widened = |array| converted(array, DType::Float32, call.threads);
                let wide = packed.is_none().then(|| widened(b)).transpose()?;
                let b = wide.as_ref().unwrap_or(b);
                converted(&product.run_f32(call.threads, &widened(a)?, b, packed, None)?, a.dtype(), call.threads)?
            }
            dtype => {
                dispatch!("MatMul", dtype, [f64, i32, i64, u32, u64], T => product.run_plain::<T>(call.threads, a, b))?
            }
        };
        Ok(vec![out.into()])
    }
}

/// From this number of multiplications per pair, each product is split among the threads. Below, the pairs are.
const LARGE: usize = 1 << 24;

impl Product {
    /// Returns the number of terms in a sum.
    pub fn depth(&self) -> usize {
        self.sizes.k
    }

    /// Computes the product in `f32`. `packed` holds the right-hand matrices, if they are packed. The matrices of `b` may
    /// have more rows, as it stores them, than the product reads.
    pub fn run_f32(
        &self,
        threads: &Threads,
        a: &Array,
        b: &Array,
        packed: Option<&Vec<PackedB>>,
        finish: Option<Finish>,
    ) -> Result<Array> {
        let ProductSizes { m, n, k } = self.sizes;
        let pitch = matrix_size(b.dims());
        let (a, b) = (a.read::<f32>()?, packed.is_none().then(|| b.read::<f32>()).transpose()?);
        let b = b.unwrap_or_default();
        self.for_each(threads, |threads, i, [left, right], out| {
            let a = matrix(&a[left * m * k..][..m * k], [m, k], self.transposed[0]);
            let b = match packed.and_then(|packed| packed.get(right)) {
                Some(packed) => Right::Packed(packed),
                None => Right::Plain(matrix(&b[right * pitch..][..k * n], [k, n], self.transposed[1])),
            };
            let shifted = |run: &mut [f32], offset: usize| {
                if let Some(finish) = finish {
                    finish(run, i * m * n + offset);
                }
            };
            let finish: Option<Finish> = if finish.is_some() { Some(&shifted) } else { None };
            products::multiply(Isa::get(), threads, self.sizes, &a, &b, Bias::None, out, finish);
        })
    }

    /// Computes the product in the type of the operands. For `b`, see [`Product::run_f32`].
    pub fn run_plain<T: Term + Element>(&self, threads: &Threads, a: &Array, b: &Array) -> Result<Array> {
        let ProductSizes { m, n, k } = self.sizes;
        let (pitch, a, b) = (matrix_size(b.dims()), a.read::<T>()?, b.read::<T>()?);
        self.for_each(threads, |threads, _, [left, right], out| {
            let a = plain(&a[left * m * k..][..m * k], [m, k], self.transposed[0]);
            let b = plain(&b[right * pitch..][..k * n], [k, n], self.transposed[1]);
            gemm::product(threads, n, k, &a, &b, out);
        })
    }

    /// Calls `product(threads, index, indices of the operands, matrix of the result)` for every pair.
    fn for_each<T: Element>(
        &self,
        threads: &Threads,
        product: impl Fn(&Threads, usize, [usize; 2], &mut [T]) + Sync,
    ) -> Result<Array> {
        let ProductSizes { m, n, k } = self.sizes;
        let size = m * n;
        let out = alloc_uninit(&self.dims)?.overwrite(|out| {
            if size.saturating_mul(k) >= LARGE || self.pairs.len() == 1 {
                let matrices = out.chunks_mut(size.max(1)).zip(&self.pairs).enumerate();
                matrices.for_each(|(i, (out, pair))| product(threads, i, *pair, out));
            } else {
                let serial = Threads::serial();
                let some = if out.len().saturating_mul(k) >= WORTH_SPLITTING { threads } else { &serial };
                some.for_each_chunk(out, size, |i, out| product(&serial, i, self.pairs[i], out));
            }
        });
        Array::new(out, &self.dims)
    }
}

/// The fewest multiplications for which several threads pay off.
const WORTH_SPLITTING: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::testing::{run, tensor};

    /// Small whole numbers, which every type represents exactly.
    fn numbers(dims: &[usize]) -> Vec<u8> {
        (0..dims.iter().product::<usize>()).map(|i| (i * 7 % 5) as u8).collect()
    }

    fn matmul([trans_a, trans_b]: [bool; 2]) -> MatMul {
        MatMul { trans_a, trans_b, epilogue: None }
    }

    /// Returns [`numbers`] with the last two dimensions swapped, and the new dimensions.
    fn swapped(dims: &[usize]) -> (Vec<u8>, Vec<usize>) {
        let (rows, columns) = (dims[dims.len() - 2], dims[dims.len() - 1]);
        let x = numbers(dims);
        let matrices = x.chunks_exact((rows * columns).max(1));
        let swapped = matrices.flat_map(|x| (0..rows * columns).map(|i| x[i % rows * columns + i / rows])).collect();
        (swapped, [&dims[..dims.len() - 2], &[columns, rows]].concat())
    }

    /// Computes the product by its definition, one element at a time.
    fn expected(a: &[usize], b: &[usize]) -> (Vec<usize>, Vec<u8>) {
        let pad = |dims: &[usize], rank: usize| [vec![1; rank - dims.len()], dims.to_vec()].concat();
        let left = if a.len() == 1 { vec![1, a[0]] } else { a.to_vec() };
        let right = if b.len() == 1 { vec![b[0], 1] } else { b.to_vec() };
        let rank = left.len().max(right.len());
        let (left, right) = (pad(&left, rank), pad(&right, rank));
        let (m, k, n) = (left[rank - 2], left[rank - 1], right[rank - 1]);
        let batch: Vec<usize> = (0..rank - 2).map(|i| if left[i] == 1 { right[i] } else { left[i] }).collect();
        let (x, y) = (numbers(a), numbers(b));
        let mut out = Vec::new();
        for index in 0..batch.iter().product::<usize>() {
            let (mut rest, mut stride, mut at) = (index, [1, 1], [0, 0]);
            for i in (0..rank - 2).rev() {
                let place = rest % batch[i];
                rest /= batch[i];
                for (side, dims) in [&left, &right].into_iter().enumerate() {
                    at[side] += place % dims[i] * stride[side];
                    stride[side] *= dims[i];
                }
            }
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                out.push((0..k).map(|d| x[(at[0] * m + i) * k + d] * y[(at[1] * k + d) * n + j]).sum());
            }
        }
        let mut dims = batch;
        dims.extend((a.len() > 1).then_some(m));
        dims.extend((b.len() > 1).then_some(n));
        (dims, out)
    }

    #[test]
    fn batches_broadcast_in_every_type_and_order() {
        let cases: &[(&[usize], &[usize])] = &[
            (&[3], &[3]),
            (&[3], &[3, 2]),
            (&[2, 3], &[3]),
            (&[2, 3], &[3, 4]),
            (&[4, 2, 3], &[3, 2]),
            (&[2, 3], &[5, 3, 2]),
            (&[2, 1, 2, 3], &[4, 3, 1]),
            (&[2, 1, 2, 2], &[1, 3, 2, 5]),
            (&[2, 3, 2, 2], &[2, 1, 2, 5]),
            (&[3, 2, 2, 2], &[3, 1, 1, 2, 2]),
            (&[3], &[2, 3, 2]),
            (&[2, 2, 3], &[3]),
            (&[0, 2, 3], &[3, 2]),
            (&[2, 0], &[0, 2]),
            (&[2, 2, 0], &[2, 0, 2]),
            (&[1, 2, 3], &[0, 3, 2]),
        ];
        macro_rules! check {
            ($($T:ty: $from:expr;)*) => {$(for (a, b) in cases {
                let data = |x: &[u8]| x.iter().map(|&x| $from(x)).collect::<Vec<$T>>();
                let (dims, y) = expected(a, b);
                for flags in [[false, false], [true, false], [false, true], [true, true]] {
                    let given = |dims: &[usize], flag| {
                        let (numbers, dims) = if flag { swapped(dims) } else { (numbers(dims), dims.to_vec()) };
                        Some(tensor(&data(&numbers), &dims))
                    };
                    if flags[0] && a.len() < 2 || flags[1] && b.len() < 2 {
                        continue;
                    }
                    let out = run(&matmul(flags), &[given(a, flags[0]), given(b, flags[1])]).unwrap();
                    let out = out.tensor().unwrap();
                    let found = (out.dims(), &out.read::<$T>().unwrap()[..]);
                    assert_eq!(found, (&dims[..], &data(&y)[..]), "{a:?} {b:?} {flags:?}");
                }
            })*};
        }
        check! {
            f32: f32::from; f64: f64::from; f16: f16::from; bf16: |x| bf16::from_f32(f32::from(x));
            i32: i32::from; i64: i64::from; u32: u32::from; u64: u64::from;
        }
    }

    #[test]
    fn wrong_shapes_and_types_are_refused() {
        let f = |dims: &[usize]| Some(tensor(&vec![1f32; dims.iter().product()], dims));
        let (plain, both) = ([false; 2], [true; 2]);
        for (flags, inputs, expected) in [
            (plain, [f(&[2, 3]), f(&[2, 3])], "3 columns"),
            (plain, [f(&[2, 2, 3]), f(&[3, 3, 2])], "do not broadcast"),
            (plain, [f(&[]), f(&[3])], "scalars"),
            (plain, [f(&[1 << 50, 0, 3]), f(&[3, 2])], "no memory"),
            (plain, [f(&[2, 3]), Some(tensor(&[1i32; 3], &[3, 1]))], "int32"),
            (plain, [Some(tensor(&[1i8; 3], &[3])), Some(tensor(&[1i8; 3], &[3]))], "int8"),
            (both, [f(&[2, 3]), f(&[2, 3])], "2 columns"),
            (both, [f(&[3]), f(&[2, 3])], "no matrices"),
            (both, [f(&[3, 2]), f(&[3])], "no matrices"),
        ] {
            let error = run(&matmul(flags), &inputs).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_plan_that_names_no_order_means_the_plain_one() {
        assert_eq!(serde_json::from_str::<MatMul>(r#"{"epilogue": null}"#).unwrap(), matmul([false; 2]));
    }
}
