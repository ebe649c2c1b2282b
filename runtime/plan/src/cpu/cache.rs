//! CPU kernels: caches whose rows are written one after another.

use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::ops::cache::AppendRows;
use crate::types::Types;
use crate::value::rows::OnHost;
use crate::value::Value;

impl Kernel for AppendRows {
    fn takes(&self, input: usize, _dtype: DType) -> bool {
        input == 0
    }

    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        Ok(vec![self.append(call, &OnHost)?.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    /// `run` also compares with a GPU.
    fn found(held: usize, rows: usize, lengths: &[i64], total: i64) -> Result<(Vec<usize>, Vec<u16>)> {
        let batch = lengths.len();
        let cache: Vec<u16> = (1..).take(batch * 2 * held).collect();
        let new: Vec<u16> = (100..).take(batch * 2 * rows).collect();
        let inputs = [
            tensor(&cache, &[batch, 2, held, 1]),
            tensor(&new, &[batch, 2, rows, 1]),
            tensor(lengths, &[batch]),
            tensor(&[total], &[1]),
        ];
        let y = run(&AppendRows {}, &inputs.map(Some))?;
        Ok((y.tensor()?.dims().to_vec(), y.tensor()?.read::<u16>()?.to_vec()))
    }

    #[test]
    fn rows_follow_the_first_ones() -> Result<()> {
        assert_eq!(found(2, 1, &[2], 3)?, (vec![1, 2, 3, 1], vec![1, 2, 100, 3, 4, 101]));
        assert_eq!(found(4, 1, &[2], 3)?, (vec![1, 2, 4, 1], vec![1, 2, 100, 0, 5, 6, 101, 0]));
        assert_eq!(found(1, 2, &[2], 5)?, (vec![1, 2, 5, 1], vec![1, 0, 100, 101, 0, 2, 0, 102, 103, 0]));
        assert_eq!(found(0, 2, &[0], 2)?, (vec![1, 2, 2, 1], vec![100, 101, 102, 103]));
        assert_eq!(found(3, 0, &[1], 0)?, (vec![1, 2, 3, 1], vec![1, 0, 0, 4, 0, 0]));
        let batch = found(2, 1, &[2, 0, 0], 3)?;
        assert_eq!(batch.1, [1, 2, 100, 3, 4, 101, 102, 0, 0, 103, 0, 0, 104, 0, 0, 105, 0, 0]);
        Ok(())
    }

    #[test]
    fn rows_beyond_the_end_are_refused() {
        for (lengths, total) in [(&[3][..], 3), (&[-1], 3), (&[i64::MAX], 3), (&[0, 3], 3), (&[0], -1)] {
            assert!(found(2, 1, lengths, total).is_err(), "{lengths:?} {total}");
        }
    }

    #[test]
    fn other_shapes_are_refused() {
        let numbers = |dims: &[usize]| Some(tensor(&vec![0f32; dims.iter().product()], dims));
        let run = |cache: &[usize], new: &[usize], lengths: usize| {
            let lengths = Some(tensor(&vec![0i64; lengths], &[lengths]));
            run(&AppendRows {}, &[numbers(cache), numbers(new), lengths, Some(tensor(&[1i64], &[1]))])
        };
        assert!(run(&[1, 1, 1], &[1, 1, 1], 1).is_ok());
        for (cache, new, lengths) in
            [(&[1, 1][..], &[1, 1][..], 1), (&[1, 2, 1], &[1, 1, 2], 1), (&[2, 1, 1], &[2, 1, 1], 1)]
        {
            assert!(run(cache, new, lengths).is_err(), "{cache:?} {new:?}");
        }
    }
}
