//! Places the steps of a block on a GPU or the host, and adds the steps that copy values between them.
//!
//! Inputs and outputs of a plan are on the host. Floating-point inputs and outputs of a nested block are on the GPU.
//! Exceptions are values that the control-flow op itself slices, inspects or combines: they are on the host.

use std::collections::HashMap;

use candle_plan_device::Gpu;

use super::chain::Chain;
use super::graph::{Graph, Node};
use super::placed::Placed;
use super::{Hosted, SlotId, StepKernel};
use crate::cpu::PlannedKernel;
use crate::device::Reason;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::{self, upload, OnDevice, OnGpu, Transfer, TRANSFER};
use crate::layout::Layout;
use crate::operator::Needs;
use crate::plan::{ConstantId, OriginId, StepId};
use crate::types::Type;
use crate::value::Value;

/// The largest rank of a value that holds sizes.
const SIZES_RANK: usize = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Host,
    Device,
}

/// The caller of a block: it provides the inputs and takes the outputs.
#[derive(Clone, Copy)]
pub(super) enum Border<'a> {
    /// The caller of a run.
    Plan,
    /// A step that runs the block.
    Step {
        op: &'a Chain,
        /// The number of the step's inputs. The block takes the last ones.
        inputs: usize,
        /// Whether all inputs and outputs are tensors. Optionals may only be on the host.
        is_plain: bool,
    },
}

impl Border<'_> {
    /// Returns the border of a step's nested blocks.
    pub fn of<'a>(graph: &Graph, node: &'a Node) -> Border<'a> {
        let (op, inputs) = (&node.ops, node.inputs.len());
        let outside = node.inputs.iter().chain(&node.outputs).flatten().map(|&id| graph.kind(id));
        let blocks = op.blocks();
        let at_border = blocks
            .iter()
            .flat_map(|block| block.inputs.iter().chain(&block.outputs).map(|id| &block.values[id.at()].kind));
        Border::Step { op, inputs, is_plain: outside.chain(at_border).all(|kind| matches!(kind, Type::Tensor(_))) }
    }
}

/// Places every step of a block.
///
/// # Errors
/// The GPU lacks memory for a constant.
pub(super) fn choose(mut graph: Graph, constants: Uploads, gpu: &Gpu, border: Border) -> Result<Graph> {
    let nodes = graph.take_nodes();
    let count = graph.kinds.len();
    let (sides, sizes) = (vec![Side::Host; count], vec![false; count]);
    let mut placement = Placement { graph, constants, gpu, sides, sizes, moved: HashMap::new() };
    placement.take_inputs(border);
    for (node, own) in nodes {
        placement.node(node, own)?;
    }
    placement.finish(border)
}

/// The constants of all blocks, and their copies on the GPU.
pub(super) struct Uploads<'a> {
    pub values: &'a mut Vec<Value>,
    /// For each uploaded constant, the constant that is its copy on the GPU.
    pub uploaded: &'a mut HashMap<ConstantId, ConstantId>,
    /// The constants of the same plan, which was prepared for the same GPU.
    pub shared: Option<Copies<'a>>,
}

/// The constants of a prepared plan, and those of them that are copies on the GPU.
#[derive(Clone, Copy)]
pub(super) struct Copies<'a> {
    pub values: &'a [Value],
    pub of: &'a HashMap<ConstantId, ConstantId>,
}

impl Uploads<'_> {
    /// Returns the copy of a constant on the GPU. The first call makes it, or takes it from the other plan.
    fn on(&mut self, gpu: &Gpu, constant: ConstantId) -> Result<ConstantId> {
        if let Some(&uploaded) = self.uploaded.get(&constant) {
            return Ok(uploaded);
        }
        let shared = self.shared.and_then(|copies| copies.values.get(copies.of.get(&constant)?.at()));
        let value = match shared {
            Some(copy) => copy.clone(),
            None => upload(gpu, &self.values[constant.at()])?,
        };
        let uploaded = ConstantId(self.values.len() as u32);
        self.values.push(value);
        self.uploaded.insert(constant, uploaded);
        Ok(uploaded)
    }
}

struct Placement<'a> {
    graph: Graph,
    constants: Uploads<'a>,
    gpu: &'a Gpu,
    /// The side of each value.
    sides: Vec<Side>,
    /// Whether each value is computed from dimensions. Computations on it stay on the host.
    sizes: Vec<bool>,
    /// For each copied value, its copy on the other side.
    moved: HashMap<SlotId, SlotId>,
}

impl Placement<'_> {
    /// Sets the sides of the block's inputs.
    fn take_inputs(&mut self, border: Border) {
        let Border::Step { op, inputs, is_plain: true } = border else { return };
        let skipped = inputs.saturating_sub(self.graph.inputs.len());
        for (i, &id) in self.graph.inputs.iter().enumerate() {
            self.sides[id.at()] = self.border_side(op.needs(i + skipped), id);
        }
    }

    /// Copies the inputs of a step where needed, then appends the step.
    fn node(&mut self, mut node: Node, own: StepKernel<dyn PlannedKernel>) -> Result<()> {
        let is_sizes = self.is_sizes(&node);
        let (side, reason, kernel) = self.decide(&node, is_sizes)?;
        let is_view = reason.is_some() && self.is_view(&node)?;
        let place = (node.index, node.origin);
        let is_plain = matches!(Border::of(&self.graph, &node), Border::Step { is_plain: true, .. });
        let mut bytes = Some(0);
        for i in 0..node.inputs.len() {
            let Some(id) = node.inputs[i] else { continue };
            let side = match node.needs(i) {
                Needs::Dims => continue,
                Needs::Numbers => Side::Host,
                Needs::Elements if is_plain && !node.ops.blocks().is_empty() => self.border_side(Needs::Elements, id),
                Needs::Elements => side,
            };
            if reason == Some(Reason::NoKernel) && self.sides[id.at()] != side {
                bytes = sum(bytes, bytes_of_type(self.graph.kind(id)));
            }
            node.inputs[i] = Some(self.on(side, id, place)?);
        }
        for (i, id) in node.outputs.iter().enumerate().filter_map(|(i, id)| Some((i, (*id)?))) {
            self.sides[id.at()] = if is_plain { self.output_side(&node, i, id, side) } else { side };
            self.sizes[id.at()] = is_sizes;
        }
        node.host = reason.map(|reason| Hosted { reason, bytes, is_view });
        let on_gpu = kernel.map(|kernel| StepKernel::Gpu(Placed { kernel, gpu: self.gpu.clone() }));
        self.graph.push(node, on_gpu.unwrap_or(own));
        Ok(())
    }

    /// Chooses the side of a step. Returns the reason if it is the host, and the kernel if the GPU has one.
    fn decide(&self, node: &Node, is_sizes: bool) -> Result<(Side, Option<Reason>, Option<Box<dyn OnGpu>>)> {
        let nature = (Side::Host, Some(Reason::Nature), None);
        if is_sizes || !self.is_numeric(node) || !node.ops.blocks().is_empty() {
            return Ok(nature);
        }
        Ok(match self.support(node)? {
            OnDevice::Host => nature,
            OnDevice::Kernel(kernel) => (Side::Device, None, Some(kernel)),
            OnDevice::View => match node.inputs.first().copied().flatten().map(|id| self.sides[id.at()]) {
                Some(Side::Device) => (Side::Device, None, None),
                _ => nature,
            },
            OnDevice::NoKernel => (Side::Host, Some(Reason::NoKernel), None),
        })
    }

    /// Whether a step makes a view of its input on either side.
    fn is_view(&self, node: &Node) -> Result<bool> {
        Ok(self.is_numeric(node) && node.ops.blocks().is_empty() && matches!(self.support(node)?, OnDevice::View))
    }

    /// Returns the GPU's support for a step.
    fn support(&self, node: &Node) -> Result<OnDevice> {
        let Some(op) = node.ops.single() else { return Ok(OnDevice::NoKernel) };
        self.graph.constants(node, self.constants.values, |constants| gpu::on_device(op, &constants, self.gpu))
    }

    /// Whether all values of a step are numeric tensors.
    fn is_numeric(&self, node: &Node) -> bool {
        node.inputs.iter().chain(&node.outputs).flatten().all(|&id| is_numeric(self.graph.kind(id)))
    }

    /// Whether a step computes sizes from sizes, or indices from values on the host: either all its inputs that are not
    /// constants follow from dimensions, or its outputs are few integers computed from integers on the host.
    fn is_sizes(&self, node: &Node) -> bool {
        let is_constant = |id: SlotId| self.graph.constant_of[id.at()].is_some();
        let inputs: Vec<SlotId> = node.inputs.iter().flatten().copied().filter(|&id| !is_constant(id)).collect();
        let reads_dims = (0..node.inputs.len()).all(|i| node.needs(i) == Needs::Dims);
        let from_sizes = reads_dims || inputs.iter().all(|&id| self.sizes[id.at()]);
        let is_integer = |&id: &SlotId| matches!(self.graph.kind(id), Type::Tensor(tensor) if !tensor.dtype.is_float());
        let of_host = inputs.iter().all(|id| self.sides[id.at()] == Side::Host && is_integer(id));
        let outputs: Vec<SlotId> = node.outputs.iter().flatten().copied().collect();
        let is_small = |id: &SlotId| matches!(self.graph.kind(*id), Type::Tensor(t) if t.rank().is_some_and(|rank| rank <= SIZES_RANK));
        !inputs.is_empty() && outputs.iter().all(is_small) && (from_sizes || of_host && outputs.iter().all(is_integer))
    }

    /// Returns the side of an input or output of a nested block.
    fn border_side(&self, needs: Needs, id: SlotId) -> Side {
        match self.graph.kind(id) {
            Type::Tensor(tensor) if tensor.dtype.is_float() && needs == Needs::Elements => Side::Device,
            _ => Side::Host,
        }
    }

    /// Returns the side of output `i` of a step.
    fn output_side(&self, node: &Node, i: usize, id: SlotId, side: Side) -> Side {
        let blocks = node.ops.blocks();
        let Some(block) = blocks.first() else { return side };
        match (0..block.outputs.len()).any(|index| node.ops.passes_on(index) == Some(i)) {
            true => self.border_side(Needs::Elements, id),
            false => Side::Host,
        }
    }

    /// Returns the value on a side, copied there if needed.
    fn on(&mut self, side: Side, id: SlotId, place: (StepId, OriginId)) -> Result<SlotId> {
        if self.sides[id.at()] == side {
            return Ok(id);
        }
        if let Some(&moved) = self.moved.get(&id) {
            return Ok(moved);
        }
        let constant = self.graph.constant_of[id.at()];
        let constant = constant.map(|constant| self.constants.on(self.gpu, constant)).transpose()?;
        let moved = self.graph.add(id, Layout::Rows, constant);
        self.sides.push(side);
        self.sizes.push(self.sizes[id.at()]);
        self.moved.insert(id, moved);
        if constant.is_none() {
            let kernel = Box::new(Transfer { gpu: self.gpu.clone(), to_host: side == Side::Host });
            self.graph.push_added(place, TRANSFER, kernel, [id, moved]);
        }
        Ok(moved)
    }

    /// Returns the block with its outputs on the sides that its caller expects.
    fn finish(mut self, border: Border) -> Result<Graph> {
        for i in 0..self.graph.outputs.len() {
            let id = self.graph.outputs[i];
            let side = match border {
                Border::Step { op, is_plain: true, .. } if op.passes_on(i).is_some() => {
                    self.border_side(Needs::Elements, id)
                }
                _ => Side::Host,
            };
            let place = self.graph.writer(id).map_or((StepId(0), OriginId(0)), |node| (node.index, node.origin));
            self.graph.outputs[i] = self.on(side, id, place)?;
        }
        for node in &mut self.graph.nodes {
            if let Some(Hosted { reason: Reason::NoKernel, bytes, .. }) = &mut node.host {
                let moved = node.outputs.iter().flatten().filter(|id| self.moved.contains_key(id));
                *bytes = moved.fold(*bytes, |bytes, &id| sum(bytes, bytes_of_type(&self.graph.kinds[id.at()])));
            }
        }
        Ok(self.graph)
    }
}

fn is_numeric(kind: &Type) -> bool {
    matches!(kind, Type::Tensor(tensor) if tensor.dtype != DType::String)
}

fn sum(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    a?.checked_add(b?)
}

/// Returns the bytes of a tensor, if its sizes are known.
fn bytes_of_type(kind: &Type) -> Option<usize> {
    let tensor = kind.tensor().ok()?;
    tensor.sizes().map(|_| tensor.bytes())
}

#[cfg(test)]
mod tests {
    use candle_plan_kernels::threads::Threads;
    use serde_json::{json, Value as Json};

    use crate::custom::CustomOps;
    use crate::device::{Device, Reason};
    use crate::executable::Executable;
    use crate::kernel::Memory;
    use crate::prepare::PreparedStep;
    use crate::testing::tensor;
    use crate::value::Value;

    /// Prepares a plan whose values have these ranks (`int64` for ranks below 2, otherwise `float32`). Value 0 is the
    /// input, and value 1 a constant.
    fn prepare(ranks: &[usize], steps: &[Json], outputs: &[u32], constant: Value, device: &Device) -> Executable {
        let dtype = |rank| if rank < 2 { "int64" } else { "float32" };
        let kind = |&rank: &usize| json!({"Tensor": {"dtype": dtype(rank), "shape": vec![Json::Null; rank]}});
        let values: Vec<Json> =
            ranks.iter().enumerate().map(|(i, rank)| json!({"name": format!("v{i}"), "type": kind(rank)})).collect();
        let step = |step: &Json| json!({"op": step[0], "inputs": step[1], "outputs": step[2], "origin": 0});
        let main = json!({
            "values": values,
            "inputs": [0],
            "constants": [{"value": 1, "constant": 0}],
            "steps": steps.iter().map(step).collect::<Vec<_>>(),
            "outputs": outputs,
        });
        let constants = [kind(&ranks[1])];
        let plan = json!({
            "main": main, "constants": constants, "origins": [{"nodes": ["n"], "module": "", "source": ""}], "passes": [],
            "source_sha256": "", "max_memory": null, "metadata": {},
        });
        let plan = serde_json::from_value(plan).expect("a plan");
        Executable::prepare(plan, vec![constant], device, Memory::Full, &CustomOps::new()).expect("it prepares")
    }

    /// Formats the steps, as `Add`, `Shape@host` or `Unary@missing`.
    fn placed(executable: &Executable) -> Vec<String> {
        let mark = |reason| match reason {
            None => "",
            Some(Reason::Nature) => "@host",
            Some(Reason::NoKernel) => "@missing",
        };
        let reason = |step: &PreparedStep| step.host.map(|host| host.reason);
        executable.main.steps.iter().map(|step| format!("{}{}", step.name, mark(reason(step)))).collect()
    }

    #[test]
    fn steps_run_where_their_values_are() {
        let relu = json!({"Unary": {"function": "Relu"}});
        let add = json!({"Binary": {"function": "Add"}});
        let shape = json!({"Shape": {"start": 0, "end": null}});
        let reshape = json!({"Reshape": {"allow_zero": false}});
        // The ranks of the values, the steps as [op, inputs, outputs], and the expected places.
        let cases = [
            // One upload of an input that two steps read, and one download of the output; the constant is already on
            // the GPU.
            (
                vec![2, 2, 2, 2],
                vec![json!([add, [0, 1], [2]]), json!([add, [0, 2], [3]])],
                vec!["Transfer", "Binary", "Binary", "Transfer"],
            ),
            // Dimensions and values computed from them are on the host; a view stays where its input is.
            (
                vec![2, 1, 2, 1, 1, 2],
                vec![
                    json!([relu, [0], [2]]),
                    json!([shape, [2], [3]]),
                    json!([add, [3, 1], [4]]),
                    json!([reshape, [2, 4], [5]]),
                ],
                vec!["Transfer", "Unary", "Shape@host", "Binary@host", "Reshape", "Transfer"],
            ),
            // A view of an input of the plan needs no device.
            (vec![2, 1, 2], vec![json!([reshape, [0, 1], [2]])], vec!["Reshape@host"]),
        ];
        for (ranks, steps, expected) in cases {
            let constant = || if ranks[1] == 1 { tensor(&[0i64, 0], &[2]) } else { tensor(&[1f32, 2.0], &[1, 2]) };
            let outputs = [ranks.len() as u32 - 1];
            let gpu = Device::Gpu(candle_plan_device_emulator::open().expect("enough memory"));
            let on_gpu = prepare(&ranks, &steps, &outputs, constant(), &gpu);
            assert_eq!(placed(&on_gpu), expected, "{steps:?}");
            let on_cpu = prepare(&ranks, &steps, &outputs, constant(), &Device::Cpu);
            assert!(on_cpu.placed_steps().iter().all(|step| step.host.is_none()), "{steps:?}");
            let run = |executable: &Executable| {
                let outputs = executable.run(vec![tensor(&[1f32, -2.0, 3.0, 4.0], &[2, 2])], &Threads::serial());
                let output = outputs.expect("it runs").remove(0);
                output
                    .tensor()
                    .and_then(|array| Ok((array.dims().to_vec(), array.read::<f32>()?.to_vec())))
                    .expect("floats")
            };
            assert_eq!(run(&on_gpu), run(&on_cpu), "{steps:?}");
        }
    }
}
