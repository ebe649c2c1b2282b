//! States: values that a run hands on to the next run, such as the caches of a language model.
//!
//! A plan [lists](crate::plan::StatePair) the outputs that its caller would feed back as inputs. A run with a state takes
//! these inputs from the state. If the run succeeds, its outputs take their place. The values stay on the session's device.
//!
//! A state holds on to the values of the last run until the next one has succeeded. Their storage is shared meanwhile, so
//! no step overwrites it, and a run that fails leaves the state as it was. Steps change some values [in
//! place](crate::value::Grown): they write new rows, mostly behind the others. A run that fails [writes the former rows
//! back](crate::growing).

mod file;
#[cfg(test)]
mod growth_tests;
mod pairs;
mod start;
#[cfg(test)]
mod tests;
mod truncate;
mod values;

use std::sync::Arc;

use candle_plan_kernels::threads::Threads;

use crate::error::{Error, Result};
use crate::growing::Growing;
use crate::ids::PairId;
use crate::interrupt::Stop;
use crate::observe::OfState;
use crate::plan::ValueId;
use crate::profile::{copies, StepTime};
use crate::request::Request;
use crate::session::Session;
use crate::value::{Array, Value};
use pairs::Pairs;
use start::Start;
use values::{hollow, length_of, packed, settled};

/// The values that runs of one plan hand on, such as the caches of a language model. They stay on the session's device. A
/// clone is a fork: it shares the values until one of the two goes on.
///
/// ```
/// use candle_plan::{Error, Request, Session, Value};
///
/// # fn main() -> Result<(), Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans/state.plan");
/// let session = Session::builder(path).build()?;
/// let mut state = session.new_state()?;
/// for rows in [3, 1] {
///     let x = Value::new(vec![1f32; rows * 4], &[rows, 4])?;
///     session.run_with(&mut state, vec![x], &Request::default())?;
/// }
/// assert_eq!(state.length(), Some(4));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct State {
    pairs: Arc<Pairs>,
    start: Arc<Start>,
    /// The value of each pair; `None` for zeros whose sizes the next run decides.
    values: Values,
}

/// The value of each pair, as far as it is known.
type Values = Vec<Option<Value>>;

impl Session {
    /// Makes a state for runs of this plan, of this session and of others with the same plan. It begins with zeros, with
    /// size 0 along the axis that grows.
    ///
    /// # Errors
    /// [`Error::State`] if the plan has no state.
    pub fn new_state(&self) -> Result<State> {
        self.new_state_from(Vec::new(), Vec::new())
    }

    /// [`Session::new_state`] with these first values, by the names of inputs. The others are zeros. `sizes` are sizes of
    /// the zeros: of a symbol (`batch`), or of a dimension of an input (`state.1`). A run decides the sizes of symbols
    /// that the other inputs have too.
    ///
    /// # Errors
    /// [`Error::State`] if the plan has no state, or no input or dimension of a name; [`Error::Input`] if a value does not
    /// fit its input.
    pub fn new_state_from(&self, values: Vec<(String, Value)>, sizes: Vec<(String, usize)>) -> Result<State> {
        let pairs = Pairs::of(&self.executable)?;
        let start = Start { values, sizes }.checked(&pairs)?;
        let values = start.values(&pairs);
        Ok(State { pairs: Arc::new(pairs), start: Arc::new(start), values })
    }

    /// The names of each output that a state hands on and of the input that takes its value, and the axis along which the
    /// value grows; none if the plan has no state.
    pub fn state_pairs(&self) -> impl Iterator<Item = (&str, &str, Option<usize>)> {
        let plan = &self.executable.plan;
        let name = move |id: ValueId| plan.main.values[id.at()].name.as_str();
        plan.state.iter().map(move |pair| (name(pair.output), name(pair.input), pair.axis))
    }

    /// Computes outputs like [`Session::run_request`]. `inputs` are those that the state does not hold, in the plan's
    /// order. Unless the request names outputs, the results are those that the state does not take, in the plan's order.
    ///
    /// # Errors
    /// As [`Session::run_request`]; also [`Error::State`] if the state belongs to another plan or device, and
    /// [`Error::Input`] if a size of the state's first value is unknown, or an output does not fit its input. After an
    /// error, the state is as it was.
    pub fn run_with(&self, state: &mut State, inputs: Vec<Value>, request: &Request) -> Result<Vec<Value>> {
        state.check(self)?;
        let (outputs, kept) = state.pairs.outputs(request.only);
        let request = Request { only: Some(&outputs), ..*request };
        state.during(self, inputs, |state, inputs, growing| {
            let of_state = OfState { kept, growing };
            let mut results = self.executable.run_observed(inputs, &self.threads, &request, (Some(of_state), None))?;
            let values = state.taken(results.split_off(kept))?;
            let results = results.into_iter().map(|value| packed(value, &self.threads));
            Ok((results.collect::<Result<_>>()?, Some(values)))
        })
    }
}

#[doc(hidden)]
impl Session {
    /// [`Session::profile`] with a state. `inputs` are those that the state does not hold, in the plan's order. Every run
    /// begins with the values of the state, which is as it was afterwards.
    ///
    /// # Errors
    /// As [`Session::run_with`].
    pub fn profile_with(&self, state: &mut State, inputs: &[Value], runs: usize, stop: Stop) -> Result<Vec<StepTime>> {
        state.check(self)?;
        let (outputs, kept) = state.pairs.outputs(None);
        let request = Request { only: Some(&outputs), stop, ..Request::default() };
        self.executable.profile_of(runs, |observer| {
            state.during(self, copies(inputs)?, |_, inputs, growing| {
                let around = (Some(OfState { kept, growing }), Some(observer));
                self.executable.run_observed(inputs, &self.threads, &request, around)?;
                Ok(((), None))
            })
        })
    }
}

impl State {
    /// The indices of the plan's inputs that a run with the state needs, in order.
    pub fn given(&self) -> &[usize] {
        &self.pairs.given
    }

    /// The indices of the plan's outputs that the state does not take, in order.
    pub fn results(&self) -> &[usize] {
        &self.pairs.results
    }

    /// Returns to the values with which the state began.
    pub fn reset(&mut self) {
        self.values = self.start.values(&self.pairs);
    }

    /// The bytes of the values.
    pub fn bytes(&self) -> usize {
        let bytes = |value: &Value| match value {
            Value::Grown(grown) => grown.bytes_of_elements(),
            value => value.tensor().map_or(0, Array::bytes_of_elements),
        };
        self.values.iter().flatten().map(bytes).sum()
    }

    /// The size of the first value that grows along its growing axis, such as the number of tokens in a cache; `None` if
    /// no value is known to grow.
    pub fn length(&self) -> Option<usize> {
        let mut grown = self.pairs.list.iter().zip(&self.values);
        grown.find_map(|(pair, value)| pair.axis.map(|axis| length_of(value.as_ref(), axis)))
    }

    /// The names of the inputs that the state holds, with copies of their values on the host. A value whose sizes the first
    /// run decides is missing.
    ///
    /// # Errors
    /// There is no memory, or the device fails.
    pub fn to_host(&self) -> Result<Vec<(&str, Value)>> {
        let mut values = Vec::with_capacity(self.values.len());
        for (pair, value) in self.pairs.list.iter().zip(&self.values) {
            let copy = match value {
                None => continue,
                Some(value) => packed(value.clone(), &Threads::serial())?,
            };
            let copy = match copy {
                Value::Tensor(array) if array.is_on_device() => array.to_host()?.into(),
                copy => copy,
            };
            values.push((pair.input.name.as_str(), copy));
        }
        Ok(values)
    }

    fn arrays(&self) -> impl Iterator<Item = &Array> {
        self.values.iter().flatten().filter_map(|value| match value {
            Value::Grown(grown) => Some(grown.storage().0),
            value => value.tensor().ok(),
        })
    }

    /// Checks that a session can go on with the state.
    ///
    /// # Errors
    /// [`Error::State`]: the state belongs to another plan, or its values are on another device.
    pub fn check(&self, session: &Session) -> Result<()> {
        if self.pairs.plan != session.executable.plan.sha256 {
            return Err(Error::State("the state belongs to another plan: make one with this session".to_string()));
        }
        if self.values.len() != self.pairs.list.len() {
            return Err(Error::State("a run with the state broke off: reset the state".to_string()));
        }
        match self.arrays().map(Array::device).find(|device| *device != "cpu" && *device != session.device()) {
            None => Ok(()),
            Some(device) => Err(Error::State(format!(
                "the state is on {device}, and the session on {}: save the state, and load it into one of this session",
                session.device()
            ))),
        }
    }

    /// The inputs of a run, in the plan's order: the values of the state, and those that the caller gives.
    fn inputs(&mut self, session: &Session, given: Vec<Value>) -> Result<Vec<Value>> {
        let kinds: Vec<_> = session.inputs().collect();
        let places = &self.pairs.given;
        if places.len() != given.len() {
            let names: Vec<&str> = places.iter().map(|&at| kinds[at].0).collect();
            return Err(Error::op(format!("expected the inputs {names:?}, in this order, found {}", given.len())));
        }
        let named: Vec<_> = places.iter().map(|&at| kinds[at].1).zip(&given).collect();
        let mut held = Vec::with_capacity(self.values.len());
        for ((id, pair), value) in (0..).map(PairId).zip(&self.pairs.list).zip(&mut self.values) {
            let grows = session.executable.grows[id.at()];
            let first = value.clone().map_or_else(|| self.start.zeros(pair, &named), Ok)?;
            let first = if grows { first } else { packed(first, &session.threads)? };
            held.push(if grows { hollow(&first)? } else { first.clone() });
            *value = Some(first);
        }
        let mut inputs = vec![Value::None; kinds.len()];
        for (&at, value) in places.iter().zip(given) {
            inputs[at] = value;
        }
        for (pair, value) in self.pairs.list.iter().zip(held) {
            inputs[pair.input.at] = value;
        }
        Ok(inputs)
    }

    /// Does the `work` of a run with the inputs that the caller gives, and with the values. If it returns values, they become
    /// those of the state. Otherwise, or after an error, the state is as it was. The results of the run must not exist then.
    fn during<T>(
        &mut self,
        session: &Session,
        given: Vec<Value>,
        work: impl FnOnce(&State, Vec<Value>, &Growing) -> Result<(T, Option<Values>)>,
    ) -> Result<T> {
        let undecided: Vec<bool> = self.values.iter().map(Option::is_none).collect();
        let inputs = self.inputs(session, given).inspect_err(|_| self.forget(&undecided))?;
        let counted = session.executable.max_memory.is_some().then_some(&session.executable.addresses);
        let growing = Growing::of(std::mem::take(&mut self.values), counted);
        let done = match work(self, inputs, &growing) {
            Ok((done, Some(values))) => {
                self.values = values;
                return Ok(done);
            }
            Ok((done, None)) => Ok(done),
            Err(error) => Err(error),
        };
        // `check` refuses a state without values.
        let restored = growing.restored().map(|values| self.values = values);
        self.forget(&undecided);
        done.and_then(|done| restored.map(|()| done))
    }

    /// Drops the values whose sizes a run decided that did not change the state.
    fn forget(&mut self, undecided: &[bool]) {
        for (value, _) in self.values.iter_mut().zip(undecided).filter(|(_, undecided)| **undecided) {
            *value = None;
        }
    }

    /// The next values, from the outputs of a run.
    fn taken(&self, results: Vec<Value>) -> Result<Values> {
        let mut values = Vec::with_capacity(results.len());
        for (pair, value) in self.pairs.list.iter().zip(results) {
            pair.check(&value, &format!(" as the output {:?} of the run before it", pair.output.name))?;
            values.push(Some(settled(value)?));
        }
        Ok(values)
    }
}
