//! CPU kernels: repetition of elements along axes.

use candle_plan_kernels::threads::Threads;

use crate::axes;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::movable::{copy_view, Movable};
use crate::operands::repeat::broadcast;
use crate::ops::repeat::{Expand, Tile};
use crate::types::Types;
use crate::value::Value;

impl Kernel for Expand {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let shape = axes::dims(&axes::numbers(call.tensor(1)?)?)?;
        Ok(vec![expanded(call.value(0)?, &shape, call.threads)?])
    }
}

/// Broadcasts a tensor together with the shape `shape`.
pub(super) fn expanded(value: &Value, shape: &[usize], threads: &Threads) -> Result<Value> {
    let view = broadcast(value.dims()?, shape)?;
    if view.dims == value.dims()? {
        return Ok(value.clone());
    }
    let data = Movable::new(&[value])?;
    data.restore(copy_view(&data.arrays[0], &view, threads)?)
}

impl Kernel for Tile {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let (view, dims) = self.tiles(data.arrays[0].dims(), call)?;
        let tiled = copy_view(&data.arrays[0], &view, call.threads)?;
        Ok(vec![data.restore(tiled.reshape(&dims)?)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor, Tested};

    fn check(kernel: &dyn Tested, dims: &[usize], sizes: &[i64], expected: Option<(&[usize], &[i32])>) {
        let count = dims.iter().product::<usize>() as i32;
        let x = tensor(&(0..count).collect::<Vec<_>>(), dims);
        let y = run(kernel, &[Some(x), Some(tensor(sizes, &[sizes.len()]))]).ok();
        let y = y.as_ref().map(|y| y.tensor().expect("a tensor"));
        let found = y.map(|y| (y.dims().to_vec(), y.read::<i32>().expect("int32").to_vec()));
        assert_eq!(found, expected.map(|(dims, data)| (dims.to_vec(), data.to_vec())), "{kernel:?} {dims:?} {sizes:?}");
    }

    #[test]
    fn expands() {
        check(&Expand {}, &[2, 1], &[3], Some((&[2, 3], &[0, 0, 0, 1, 1, 1])));
        check(&Expand {}, &[3], &[2, 1], Some((&[2, 3], &[0, 1, 2, 0, 1, 2])));
        check(&Expand {}, &[2, 1], &[1, 2, 1], Some((&[1, 2, 1], &[0, 1])));
        check(&Expand {}, &[2], &[2], Some((&[2], &[0, 1])));
        check(&Expand {}, &[], &[2, 2], Some((&[2, 2], &[0, 0, 0, 0])));
        check(&Expand {}, &[1], &[0], Some((&[0], &[])));
        check(&Expand {}, &[2], &[3], None);
        check(&Expand {}, &[1], &[-1], None);
        check(&Expand {}, &[1], &[i64::MAX], None);
        check(&Expand {}, &[1, 1, 1], &[1 << 40, 1 << 40, 1 << 40], None);
    }

    #[test]
    fn tiles() {
        check(&Tile {}, &[2, 2], &[1, 2], Some((&[2, 4], &[0, 1, 0, 1, 2, 3, 2, 3])));
        check(&Tile {}, &[1, 2], &[3, 1], Some((&[3, 2], &[0, 1, 0, 1, 0, 1])));
        check(&Tile {}, &[2], &[0], Some((&[0], &[])));
        check(&Tile {}, &[], &[], Some((&[], &[0])));
        check(&Tile {}, &[2], &[1, 1], None);
        check(&Tile {}, &[2], &[i64::MAX], None);
    }
}
