//! GPU kernels: functions of two elements.

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::program::Binary as Function;
use candle_plan_device::{Fault, Gpu, Grid, Report, Symbol};

use super::launch::{alloc_in_place, count, kind, launch, Params};
use super::numbers::number;
use super::program::code_of;
use super::shapes::{Dims, Strides};
use super::OnGpu;
use crate::bail;
use crate::broadcast::join;
use crate::dtype::{DType, NUMBERS};
use crate::error::Result;
use crate::gpu::{gpu_kernel, has_few_dimensions};
use crate::kernel::Call;
use crate::ops::binary::{divided_by_zero, Binary};
use crate::value::Value;

/// X and Y broadcast to Z, which has `count` elements.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(BinaryOf in "broadcast.cuh")]
struct BinaryParams {
    x: u64,
    y: u64,
    z: u64,
    fault: Fault,
    count: u32,
    function: u32,
    dims: Dims,
    of_x: Strides,
    of_y: Strides,
    exponent: u32,
}

gpu_kernel!(Binary: "binary" if |self, operands| {
    let is_number = |dtype| dtype == DType::Bool || NUMBERS.contains(&dtype);
    has_few_dimensions(operands) && [0, 1].iter().all(|&i| operands.dtype(i).is_some_and(is_number))
});

impl Binary {
    /// Returns the kernel for operands of two types.
    fn symbol(&self, x: DType, y: DType) -> Result<Symbol> {
        let is_power = self.function == Function::Pow;
        if x != y && !is_power {
            bail!("{:?} needs two inputs of one type, found {x} and {y}", self.function);
        }
        let name = match () {
            () if self.is_comparison() => "comparison",
            () if is_power && (x, y) != (DType::Float32, DType::Float32) => "power",
            () => "binary",
        };
        Ok(Symbol { module: if name == "power" { name } else { "binary" }, name, kind: kind(x)? })
    }
}

impl OnGpu for Binary {
    fn fault(&self, report: &Report) -> String {
        divided_by_zero(report.place)
    }

    fn in_place(&self) -> &'static [usize] {
        self.replaceable()
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, y) = (call.tensor(0)?, call.tensor(1)?);
        let symbol = self.symbol(x.dtype(), y.dtype())?;
        let (dims, broadcast) = join(&[x.dims(), y.dims()])?;
        let mut params = BinaryParams {
            x: x.address()?,
            y: y.address()?,
            z: 0,
            fault: gpu.fault(&[])?,
            count: count(dims.iter().product())?,
            function: code_of(self.function),
            dims: Dims::new(&broadcast.dims)?,
            of_x: Strides::of_operand(&broadcast, 0)?,
            of_y: Strides::of_operand(&broadcast, 1)?,
            exponent: number(y.dtype())?,
        };
        let dtype = if self.is_comparison() { DType::Bool } else { x.dtype() };
        let z = alloc_in_place(gpu, call, OnGpu::in_place(self), &dims, dtype)?;
        params.z = z.address()?;
        launch(gpu, symbol, Grid::over(params.count), &params)?;
        Ok(vec![z.into()])
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};
    use Function::*;

    use super::*;
    use crate::dtype::NUMBERS;
    use crate::dtype::{Bool, Element};
    use crate::testing::{fault, numbers_of, run, tensor};

    const ARITHMETIC: [Function; 10] = [Add, Sub, Mul, Div, Pow, Mod, Fmod, Min, Max, PRelu];
    const BITS: [Function; 5] = [BitwiseAnd, BitwiseOr, BitwiseXor, ShiftLeft, ShiftRight];
    const COMPARISONS: [Function; 5] = [Equal, Less, LessOrEqual, Greater, GreaterOrEqual];
    const LOGIC: [Function; 4] = [And, Or, Xor, Equal];
    /// Pairs of shapes: equal, single elements, broadcasts along inner, outer and mixed axes, and empty.
    const SHAPES: [[&[usize]; 2]; 8] = [
        [&[3, 101], &[3, 101]],
        [&[303], &[]],
        [&[1], &[7]],
        [&[5, 3, 20], &[3, 1]],
        [&[6, 50], &[50]],
        [&[4, 1, 3, 1, 2], &[1, 5, 1, 7, 1]],
        [&[2, 0, 3], &[3]],
        [&[], &[]],
    ];

    /// `run` compares with the CPU. `of` returns element `i` of operand 0 or 1.
    fn check<T: Element>(functions: &[Function], of: impl Fn(usize, usize) -> T) {
        for (&function, shapes) in functions.iter().flat_map(|function| SHAPES.map(|shapes| (function, shapes))) {
            for [x, y] in [shapes, [shapes[1], shapes[0]]] {
                let operand = |k: usize, dims: &[usize]| {
                    let data: Vec<T> = (0..dims.iter().product()).map(|i| of(i, k)).collect();
                    Some(tensor(&data, dims))
                };
                run(&Binary { function }, &[operand(0, x), operand(1, y)]).expect("is defined");
            }
        }
    }

    #[test]
    fn floats() {
        fn real(i: usize, k: usize) -> f32 {
            match i * 5 + k * 3 {
                i if i % 31 == 1 => f32::NAN,
                i if i % 37 == 2 => f32::INFINITY,
                i if i % 41 == 3 => f32::NEG_INFINITY,
                i if i % 43 == 4 => -0.0,
                i => (i % 33) as f32 / 4.0 - 4.0,
            }
        }
        for functions in [&ARITHMETIC[..], &COMPARISONS] {
            check::<f32>(functions, real);
            check::<f64>(functions, |i, k| real(i, k).into());
            check::<f16>(functions, |i, k| f16::from_f32(real(i, k)));
            check::<bf16>(functions, |i, k| bf16::from_f32(real(i, k)));
        }
    }

    #[test]
    fn integers() {
        macro_rules! check_integers {
            ($($type:ty)*) => {
                $(for functions in [&ARITHMETIC[..], &BITS, &COMPARISONS] {
                    // Odd numbers in operand 1, the divisor.
                    check::<$type>(functions, |i, k| {
                        let number = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                        let value = match i % (4 + k) {
                            0 => <$type>::MIN,
                            1 => <$type>::MAX,
                            2 => number as $type,
                            3 => (number >> 59) as $type,
                            _ => (0 as $type).wrapping_sub(1),
                        };
                        value | k as $type
                    });
                })*
            };
        }
        check_integers! { i8 i16 i32 i64 u8 u16 u32 u64 }
        check::<Bool>(&LOGIC, |i, k| Bool((i * (3 + k) / 4 % 2) as u8));
    }

    #[test]
    fn powers_of_every_pair_of_types() {
        let [x, y] = [[-3.0, -1.0, 0.0, 1.0, 2.0, 5.0, 120.0], [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 2.5]];
        for (base, exponent) in NUMBERS.iter().flat_map(|&base| NUMBERS.map(|exponent| (base, exponent))) {
            let (x, y) = (numbers_of(base, &x, &[7]), numbers_of(exponent, &y, &[7, 1]));
            run(&Binary { function: Pow }, &[Some(x.into()), Some(y.into())]).expect("is defined");
        }
    }

    #[test]
    fn division_by_zero_is_a_fault() {
        let told = |function, divisor: i16| {
            fault(&Binary { function }, &[tensor(&[1i16, i16::MIN, 3], &[3]), tensor(&[divisor], &[])])
        };
        for function in [Div, Mod, Fmod] {
            assert!(told(function, 0) && !told(function, -1), "{function:?}");
        }
        assert!(!told(Mul, 0));
    }
}
