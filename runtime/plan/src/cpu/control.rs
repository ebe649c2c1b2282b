//! CPU kernels: control flow with nested graphs.

use candle_plan_memory::buffer::within;

use super::nested::{collect, given, is_true, one_i64, push, set};
use crate::bail;
use crate::dtype::Bool;
use crate::error::{Error, Result};
use crate::ids::BlockId;
use crate::kernel::{Call, Kernel};
use crate::memory::Kept;
use crate::ops::control::{If, Loop, Scan};
use crate::ops::nested::{axis_of, dims, rank};
use crate::ops::Op;
use crate::stack;
use crate::value::{Array, Value};

/// The only block of a loop.
const BODY: BlockId = BlockId(0);

impl Kernel for If<Op> {
    fn takes_sequence(&self, _: usize) -> bool {
        true
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let branch = BlockId(u32::from(!is_true(call.value(0)?)?));
        let (mut given, mut outputs) = (given(call, 1)?, Vec::with_capacity(call.outputs));
        call.run_block(branch, &mut given, &mut outputs)?;
        Ok(outputs)
    }
}

impl Kernel for Loop<Op> {
    fn takes_sequence(&self, _: usize) -> bool {
        true
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let bound = call.optional_tensor(0)?.map(one_i64).transpose()?;
        let mut proceed = call.optional(1).map(is_true).transpose()?.unwrap_or(true);
        let mut kept = Kept::beside(call);
        let mut carried = given(call, 2)?;
        let captures = carried.split_off(self.carried);
        let mut collected: Vec<Vec<Value>> = vec![Vec::new(); self.stacked()];
        let (mut counter, condition) = (Array::scalar(0i64), Array::scalar(Bool(1)));
        let (mut inputs, mut outputs, mut iteration) = (Vec::new(), Vec::new(), 0);
        while proceed && bound.is_none_or(|bound| iteration < bound) {
            set(&mut counter, iteration)?;
            inputs.extend([Value::from(&counter), Value::from(&condition)]);
            inputs.append(&mut carried);
            inputs.extend(captures.iter().cloned());
            within(kept.left(&inputs)?, || call.run_block(BODY, &mut inputs, &mut outputs))?;
            let mut results = outputs.drain(..);
            proceed = is_true(&results.next().ok_or_else(|| Error::op("the body gave no condition"))?)?;
            carried.extend(results.by_ref().take(self.carried));
            push(&mut collected, results, &mut kept)?;
            iteration += 1;
        }
        let items = collected.iter().enumerate();
        let stacked = items.map(|(i, items)| collect(items, &self.body, 1 + self.carried + i, 0, call));
        within(kept.left(&carried)?, || carried.into_iter().map(Ok).chain(stacked).collect())
    }
}

impl Loop<Op> {
    fn stacked(&self) -> usize {
        self.body.outputs.len().saturating_sub(1 + self.carried)
    }
}

impl Kernel for Scan<Op> {
    fn takes_sequence(&self, _: usize) -> bool {
        true
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let mut kept = Kept::beside(call);
        let mut states = given(call, 0)?;
        let mut scanned = states.split_off(self.states);
        let captures = scanned.split_off(self.inputs.len());
        let axes = scanned.iter().zip(&self.inputs).map(|(value, scan)| axis_of(scan.axis, rank(value)?));
        let axes: Vec<usize> = axes.collect::<Result<_>>()?;
        let length = self.length(&scanned, &axes)?;
        let mut collected: Vec<Vec<Value>> = vec![Vec::new(); self.outputs.len()];
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for step in 0..length {
            inputs.append(&mut states);
            for ((value, scan), &axis) in scanned.iter().zip(&self.inputs).zip(&axes) {
                let index = if scan.reverse { length - 1 - step } else { step };
                inputs.push(stack::slice(value, axis, index, call.threads)?);
            }
            inputs.extend(captures.iter().cloned());
            within(kept.left(&inputs)?, || call.run_block(BODY, &mut inputs, &mut outputs))?;
            let mut results = outputs.drain(..);
            states.extend(results.by_ref().take(self.states));
            push(&mut collected, results, &mut kept)?;
        }
        for (items, _) in collected.iter_mut().zip(&self.outputs).filter(|(_, scan)| scan.reverse) {
            items.reverse();
        }
        let items = collected.iter().zip(&self.outputs).enumerate();
        let stacked = items.map(|(i, (items, scan))| collect(items, &self.body, self.states + i, scan.axis, call));
        within(kept.left(&states)?, || states.into_iter().map(Ok).chain(stacked).collect())
    }
}

impl Scan<Op> {
    /// Returns the number of slices, which is equal for all scanned inputs.
    fn length(&self, scanned: &[Value], axes: &[usize]) -> Result<usize> {
        let lengths = scanned.iter().zip(axes).map(|(value, &axis)| Ok(dims(value)?[axis]));
        let lengths: Vec<usize> = lengths.collect::<Result<_>>()?;
        match lengths.split_first() {
            Some((first, rest)) if rest.iter().all(|length| length == first) => Ok(*first),
            _ => bail!("the scanned inputs have {lengths:?} slices"),
        }
    }
}
