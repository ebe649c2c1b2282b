//! CPU kernels: fused elementwise functions.

use candle_plan_kernels::broadcast::Dims;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::program::{Argument, Bound, Program};
use smallvec::SmallVec;

use super::blocks::elementwise;
use super::choice::{HasBlocksKernel, OnBlocks};
use super::planned::CpuOperands;
use crate::broadcast::shape_from;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::form::KernelForm;
use crate::kernel::{Call, Kernel};
use crate::ops::elementwise::Elementwise;
use crate::types::{Type, Types};
use crate::value::{alloc_uninit, element_count, Array, Value};

impl HasBlocksKernel for Elementwise {
    fn on_blocks(&self, operands: &CpuOperands, outputs: &[Option<&Type>]) -> Option<OnBlocks> {
        elementwise(operands, outputs).map(OnBlocks::with_own)
    }
}

impl Kernel for Elementwise {
    fn takes(&self, _input: usize, _dtype: DType) -> bool {
        true
    }

    fn form(&self) -> KernelForm {
        KernelForm::default().with(Some(&self.program))
    }

    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        run_program(&self.program, call).map(|array| vec![array.into()])
    }
}

/// Runs a program that begins with `Load` on all inputs of a step. It writes to the storage of a dying input of the
/// result's shape, if there is one.
///
/// # Errors
/// An input is not a `float32` tensor, or the inputs do not broadcast.
pub(crate) fn run_program(program: &Program, call: &mut Call) -> Result<Array> {
    let dims = result_dims(call)?;
    element_count(&dims)?;
    let fits = |call: &Call, i: usize| call.tensor(i).is_ok_and(|x| x.dims() == &dims[..]);
    let taken = (0..call.len()).find_map(|i| if fits(call, i) { Some((i, call.take(i)?)) } else { None });
    let threads = call.threads;
    let mut elements = SmallVec::<[Option<&[f32]>; 4]>::new();
    for i in 0..call.len() {
        let is_taken = taken.as_ref().is_some_and(|(place, _)| *place == i);
        elements.push(if is_taken { None } else { Some(call.read(i)?) });
    }
    let mut arguments = SmallVec::<[Argument; 4]>::new();
    for (i, elements) in elements.iter().enumerate() {
        arguments.push(match elements {
            Some(elements) => Argument::Tensor(elements, call.tensor(i)?.dims()),
            None => Argument::Result,
        });
    }
    let bound = Bound::new(program, &dims, &arguments).map_err(|error| Error::op(error.to_string()))?;
    match taken {
        Some((_, mut array)) => {
            array.update::<f32>(|out| {
                bound.run_all(Isa::get(), threads, out);
                Ok(())
            })?;
            Ok(array)
        }
        None => {
            let out = alloc_uninit(&dims)?.overwrite(|out| bound.run_all(Isa::get(), threads, out));
            Array::new(out, &dims)
        }
    }
}

/// Returns the dimensions to which the inputs broadcast; all are tensors.
fn result_dims(call: &Call) -> Result<Dims> {
    let mut shapes = SmallVec::<[&[usize]; 4]>::new();
    for i in 0..call.len() {
        shapes.push(call.tensor(i)?.dims());
    }
    shape_from(&shapes)
}

#[cfg(test)]
mod tests {
    use candle_plan_kernels::program::{Binary, Instruction, Operand, Unary};

    use super::*;
    use crate::testing::{run, tensor};

    #[test]
    fn programs_broadcast_their_inputs() {
        use Operand::Input;
        // |a·b| - c
        let program = Program {
            code: vec![
                Instruction::Load(Input(0)),
                Instruction::Binary(Binary::Mul, Input(1)),
                Instruction::Unary(Unary::Abs),
                Instruction::Binary(Binary::Sub, Input(2)),
            ],
        };
        let cases: [(&[usize], &[usize], &[usize]); 4] =
            [(&[2, 3], &[2, 3], &[2, 3]), (&[2, 1], &[3], &[]), (&[1], &[1], &[4]), (&[0, 2], &[2], &[1])];
        for (a, b, c) in cases {
            let data = |dims: &[usize], k: f32| -> Vec<f32> {
                (0..dims.iter().product()).map(|i| (i as f32 + 1.0) * k).collect()
            };
            let inputs = [tensor(&data(a, -1.0), a), tensor(&data(b, 2.0), b), tensor(&data(c, 0.5), c)];
            let output = run(&Elementwise { program: program.clone() }, &inputs.clone().map(Some)).expect("it fits");
            let candle = |value: Value| value.tensor().and_then(|x| x.clone().into_candle()).expect("a tensor");
            let [x, y, z] = inputs.map(candle);
            let expected = x.broadcast_mul(&y).and_then(|xy| xy.abs()?.broadcast_sub(&z)).expect("candle computes it");
            let output = candle(output);
            assert_eq!(output.dims(), expected.dims());
            assert_eq!(
                output.flatten_all().unwrap().to_vec1::<f32>().unwrap(),
                expected.flatten_all().unwrap().to_vec1::<f32>().unwrap()
            );
        }
        let inputs = [Some(tensor(&[1.0f32; 2], &[2])), Some(tensor(&[1.0f32; 3], &[3])), Some(tensor(&[1.0f32], &[]))];
        assert!(run(&Elementwise { program: program.clone() }, &inputs).is_err());
        assert!(run(&Elementwise { program }, &inputs[..2]).is_err());
    }
}
