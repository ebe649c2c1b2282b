//! CPU kernels: support vector machines.

use candle_plan_kernels::distance::squared_distances;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::scratch::Scratch;

use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use crate::array::Array;
use crate::bail;
use crate::error::Result;
use crate::form::KernelForm;
use crate::kernel::{Call, Kernel};
use crate::ops::svm::{PairwiseCoupling, SquaredDistances};
use crate::types::Types;
use crate::value::{alloc_uninit, list, Value};

/// Rows of a task, which are worth about 20 µs.
const ROWS: usize = 16;
/// The most rounds of pairwise coupling.
const ROUNDS: usize = 100;

/// The points `[K, M]`, and their number M.
pub(super) struct PackedPoints(Vec<f32>, usize);

impl HasKernel for SquaredDistances {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        Ok(Packed::boxed(self, operands.constants.tensor(1).map(turned).transpose()?))
    }
}

impl Kernel for Packed<SquaredDistances, Option<PackedPoints>> {
    fn is_replaced(&self, input: usize) -> bool {
        self.packed.is_some() && input == 1
    }

    fn form(&self) -> KernelForm {
        KernelForm::of(self.packed.as_ref(), |points| KernelForm::default().packed(size_of_val(&*points.0)))
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        match self.packed {
            Some(_) => Some(0),
            None => Some(inputs.tensor(1).ok()?.sizes()?.iter().product::<usize>().saturating_mul(4)),
        }
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let made;
        let packed = self.packed.as_ref();
        let points = match packed {
            Some(points) => points,
            None => {
                made = turned(call.tensor(1)?)?;
                &made
            }
        };
        let x = call.tensor(0)?;
        let size = points.0.len().checked_div(points.1).unwrap_or_default();
        let [rows, count] = match packed {
            Some(_) if x.dims().len() == 2 && (points.1 == 0 || x.dims()[1] == size) => [x.dims()[0], points.1],
            Some(_) => bail!("rows of {size} elements are needed, found {:?}", x.dims()),
            None => SquaredDistances::sizes(x.dims(), call.tensor(1)?.dims())?,
        };
        let data = x.read::<f32>()?;
        let distances = alloc_uninit::<f32>(&[rows, count])?
            .overwrite(|to| squared_distances(Isa::get(), call.threads, data, &points.0, count, to));
        Ok(vec![Array::new(distances, &[rows, count])?.into()])
    }
}

/// Packs the rows of a matrix as columns.
fn turned(points: &Array) -> Result<PackedPoints> {
    let &[count, size] = points.dims() else { bail!("a matrix of points is needed, found {:?}", points.dims()) };
    let data = points.read::<f32>()?;
    Ok(PackedPoints(list((0..size * count).map(|i| data[i % count * size + i / count]))?, count))
}

impl Kernel for PairwiseCoupling {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        None
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let r = call.tensor(0)?;
        self.check_pairs(r.dims())?;
        let (rows, pairs, classes) = (r.dims()[0], r.dims()[1], self.classes);
        let data = r.read::<f32>()?;
        let y = alloc_uninit::<f32>(&[rows, classes])?.overwrite(|y| {
            call.threads.for_each_chunk(y, ROWS * classes, |i, y| {
                let mut q = Scratch::filled(0.0, classes * classes);
                let mut qp = Scratch::filled(0.0, classes);
                for (row, p) in (i * ROWS..).zip(y.chunks_exact_mut(classes.max(1))) {
                    couple(&data[row * pairs..][..pairs], &mut q, &mut qp, p);
                }
            });
        });
        Ok(vec![Array::new(y, &[rows, classes])?.into()])
    }
}

/// Writes the probabilities `p [n]` that fit those of all pairs best: the minimum of `pᵀ Q p`, for the matrix
/// `Q[i, i] = Σⱼ r[j, i]²`, `Q[i, j] = −r[j, i] · r[i, j]`.
fn couple(pairs: &[f32], q: &mut [f32], qp: &mut [f32], p: &mut [f32]) {
    let n = p.len();
    q.fill(0.0);
    let mut pairs = pairs.iter();
    for i in 0..n {
        for j in i + 1..n {
            let first = pairs.next().copied().unwrap_or_default();
            let second = 1.0 - first;
            q[i * n + i] += second * second;
            q[j * n + j] += first * first;
            (q[i * n + j], q[j * n + i]) = (-first * second, -first * second);
        }
    }
    p.fill(1.0 / n as f32);
    for _ in 0..ROUNDS {
        for (qp, q) in qp.iter_mut().zip(q.chunks_exact(n)) {
            *qp = q.iter().zip(&*p).map(|(q, p)| q * p).sum();
        }
        let mut all: f32 = p.iter().zip(&*qp).map(|(p, qp)| p * qp).sum();
        if qp.iter().fold(0f32, |most, qp| most.max((qp - all).abs())) < 0.005 / n as f32 {
            return;
        }
        for i in 0..n {
            let more = (all - qp[i]) / q[i * n + i];
            let total = 1.0 + more;
            p[i] += more;
            all = (all + more * (more * q[i * n + i] + 2.0 * qp[i])) / total / total;
            for j in 0..n {
                qp[j] = (qp[j] + more * q[i * n + j]) / total;
                p[j] /= total;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    #[test]
    fn distances() {
        let x = tensor(&[1f32, 2.0, 0.0, 0.0], &[2, 2]);
        let points = tensor(&[1f32, 1.0, 3.0, 4.0, 0.0, 0.0], &[3, 2]);
        let y = run(&SquaredDistances {}, &[Some(x.clone()), Some(points)]).expect("matrices");
        assert_eq!(y.tensor().and_then(|y| y.read::<f32>()).expect("floats"), [1., 8., 5., 2., 25., 0.]);
        for points in [tensor(&[1f32, 2.0], &[2]), tensor(&[1f32, 2.0, 3.0], &[1, 3])] {
            assert!(run(&SquaredDistances {}, &[Some(x.clone()), Some(points)]).is_err());
        }
    }

    #[test]
    fn probabilities_of_pairs_that_agree() {
        let p = [0.5f32, 0.3, 0.2];
        let r = [p[0] / (p[0] + p[1]), p[0] / (p[0] + p[2]), p[1] / (p[1] + p[2])];
        let y = run(&PairwiseCoupling { classes: 3 }, &[Some(tensor(&r, &[1, 3]))]).expect("pairs");
        let found = y.tensor().and_then(|y| y.read::<f32>()).expect("floats");
        assert!(found.iter().zip(p).all(|(found, p)| (found - p).abs() < 0.01), "{found:?}");
        assert!((found.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        assert!(run(&PairwiseCoupling { classes: 4 }, &[Some(tensor(&r, &[1, 3]))]).is_err());
    }
}
