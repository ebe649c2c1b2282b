//! Functions of two elements.

use candle_plan_kernels::broadcast::Broadcast;
use candle_plan_kernels::elementwise::integer::Integer;
use candle_plan_kernels::elementwise::{float, logic, zip, Comparable, Undefined};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::program::{Argument, Binary as Function, Instruction, Operand, Program};
use candle_plan_kernels::threads::Threads;
use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::elementwise::run_program;
use super::power::power;
use super::unary::{is_computed, Half};
use crate::broadcast::{join, shape_of};
use crate::device::{has_few_dimensions, on_device};
use crate::dtype::{Bool, DType, Element};
use crate::error::{Error, Result};
use crate::float::NUMBERS;
use crate::kernel::{Arity, Call, Constants, Kernel, Packed, Types};
use crate::layout::{self, Blocked};
use crate::types::{TensorType, Type};
use crate::value::{room, Array, Strings, Value};
use crate::{bail, dispatch};

/// `Z = function(X, Y)`, element by element; `X` and `Y` broadcast as NumPy does.
///
/// `X` and `Y` are of one type, but for `Pow`, which gives the type of `X`. Comparisons give booleans.
/// Integers wrap; their division truncates, and by zero is an error. 16-bit floating point is computed in `float32` and
/// rounded once. `Equal` compares strings too. Source: the [ONNX operators](https://onnx.ai/onnx/operators/) of the
/// functions' names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Binary {
    /// The function.
    pub function: Function,
}

impl Kernel for Binary {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, y) = (inputs.tensor(0)?, inputs.tensor(1)?);
        if x.dtype != y.dtype && self.function != Function::Pow {
            bail!("{:?} needs two inputs of one type, found {} and {}", self.function, x.dtype, y.dtype);
        }
        for dtype in [x.dtype, y.dtype] {
            if !self.is_defined_for(dtype) {
                bail!("{:?} is not defined for {dtype}", self.function);
            }
        }
        let dtype = if self.is_comparison() { DType::Bool } else { x.dtype };
        Ok(vec![Type::Tensor(TensorType { dtype, shape: shape_of(&[x, y])? })])
    }

    fn in_place(&self) -> &'static [usize] {
        if self.is_comparison() {
            &[]
        } else {
            &[0, 1]
        }
    }

    on_device!("binary" if |self, operands| {
        let is_number = |dtype| dtype == DType::Bool || NUMBERS.contains(&dtype);
        has_few_dimensions(operands) && [0, 1].iter().all(|&i| operands.dtype(i).is_some_and(is_number))
    });

    fn fault(&self) -> &'static str {
        "a divisor is 0"
    }

    fn blocked(&self, operands: &Constants, outputs: &[Option<&Type>]) -> Option<Blocked> {
        layout::elementwise(self.clone(), operands, outputs)
    }

    fn prepack(&self, operands: &Constants) -> Result<Option<Packed>> {
        let is_single = |kind: &Option<&Type>| {
            kind.and_then(|kind| kind.tensor().ok()).is_some_and(|kind| kind.dtype == DType::Float32)
        };
        Ok(operands.types.iter().all(is_single).then(|| Box::new(self.program()) as Packed))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        if let (Value::Strings(x), Value::Strings(y)) = (call.value(0)?, call.value(1)?) {
            return Ok(vec![equal_strings(x, y)?.into()]);
        }
        let (x, y) = (call.tensor(0)?.dtype(), call.tensor(1)?.dtype());
        let output = match x {
            DType::Bool => self.logic(call)?,
            _ if self.is_comparison() => self.compare(call)?,
            DType::Float32 if y == DType::Float32 => match call.packed() {
                Some(program) => run_program(program, call)?,
                None => run_program(&self.program(), call)?,
            },
            _ if self.function == Function::Pow => power(call)?,
            DType::Float16 => self.half::<f16>(call)?,
            DType::Bfloat16 => self.half::<bf16>(call)?,
            DType::Float64 => self.typed(call, |call, broadcast, x, y, out| {
                float::binary(call.threads, self.function, broadcast, (x, y), out)
            })?,
            dtype => dispatch!(format!("{:?}", self.function), dtype, [i8, i16, i32, i64, u8, u16, u32, u64], T => {
                self.typed::<T>(call, |call, broadcast, x, y, out| {
                    T::binary(call.threads, self.function, broadcast, (x, y), out)
                })
            })?,
        };
        Ok(vec![output.into()])
    }
}

impl Binary {
    pub(crate) fn is_comparison(&self) -> bool {
        use Function::*;
        matches!(self.function, Equal | Less | LessOrEqual | Greater | GreaterOrEqual)
    }

    fn is_defined_for(&self, dtype: DType) -> bool {
        use Function::*;
        let is_float = dtype.is_float() && !dtype.is_small_float();
        match self.function {
            And | Or | Xor => dtype == DType::Bool,
            BitwiseAnd | BitwiseOr | BitwiseXor | ShiftLeft | ShiftRight => is_computed(dtype),
            Equal => is_float || is_computed(dtype) || matches!(dtype, DType::Bool | DType::String),
            _ => is_float || is_computed(dtype),
        }
    }

    fn program(&self) -> Program {
        let code = vec![Instruction::Load(Operand::Input(0)), Instruction::Binary(self.function, Operand::Input(1))];
        Program { code }
    }

    /// Computes in the type of the inputs.
    fn typed<T: Element>(
        &self,
        call: &Call,
        compute: impl Fn(&Call, &Broadcast, &[T], &[T], &mut [T]) -> std::result::Result<(), Undefined>,
    ) -> Result<Array> {
        let (dims, broadcast) = join(&[call.tensor(0)?.dims(), call.tensor(1)?.dims()])?;
        let mut out: Vec<T> = room(&dims)?;
        compute(call, &broadcast, call.read::<T>(0)?, call.read::<T>(1)?, &mut out)
            .map_err(|error| self.explain(error, T::DTYPE))?;
        Array::new(out, &dims)
    }

    fn explain(&self, error: Undefined, dtype: DType) -> Error {
        match error {
            Undefined::Function => Error::op(format!("{:?} is not defined for {dtype}", self.function)),
            Undefined::DivisionByZero => Error::op(format!("{:?}: {error}", self.function)),
        }
    }

    fn half<T: Half>(&self, call: &mut Call) -> Result<Array> {
        let (x, y) = (call.tensor(0)?, call.tensor(1)?);
        let (dims, _) = join(&[x.dims(), y.dims()])?;
        let (wide_x, wide_y) = (T::widen(x.read::<T>()?), T::widen(y.read::<T>()?));
        let arguments = [Argument::Tensor(&wide_x, x.dims()), Argument::Tensor(&wide_y, y.dims())];
        let program = self.program();
        let bound = program.bind(&dims, &arguments).map_err(|error| Error::op(error.to_string()))?;
        let mut out = room(&dims)?;
        bound.run_all(Isa::get(), call.threads, &mut out);
        Array::new(T::round(&out), &dims)
    }

    fn compare(&self, call: &Call) -> Result<Array> {
        let (x, y) = (call.tensor(0)?, call.tensor(1)?);
        let (dims, broadcast) = join(&[x.dims(), y.dims()])?;
        let mut out: Vec<Bool> = room(&dims)?;
        let bytes = bytemuck::cast_slice_mut(&mut out);
        dispatch!(format!("{:?}", self.function), x.dtype(), [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64], T => {
            T::compare(call.threads, self.function, &broadcast, (call.read::<T>(0)?, call.read::<T>(1)?), bytes)
                .map_err(|error| self.explain(error, T::DTYPE))
        })?;
        Array::new(out, &dims)
    }

    fn logic(&self, call: &Call) -> Result<Array> {
        let (x, y) = (call.read::<Bool>(0)?, call.read::<Bool>(1)?);
        let (dims, broadcast) = join(&[call.tensor(0)?.dims(), call.tensor(1)?.dims()])?;
        let mut out: Vec<Bool> = room(&dims)?;
        let operands = (bytemuck::cast_slice(x), bytemuck::cast_slice(y));
        logic(call.threads, self.function, &broadcast, operands, bytemuck::cast_slice_mut(&mut out))
            .map_err(|error| self.explain(error, DType::Bool))?;
        Array::new(out, &dims)
    }
}

fn equal_strings(x: &Strings, y: &Strings) -> Result<Array> {
    let (dims, broadcast) = join(&[&x.dims, &y.dims])?;
    let (xs, ys): (Vec<&str>, Vec<&str>) =
        (x.data.iter().map(String::as_str).collect(), y.data.iter().map(String::as_str).collect());
    let mut out: Vec<Bool> = room(&dims)?;
    zip(&Threads::serial(), &broadcast, (&xs, &ys), &mut out, |x, y| Bool::from(x == y));
    Array::new(out, &dims)
}
