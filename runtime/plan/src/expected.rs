//! The sizes of results that follow from the shapes of a step's inputs.

use std::cell::RefCell;

use candle_plan_descriptors::broadcast::Dims;
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::kernel::Call;
use crate::operator::Operator;
use crate::types::{TensorType, Type, Types};
use crate::value::items::Item;

/// The bytes of the results of each step of a run, for the inputs of its last call. A loop mostly calls a step with inputs
/// of the same types again.
#[derive(Default)]
pub(crate) struct Expected(RefCell<Vec<CachedBytes>>);

/// The bytes of the results of a step for inputs of some types.
#[derive(Default)]
struct CachedBytes {
    /// The type of each input; `None` for an absent one. Empty before the first call.
    inputs: SmallVec<[Option<(DType, Dims)>; 3]>,
    bytes: usize,
}

/// The type of an input, if it is present.
type Given<'a> = Option<(DType, &'a [usize])>;

impl Expected {
    /// Returns the bytes of the results of a step, as far as they follow from the inputs' shapes. `step` is the number of the
    /// step in the run.
    pub fn bytes(&self, (step, operator): (usize, &dyn Operator), call: &Call) -> usize {
        let mut inputs = SmallVec::<[Given; 4]>::new();
        for i in 0..call.len() {
            let input = call.optional(i).map(Item::dtype_and_dims);
            let Some(input) = input.map_or(Some(None), |input| input.map(Some)) else { return 0 };
            inputs.push(input);
        }
        let mut all = self.0.borrow_mut();
        if all.len() <= step {
            all.resize_with(step + 1, CachedBytes::default);
        }
        let cached = &mut all[step];
        if inputs.is_empty() || !cached.is_of(&inputs) {
            *cached = CachedBytes::of(operator, &inputs, call.outputs);
        }
        cached.bytes
    }
}

impl CachedBytes {
    fn of(operator: &dyn Operator, inputs: &[Given], outputs: usize) -> CachedBytes {
        let cached = inputs.iter().map(|input| input.map(|(dtype, dims)| (dtype, Dims::from_slice(dims)))).collect();
        let bytes = match (0..inputs.len()).any(|i| operator.shares(i)) {
            true => 0,
            false => bytes_of_results(operator, inputs, outputs),
        };
        CachedBytes { inputs: cached, bytes }
    }

    fn is_of(&self, inputs: &[Given]) -> bool {
        let is_same = |(cached, given): (&Option<(DType, Dims)>, &Given)| match (cached, given) {
            (Some((dtype, dims)), Some(given)) => *dtype == given.0 && dims[..] == *given.1,
            (None, None) => true,
            _ => false,
        };
        self.inputs.len() == inputs.len() && self.inputs.iter().zip(inputs).all(is_same)
    }
}

fn bytes_of_results(operator: &dyn Operator, inputs: &[Given], outputs: usize) -> usize {
    let kind = |input: &Given| input.map(|(dtype, dims)| Type::Tensor(TensorType::sized(dtype, dims)));
    let types: Vec<Option<Type>> = inputs.iter().map(kind).collect();
    let types: Vec<Option<&Type>> = types.iter().map(Option::as_ref).collect();
    let results = operator.infer(&Types::of(&types, outputs)).unwrap_or_default();
    results.iter().map(|kind| kind.tensor().map_or(0, TensorType::bytes)).fold(0, usize::saturating_add)
}
