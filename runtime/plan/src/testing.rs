//! Runs one op in a test the ways the executor would.

use candle_plan_device::Gpu;
use candle_plan_kernels::buffer;
use candle_plan_kernels::threads::Threads;

use crate::by_width;
use crate::device::{download, upload, Needs, OnDevice, OnGpu};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Blocks, Call, Constants, Input, Kernel, Memory, Packed, Types};
use crate::types::{TensorType, Type};
use crate::value::{in_room, Array, Value};
use crate::words;

/// Of an op that has none.
struct NoBlocks;

impl Blocks for NoBlocks {
    fn run(&self, index: usize, _: Vec<Value>) -> Result<Vec<Value>> {
        Err(Error::op(format!("there is no block {index}")))
    }
}

/// A tensor value.
pub fn tensor<T: crate::dtype::Element>(data: &[T], dims: &[usize]) -> Value {
    Array::new(data.to_vec(), dims).expect("test data fills its shape").into()
}

/// The outputs of `kernel` for the inputs, with one output. See [`run_outputs`].
pub fn run(kernel: &dyn Kernel, inputs: &[Option<Value>]) -> Result<Value> {
    run_outputs(kernel, inputs, 1).map(|mut outputs| outputs.remove(0))
}

/// The `count` outputs of `kernel`: run with shared inputs, with inputs it may overwrite, with two threads and with
/// prepacked constants; all must agree to the bit, and with the types that `infer` gives.
pub fn run_outputs(kernel: &dyn Kernel, inputs: &[Option<Value>], count: usize) -> Result<Vec<Value>> {
    let types: Vec<Option<Type>> = inputs.iter().map(|value| value.as_ref().map(type_of)).collect();
    let types: Vec<Option<&Type>> = types.iter().map(Option::as_ref).collect();
    assert!(kernel.arity().inputs.contains(&inputs.len()), "{kernel:?} takes {:?} inputs", kernel.arity().inputs);
    let inferred = kernel.infer(&Types { inputs: &types, outputs: count })?;
    let values: Vec<Option<&Value>> = inputs.iter().map(Option::as_ref).collect();
    let packed = kernel.prepack(&Constants { values: &values, types: &types, memory: Memory::Full })?;

    let two = Threads::new(2).map_err(|error| Error::op(error.to_string()))?;
    let go = |owned: bool, threads: &Threads, packed| {
        let give = |(i, value): (usize, &'_ Option<Value>)| match value {
            None => Input::Absent,
            Some(value) if owned && kernel.in_place().contains(&i) => Input::Owned(deep_copy(value)),
            Some(value) => Input::Owned(value.clone()),
        };
        let mut owned_inputs: Vec<Input> = inputs.iter().enumerate().map(give).collect();
        for (input, value) in owned_inputs.iter_mut().zip(inputs).filter(|_| !owned) {
            if let Some(value) = value {
                *input = Input::Shared(value);
            }
        }
        let (inputs, outputs, blocks) = (&mut owned_inputs[..], count, &NoBlocks);
        in_room(|| kernel.run(&mut Call { inputs, outputs, packed, threads, blocks }))
    };
    let outputs = go(false, &Threads::serial(), None)?;
    assert_sharing(kernel, inputs, &outputs);
    assert_replaced(kernel, inputs, &outputs, packed.as_ref())?;
    for other in
        [go(true, &Threads::serial(), None)?, go(false, &two, None)?, go(false, &Threads::serial(), packed.as_ref())?]
    {
        assert!(same(&outputs, &other), "{kernel:?}: in place, threads or prepacking change the result");
    }
    for (output, kind) in outputs.iter().zip(&inferred) {
        assert!(kind.admits(output), "{kernel:?} infers {kind}, gives {}", output.describe());
    }
    // What a run there takes does not count for a test of what one takes here.
    buffer::within(usize::MAX, || assert_on_device(kernel, inputs, &types, &outputs));
    Ok(outputs)
}

/// Whether the op's kernel on a device finds a fault in these inputs.
pub fn fault(kernel: &dyn Kernel, inputs: &[Value]) -> bool {
    run_on_device(kernel, inputs).unwrap_or_else(|error| panic!("{kernel:?} on the device: {error}")).1
}

/// What the op gives on a device, and whether its kernel found a fault.
pub fn run_on_device(kernel: &dyn Kernel, inputs: &[Value]) -> Result<(Vec<Value>, bool)> {
    let (gpu, types) = (Gpu::emulator()?, inputs.iter().map(type_of).collect::<Vec<Type>>());
    let types: Vec<Option<&Type>> = types.iter().map(Some).collect();
    let operands = Constants { values: &vec![None; inputs.len()], types: &types, memory: Memory::Full };
    let OnDevice::Kernel(placed) = kernel.on_device(&operands, &gpu)? else {
        return Err(Error::op("there is no kernel"));
    };
    let turn = gpu.turn()?;
    gpu.mark(7);
    let inputs: Vec<Option<Value>> = inputs.iter().cloned().map(Some).collect();
    let outputs = run_placed(kernel, placed.as_ref(), &gpu, (&inputs, false), 1)?;
    Ok((outputs, turn.finish(Vec::new())? == Some(7)))
}

/// Asserts that the op gives the same on a device, where it runs there: with shared inputs, and with inputs that it may
/// overwrite.
fn assert_on_device(kernel: &dyn Kernel, inputs: &[Option<Value>], types: &[Option<&Type>], outputs: &[Value]) {
    let gpu = Gpu::emulator().expect("the host has room");
    if !inputs.iter().flatten().chain(outputs).all(|value| matches!(value, Value::Tensor(_))) {
        return;
    }
    // Attributes of the op alone decide, or what a plan would have as constants too.
    let values: Vec<Option<&Value>> = inputs.iter().map(Option::as_ref).collect();
    for values in [values, vec![None; inputs.len()]] {
        let operands = Constants { values: &values, types, memory: Memory::Full };
        let how = kernel.on_device(&operands, &gpu).expect("the emulator has room");
        let OnDevice::Kernel(placed) = how else { continue };
        for owned in [false, true] {
            let found = run_placed(kernel, placed.as_ref(), &gpu, (inputs, owned), outputs.len());
            let found = found.unwrap_or_else(|error| panic!("{kernel:?} on the device: {error}"));
            assert_eq!(found.len(), outputs.len(), "{kernel:?} gives as many outputs on the device");
            for (found, expected) in found.iter().zip(outputs) {
                let (found, expected) = (found.tensor().expect("a tensor"), expected.tensor().expect("a tensor"));
                if let Err(difference) = near(found, expected) {
                    panic!("{kernel:?} gives another result on the device: {difference}");
                }
            }
        }
    }
}

/// What a kernel gives on a device, on the host again: with inputs that are shared, or that it may overwrite.
fn run_placed(
    kernel: &dyn Kernel,
    placed: &dyn OnGpu,
    gpu: &Gpu,
    (inputs, owned): (&[Option<Value>], bool),
    outputs: usize,
) -> Result<Vec<Value>> {
    let there = |(i, value): (usize, &Option<Value>)| match (value, kernel.needs(i)) {
        (Some(value), Needs::Elements) => upload(gpu, value).map(Some),
        (value, _) => Ok(value.clone()),
    };
    let given: Vec<Option<Value>> = inputs.iter().enumerate().map(there).collect::<Result<_>>()?;
    let kept = if owned { Vec::new() } else { given.clone() };
    let mut inputs: Vec<Input> = given.into_iter().map(|value| value.map_or(Input::Absent, Input::Owned)).collect();
    let (inputs, threads) = (&mut inputs[..], &Threads::serial());
    let found = placed.run(gpu, &mut Call { inputs, outputs, packed: None, threads, blocks: &NoBlocks })?;
    drop(kept);
    found.iter().map(|value| Ok(download(value.tensor()?)?.into())).collect()
}

/// Whether two tensors are equal, up to rounding where they are of floating point.
fn near(found: &Array, expected: &Array) -> std::result::Result<(), String> {
    let tolerance = match expected.dtype() {
        dtype if (dtype, found.dims()) != (found.dtype(), expected.dims()) => {
            let (x, y) = ((found.dtype(), found.dims()), (dtype, expected.dims()));
            return Err(format!("{x:?} for {y:?}"));
        }
        DType::Float64 => 1e-12,
        DType::Float32 => 1e-5,
        DType::Float16 => 2e-3,
        DType::Bfloat16 => 1.6e-2,
        _ if raw(found) == raw(expected) => return Ok(()),
        _ => {
            let at = raw(found).iter().zip(&raw(expected)).position(|(a, b)| a != b);
            return Err(format!("byte {at:?} differs: {:?} for {:?}", raw(found), raw(expected)));
        }
    };
    let wide = |array: &Array| crate::float::read_wide::<f64>(array).expect("floats");
    let (found, expected) = (wide(found), wide(expected));
    let scale = expected.iter().filter(|x| x.is_finite()).fold(0.0, |scale: f64, x| scale.max(x.abs()));
    let is_near = |x: f64, y: f64| x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= tolerance * scale;
    match found.iter().zip(&expected).position(|(&x, &y)| !is_near(x, y)) {
        None => Ok(()),
        Some(at) => Err(format!("element {at} is {} for {}", found[at], expected[at])),
    }
}

fn type_of(value: &Value) -> Type {
    match value {
        Value::Tensor(array) => Type::Tensor(TensorType::sized(array.dtype(), array.dims())),
        Value::Strings(strings) => Type::Tensor(TensorType::sized(crate::dtype::DType::String, &strings.dims)),
        Value::Sequence(items) => {
            let dtype = match items.first().map(type_of) {
                Some(Type::Tensor(item)) => item.dtype,
                _ => crate::dtype::DType::Float32,
            };
            Type::Sequence(Box::new(Type::any(dtype)))
        }
        Value::None => Type::Optional(Box::new(Type::any(crate::dtype::DType::Float32))),
    }
}

/// Asserts that no two outputs are in one storage, and none in an input's, unless the op [shares](Kernel::shares) it.
fn assert_sharing(kernel: &dyn Kernel, inputs: &[Option<Value>], outputs: &[Value]) {
    let mut taken: Vec<_> =
        (0..inputs.len()).filter(|&i| !kernel.shares(i)).filter_map(|i| inputs[i].as_ref()).collect();
    let shares_none = !(0..inputs.len()).any(|i| kernel.shares(i));
    for output in outputs {
        let is_shared =
            storages(output).iter().any(|mine| taken.iter().flat_map(|value| storages(value)).any(|it| it == *mine));
        assert!(!is_shared, "{kernel:?} gives storage that belongs to another value");
        if shares_none {
            taken.push(output);
        }
    }
}

/// Runs with outlines in place of the inputs that need not be kept once they are packed, where they were.
fn assert_replaced(
    kernel: &dyn Kernel,
    inputs: &[Option<Value>],
    outputs: &[Value],
    packed: Option<&Packed>,
) -> Result<()> {
    let Some(packed) = packed.filter(|_| (0..inputs.len()).any(|i| kernel.is_replaced(i))) else { return Ok(()) };
    let give = |(i, value): (usize, &'_ Option<Value>)| match value {
        None => Ok(Input::Absent),
        Some(Value::Tensor(array)) if kernel.is_replaced(i) => Ok(Input::Owned(array.outline().into())),
        Some(value) => Ok(Input::Owned(deep_copy(value))),
    };
    let mut given = inputs.iter().enumerate().map(give).collect::<Result<Vec<Input>>>()?;
    let (inputs, count, threads) = (&mut given[..], outputs.len(), &Threads::serial());
    let found = kernel.run(&mut Call { inputs, outputs: count, packed: Some(packed), threads, blocks: &NoBlocks })?;
    assert!(same(outputs, &found), "{kernel:?}: what was packed gives other results");
    Ok(())
}

/// The addresses of the storages that a value holds.
fn storages(value: &Value) -> Vec<usize> {
    match value {
        Value::Tensor(array) => vec![array.storage().0],
        Value::Sequence(items) => items.iter().flat_map(storages).collect(),
        Value::Strings(_) | Value::None => Vec::new(),
    }
}

fn deep_copy(value: &Value) -> Value {
    match value {
        Value::Tensor(array) => words::copy(array).expect("a CPU tensor copies").into(),
        other => other.clone(),
    }
}

fn same(a: &[Value], b: &[Value]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
}

fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Tensor(a), Value::Tensor(b)) => a.dtype() == b.dtype() && a.dims() == b.dims() && raw(a) == raw(b),
        (Value::Strings(a), Value::Strings(b)) => a == b,
        (Value::Sequence(a), Value::Sequence(b)) => same(a, b),
        (Value::None, Value::None) => true,
        _ => false,
    }
}

fn raw(array: &Array) -> Vec<u8> {
    let bytes =
        by_width!(array.dtype(), W => words::read::<W>(array).map(|words| bytemuck::cast_slice(words).to_vec()));
    bytes.expect("a CPU tensor reads")
}
