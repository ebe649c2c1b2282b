//! GPU kernels: fused elementwise functions. One kernel interprets a program's instructions in GPU memory.

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::broadcast::Broadcast;
use candle_plan_descriptors::program::{Binary, Instruction, Operand, Program, Unary};
use candle_plan_device::{Buffer, Gpu, Grid, Mirror, Symbol};

use super::launch::{alloc_uninit, count, launch, Params};
use super::shapes::{Dims, Strides};
use super::OnGpu;
use crate::bail;
use crate::broadcast::shape_from;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::{gpu_kernel, has_few_dimensions};
use crate::kernel::Call;
use crate::ops::elementwise::Elementwise;
use crate::value::{Array, Value};

const PROGRAM: Symbol = Symbol { module: "program", name: "program", kind: "" };

/// The largest number of inputs of a program, and of slots, as in `program.cu`.
pub(super) const INPUTS: usize = 32;

/// A program whose instructions are in GPU memory.
#[derive(Debug)]
pub(super) struct OnGpuProgram {
    code: Buffer,
    length: u32,
    /// The inputs that the program reads.
    reads: Vec<usize>,
}

/// `OnGpuProgram::run` checks that the inputs broadcast to the result.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(Program in "program.cu")]
struct ProgramParams {
    code: u64,
    result: u64,
    length: u32,
    count: u32,
    continues: u32,
    aligned: u32,
    dims: Dims,
    padding: u32,
    inputs: [u64; INPUTS],
    strides: [Strides; INPUTS],
}

impl OnGpuProgram {
    /// Copies a program to the GPU.
    ///
    /// # Errors
    /// The GPU lacks memory for it, or it reads more inputs than kernels support.
    pub fn new(gpu: &Gpu, program: &Program) -> Result<OnGpuProgram> {
        let code: Vec<Coded> = program.code.iter().map(|&instruction| Coded::of(instruction)).collect();
        let mut reads: Vec<usize> = program.inputs().collect();
        reads.sort_unstable();
        reads.dedup();
        if let Some(input) = reads.iter().find(|&&input| input >= INPUTS) {
            bail!("a program on the device reads inputs 0 to {}, found {input}", INPUTS - 1);
        }
        Ok(OnGpuProgram { code: gpu.uploaded(bytemuck::cast_slice(&code))?, length: count(code.len())?, reads })
    }

    /// Runs the program on the step's inputs, and writes `result`. If it `continues`, the accumulator starts as
    /// `result`.
    ///
    /// # Errors
    /// An input is absent or does not broadcast to the result, or the device fails.
    pub fn run(&self, call: &Call, result: &Array, continues: bool, taken: Option<usize>) -> Result<()> {
        let operand = |&i: &usize| if Some(i) == taken { Ok(result) } else { call.tensor(i) };
        let operands: Vec<&Array> = self.reads.iter().map(operand).collect::<Result<_>>()?;
        let shapes: Vec<&[usize]> = operands.iter().map(|operand| operand.dims()).collect();
        let broadcast = Broadcast::new(result.dims(), &shapes)
            .map_err(|i| Error::op(format!("input {} does not broadcast to {:?}", self.reads[i], result.dims())))?;
        let mut params = ProgramParams {
            code: self.code.address(),
            result: result.address()?,
            length: self.length,
            count: count(result.len())?,
            continues: continues.into(),
            aligned: shapes.iter().all(|&shape| shape == result.dims()).into(),
            dims: Dims::new(&broadcast.dims)?,
            ..ProgramParams::zeroed()
        };
        for (i, (&input, operand)) in self.reads.iter().zip(&operands).enumerate() {
            if operand.dtype() != DType::Float32 {
                bail!("a program computes with float32, input {input} is {}", operand.dtype());
            }
            params.inputs[input] = operand.address()?;
            params.strides[input] = Strides::of_operand(&broadcast, i)?;
        }
        launch(self.code.gpu(), PROGRAM, Grid::over(params.count), &params)
    }
}

/// The results of a step: `y`, after the epilogue has finished it.
///
/// # Errors
/// As [`OnGpuProgram::run`].
pub(super) fn finished(epilogue: Option<&OnGpuProgram>, call: &Call, y: Array) -> Result<Vec<Value>> {
    if let Some(epilogue) = epilogue {
        epilogue.run(call, &y, true, None)?;
    }
    Ok(vec![y.into()])
}

/// An [`Elementwise`] step.
#[derive(Debug)]
pub(crate) struct ElementwiseOnGpu(OnGpuProgram);

gpu_kernel!(Elementwise: "program" by |self, operands, gpu| {
    has_few_dimensions(operands).then(|| self.for_gpu(gpu)).transpose()
});

impl Elementwise {
    /// Returns the step on a GPU.
    ///
    /// # Errors
    /// See [`OnGpuProgram::new`].
    pub(crate) fn for_gpu(&self, gpu: &Gpu) -> Result<ElementwiseOnGpu> {
        Ok(ElementwiseOnGpu(OnGpuProgram::new(gpu, &self.program)?))
    }
}

impl OnGpu for ElementwiseOnGpu {
    fn in_place(&self) -> &'static [usize] {
        &[0, 1, 2, 3, 4, 5, 6, 7]
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let shapes: Vec<&[usize]> = (0..call.len()).map(|i| Ok(call.tensor(i)?.dims())).collect::<Result<_>>()?;
        let dims = shape_from(&shapes)?;
        let fits = |call: &Call, i: usize| call.tensor(i).is_ok_and(|x| x.dims() == &dims[..]);
        let taken = (0..call.len()).find_map(|i| if fits(call, i) { Some((i, call.take(i)?)) } else { None });
        let (place, result) = match taken {
            Some((place, array)) => (Some(place), array),
            None => (None, alloc_uninit(gpu, &dims, DType::Float32)?),
        };
        self.0.run(call, &result, false, place)?;
        Ok(vec![result.into()])
    }
}

/// A function of elements: its number and two parameters.
#[derive(Debug, Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Function in "functions.cuh")]
pub(super) struct Function {
    code: u32,
    a: f32,
    b: f32,
}

/// An operand of an instruction: the index of an input or of a slot, or a constant.
#[derive(Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Operand in "program.cu")]
struct Read {
    source: u32,
    index: u32,
    value: f32,
}

/// An instruction.
#[derive(Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Instruction in "program.cu")]
struct Coded {
    step: u32,
    slot: u32,
    function: Function,
    first: Read,
    second: Read,
}

impl Coded {
    fn of(instruction: Instruction) -> Coded {
        let mut coded = Coded::zeroed();
        let mut operands = instruction.operands();
        [coded.first, coded.second] = [(); 2].map(|()| operands.next().map_or(Read::zeroed(), Read::of));
        coded.step = match instruction {
            Instruction::Load(_) => 0,
            Instruction::Save(slot) => {
                coded.slot = slot.into();
                1
            }
            Instruction::Unary(function) => {
                coded.function = Function::of(function);
                2
            }
            Instruction::Binary(function, _) => {
                coded.function.code = code_of(function);
                3
            }
            Instruction::Reverse(function, _) => {
                coded.function.code = code_of(function);
                4
            }
            Instruction::Select(..) => 5,
        };
        coded
    }
}

impl Read {
    fn of(operand: Operand) -> Read {
        match operand {
            Operand::Input(input) => Read { source: 0, index: input as u32, value: 0.0 },
            Operand::Constant(value) => Read { source: 1, index: 0, value },
            Operand::Saved(slot) => Read { source: 2, index: slot.into(), value: 0.0 },
        }
    }
}

/// Returns the number of a function of two elements.
pub(super) fn code_of(function: Binary) -> u32 {
    function as u32
}

impl Function {
    /// Makes a function of one element.
    pub fn of(function: Unary) -> Function {
        let [a, b] = match function {
            Unary::Swish { alpha }
            | Unary::LeakyRelu { alpha }
            | Unary::Elu { alpha }
            | Unary::Celu { alpha }
            | Unary::ThresholdedRelu { alpha } => [alpha, 0.0],
            Unary::Selu { alpha, gamma } => [alpha, gamma],
            Unary::HardSigmoid { alpha, beta } => [alpha, beta],
            Unary::Shrink { bias, lambd } => [bias, lambd],
            Unary::Clip { min, max } => [min, max],
            Unary::IsInf { negative, positive } => [negative, positive].map(|counts| f32::from(u8::from(counts))),
            _ => [0.0; 2],
        };
        Function { code: number(function), a, b }
    }
}

/// Returns the number of a function of one element, in the order of `functions.cuh`.
#[rustfmt::skip] // a table
fn number(function: Unary) -> u32 {
    use Unary::*;
    match function {
        Abs => 0, Neg => 1, Sign => 2, Ceil => 3, Floor => 4, Round => 5, Sqrt => 6, Reciprocal => 7, Square => 8,
        Exp => 9, Log => 10, Sin => 11, Cos => 12, Tan => 13, Asin => 14, Acos => 15, Atan => 16, Sinh => 17,
        Cosh => 18, Tanh => 19, Asinh => 20, Acosh => 21, Atanh => 22, Erf => 23, Sigmoid => 24, Relu => 25,
        Softplus => 26, Softsign => 27, HardSwish => 28, Mish => 29, Gelu => 30, GeluTanh => 31, Swish { .. } => 32,
        LeakyRelu { .. } => 33, Elu { .. } => 34, Selu { .. } => 35, Celu { .. } => 36, HardSigmoid { .. } => 37,
        ThresholdedRelu { .. } => 38, Shrink { .. } => 39, Clip { .. } => 40, IsNaN => 41, IsInf { .. } => 42,
        Not => 43, BitwiseNot => 44,
    }
}
