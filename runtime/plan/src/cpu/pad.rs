//! CPU kernels: padding and cropping.

use candle_plan_kernels::pad::{pad, Places};
use candle_plan_kernels::threads::Threads;

use super::bounds::is_short;
use crate::array::words;
use crate::bail;
use crate::by_width;
use crate::error::Result;
use crate::extent::one_element;
use crate::kernel::{Call, Kernel};
use crate::movable::Movable;
use crate::ops::pad::{pads_by_axis, CenterCropPad, Pad, PadMode, Window};
use crate::types::Types;
use crate::value::{scratch, Array, Value};

impl Kernel for Pad {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        if self.mode == PadMode::Constant {
            return Some(0);
        }
        // Lists of the places in the borders.
        let pads = pads_by_axis(inputs.constant(1)?, inputs.constant(3), inputs.tensor(0).ok()?.rank()?).ok()?;
        let border = |pads: [i64; 2]| {
            pads.into_iter().filter_map(|pad| usize::try_from(pad).ok()).fold(0, usize::saturating_add)
        };
        (inputs.is_fixed(3) && pads.into_iter().map(border).all(is_short)).then_some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.value(0)?;
        let windows = self.windows(call, x.dims()?)?;
        let places = windows.iter().map(|window| window.places(self.mode)).collect::<Result<Vec<_>>>()?;
        let values: Vec<&Value> = [Some(x), call.optional(2)].into_iter().flatten().collect();
        let data = Movable::new(&values)?;
        if matches!(x, Value::Strings(_)) && data.arrays.len() == 1 {
            bail!("strings are padded with a given value only");
        }
        let padded = padded(&data.arrays[0], &places, data.arrays.get(1), call.threads)?;
        Ok(vec![data.restore(padded)?])
    }
}

impl Window {
    fn places(self, mode: PadMode) -> Result<Places> {
        let Window { count, before, first, kept } = self;
        let source = |i: i64| match mode {
            PadMode::Constant | PadMode::Edge => i.clamp(0, kept as i64 - 1),
            PadMode::Reflect => mirrored(i, kept as i64),
            PadMode::Wrap => i.rem_euclid(kept as i64),
        };
        if mode != PadMode::Constant {
            scratch::<Option<usize>>(count - kept)?;
        }
        let mut places = Places::default();
        let border = |places: &mut Places, from: usize, to: usize| match mode {
            PadMode::Constant => places.fill(to - from),
            _ => places.extend((from..to).map(|i| Some(first + source(i as i64 - before as i64) as usize))),
        };
        border(&mut places, 0, before);
        places.forward(first, kept);
        border(&mut places, before + kept, count);
        Ok(places)
    }
}

/// Returns the index at position `i` of an axis of `size` elements that is mirrored without end.
fn mirrored(i: i64, size: i64) -> i64 {
    let period = (2 * (size - 1)).max(1);
    let position = i.rem_euclid(period);
    position.min(period - position).min(size - 1)
}

impl Kernel for CenterCropPad {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let windows = self.windows(call, x.dims())?;
        let places = windows.iter().map(|window| window.places(PadMode::Constant)).collect::<Result<Vec<_>>>()?;
        Ok(vec![padded(x, &places, None, call.threads)?.into()])
    }
}

/// Copies the elements of `x` at the places of each axis; padding gets the only element of `value`, or zero.
fn padded(x: &Array, places: &[Places], value: Option<&Array>, threads: &Threads) -> Result<Array> {
    let dims: Vec<usize> = places.iter().map(Places::len).collect();
    by_width!(x.dtype(), W => {
        value.map_or(Ok(()), |value| one_element("the value to pad with", value.dims()))?;
        let fill = value.map(words::read::<W>).transpose()?.map_or(0, |value| value[0]);
        let from = words::read::<W>(x)?;
        let out = words::alloc_uninit::<W>(&dims)?.overwrite(|out| pad(from, x.dims(), places, fill, out, threads));
        words::array(out, &dims, x.dtype())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    #[test]
    fn modes() {
        let cases: [(PadMode, (i64, i64), Option<&[i16]>); 14] = [
            (PadMode::Constant, (2, 1), Some(&[9, 9, 1, 2, 3, 9])),
            (PadMode::Constant, (-1, 2), Some(&[2, 3, 9, 9])),
            (PadMode::Constant, (-1, -2), Some(&[])),
            (PadMode::Constant, (1, -5), None),
            (PadMode::Constant, (2, -4), Some(&[9])),
            (PadMode::Edge, (2, 1), Some(&[1, 1, 1, 2, 3, 3])),
            (PadMode::Edge, (-1, 1), Some(&[2, 3, 3])),
            (PadMode::Reflect, (2, 1), Some(&[3, 2, 1, 2, 3, 2])),
            (PadMode::Reflect, (-1, 1), Some(&[2, 3, 2])),
            (PadMode::Reflect, (4, 0), Some(&[1, 2, 3, 2, 1, 2, 3])),
            (PadMode::Wrap, (2, 4), Some(&[2, 3, 1, 2, 3, 1, 2, 3, 1])),
            (PadMode::Edge, (-3, 1), None),
            (PadMode::Constant, (i64::MAX, 1), None),
            (PadMode::Constant, (i64::MIN, 0), None),
        ];
        for (mode, (before, after), expected) in cases {
            let inputs = [tensor(&[1i16, 2, 3], &[3]), tensor(&[before, after], &[2]), tensor(&[9i16], &[])];
            let y = run(&Pad { mode }, &inputs.map(Some)).ok();
            let y = y.map(|y| y.tensor().expect("a tensor").read::<i16>().expect("int16").to_vec());
            assert_eq!(y.as_deref(), expected, "{mode:?} {before} {after}");
        }
    }
}
