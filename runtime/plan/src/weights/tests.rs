//! Tests of weights from files, for the plan `rows.plan`: `x [batch, 4] · inner [4, 32]`, Relu, `· outer [32, 3]`.

use std::io::Cursor;

use candle_core::quantized::{gguf_file, GgmlDType, QTensor};
use candle_core::{DType as StorageDType, Device, Tensor};
use safetensors::tensor::TensorView;
use safetensors::{serialize, Dtype};

use super::Weights;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ids::{ConstantId, ValueId};
use crate::ops::Op;
use crate::plan::{Constant, NamedWeight, Plan};
use crate::types::{TensorType, Type};
use crate::value::{Array, Value};

const ROWS: &[u8] = include_bytes!("../../tests/plans/rows.plan");

/// The plan with two weights, and its constants.
fn plan() -> (Plan, Vec<Value>) {
    let (mut plan, constants) = crate::read::read(ROWS).expect("a sound plan");
    let weight = |name: &str, at| NamedWeight { name: name.to_string(), constant: ConstantId(at) };
    plan.weights = vec![weight("inner", 0), weight("outer", 1)];
    assert!(crate::verify::verify(&plan, &constants).is_empty());
    (plan, constants)
}

fn numbers(value: &Value) -> Vec<f32> {
    value.tensor().and_then(|array| array.read::<f32>()).expect("float32").to_vec()
}

fn read(bytes: &[u8]) -> Result<Weights> {
    Weights::of(Cursor::new(bytes), bytes.len() as u64)
}

/// The bytes of a safetensors file with tensors of float32, whose elements are `0, 1, 2, …`.
fn file(tensors: &[(&str, &[usize])]) -> Vec<u8> {
    let bytes = |dims: &[usize]| (0..dims.iter().product()).flat_map(|at: usize| (at as f32).to_le_bytes()).collect();
    let data: Vec<Vec<u8>> = tensors.iter().map(|(_, dims)| bytes(dims)).collect();
    let views = tensors.iter().zip(&data).map(|((name, dims), data)| {
        (name.to_string(), TensorView::new(Dtype::F32, dims.to_vec(), data).expect("as many bytes"))
    });
    serialize(views, None).expect("it is small")
}

/// The bytes of a GGUF file with these tensors.
fn gguf(tensors: &[(&str, QTensor)]) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let tensors: Vec<(&str, &QTensor)> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
    gguf_file::write(&mut bytes, &[], &tensors).expect("it is small");
    bytes.into_inner()
}

fn tensor(dims: (usize, usize)) -> Tensor {
    let numbers: Vec<f32> = (0..dims.0 * dims.1).map(|at| (at as f32 / 7.0).sin()).collect();
    Tensor::from_vec(numbers, dims, &Device::Cpu).expect("as many numbers")
}

#[test]
fn a_file_replaces_the_weights_that_it_names() {
    let (mut plan, mut constants) = plan();
    let inner = numbers(&constants[0]);
    read(&file(&[("outer", &[32, 3])])).and_then(|new| new.replace(&mut plan, &mut constants)).expect("it fits");
    let counted: Vec<f32> = (0..96).map(|at| at as f32).collect();
    assert_eq!((numbers(&constants[0]), numbers(&constants[1])), (inner, counted));
}

#[test]
fn quantized_tensors_become_the_numbers_that_they_stand_for() {
    let (mut plan, mut constants) = plan();
    for kind in [GgmlDType::F32, GgmlDType::F16, GgmlDType::Q8_0, GgmlDType::Q4_0] {
        let quantized = QTensor::quantize(&tensor((4, 32)), kind).expect("rows of 32");
        let expected = quantized.dequantize(&Device::Cpu).and_then(|found| found.flatten_all()?.to_vec1::<f32>());
        read(&gguf(&[("inner", quantized)])).and_then(|new| new.replace(&mut plan, &mut constants)).expect("it fits");
        assert_eq!(numbers(&constants[0]), expected.expect("numbers"), "{kind:?}");
    }
}

/// The plan with `outer [3, 32]`, which is transposed.
fn transposed() -> (Plan, Vec<Value>) {
    let (mut plan, mut constants) = plan();
    let kind = TensorType::sized(DType::Float32, &[3, 32]);
    plan.constants[1] = Constant::Tensor(kind.clone());
    plan.main.values[3].kind = Type::Tensor(kind);
    constants[1] = Array::new(vec![0f32; 96], &[3, 32]).expect("96 numbers").into();
    let Op::MatMul(product) = &mut plan.main.steps[1].op else { panic!("it is no product") };
    product.trans_b = true;
    assert!(crate::verify::verify(&plan, &constants).is_empty());
    (plan, constants)
}

#[test]
fn products_read_quantized_tensors() {
    for (kind, bits) in [(GgmlDType::Q8_0, 8), (GgmlDType::Q4_0, 4)] {
        let (mut plan, mut constants) = transposed();
        let quantized = QTensor::quantize(&tensor((3, 32)), kind).expect("rows of 32");
        let expected = quantized.dequantize(&Device::Cpu).and_then(|found| found.flatten_all()?.to_vec1::<f32>());
        read(&gguf(&[("outer", quantized)])).and_then(|new| new.replace(&mut plan, &mut constants)).expect("it fits");
        assert!(crate::verify::verify(&plan, &constants).is_empty());
        let Op::MatMulNBits(product) = &plan.main.steps[1].op else { panic!("it has no codes") };
        assert_eq!((product.n, product.k, product.bits, product.block), (3, 32, bits, 32));
        let codes = constants[2].tensor().and_then(|codes| codes.read::<u8>()).expect("codes");
        let scales = numbers(&constants[3]);
        let code = |at: usize| match bits {
            8 => f32::from(codes[at]) - 128.0,
            _ => f32::from(codes[at / 2] >> (4 * (at % 2)) & 15) - 8.0,
        };
        let found: Vec<f32> = (0..96).map(|at| code(at) * scales[at / 32]).collect();
        assert_eq!(found, expected.expect("numbers"), "{kind:?}");
    }
}

#[test]
fn tensors_of_other_readers_and_types_become_floats() {
    let of = |kind| read(&gguf(&[("outer", QTensor::quantize(&tensor((3, 32)), kind).expect("rows of 32"))]));
    for (kind, is_output) in [(GgmlDType::Q8_0, true), (GgmlDType::Q5_0, false), (GgmlDType::F16, false)] {
        let (mut plan, mut constants) = transposed();
        if is_output {
            plan.main.outputs.push(ValueId(3));
        }
        let steps = plan.main.steps.clone();
        of(kind).and_then(|new| new.replace(&mut plan, &mut constants)).expect("it fits");
        assert_eq!((&plan.main.steps, constants.len()), (&steps, 2), "{kind:?}");
        assert_ne!(numbers(&constants[1]), [0.0; 96]);
    }
}

#[test]
fn tensors_that_do_not_fit_are_named_and_change_nothing_else() {
    let (mut plan, mut constants) = plan();
    let mut weights = read(&file(&[("inner", &[32, 4]), ("outer2", &[32, 3]), ("x", &[1])])).expect("a sound file");
    let doubles = Tensor::zeros((32, 3), StorageDType::F64, &Device::Cpu).expect("it is small");
    weights.insert_tensor("outer", &doubles).expect("float64");
    let keep = "compile the model with Options(keep_weights=True), or candlec compile --keep-weights";
    let Err(Error::Weights(reasons)) = weights.replace(&mut plan, &mut constants) else { panic!("none of them fits") };
    let expected = [
        format!("\"outer2\": the plan has no such weight. Similar names: \"outer\". If the model has it: {keep}"),
        format!("\"x\": the plan has no such weight. If the model has it: {keep}"),
        "weight \"inner\": expected float32 [4, 32], found float32 [32, 4]".to_string(),
        "weight \"outer\": expected float32 [32, 3], found float64 [32, 3]".to_string(),
    ];
    assert_eq!(reasons, expected);
    let mut plan = Plan { weights: Vec::new(), ..plan };
    let error = read(&file(&[("inner", &[4, 32])])).and_then(|new| new.replace(&mut plan, &mut constants));
    let said = format!("\"inner\": the plan lists no weights, because passes may have changed them: {keep}");
    assert_eq!(error.expect_err("no weights").to_string(), format!("the weights cannot be used:\n  {said}"));
}

#[test]
fn damaged_files_are_refused() {
    let (sound, quantized) =
        (file(&[("a", &[3])]), gguf(&[("a", QTensor::quantize(&tensor((1, 32)), GgmlDType::Q8_0).expect("32"))]));
    // A GGUF file ends with padding to a multiple of 32 bytes, which nobody needs: 34 bytes of elements have 30.
    for (bytes, padding) in [(&sound, 0), (&quantized, 30)] {
        assert_eq!(read(bytes).expect("a sound file").names().collect::<Vec<_>>(), ["a"]);
        for length in 0..bytes.len() - padding {
            let error = read(&bytes[..length]).expect_err("it is cut short");
            assert!(matches!(error, Error::Op(_)), "{length}: {error}");
        }
    }
    let error = Weights::read("absent.safetensors").expect_err("there is no such file");
    assert_eq!(error.kind(), crate::error::ErrorKind::Weights);
    assert!(error.to_string().contains("absent.safetensors: it cannot be opened"), "{error}");
}

#[test]
fn files_for_which_candle_panics_are_refused() {
    let alignment = gguf_file::Value::U32(0);
    let mut bytes = Cursor::new(Vec::new());
    gguf_file::write(&mut bytes, &[("general.alignment", &alignment)], &[]).expect("it is small");
    let error = read(&bytes.into_inner()).expect_err("an alignment of 0");
    assert_eq!(error.to_string(), "it is a damaged GGUF file (Candle's reader panicked)");
}

#[test]
fn a_message_lists_some_of_many_unknown_names() {
    let (mut plan, mut constants) = plan();
    let names: Vec<String> = (0..300).map(|at| format!("blk.{at}.weight")).collect();
    let tensors: Vec<(&str, &[usize])> = names.iter().map(|name| (name.as_str(), &[1usize][..])).collect();
    let replaced = read(&file(&tensors)).and_then(|new| new.replace(&mut plan, &mut constants));
    let Err(Error::Weights(reasons)) = replaced else { panic!("the plan has none of them") };
    assert_eq!((reasons.len(), reasons[20].as_str()), (21, "the plan lacks 280 other names too"));
}

#[test]
fn rules_of_weights_are_verified() {
    let (plan, constants) = plan();
    let weight = |name: &str, at| NamedWeight { name: name.to_string(), constant: ConstantId(at) };
    for (second, said) in [
        (weight("outer", 2), "weight 1: constant 2 is no numeric constant of the plan"),
        (weight("inner", 1), "weight 1: the name \"inner\" is empty or that of another weight"),
        (weight("", 1), "weight 1: the name \"\" is empty or that of another weight"),
        (weight("outer", 0), "weight 1: constant 0 is another weight too"),
    ] {
        let plan = Plan { weights: vec![weight("inner", 0), second], ..plan.clone() };
        assert_eq!(crate::verify::verify(&plan, &constants), [said]);
    }
}
