//! Tests of weights from files, for the plan `rows.plan`: `x [batch, 4] · inner [4, 32]`, Relu, `· outer [32, 3]`.

use std::io::Cursor;

use candle_core::quantized::{gguf_file, GgmlDType, QTensor};
use candle_core::{DType as StorageDType, Device, Tensor};
use safetensors::tensor::TensorView;
use safetensors::{serialize, Dtype};

use super::{Stored, Weights};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ids::{ConstantId, ValueId};
use crate::ops::Op;
use crate::plan::{Constant, NamedWeight, Plan};
use crate::types::{Dim, TensorType, Type};
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

/// The plan with `inner [4, k]`, and with `outer [3, k]`, which is transposed.
fn transposed(k: usize) -> (Plan, Vec<Value>) {
    let (mut plan, mut constants) = plan();
    for (at, rows) in [(0, 4), (1, 3)] {
        let kind = TensorType::sized(DType::Float32, &[rows, k]);
        plan.constants[at] = Constant::Tensor(kind.clone());
        plan.main.values[2 * at + 1].kind = Type::Tensor(kind);
        constants[at] = Array::new(vec![0f32; rows * k], &[rows, k]).expect("as many numbers").into();
    }
    let Type::Tensor(TensorType { shape: Some(hidden), .. }) = &mut plan.main.values[2].kind else {
        panic!("no shape")
    };
    hidden[1] = Some(Dim::Size(k));
    let Op::MatMul(product) = &mut plan.main.steps[1].op else { panic!("it is no product") };
    product.trans_b = true;
    assert!(crate::verify::verify(&plan, &constants).is_empty());
    (plan, constants)
}

/// The types of quantized tensors that products read, the bits of their codes, and the codes that share a scale.
const KEPT: [(GgmlDType, usize, usize); 8] = [
    (GgmlDType::Q8_0, 8, 32),
    (GgmlDType::Q4_0, 4, 32),
    (GgmlDType::Q4_1, 4, 32),
    (GgmlDType::Q5_0, 8, 32),
    (GgmlDType::Q5_1, 8, 32),
    (GgmlDType::Q4K, 4, 32),
    (GgmlDType::Q5K, 8, 32),
    (GgmlDType::Q6K, 8, 16),
];

#[test]
fn products_read_quantized_tensors() {
    let ones = Tensor::ones((3, 512), StorageDType::F32, &Device::Cpu).expect("it is small");
    for (kind, bits, part) in KEPT {
        // Of numbers that are all equal, a format with minima has the scale 0.
        for given in [&tensor((3, 512)), &ones, &ones.neg().expect("numbers"), &ones.zeros_like().expect("numbers")] {
            let (mut plan, mut constants) = transposed(512);
            let quantized = QTensor::quantize(given, kind).expect("rows of 512");
            let expected = quantized.dequantize(&Device::Cpu).and_then(|found| found.flatten_all()?.to_vec1::<f32>());
            read(&gguf(&[("outer", quantized)]))
                .and_then(|new| new.replace(&mut plan, &mut constants))
                .expect("it fits");
            assert!(crate::verify::verify(&plan, &constants).is_empty());
            let Op::MatMulNBits(product) = &plan.main.steps[1].op else { panic!("{kind:?} has no codes") };
            assert_eq!((product.n, product.k, product.bits, product.block), (3, 512, bits, part), "{kind:?}");
            let found = elements(&constants[2..], bits, part);
            for (at, (found, expected)) in found.into_iter().zip(expected.expect("numbers")).enumerate() {
                assert!((found - expected).abs() <= 1e-6, "{kind:?} element {at}: {found} instead of {expected}");
            }
        }
    }
}

/// The elements that the codes, scales and zero points of a product stand for.
fn elements(constants: &[Value], bits: usize, part: usize) -> Vec<f32> {
    let codes = constants[0].tensor().and_then(|codes| codes.read::<u8>()).expect("codes");
    let scales = numbers(&constants[1]);
    let zeros = constants.get(2).map(numbers);
    let zero = |block: usize| zeros.as_ref().map_or((1 << (bits - 1)) as f32, |zeros| zeros[block]);
    let code = |at: usize| match bits {
        8 => codes[at],
        _ => codes[at / 2] >> (4 * (at % 2)) & 15,
    };
    (0..scales.len() * part).map(|at| (f32::from(code(at)) - zero(at / part)) * scales[at / part]).collect()
}

#[test]
fn a_compiler_reads_metadata_elements_and_codes() {
    let quantized = QTensor::quantize(&tensor((3, 512)), GgmlDType::Q4K).expect("rows of 512");
    let expected = quantized.dequantize(&Device::Cpu).and_then(|found| found.flatten_all()?.to_vec1::<f32>());
    let (name, heads) = (gguf_file::Value::String("llama".to_string()), gguf_file::Value::U32(4));
    let list = gguf_file::Value::Array(vec![heads.clone()]);
    let mut bytes = Cursor::new(Vec::new());
    let metadata = [("general.architecture", &name), ("heads", &heads), ("list", &list)];
    gguf_file::write(&mut bytes, &metadata, &[("w", &quantized)]).expect("it is small");
    let weights = read(&bytes.into_inner()).expect("a sound file");
    assert_eq!(weights.kinds(), [("w".to_string(), "Q4K".to_string(), vec![3, 512])]);
    assert_eq!(weights.metadata(), r#"{"general.architecture":"llama","heads":4}"#);
    let expected = expected.expect("numbers");
    assert_eq!(numbers(&weights.elements("w").expect("it is there").into()), expected);
    let (bits, arrays) = weights.codes("w").expect("it is there").expect("a matrix of codes");
    let constants: Vec<Value> = arrays.into_iter().map(Value::from).collect();
    let found = elements(&constants, bits, 32);
    assert_eq!((bits, constants.len(), found.len()), (4, 3, 3 * 512));
    assert!(found.iter().zip(&expected).all(|(found, expected)| (found - expected).abs() <= 1e-6));
    assert!(weights.elements("v").is_err());
    let plain = read(&file(&[("a", &[2])])).expect("a sound file");
    assert_eq!(numbers(&plain.elements("a").expect("it is there").into()), [0.0, 1.0]);
    assert!(plain.codes("a").expect("it is there").is_none());
}

#[test]
fn tensors_of_other_readers_and_types_become_floats() {
    let of = |kind| read(&gguf(&[("outer", QTensor::quantize(&tensor((3, 256)), kind).expect("rows of 256"))]));
    for (kind, is_output) in [(GgmlDType::Q8_0, true), (GgmlDType::Q3K, false), (GgmlDType::F16, false)] {
        let (mut plan, mut constants) = transposed(256);
        if is_output {
            plan.main.outputs.push(ValueId(3));
        }
        let steps = plan.main.steps.clone();
        of(kind).and_then(|new| new.replace(&mut plan, &mut constants)).expect("it fits");
        assert_eq!((&plan.main.steps, constants.len()), (&steps, 2), "{kind:?}");
        assert!(numbers(&constants[1]).iter().any(|&number| number != 0.0));
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
