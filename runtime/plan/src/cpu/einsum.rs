//! CPU kernels: sums of products over named axes.

use candle_plan_kernels::strided::View;
use candle_plan_kernels::threads::Threads;

use super::convert::converted;
use crate::bail;
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::{Call, Kernel};
use crate::movable::copy_view;
use crate::ops::einsum::{joined_size, Axis, Einsum, Terms};
use crate::ops::matmul::Product;
use crate::types::Types;
use crate::value::{list, Array, Value};

impl Kernel for Einsum {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        None
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let inputs: Vec<&Array> = (0..call.len()).map(|i| call.tensor(i)).collect::<Result<_>>()?;
        let Some(dtype) = inputs.first().map(|array| array.dtype()) else { bail!("there are no inputs") };
        let out = if matches!(dtype, DType::Float16 | DType::Bfloat16) {
            let wide: Vec<Array> = inputs
                .into_iter()
                .map(|input| converted(input, DType::Float32, call.threads))
                .collect::<Result<_>>()?;
            converted(&self.compute(wide, call.threads)?, dtype, call.threads)?
        } else {
            self.compute(inputs.into_iter().cloned().collect(), call.threads)?
        };
        Ok(vec![out.into()])
    }
}

/// A tensor with named, distinct axes.
struct Named {
    axes: Vec<Axis>,
    array: Array,
}

impl Einsum {
    fn compute(&self, inputs: Vec<Array>, threads: &Threads) -> Result<Array> {
        let ranks: Vec<usize> = inputs.iter().map(Array::rank).collect();
        let Terms { inputs: terms, output } = Terms::parse(&self.equation, &ranks)?;
        let mut sizes: Vec<(Axis, usize)> = Vec::new();
        for (axis, &size) in terms.iter().zip(&inputs).flat_map(|(axes, array)| axes.iter().zip(array.dims())) {
            match sizes.iter_mut().find(|(known, _)| known == axis) {
                Some((_, known)) => *known = joined_size(*known, size)?,
                None => sizes.push((*axis, size)),
            }
        }
        let mut operands = Vec::new();
        for (axes, array) in terms.iter().zip(&inputs) {
            operands.push(Named::new(axes, array, threads)?);
        }
        let mut operands = operands.into_iter();
        let Some(mut product) = operands.next() else { bail!("there are no inputs") };
        while let Some(next) = operands.next() {
            let needed =
                |axis: &Axis| output.contains(axis) || operands.as_slice().iter().any(|o| o.axes.contains(axis));
            product = product.times(next, needed, threads)?;
        }
        let kept = |axis: &Axis| output.contains(axis);
        let product = product.sum_out(kept, threads)?;
        // An axis is absent if its size is 1 in every input.
        let dims: Vec<usize> =
            output.iter().map(|axis| sizes.iter().find(|(a, _)| a == axis).map_or(1, |(_, size)| *size)).collect();
        let present: Vec<Axis> = output.into_iter().filter(|axis| product.axes.contains(axis)).collect();
        product.arrange(&present, threads)?.reshape(&dims)
    }
}

impl Named {
    /// Takes the diagonal where a name repeats, and drops the axes of size 1.
    fn new(axes: &[Axis], array: &Array, threads: &Threads) -> Result<Named> {
        let view = View::contiguous(array.dims());
        let mut diagonal = View { offset: 0, dims: Vec::new(), strides: Vec::new() };
        let mut names: Vec<Axis> = Vec::new();
        for (i, axis) in axes.iter().enumerate().filter(|(i, _)| view.dims[*i] != 1) {
            match names.iter().position(|name| name == axis) {
                Some(place) => diagonal.strides[place] += view.strides[i],
                None => {
                    names.push(*axis);
                    diagonal.dims.push(view.dims[i]);
                    diagonal.strides.push(view.strides[i]);
                }
            }
        }
        let array = if names.len() == axes.len() { array.clone() } else { copy_view(array, &diagonal, threads)? };
        Ok(Named { axes: names, array })
    }

    /// Sums over the axes that are not kept.
    fn sum_out(self, kept: impl Fn(&Axis) -> bool, threads: &Threads) -> Result<Named> {
        let (axes, summed): (Vec<Axis>, Vec<Axis>) = self.axes.iter().partition(|axis| kept(axis));
        if summed.is_empty() {
            return Ok(self);
        }
        let (outer, inner) = (self.size(&axes), self.size(&summed));
        let matrix = self.arrange(&[&axes[..], &summed].concat(), threads)?.reshape(&[outer, inner])?;
        let array = multiply(&matrix, &ones(matrix.dtype(), inner)?, threads)?;
        Ok(Named { array: array.reshape(&self.dims(&axes))?, axes })
    }

    /// Multiplies by another tensor, and sums over the axes that are not needed afterwards.
    fn times(self, other: Named, needed: impl Fn(&Axis) -> bool, threads: &Threads) -> Result<Named> {
        let left = self.sum_out(|axis| needed(axis) || other.axes.contains(axis), threads)?;
        let right = other.sum_out(|axis| needed(axis) || left.axes.contains(axis), threads)?;
        let (shared, rows): (Vec<Axis>, Vec<Axis>) = left.axes.iter().partition(|axis| right.axes.contains(axis));
        let (batch, depth): (Vec<Axis>, Vec<Axis>) = shared.into_iter().partition(|axis| needed(axis));
        let columns: Vec<Axis> = right.axes.iter().copied().filter(|axis| !left.axes.contains(axis)).collect();
        let [b, m, k] = [&batch, &rows, &depth].map(|axes| left.size(axes));
        let n = right.size(&columns);
        let x = left.arrange(&[&batch[..], &rows, &depth].concat(), threads)?.reshape(&[b, m, k])?;
        let y = right.arrange(&[&batch[..], &depth, &columns].concat(), threads)?.reshape(&[b, k, n])?;
        let dims = [left.dims(&batch), left.dims(&rows), right.dims(&columns)].concat();
        Ok(Named { array: multiply(&x, &y, threads)?.reshape(&dims)?, axes: [batch, rows, columns].concat() })
    }

    fn dims(&self, axes: &[Axis]) -> Vec<usize> {
        let size = |axis: &Axis| self.axes.iter().position(|other| other == axis).map_or(1, |i| self.array.dims()[i]);
        axes.iter().map(size).collect()
    }

    fn size(&self, axes: &[Axis]) -> usize {
        self.dims(axes).iter().product()
    }

    /// Returns the elements with the axes in this order.
    fn arrange(&self, axes: &[Axis], threads: &Threads) -> Result<Array> {
        if axes == self.axes {
            return Ok(self.array.clone());
        }
        let place = |axis: &Axis| self.axes.iter().position(|other| other == axis);
        let order: Option<Vec<usize>> = axes.iter().map(place).collect();
        let order = order.ok_or_else(|| Error::op("an axis is missing"))?;
        copy_view(&self.array, &View::contiguous(self.array.dims()).permute(&order), threads)
    }
}

/// Computes the matrix product of float32, float64 or integers. The dimensions before the last two broadcast.
pub(super) fn multiply(a: &Array, b: &Array, threads: &Threads) -> Result<Array> {
    let product = Product::new(a.dims(), b.dims())?;
    match a.dtype() {
        DType::Float32 => product.run_f32(threads, a, b, None, None),
        dtype => dispatch!("Einsum", dtype, [f64, i8, i16, i32, i64, u8, u16, u32, u64], T => {
            product.run_plain::<T>(threads, a, b)
        }),
    }
}

/// Returns a vector of ones: the product with it is a sum.
fn ones(dtype: DType, count: usize) -> Result<Array> {
    fn of<T: Element>(one: T, count: usize) -> Result<Array> {
        Array::new(list(std::iter::repeat_n(one, count))?, &[count])
    }
    match dtype {
        DType::Float32 => of(1f32, count),
        DType::Float64 => of(1f64, count),
        dtype => dispatch!("Einsum", dtype, [i8, i16, i32, i64, u8, u16, u32, u64], T => of(T::from(true), count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    fn einsum(equation: &str, inputs: &[(&[i32], &[usize])]) -> Result<(Vec<usize>, Vec<i32>)> {
        let inputs: Vec<_> = inputs.iter().map(|(data, dims)| Some(tensor(data, dims))).collect();
        let out = run(&Einsum { equation: equation.into() }, &inputs)?;
        let out = out.tensor()?;
        let elements = out.read::<i32>()?.to_vec();
        Ok((out.dims().to_vec(), elements))
    }

    #[test]
    fn equations() {
        let x: (&[i32], &[usize]) = (&[1, 2, 3, 4], &[2, 2]);
        let v: (&[i32], &[usize]) = (&[1, 10], &[2]);
        let row: (&[i32], &[usize]) = (&[5, 6], &[1, 2]);
        for (equation, inputs, dims, expected) in [
            ("ij->ji", vec![x], vec![2, 2], vec![1, 3, 2, 4]),
            ("ii", vec![x], vec![], vec![5]),
            ("ii->i", vec![x], vec![2], vec![1, 4]),
            ("ij->", vec![x], vec![], vec![10]),
            ("i j -> i", vec![x], vec![2], vec![3, 7]),
            ("ij,jk->ik", vec![x, x], vec![2, 2], vec![7, 10, 15, 22]),
            ("ij,kj->ik", vec![x, x], vec![2, 2], vec![5, 11, 11, 25]),
            ("ba,cb", vec![x, x], vec![2, 2], vec![7, 15, 10, 22]),
            ("i,i->i", vec![v, v], vec![2], vec![1, 100]),
            ("i,j->ij", vec![v, v], vec![2, 2], vec![1, 10, 10, 100]),
            ("...j,j->...", vec![x, v], vec![2], vec![21, 43]),
            ("...i,...i->...i", vec![x, row], vec![2, 2], vec![5, 12, 15, 24]),
            ("...,...", vec![x, v], vec![2, 2], vec![1, 20, 3, 40]),
            ("ij,jk,k->i", vec![x, x, v], vec![2], vec![107, 235]),
            ("ij,k->i", vec![x, v], vec![2], vec![33, 77]),
            ("ij->ij", vec![row], vec![1, 2], vec![5, 6]),
            ("ij,ij->j", vec![x, row], vec![2], vec![20, 36]),
            ("i,i->", vec![(&[], &[0]), (&[], &[0])], vec![], vec![0]),
        ] {
            assert_eq!(einsum(equation, &inputs).unwrap(), (dims, expected), "{equation}");
        }
    }

    #[test]
    fn equations_that_do_not_fit_are_refused() {
        let x: (&[i32], &[usize]) = (&[1, 2, 3, 4], &[2, 2]);
        let y: (&[i32], &[usize]) = (&[1, 2, 3], &[3]);
        for (equation, inputs, expected) in [
            ("ij,jk", vec![x], "2 terms for 1 inputs"),
            ("ijk->i", vec![x], "rank 2"),
            ("i->i", vec![x], "rank 2"),
            ("ij->ik", vec![x], "no input has"),
            ("ij->ii", vec![x], "twice"),
            ("i1->i", vec![x], "letters"),
            ("ij,j->i", vec![x, y], "sizes"),
        ] {
            let error = einsum(equation, &inputs).unwrap_err().to_string();
            assert!(error.contains(expected), "{equation}: {error}");
        }
    }
}
