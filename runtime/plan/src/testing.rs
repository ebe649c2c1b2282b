//! Runs one op in a test, in each way that the executor may run it.

use candle_plan_descriptors::conv::Shape;
use candle_plan_descriptors::strided::View;
use candle_plan_device::Gpu;
use candle_plan_kernels::blocking::Blocking;
use candle_plan_kernels::convolution::rows::{conv_plain, conv_transposed_plain};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::threads::Threads;
use candle_plan_memory::buffer;

use crate::array::words;
use crate::by_width;
use crate::cpu::{self, CpuOperands};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::{self, download, upload, OnDevice, OnGpu};
use crate::kernel::{Call, Constants, Input, Kernel, Memory, NoBlocks};
use crate::movable::copy_view;
use crate::operator::Needs;
use crate::ops::Op;
use crate::types::{TensorType, Type, Types};
use crate::value::{catch_out_of_memory, Array, Value};

/// An op's struct, or an op.
pub trait Tested: std::fmt::Debug {
    /// The op.
    fn op(&self) -> Op;
}

impl<T: Clone + Into<Op> + std::fmt::Debug> Tested for T {
    fn op(&self) -> Op {
        self.clone().into()
    }
}

/// A tensor value.
pub fn tensor<T: crate::dtype::Element>(data: &[T], dims: &[usize]) -> Value {
    Array::new(data.to_vec(), dims).expect("test data fills its shape").into()
}

/// Returns a tensor of numbers in an element type that has arithmetic.
pub fn numbers_of(dtype: DType, numbers: &[f64], dims: &[usize]) -> Array {
    let array = Array::new(numbers.to_vec(), dims).expect("test data fills its shape");
    cpu::convert::converted(&array, dtype, &Threads::serial()).expect("numbers become any other type")
}

/// Returns a tensor of numbers that are spread over `least..least + 4`, in a floating-point type.
pub fn spread(dtype: DType, least: f64, dims: &[usize]) -> Value {
    let numbers: Vec<f64> =
        (0..dims.iter().product()).map(|i: usize| (i * 7919 % 1013) as f64 / 256.0 + least).collect();
    numbers_of(dtype, &numbers, dims).into()
}

/// Returns a pseudorandom number below `limit`.
pub fn draw(seed: &mut u64, limit: usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    ((*seed >> 33) as usize) % limit
}

/// Returns a copy of a view of a tensor.
pub fn copied_on_host(x: &Array, view: &View) -> Array {
    copy_view(x, view, &Threads::serial()).expect("the view is inside")
}

/// Returns a convolution, transposed or not, as its definition computes it from the weights, the bias and the image.
pub fn convolved_on_host(transposed: bool, shape: &Shape, [w, bias, x]: [&[f64]; 3]) -> Vec<f64> {
    let mut y = vec![0.0; shape.batch * shape.outputs * shape.pixels()];
    let plain = if transposed { conv_transposed_plain } else { conv_plain };
    plain(&Threads::serial(), shape, w, Some(bias), x, &mut y);
    y
}

/// Runs an op that has one output. See [`run_outputs`].
pub fn run(op: &dyn Tested, inputs: &[Option<Value>]) -> Result<Value> {
    run_outputs(op, inputs, 1).map(|mut outputs| outputs.remove(0))
}

/// Returns the `count` outputs of an op. Runs the op with shared inputs, with inputs that the kernel may overwrite,
/// with two threads, and with packed constants. All runs must give the same bits, of the types that `infer` returns
/// with and without constant inputs. If `infer` refuses constant inputs, the run must fail.
pub fn run_outputs(op: &dyn Tested, inputs: &[Option<Value>], count: usize) -> Result<Vec<Value>> {
    let op = op.op();
    let types: Vec<Option<Type>> = inputs.iter().map(|value| value.as_ref().map(type_of)).collect();
    let types: Vec<Option<&Type>> = types.iter().map(Option::as_ref).collect();
    let arity = op.operator().arity();
    assert!(arity.inputs.contains(&inputs.len()), "{op:?} takes {:?} inputs", arity.inputs);
    let plain = op.operator().infer(&Types::of(&types, count))?;
    let values: Vec<Option<&Value>> = inputs.iter().map(Option::as_ref).collect();
    let kernel = |values: &[Option<&Value>]| cpu::kernel(&op, &on_cpu(Constants { values, types: &types }));
    let unknown = vec![None; inputs.len()];

    let (one, two) = (Threads::serial(), Threads::new(2).map_err(|error| Error::op(error.to_string()))?);
    let outputs = run_kernel(kernel(&unknown)?.as_ref(), inputs, count, false, &one);
    let inferred = infer_constants(&op, inputs, &types, count);
    assert!(inferred.is_ok() || outputs.is_err(), "{op:?}: {inferred:?}, but it runs");
    let (inferred, outputs) = ([inferred?, plain], outputs?);
    assert_sharing(&op, inputs, &outputs);
    assert_replaced(kernel(&values)?.as_ref(), inputs, &outputs)?;
    // A new kernel for each run, because a kernel may count its runs.
    for (known, owned, threads) in [(&unknown, true, &one), (&unknown, false, &two), (&values, false, &one)] {
        let other = run_kernel(kernel(known)?.as_ref(), inputs, count, owned, threads)?;
        assert!(same(&outputs, &other), "{op:?}: in place, threads or packing change the result");
    }
    for (output, kind) in inferred.iter().flat_map(|inferred| outputs.iter().zip(inferred)) {
        assert!(kind.admits(output), "{op:?} infers {kind}, gives {}", output.describe());
    }
    // A test that bounds the memory of the op must not count the memory of the device's run.
    buffer::within(usize::MAX, || assert_on_device(&op, inputs, &types, &outputs));
    Ok(outputs)
}

/// Returns the operands of a kernel of the CPU.
fn on_cpu(constants: Constants) -> CpuOperands {
    CpuOperands { constants, memory: Memory::Full, blocking: Blocking::largest(Isa::get()) }
}

/// Returns the types that `infer` returns if every input is a constant.
fn infer_constants(op: &Op, inputs: &[Option<Value>], types: &[Option<&Type>], outputs: usize) -> Result<Vec<Type>> {
    let array = |value: &Option<Value>| value.as_ref().and_then(|value| value.tensor().ok()).cloned();
    let arrays: Vec<Option<Array>> = inputs.iter().map(array).collect();
    let constants: Vec<Option<&Array>> = arrays.iter().map(Option::as_ref).collect();
    op.infer(&Types { inputs: types, constants: &constants, outputs })
}

/// The outputs of a kernel, which may overwrite the inputs that it takes in place if they are `owned`.
fn run_kernel(
    kernel: &dyn Kernel,
    inputs: &[Option<Value>],
    outputs: usize,
    owned: bool,
    threads: &Threads,
) -> Result<Vec<Value>> {
    let give = |(i, value): (usize, &'_ Option<Value>)| match value {
        None => Input::Absent,
        Some(value) if owned && value.tensor().is_ok_and(|x| kernel.takes(i, x.dtype())) => {
            Input::Owned(deep_copy(value))
        }
        Some(value) => Input::Owned(value.clone()),
    };
    let mut given: Vec<Input> = inputs.iter().enumerate().map(give).collect();
    for (input, value) in given.iter_mut().zip(inputs).filter(|_| !owned) {
        if let Some(value) = value {
            *input = Input::Shared(value);
        }
    }
    catch_out_of_memory(|| kernel.run(&mut Call { inputs: &mut given, outputs, threads, blocks: &NoBlocks }))
}

/// Whether the op's kernel on a device finds a fault in these inputs.
pub fn fault(op: &dyn Tested, inputs: &[Value]) -> bool {
    run_on_device(op, inputs).unwrap_or_else(|error| panic!("on the device: {error}")).1
}

/// Returns the outputs of the op on a device, and whether its kernel found a fault. The host's kernel must report the
/// same fault.
pub fn run_on_device(op: &dyn Tested, inputs: &[Value]) -> Result<(Vec<Value>, bool)> {
    let op = op.op();
    let (gpu, types) = (candle_plan_device_emulator::open()?, inputs.iter().map(type_of).collect::<Vec<Type>>());
    let types: Vec<Option<&Type>> = types.iter().map(Some).collect();
    let constants = Constants { values: &vec![None; inputs.len()], types: &types };
    let OnDevice::Kernel(placed) = gpu::on_device(&op, &constants, &gpu)? else {
        return Err(Error::op("there is no kernel"));
    };
    let turn = gpu.turn()?;
    gpu.mark(7);
    let inputs: Vec<Option<Value>> = inputs.iter().cloned().map(Some).collect();
    let (outputs, _) = run_placed(&op, placed.as_ref(), &gpu, (&inputs, false), 1)?;
    let report = turn.finish(Vec::new())?;
    if let Some(report) = &report {
        let kernel = cpu::kernel(&op, &on_cpu(constants))?;
        let error = run_kernel(kernel.as_ref(), &inputs, 1, false, &Threads::serial()).expect_err("as on the device");
        assert_eq!((report.mark, placed.fault(report)), (7, error.to_string()), "{op:?}");
    }
    Ok((outputs, report.is_some()))
}

/// Asserts that an op with a kernel for a device gives the same outputs there, with shared inputs and with inputs that
/// it may overwrite.
fn assert_on_device(op: &Op, inputs: &[Option<Value>], types: &[Option<&Type>], outputs: &[Value]) {
    let gpu = candle_plan_device_emulator::open().expect("enough memory");
    if !inputs.iter().flatten().chain(outputs).all(|value| matches!(value, Value::Tensor(_))) {
        return;
    }
    // The choice of a kernel may depend on constants: tries all inputs as constants, and none.
    let values: Vec<Option<&Value>> = inputs.iter().map(Option::as_ref).collect();
    for values in [values, vec![None; inputs.len()]] {
        let how = || gpu::on_device(op, &Constants { values: &values, types }, &gpu).expect("the emulator has memory");
        let OnDevice::Kernel(placed) = how() else { continue };
        for owned in [false, true] {
            let found = run_placed(op, placed.as_ref(), &gpu, (inputs, owned), outputs.len());
            let (found, counted) = found.unwrap_or_else(|error| panic!("{op:?} on the device: {error}"));
            assert_eq!(found.len(), outputs.len(), "{op:?} gives as many outputs on the device");
            if let (true, OnDevice::Kernel(new)) = (counted > outputs.iter().map(bytes_of).sum(), how()) {
                assert_limited(op, new.as_ref(), &gpu, (inputs, owned), (outputs.len(), counted));
            }
            for (found, expected) in found.iter().zip(outputs) {
                let (found, expected) = (found.tensor().expect("a tensor"), expected.tensor().expect("a tensor"));
                if let Err(difference) = near(found, expected) {
                    panic!("{op:?} gives another result on the device: {difference}");
                }
            }
        }
    }
}

/// Asserts that a kernel with scratch memory on the device fails if the memory limit is one byte too low. The kernel has
/// not run yet: it may keep tables of its first run.
fn assert_limited(
    op: &Op,
    placed: &dyn OnGpu,
    gpu: &Gpu,
    inputs: (&[Option<Value>], bool),
    (outputs, counted): (usize, usize),
) {
    let refused = buffer::within(counted - 1, || run_placed(op, placed, gpu, inputs, outputs));
    assert!(matches!(refused, Err(Error::Memory(_))), "{op:?} takes {counted} bytes, and less is not refused");
}

fn bytes_of(value: &Value) -> usize {
    value.tensor().map_or(0, Array::bytes_of_elements)
}

/// Runs a kernel on a device, with shared inputs or with inputs that it may overwrite, and copies the outputs to the
/// host. Also returns the bytes that count toward the memory limit: all that the kernel allocates on the device.
fn run_placed(
    op: &Op,
    placed: &dyn OnGpu,
    gpu: &Gpu,
    (inputs, owned): (&[Option<Value>], bool),
    outputs: usize,
) -> Result<(Vec<Value>, usize)> {
    let to_device = |(i, value): (usize, &Option<Value>)| match (value, op.operator().needs(i)) {
        (Some(value), Needs::Elements) => upload(gpu, value).map(Some),
        (value, _) => Ok(value.clone()),
    };
    let given: Vec<Option<Value>> = inputs.iter().enumerate().map(to_device).collect::<Result<_>>()?;
    let kept = if owned { Vec::new() } else { given.clone() };
    let mut inputs: Vec<Input> = given.into_iter().map(|value| value.map_or(Input::Absent, Input::Owned)).collect();
    let (inputs, threads) = (&mut inputs[..], &Threads::serial());
    let (limit, before) = (buffer::budget().min(usize::MAX - 1), candle_plan_device_emulator::allocated());
    let (found, left) = buffer::within(limit, || {
        let found = placed.run(gpu, &mut Call { inputs, outputs, threads, blocks: &NoBlocks });
        (found, buffer::budget())
    });
    let allocated = candle_plan_device_emulator::allocated() - before;
    assert!(allocated <= limit - left, "{op:?} allocates {allocated} bytes, and counts {}", limit - left);
    drop(kept);
    let copies = found?.iter().map(|value| Ok(download(value.tensor()?)?.into())).collect::<Result<_>>()?;
    Ok((copies, limit - left))
}

/// Whether two tensors are equal, up to rounding if they are floating-point.
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
    let wide = |array: &Array| array.to_f64().expect("floats");
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
        Value::Grown(grown) => Type::Tensor(TensorType::sized(grown.dtype(), grown.dims())),
        Value::Sequence(items) => {
            let dtype = match items.front().map(type_of) {
                Some(Type::Tensor(item)) => item.dtype,
                _ => crate::dtype::DType::Float32,
            };
            Type::Sequence(Box::new(Type::any(dtype)))
        }
        Value::None => Type::Optional(Box::new(Type::any(crate::dtype::DType::Float32))),
    }
}

/// Asserts that no two outputs share storage, and that an output shares storage only with an input that the op
/// [shares](crate::operator::Operator::shares).
fn assert_sharing(op: &Op, inputs: &[Option<Value>], outputs: &[Value]) {
    let mut taken: Vec<_> =
        (0..inputs.len()).filter(|&i| !op.operator().shares(i)).filter_map(|i| inputs[i].as_ref()).collect();
    let shares_none = !(0..inputs.len()).any(|i| op.operator().shares(i));
    for output in outputs {
        let is_shared =
            storages(output).iter().any(|mine| taken.iter().flat_map(|value| storages(value)).any(|it| it == *mine));
        assert!(!is_shared, "{op:?} gives storage that belongs to another value");
        if shares_none {
            taken.push(output);
        }
    }
}

/// Runs with outlines in place of the inputs that packed weights replace, if there are any.
fn assert_replaced(kernel: &dyn Kernel, inputs: &[Option<Value>], outputs: &[Value]) -> Result<()> {
    if !(0..inputs.len()).any(|i| kernel.is_replaced(i)) {
        return Ok(());
    }
    let give = |(i, value): (usize, &'_ Option<Value>)| match value {
        None => Ok(Input::Absent),
        Some(Value::Tensor(array)) if kernel.is_replaced(i) => Ok(Input::Owned(array.outline().into())),
        Some(value) => Ok(Input::Owned(deep_copy(value))),
    };
    let mut given = inputs.iter().enumerate().map(give).collect::<Result<Vec<Input>>>()?;
    let (inputs, count, threads) = (&mut given[..], outputs.len(), &Threads::serial());
    let found = kernel.run(&mut Call { inputs, outputs: count, threads, blocks: &NoBlocks })?;
    assert!(same(outputs, &found), "{kernel:?}: packed weights give other results");
    Ok(())
}

/// The addresses of the storages that a value holds.
fn storages(value: &Value) -> Vec<usize> {
    match value {
        Value::Tensor(array) => vec![array.storage().0],
        Value::Grown(grown) => vec![grown.storage().0.storage().0],
        Value::Sequence(items) => items.iter().flat_map(storages).collect(),
        Value::Strings(_) | Value::None => Vec::new(),
    }
}

fn deep_copy(value: &Value) -> Value {
    match value {
        Value::Tensor(array) => array.copy().expect("a CPU tensor copies").into(),
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
        (Value::Sequence(a), Value::Sequence(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same_value(a, b))
        }
        (Value::None, Value::None) => true,
        _ => false,
    }
}

fn raw(array: &Array) -> Vec<u8> {
    let bytes =
        by_width!(array.dtype(), W => words::read::<W>(array).map(|words| bytemuck::cast_slice(words).to_vec()));
    bytes.expect("a CPU tensor reads")
}
