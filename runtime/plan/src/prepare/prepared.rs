//! Prepared blocks and steps.

use candle_plan_device::Gpu;

use super::chain::Chain;
use super::placed::Placed;
use crate::device::Reason;
use crate::dtype::DType;
use crate::error::{Error, Result, Surrounding};
use crate::gpu::OnGpu;
use crate::ids::{BlockId, ConstantId, OriginId, PairId, StepId, ValueId};
use crate::kernel::Kernel;
use crate::layout::{in_rows, Layout};
use crate::operator::Operator;
use crate::types::{TensorType, Type, Types};
use crate::value::Value;
use crate::work::Work;

/// A prepared block.
pub(crate) struct PreparedBlock {
    pub steps: Vec<PreparedStep>,
    /// The value in each slot of a run.
    pub held: Vec<SlotContent>,
    pub inputs: Vec<SlotId>,
    /// The types of the inputs.
    pub takes: Vec<Type>,
    pub outputs: Vec<Operand>,
}

/// The index of a slot. The values of the plan's block come first, then those that prepare added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SlotId(pub u32);

impl SlotId {
    /// Returns the slot of a value of the plan.
    pub fn of(value: ValueId) -> SlotId {
        SlotId(value.0)
    }

    /// Returns the index of the slot.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// The index of a step in its block, also during prepare.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(pub u32);

impl NodeId {
    /// Returns the index.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// The number of a step among all steps of a plan and its nested blocks, counted from 1. A device kernel that finds an
/// invalid value writes this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Mark(pub u32);

/// The content of a slot: a value of the plan's block, in a layout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotContent {
    pub value: ValueId,
    pub layout: Layout,
}

/// A prepared step.
pub(crate) struct PreparedStep {
    /// The step's index in the plan's block. A step that prepare added has the index of the step that it serves.
    pub index: StepId,
    /// Whether prepare added it.
    pub added: bool,
    pub name: &'static str,
    /// The operators that the step computes.
    pub ops: Chain,
    pub kernel: StepKernel,
    pub inputs: Vec<Operand>,
    /// The slot of each input. The slots of constants stay empty.
    pub reads: Vec<Option<SlotId>>,
    pub outputs: Vec<Option<SlotId>>,
    /// The channels of each input in blocks of channels.
    pub channels: Vec<Option<usize>>,
    /// The slots that the step frees.
    pub drops: Vec<SlotId>,
    pub blocks: Vec<PreparedBlock>,
    /// Why the step runs on the host, if the device is another.
    pub host: Option<Hosted>,
    /// Whether the step only delivers an output of the plan to the host, where no step reads it.
    pub delivers: bool,
    /// The value of the state that the step writes rows into, if it runs with a state; see [`super::growth`].
    pub grows: Option<Growth>,
    /// Whether the step only passes its input on as its output, on the host.
    pub passes: bool,
    /// Whether the step only carries such a value to or from the device. It does nothing in a run with a state.
    pub carries: bool,
    /// For each input that may be a tensor that grows, and that the kernel cannot read, the pair of the state. Empty if there
    /// is none.
    pub packs: Vec<Option<PairId>>,
    /// The number of the step among all steps of the plan and its nested blocks, counted from 1.
    pub mark: Mark,
    pub origin: OriginId,
}

/// A value of the state that changes in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Growth {
    pub pair: PairId,
    /// The axis of the rows.
    pub axis: usize,
}

/// The kernel of a step, on the host or on a GPU. During prepare, `K` is a kernel of the host that is not packed yet.
#[derive(Debug)]
pub(crate) enum StepKernel<K: ?Sized = dyn Kernel> {
    /// A kernel that runs on the host, or copies values between the host and a GPU.
    Host(Box<K>),
    /// A kernel that runs on a GPU. It packs nothing.
    Gpu(Placed),
}

impl StepKernel {
    /// Returns the kernel as the executor runs it.
    pub fn kernel(&self) -> &dyn Kernel {
        match self {
            StepKernel::Host(kernel) => kernel.as_ref(),
            StepKernel::Gpu(placed) => placed,
        }
    }

    /// Returns the GPU on which the kernel runs, if it is one of a GPU.
    pub fn gpu(&self) -> Option<&Gpu> {
        match self {
            StepKernel::Host(_) => None,
            StepKernel::Gpu(placed) => Some(&placed.gpu),
        }
    }

    /// Returns the kernel of a GPU, if it is one.
    pub fn on_gpu(&self) -> Option<&dyn OnGpu> {
        match self {
            StepKernel::Host(_) => None,
            StepKernel::Gpu(placed) => Some(placed.kernel.as_ref()),
        }
    }
}

/// Facts about a step that runs on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hosted {
    pub reason: Reason,
    /// The bytes that move because the device has no kernel for the step.
    pub bytes: Option<usize>,
    /// Whether the output is a view of the first input, on the host or on the device.
    pub is_view: bool,
}

/// The source of a step's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    /// An optional input that is absent.
    Absent,
    /// A constant of the plan.
    Constant(ConstantId),
    /// A slot whose value is needed later.
    Slot(SlotId),
    /// A slot whose value and storage the step may take over.
    Dying(SlotId),
}

impl PreparedBlock {
    /// Returns the steps with their ids.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (NodeId, &PreparedStep)> {
        (0..).map(NodeId).zip(&self.steps)
    }

    /// Calls `visit` with every step, and with a step before the steps of its nested blocks.
    pub(crate) fn each_step<'a>(&'a self, visit: &mut impl FnMut(&'a PreparedStep)) {
        for step in &self.steps {
            visit(step);
            step.blocks.iter().for_each(|block| block.each_step(visit));
        }
    }

    /// Returns the step with a number, and the blocks around it, the outermost first.
    pub(crate) fn marked<'a>(&'a self, mark: Mark) -> Option<(&'a PreparedStep, Vec<Surrounding>)> {
        self.steps.iter().find_map(|step| {
            let inside = |(id, block): (u32, &'a PreparedBlock)| {
                let (found, mut path) = block.marked(mark)?;
                path.insert(0, step.surrounding(BlockId(id)));
                Some((found, path))
            };
            (step.mark == mark).then(|| (step, Vec::new())).or_else(|| (0..).zip(&step.blocks).find_map(inside))
        })
    }

    /// Numbers the steps, starting after `last`.
    pub(super) fn number(&mut self, last: &mut Mark) {
        for step in &mut self.steps {
            last.0 += 1;
            step.mark = *last;
            step.blocks.iter_mut().for_each(|block| block.number(last));
        }
    }

    /// Drops the elements of constants that no step reads on the host, because they were copied to the device.
    pub(super) fn release_unread(&self, constants: &mut [Value]) {
        let mut is_read = vec![false; constants.len()];
        let mut read = |operand: &Operand| {
            if let Operand::Constant(index) = *operand {
                is_read[index.at()] = true;
            }
        };
        self.each_operand(&mut read);
        for (constant, _) in constants.iter_mut().zip(is_read).filter(|(_, is_read)| !is_read) {
            if let Value::Tensor(array) = constant {
                *array = array.outline();
            }
        }
    }

    fn each_operand(&self, visit: &mut impl FnMut(&Operand)) {
        self.outputs.iter().for_each(&mut *visit);
        for step in &self.steps {
            step.inputs.iter().for_each(&mut *visit);
            step.blocks.iter().for_each(|block| block.each_operand(visit));
        }
    }
}

impl PreparedStep {
    /// Returns the kernel as the executor runs it.
    pub(crate) fn kernel(&self) -> &dyn Kernel {
        self.kernel.kernel()
    }

    /// Returns the operator, if the step computes exactly one and no input is in blocks of channels.
    pub(crate) fn operator(&self) -> Option<&dyn Operator> {
        let is_in_rows = self.channels.iter().all(Option::is_none);
        self.ops.single().filter(|_| is_in_rows).map(|op| op.operator())
    }

    /// Returns the work of a run for inputs and outputs of these types, in the layouts that the step uses.
    pub(crate) fn work(&self, inputs: &[Option<Type>], outputs: &[Type]) -> Option<Work> {
        let given: Vec<Option<&Type>> = inputs.iter().map(Option::as_ref).collect();
        let given = Types::of(&given, outputs.len());
        if self.ops.is_empty() {
            return Work::moving(&given, outputs);
        }
        if let Some(operator) = self.operator() {
            return operator.work(&given, outputs);
        }
        let rows =
            inputs.iter().enumerate().map(|(i, kind)| kind.as_ref().map(|kind| self.in_rows(i, kind)).transpose());
        let rows: Vec<Option<Type>> = rows.collect::<Result<_>>().ok()?;
        let rows: Vec<Option<&Type>> = rows.iter().map(Option::as_ref).collect();
        self.ops.work(&Types::of(&rows, outputs.len()))
    }

    /// Returns the type of input `i` in rows.
    fn in_rows(&self, i: usize, kind: &Type) -> Result<Type> {
        let Some(channels) = self.channels.get(i).copied().flatten() else { return Ok(kind.clone()) };
        let tensor = kind.tensor()?;
        let sizes = tensor.sizes().ok_or_else(|| Error::op("an image whose sizes are not known"))?;
        Ok(Type::Tensor(TensorType::sized(tensor.dtype, &in_rows(&sizes, channels)?)))
    }

    /// Describes input `i` with its dimensions in the plan.
    pub(crate) fn describe(&self, i: usize, value: &Value) -> String {
        match value {
            Value::Tensor(array) => self.describe_tensor(i, array.dtype(), array.dims()),
            other => other.describe(),
        }
    }

    pub(crate) fn describe_tensor(&self, i: usize, dtype: DType, dims: &[usize]) -> String {
        let channels = self.channels.get(i).copied().flatten();
        match channels.and_then(|channels| in_rows(dims, channels).ok()) {
            Some(rows) => format!("{dtype} {rows:?}"),
            None => format!("{dtype} {dims:?}"),
        }
    }

    /// Describes a nested block as one around another step.
    pub(crate) fn surrounding(&self, block: BlockId) -> Surrounding {
        Surrounding { block, step: self.index, op: self.name }
    }
}
