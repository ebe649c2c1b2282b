//! Runs an executable. [Prepare](crate::prepare) has made every decision; this file only moves values.

use candle_plan_device::Report;
use candle_plan_kernels::threads::Threads;
use candle_plan_memory::buffer;
use smallvec::SmallVec;

use crate::device::Device;
use crate::error::{Error, ErrorKind, Place, Result};
use crate::executable::Executable;
use crate::expected::Expected;
use crate::gpu_run::{Outputs, Places};
use crate::growing::{self, Growing};
use crate::ids::BlockId;
use crate::interrupt::{Stop, Watch};
use crate::kernel::{Blocks, Call, Input};
use crate::memory::{bytes_held, Bound};
use crate::observe::{Observer, OfState, Seen};
use crate::prepare::{Mark, NodeId, Operand, PreparedBlock, PreparedStep};
use crate::request::{Request, Wanted};
use crate::size::beyond;
use crate::slots::{pass, skip, take, Outline, Slots, Spare};
use crate::value::Value;

impl Executable {
    /// Runs the plan. Inputs and outputs are in the plan's order.
    ///
    /// # Errors
    /// [`Error::Input`] if an input does not fit its declaration; [`Error::Run`], with its place, if a step fails.
    pub fn run(&self, inputs: Vec<Value>, threads: &Threads) -> Result<Vec<Value>> {
        self.run_until(inputs, threads, &|| false)
    }

    /// Like [`Executable::run`], but ends early if `stop` returns true.
    ///
    /// # Errors
    /// See [`Executable::run`]; also [`Error::Interrupted`].
    pub fn run_until(&self, inputs: Vec<Value>, threads: &Threads, stop: Stop) -> Result<Vec<Value>> {
        self.run_request(inputs, threads, &Request { stop, ..Request::default() })
    }

    /// Like [`Executable::run`], for the outputs that the request names.
    ///
    /// # Errors
    /// See [`Executable::run`]; also [`Error::Interrupted`] and [`Error::TimedOut`]. [`Error::Op`] if there is no such
    /// output.
    pub fn run_request(&self, inputs: Vec<Value>, threads: &Threads, request: &Request) -> Result<Vec<Value>> {
        self.run_observed(inputs, threads, request, (None, None))
    }

    /// Like [`Executable::run_request`], with the values of a state, and with an observer around every step.
    pub(crate) fn run_observed(
        &self,
        inputs: Vec<Value>,
        threads: &Threads,
        request: &Request,
        (state, observer): (Option<OfState>, Option<&dyn Observer>),
    ) -> Result<Vec<Value>> {
        let wanted = request.only.map(|only| Wanted::new(&self.main, only)).transpose()?;
        let watch = Watch::new(request.stop, request.deadline);
        let places = Places { given: request.place, kept: state.map_or(usize::MAX, |state| state.kept) };
        let growing = state.map(|state| state.growing);
        let (spare, expected) = (Spare::default(), Expected::default());
        Run { executable: self, threads, watch, observer, places, wanted, growing, spare, expected }.on_device(inputs)
    }

    /// Returns the error of the step whose kernel reported an invalid value.
    pub(crate) fn fault(&self, report: &Report) -> Error {
        let Some((step, within)) = self.main.marked(Mark(report.mark)) else {
            return Error::op(format!("a kernel found a fault, of no step: {}", report.mark));
        };
        let (index, op, origin) = (step.index, step.name, self.origin(step));
        let place = Place { step: index, op, within, inputs: Vec::new(), origin };
        let message = step.kernel.on_gpu().map_or_else(|| report.to_string(), |kernel| kernel.fault(report));
        Error::Run { place: Box::new(place), message, kind: ErrorKind::Op }
    }
}

struct Run<'a> {
    executable: &'a Executable,
    threads: &'a Threads,
    watch: Watch<'a>,
    observer: Option<&'a dyn Observer>,
    places: Places,
    /// The outputs to compute; `None` for all.
    wanted: Option<Wanted<'a>>,
    /// The values of a state that change in place.
    growing: Option<&'a Growing>,
    spare: Spare,
    /// The sizes of results. Only a run with a memory limit needs them.
    expected: Expected,
}

/// The nested blocks of a step.
struct Nested<'a> {
    run: &'a Run<'a>,
    step: &'a PreparedStep,
}

impl Blocks for Nested<'_> {
    fn run(&self, id: BlockId, inputs: &mut Vec<Value>, outputs: &mut Vec<Value>) -> Result<()> {
        let block = self.step.blocks.get(id.at()).ok_or_else(|| Error::op(format!("there is no block {id}")))?;
        block.check(id, inputs)?;
        let bound = self.run.executable.max_memory.map(|_| self.run.bound(self.run.left(), inputs));
        self.run.steps(block, None, (inputs, outputs), bound.as_ref()).map_err(|error| self.place(error, id))
    }
}

impl PreparedBlock {
    /// Checks that the inputs of the block, number `id` of its step, have the types with which its steps were checked.
    fn check(&self, id: BlockId, inputs: &[Value]) -> Result<()> {
        match self.takes.iter().zip(inputs).enumerate().find(|(_, (taken, value))| !taken.admits(value)) {
            None => Ok(()),
            Some((input, (taken, value))) => {
                Err(Error::op(format!("block {id} takes {taken} as input {input}, found {}", value.describe())))
            }
        }
    }
}

impl Nested<'_> {
    /// Adds the block to the place of a nested step's error.
    fn place(&self, mut error: Error, id: BlockId) -> Error {
        if let Error::Run { place, .. } = &mut error {
            place.within.insert(0, self.step.surrounding(id));
        }
        error
    }
}

impl Run<'_> {
    fn on_device(&self, inputs: Vec<Value>) -> Result<Vec<Value>> {
        let executable = self.executable;
        crate::inputs::check(executable, &inputs)?;
        let Device::Gpu(gpu) = &executable.device else { return self.plan(inputs) };
        let turn = gpu.turn().map_err(|error| executable.device.refused(error.to_string()))?;
        let inputs = executable.enter(gpu, inputs)?;
        // An input on the device may belong to another library, so it must live until all work is done.
        let held: Vec<Value> = inputs.iter().filter(|value| is_on_device(value)).cloned().collect();
        let outputs = executable.leave(gpu, &turn, self.plan(inputs), self.places);
        drop(held);
        outputs
    }

    /// Whether a step's result is copied to the host with all others at the end of the run, or not at all.
    fn is_delivered_later(&self, step: &PreparedStep) -> bool {
        step.delivers
            && (self.places.given == Outputs::Device
                || self.is_kept(step)
                || self.observer.is_none_or(|observer| !observer.sees_deliveries())
                    && self.executable.max_memory.is_none())
    }

    /// Whether every result that a step delivers stays on the device.
    fn is_kept(&self, step: &PreparedStep) -> bool {
        let Some(wanted) = &self.wanted else { return false };
        let delivers = |output: &Operand| match *output {
            Operand::Slot(slot) | Operand::Dying(slot) => step.outputs.contains(&Some(slot)),
            Operand::Constant(_) | Operand::Absent => false,
        };
        let outputs = &self.executable.main.outputs;
        wanted.outputs.iter().take(self.places.kept).all(|&at| !outputs.get(at).is_some_and(delivers))
    }

    fn plan(&self, mut inputs: Vec<Value>) -> Result<Vec<Value>> {
        let (main, wanted, mut outputs) = (&self.executable.main, self.wanted.as_ref(), Vec::new());
        let lists = (&mut inputs, &mut outputs);
        match self.executable.max_memory {
            None => self.steps(main, wanted, lists, None)?,
            Some(bytes) => {
                buffer::within(bytes, || self.steps(main, wanted, lists, Some(&self.bound(bytes, &[]))))?;
                self.check_copies(&outputs, bytes)?;
            }
        }
        Ok(outputs)
    }

    /// Bounds a block by `limit` bytes, with those of the state. Values in `lent` and constants do not count.
    fn bound(&self, limit: usize, lent: &[Value]) -> Bound<'_> {
        let constants = &self.executable.addresses;
        Bound::new(limit, self.growing.and_then(Growing::held), (constants, lent), &self.expected)
    }

    /// The bytes that a step has [left](buffer::budget) for its blocks, and those of the state.
    fn left(&self) -> usize {
        buffer::budget().saturating_add(self.growing.map_or(0, Growing::bytes))
    }

    /// Checks that the caller of the run can get copies of values that the state keeps.
    fn check_copies(&self, outputs: &[Value], limit: usize) -> Result<()> {
        let Some((growing, held)) = self.growing.and_then(|growing| Some((growing, growing.held()?))) else {
            return Ok(());
        };
        let copied = |value: &Value| if let Value::Grown(grown) = value { grown.bytes_to_copy() } else { 0 };
        let copies = outputs.iter().take(self.places.kept).map(copied).fold(0, usize::saturating_add);
        let others = bytes_held(outputs.iter().filter(|value| !held.borrow().holds(value)));
        match copies.saturating_add(others).saturating_add(growing.bytes()) {
            needed if copies > 0 && needed > limit => Err(Error::Memory(format!(
                "the outputs and the state need {needed} bytes, but max_memory is {limit}: raise it or use smaller inputs"
            ))),
            _ => Ok(()),
        }
    }

    /// Runs a block, or the part of it that computes the wanted outputs. Takes the inputs, and appends these outputs.
    fn steps(
        &self,
        block: &PreparedBlock,
        wanted: Option<&Wanted>,
        (inputs, outputs): (&mut Vec<Value>, &mut Vec<Value>),
        bound: Option<&Bound>,
    ) -> Result<()> {
        if inputs.len() != block.inputs.len() {
            return Err(Error::op(format!("a block takes {} inputs, found {}", block.inputs.len(), inputs.len())));
        }
        let mut slots = self.spare.slots(block.held.len(), bound);
        for (slot, value) in block.inputs.iter().zip(inputs.drain(..)) {
            slots.lend(*slot, value);
        }
        let mut begun = Begun::default();
        match buffer::caught(|| self.run_steps(block, wanted, &mut slots, &mut begun)) {
            Ok(ended) => ended?,
            Err(out_of_memory) => {
                return Err(self.place_begun(beyond(out_of_memory), &block.steps[begun.step.at()], &slots, &begun))
            }
        }
        let count = wanted.map_or(block.outputs.len(), |wanted| wanted.outputs.len());
        for i in 0..count {
            let operand = &block.outputs[wanted.map_or(i, |wanted| wanted.outputs[i])];
            outputs.push(self.output(operand, &slots).ok_or_else(|| Error::op("an output was not computed"))?);
        }
        self.spare.keep(slots);
        Ok(())
    }

    /// Returns the value of an output of a block.
    fn output(&self, operand: &Operand, slots: &[Option<Value>]) -> Option<Value> {
        match *operand {
            Operand::Constant(index) => self.executable.constants.get(index.at()).cloned(),
            Operand::Slot(slot) | Operand::Dying(slot) => slots[slot.at()].clone(),
            Operand::Absent => None,
        }
    }

    fn run_steps(
        &self,
        block: &PreparedBlock,
        wanted: Option<&Wanted>,
        slots: &mut Slots,
        begun: &mut Begun,
    ) -> Result<()> {
        if block.steps.is_empty() {
            self.watch.check()?; // a loop may repeat this block forever
        }
        for (at, step) in block.numbered() {
            self.watch.check()?;
            begun.step = at;
            match self.observer {
                _ if wanted.is_some_and(|wanted| !wanted.needs(at)) => skip(step, slots),
                _ if self.is_delivered_later(step) || step.carries && self.growing.is_some() => pass(step, slots),
                None if step.passes && self.growing.is_none() && slots.fit() => pass(step, slots),
                None => self.step(step, slots, begun)?,
                Some(observer) => observer.step(step, &mut || self.step(step, slots, begun))?,
            }
        }
        Ok(())
    }

    fn step(&self, step: &PreparedStep, slots: &mut Slots, begun: &mut Begun) -> Result<()> {
        if let Device::Gpu(gpu) = &self.executable.device {
            gpu.mark(step.mark.0);
        }
        let mut inputs = SmallVec::<[Input; 4]>::new();
        begun.taken.clear();
        take(step, slots, &mut inputs, &mut begun.taken);
        self.share(step, slots, &mut inputs);
        let packed = growing::pack(step, (&**slots, slots.bound()), &mut inputs, self.threads);
        packed.map_err(|error| self.place(error, step, &inputs, &begun.taken))?;
        let blocks = Nested { run: self, step };
        let mut call =
            Call { inputs: &mut inputs, outputs: step.outputs.len(), threads: self.threads, blocks: &blocks };
        let outputs = match self.observer {
            None => self.run_kernel(step, slots, &mut call),
            Some(observer) => {
                let seen = Seen { step, slots, in_place: self.growing_in(step).is_some() };
                observer.kernel(seen, &mut call, &mut |call| self.run_kernel(step, slots, call))
            }
        };
        let outputs = outputs.map_err(|error| self.place(error, step, &inputs, &begun.taken))?;
        drop(inputs);
        for (slot, value) in step.outputs.iter().zip(outputs) {
            slots.put_result(*slot, value);
        }
        step.drops.iter().for_each(|slot| slots.clear(*slot));
        Ok(())
    }

    /// The values of the state, if the step changes one of them in place.
    fn growing_in(&self, step: &PreparedStep) -> Option<&Growing> {
        self.growing.filter(|_| step.grows.is_some())
    }

    /// Runs the kernel of a step, or changes a value of the state in place.
    fn run_kernel(&self, step: &PreparedStep, slots: &Slots, call: &mut Call) -> Result<Vec<Value>> {
        let growing = self.growing_in(step);
        let work = |call: &mut Call| match growing {
            Some(growing) => growing.run(step, call),
            None => step.kernel().run(call),
        };
        let Some(bound) = slots.bound() else { return work(call) };
        let expected = match growing {
            Some(_) => 0,
            None => bound.expected(step.mark.0 as usize, step.operator(), call),
        };
        bound.run(expected, slots, call, work)
    }

    /// Lends the inputs that outlive the step.
    fn share<'a>(&'a self, step: &PreparedStep, slots: &'a [Option<Value>], inputs: &mut [Input<'a>]) {
        for (input, operand) in inputs.iter_mut().zip(&step.inputs) {
            let shared = match *operand {
                Operand::Constant(index) => self.executable.constants.get(index.at()),
                Operand::Slot(slot) => slots[slot.at()].as_ref(),
                _ => continue,
            };
            *input = shared.map_or(Input::Absent, Input::Shared);
        }
    }

    /// Returns the error of a kernel that [ended](buffer::OutOfMemory::end) early, with its step's place.
    fn place_begun(&self, error: Error, step: &PreparedStep, slots: &[Option<Value>], begun: &Begun) -> Error {
        let mut inputs: SmallVec<[Input; 4]> = step.inputs.iter().map(|_| Input::Absent).collect();
        self.share(step, slots, &mut inputs);
        self.place(error, step, &inputs, &begun.taken)
    }

    /// Adds the step's place to an op's error. An error that already has a place (from a nested step) keeps it.
    fn place(&self, error: Error, step: &PreparedStep, inputs: &[Input], outlines: &[Outline]) -> Error {
        let kind = error.kind();
        let mut message = match error {
            Error::Op(message) | Error::Memory(message) | Error::Gpu(message) | Error::Setting(message) => message,
            Error::Limit { .. } => error.to_string(),
            placed => return placed,
        };
        let describe = |(i, input): (usize, &Input)| match input {
            Input::Shared(value) => step.describe(i, value),
            Input::Owned(value) => step.describe(i, value),
            Input::Absent => match outlines.iter().find(|outline| outline.input == i) {
                Some(Outline { dtype: Some(dtype), dims, .. }) => step.describe_tensor(i, *dtype, dims),
                Some(Outline { dims, .. }) => format!("sequence of {}", dims[0]),
                None => "absent".to_string(),
            },
        };
        if step.channels.iter().any(Option::is_some) {
            let block = self.executable.blocking.block();
            let layout = format!("blocks of {block} channels, [N, C / {block}, …, {block}]");
            message += &format!(" (within this step, images are in {layout})");
        }
        let place = Place {
            step: step.index,
            op: step.name,
            within: Vec::new(),
            inputs: inputs.iter().enumerate().map(describe).collect(),
            origin: self.executable.origin(step),
        };
        Error::Run { place: Box::new(place), message, kind }
    }
}

fn is_on_device(value: &Value) -> bool {
    matches!(value, Value::Tensor(array) if array.is_on_device())
}

/// The current step of a block.
#[derive(Default)]
struct Begun {
    step: NodeId,
    /// The inputs that the step took over.
    taken: SmallVec<[Outline; 2]>,
}
