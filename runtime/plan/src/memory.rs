//! The memory that a run may use, where its plan bounds it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use candle_plan_kernels::buffer;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Call, Input, Kernel};
use crate::operator::Operator;
use crate::types::Types;
use crate::types::{TensorType, Type};
use crate::value::Value;

/// About what a tensor takes beside its elements, which counts where values are many.
pub(crate) type Record = [u8; 512];
const RECORD: usize = size_of::<Record>();

/// The bytes that the values of one block may hold at once.
pub(crate) struct Bound {
    limit: usize,
    /// Storage that the caller holds, who counts it.
    outside: HashSet<usize>,
}

impl Bound {
    /// A block may use what the caller has [left](buffer::budget), beside the values that it is lent.
    pub fn new<'a>(lent: impl Iterator<Item = &'a Value>) -> Bound {
        let mut held = HashMap::new();
        lent.for_each(|value| storages(value, &mut held));
        Bound { limit: buffer::budget(), outside: held.into_keys().collect() }
    }

    /// Runs a step's kernel while `slots` hold the block's other values; the operator, where it is known, tells the results'
    /// sizes.
    ///
    /// # Errors
    /// The op's results do not fit beside them: known before it runs where they follow from the inputs' shapes.
    pub fn run(
        &self,
        step: (&dyn Kernel, Option<&dyn Operator>),
        slots: &[Option<Value>],
        call: &mut Call,
    ) -> Result<Vec<Value>> {
        let (kernel, operator) = step;
        let mut held = HashMap::new();
        slots.iter().flatten().for_each(|value| storages(value, &mut held));
        let shared = self.bytes(&held);
        call.inputs.iter().filter_map(owned).for_each(|value| storages(value, &mut held));
        let before = self.bytes(&held);
        // The results may lie where inputs that die lay.
        self.check(shared.saturating_add(expected(operator, call)).max(before))?;
        let outputs = buffer::within(self.limit - before, || kernel.run(call))?;
        outputs.iter().for_each(|value| storages(value, &mut held));
        self.check(self.bytes(&held))?;
        Ok(outputs)
    }

    fn bytes(&self, held: &HashMap<usize, usize>) -> usize {
        held.iter().filter(|(storage, _)| !self.outside.contains(storage)).map(|(_, bytes)| bytes).sum()
    }

    fn check(&self, needed: usize) -> Result<()> {
        match needed <= self.limit {
            true => Ok(()),
            false => Err(Error::op(format!("the values need {needed} bytes, max_memory leaves {}", self.limit))),
        }
    }
}

/// What a loop holds beside its inputs, which its caller counts: values that iterations made.
pub(crate) struct Kept {
    inputs: HashSet<usize>,
    collected: HashMap<usize, usize>,
    bytes: usize,
}

impl Kept {
    /// Nothing yet.
    pub fn beside(call: &Call) -> Kept {
        let mut held = HashMap::new();
        if is_bounded() {
            (0..call.len()).filter_map(|i| call.optional(i)).for_each(|value| storages(value, &mut held));
        }
        Kept { inputs: held.into_keys().collect(), collected: HashMap::new(), bytes: 0 }
    }

    /// Counts a value that is held to the end.
    pub fn collect(&mut self, value: &Value) {
        if !is_bounded() {
            return;
        }
        let mut held = HashMap::new();
        storages(value, &mut held);
        self.bytes = self.bytes.saturating_add(RECORD);
        for (storage, bytes) in held.into_iter().filter(|(storage, _)| !self.inputs.contains(storage)) {
            if self.collected.insert(storage, bytes).is_none() {
                self.bytes = self.bytes.saturating_add(bytes);
            }
        }
    }

    /// The bytes that are left for what comes next, which is given `values`.
    ///
    /// # Errors
    /// There are none.
    pub fn left(&self, values: &[Value]) -> Result<usize> {
        if !is_bounded() {
            return Ok(usize::MAX);
        }
        let mut held = HashMap::new();
        values.iter().for_each(|value| storages(value, &mut held));
        let own =
            held.iter().filter(|(storage, _)| !self.inputs.contains(storage) && !self.collected.contains_key(storage));
        let bytes = own.map(|(_, bytes)| *bytes).fold(self.bytes, usize::saturating_add);
        let left = buffer::budget().checked_sub(bytes);
        left.ok_or_else(|| {
            Error::op(format!("its iterations hold {bytes} bytes, max_memory leaves {}", buffer::budget()))
        })
    }
}

fn is_bounded() -> bool {
    buffer::budget() != usize::MAX
}

fn owned<'a>(input: &'a Input) -> Option<&'a Value> {
    match input {
        Input::Owned(value) => Some(value),
        _ => None,
    }
}

/// The bytes that values lie in.
pub(crate) fn bytes_held<'a>(values: impl Iterator<Item = &'a Value>) -> usize {
    let mut held = HashMap::new();
    values.for_each(|value| storages(value, &mut held));
    held.values().sum()
}

/// Adds the storages that a value lies in, with their bytes.
pub(crate) fn storages(value: &Value, held: &mut HashMap<usize, usize>) {
    match value {
        Value::Tensor(array) => {
            let (storage, bytes) = array.storage();
            held.insert(storage, bytes);
        }
        Value::Strings(strings) => {
            let text: usize = strings.data.iter().map(|text| text.len() + size_of::<String>()).sum();
            held.insert(Arc::as_ptr(&strings.data).cast::<()>() as usize, text);
        }
        Value::Sequence(items) => {
            held.insert(items.as_ptr() as usize, items.len().saturating_mul(RECORD));
            items.iter().for_each(|item| storages(item, held));
        }
        Value::None => {}
    }
}

/// The bytes of the results as far as they follow from the inputs' shapes.
fn expected(operator: Option<&dyn Operator>, call: &Call) -> usize {
    let Some(operator) = operator else { return 0 };
    let types: Option<Vec<Option<Type>>> =
        (0..call.len()).map(|i| call.optional(i).map(type_of).transpose().ok()).collect();
    let Some(types) = types.filter(|_| !(0..call.len()).any(|i| operator.shares(i))) else { return 0 };
    let types: Vec<Option<&Type>> = types.iter().map(Option::as_ref).collect();
    let results = operator.infer(&Types { inputs: &types, outputs: call.outputs }).unwrap_or_default();
    results.iter().map(|kind| kind.tensor().map_or(0, TensorType::bytes)).fold(0, usize::saturating_add)
}

/// The type of a tensor.
pub(crate) fn type_of(value: &Value) -> Result<Type> {
    let dtype = match value {
        Value::Strings(_) => DType::String,
        value => value.tensor()?.dtype(),
    };
    Ok(Type::Tensor(TensorType::sized(dtype, value.dims()?)))
}
