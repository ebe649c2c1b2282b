//! CPU kernels: determinants.

use candle_plan_kernels::scratch::Scratch;

use super::convert::converted;
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::ops::det::Det;
use crate::types::Types;
use crate::value::{alloc_uninit, Array, Value};

impl Kernel for Det {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        None
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let [outer @ .., rows, columns] = x.dims() else { bail!("expected matrices, found {:?}", x.dims()) };
        if rows != columns {
            bail!("expected square matrices, found {:?}", x.dims());
        }
        let wide = converted(x, DType::Float64, call.threads)?;
        let data = wide.read::<f64>()?;
        let y = alloc_uninit::<f64>(outer)?;
        let size = rows * columns;
        let mut matrix = Scratch::filled(0.0, size);
        let mut of = |i: usize| {
            matrix.copy_from_slice(&data[i * size..][..size]);
            determinant(&mut matrix, *rows)
        };
        let y = y.overwrite(|y| y.iter_mut().enumerate().for_each(|(i, y)| *y = of(i)));
        Ok(vec![converted(&Array::new(y, outer)?, x.dtype(), call.threads)?.into()])
    }
}

/// Computes the determinant of `a [n, n]`, which it overwrites.
fn determinant(a: &mut [f64], n: usize) -> f64 {
    let mut product = 1.0;
    for k in 0..n {
        let pivot = (k..n).fold(k, |best, row| if a[row * n + k].abs() > a[best * n + k].abs() { row } else { best });
        if pivot != k {
            (0..n).for_each(|column| a.swap(k * n + column, pivot * n + column));
            product = -product;
        }
        product *= a[k * n + k];
        if a[k * n + k] == 0.0 {
            return product;
        }
        for row in k + 1..n {
            let factor = a[row * n + k] / a[k * n + k];
            (k + 1..n).for_each(|column| a[row * n + column] -= factor * a[k * n + column]);
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    #[test]
    fn determinants() {
        let cases: [(&[f64], &[usize], &[f64]); 5] = [
            (&[1., 2., 3., 4.], &[2, 2], &[-2.]),
            (&[0., 1., 1., 0., 2., 4., 1., 2.], &[2, 2, 2], &[-1., 0.]),
            (&[0., 2., 1., 1., 0., 3., 2., 1., 0.], &[3, 3], &[13.]),
            (&[], &[2, 0, 0], &[1., 1.]),
            (&[], &[0, 3, 3], &[]),
        ];
        for (data, dims, expected) in cases {
            let y = run(&Det {}, &[Some(tensor(data, dims))]).expect("square matrices");
            let y = y.tensor().and_then(|y| Ok(y.read::<f64>()?.to_vec())).expect("float64");
            assert!(y.len() == expected.len() && y.iter().zip(expected).all(|(y, e)| (y - e).abs() < 1e-12), "{y:?}");
        }
        assert!(run(&Det {}, &[Some(tensor(&[1f32, 2.], &[1, 2]))]).is_err());
        assert!(run(&Det {}, &[Some(tensor(&[1f32, 2.], &[2]))]).is_err());
    }
}
