//! Observers of a run's steps, and the values of a state that a run changes.

use crate::error::Result;
use crate::growing::Growing;
use crate::kernel::Call;
use crate::prepare::PreparedStep;
use crate::value::Value;

/// The part of a run that belongs to a state.
#[derive(Clone, Copy)]
pub(crate) struct OfState<'a> {
    /// The index of the first result that the state keeps. It stays on the device.
    pub kept: usize,
    /// All values of the state. The run changes some of them in place.
    pub growing: &'a Growing,
}

/// Observes every step of a run.
pub(crate) trait Observer: Sync {
    /// Whether each output is copied from the GPU to the host in its own step, which the observer sees. Otherwise all
    /// outputs are copied together at the end of the run.
    fn sees_deliveries(&self) -> bool {
        true
    }

    /// Called around a step. Calls `run`, which runs the step, once.
    fn step(&self, _step: &PreparedStep, run: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        run()
    }

    /// Called inside [`Observer::step`]. Calls `run`, which runs the step's kernel, once. `_seen` has the values of the
    /// block, except the inputs that the step may take over.
    fn kernel(&self, _seen: Seen, call: &mut Call, run: &mut KernelRun) -> Result<Vec<Value>> {
        run(call)
    }
}

/// The data about a step that an observer sees in addition to the inputs.
pub(crate) struct Seen<'a> {
    pub step: &'a PreparedStep,
    /// The values of the step's block, without those that the step takes over.
    pub slots: &'a [Option<Value>],
    /// Whether the step changes a value of the state in place.
    pub in_place: bool,
}

/// Runs a kernel.
pub(crate) type KernelRun<'a> = dyn FnMut(&mut Call) -> Result<Vec<Value>> + 'a;
