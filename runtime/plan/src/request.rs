//! Requests: which outputs a run computes, where they go, and when the run ends early.

use std::time::Instant;

use crate::error::{Error, Result};
use crate::gpu_run::Outputs;
use crate::prepare::{NodeId, Operand, PreparedBlock};

/// The outputs that a run computes, the place for them, and the conditions that end the run early.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use candle_plan::{Error, ErrorKind, Request, Session, Value};
///
/// # fn main() -> Result<(), Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans/v1.plan");
/// let session = Session::builder(path).build()?;
/// let x = Value::new(vec![0f32; 4], &[1, 4])?;
/// let within_a_minute = Request { deadline: Some(Instant::now() + Duration::from_secs(60)), ..Request::default() };
/// let outputs = session.run_request(vec![x.clone()], &within_a_minute)?;
/// assert_eq!(outputs[0].dims()?, [1, 2]);
///
/// let too_late = Request { deadline: Some(Instant::now()), ..Request::default() };
/// let error = session.run_request(vec![x], &too_late).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::TimedOut);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The indices of the outputs to compute, in the order of the results; `None` for all. The run skips the steps that
    /// none of these outputs needs.
    pub only: Option<&'a [usize]>,
    /// Where the outputs go.
    #[doc(hidden)]
    pub place: Outputs,
    /// The time after which the run ends with [`Error::TimedOut`]. It checks the time between steps.
    pub deadline: Option<Instant>,
    /// Ends the run with [`Error::Interrupted`]. The run asks it between steps, about every 50 ms.
    pub stop: &'a dyn Fn() -> bool,
}

impl Default for Request<'_> {
    /// All outputs, on the host, without an early end.
    fn default() -> Self {
        Request { only: None, place: Outputs::Host, deadline: None, stop: &|| false }
    }
}

impl Request<'_> {
    /// Leaves the tensors among the outputs on the session's device. Without it, a run copies them to the host.
    #[must_use]
    pub fn on_device(self) -> Self {
        Request { place: Outputs::Device, ..self }
    }
}

/// Some outputs of a block, and the steps that they need.
pub(crate) struct Wanted<'a> {
    pub outputs: &'a [usize],
    /// Whether each step is needed.
    steps: Vec<bool>,
}

impl<'a> Wanted<'a> {
    /// # Errors
    /// The block has no output of one of these indices.
    pub fn new(block: &PreparedBlock, outputs: &'a [usize]) -> Result<Wanted<'a>> {
        let mut is_read = vec![false; block.held.len()];
        for &at in outputs {
            let missing = || Error::op(format!("there is no output {at}: the plan has {}", block.outputs.len()));
            mark(block.outputs.get(at).ok_or_else(missing)?, &mut is_read);
        }
        let mut steps = vec![false; block.steps.len()];
        for (step, is_needed) in block.steps.iter().zip(&mut steps).rev() {
            *is_needed = step.outputs.iter().flatten().any(|slot| is_read[slot.at()]);
            if *is_needed {
                step.inputs.iter().for_each(|operand| mark(operand, &mut is_read));
            }
        }
        Ok(Wanted { outputs, steps })
    }

    /// Whether the outputs need a step.
    pub fn needs(&self, step: NodeId) -> bool {
        self.steps[step.at()]
    }
}

/// Marks the slot of an operand as read.
fn mark(operand: &Operand, is_read: &mut [bool]) {
    if let Operand::Slot(slot) | Operand::Dying(slot) = *operand {
        is_read[slot.at()] = true;
    }
}
