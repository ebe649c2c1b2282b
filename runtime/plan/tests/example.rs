//! The examples of docs/using-from-rust.md run plans.

#[path = "../examples/custom.rs"]
#[allow(dead_code)] // its main
mod custom;
#[path = "../examples/module.rs"]
#[allow(dead_code)] // its main
mod module;
#[path = "../examples/run.rs"]
#[allow(dead_code)] // its main
mod run;
#[path = "../examples/state.rs"]
#[allow(dead_code)] // its main
mod state;
#[path = "../examples/weights.rs"]
#[allow(dead_code)] // its main
mod weights;

use candle_core::{DType, Device, Module, ModuleT, Tensor};
use candle_nn::{seq, Activation};
use candle_plan::{CustomCall, Error, ErrorKind, Session, Value, Weights};

/// A plan with the step `y = example::Scale <factor = 2> (x)`, where `x` and `y` are float32 `[n, 2]`.
const SCALED: &[u8] = include_bytes!("plans/custom.plan");

#[test]
fn a_plan_runs_on_zeros() {
    let report = run::run(include_bytes!("plans/v1.plan")).unwrap();
    let expected = "input x: float32 [batch, 4]\noutput y: [1, 2] [0.500, 0.500] …\n";
    assert_eq!(report, expected);
}

#[test]
fn a_plan_is_a_layer() {
    let report = module::run(include_bytes!("plans/v1.plan")).unwrap();
    assert_eq!(report, "classes [3, 5], with sums [1.000, 1.000, 1.000]\n");
}

#[test]
fn a_session_is_a_layer_of_candle_nn() {
    let session = Session::from_bytes(include_bytes!("plans/rows.plan")).threads(1).build().unwrap();
    let x = Tensor::new(&[[-1f32, 2.0, -3.0, 4.0], [0.5, 0.0, -0.5, 1.0]], &Device::Cpu).unwrap();
    let alone: Vec<Vec<f32>> = session.forward(&x).unwrap().to_vec2().unwrap();
    assert_eq!(session.forward_t(&x, true).unwrap().to_vec2::<f32>().unwrap(), alone, "training changes nothing");
    let negative = session.forward(&x).unwrap().neg().unwrap().relu().unwrap().to_vec2::<f32>().unwrap();
    let model = seq().add(session).add_fn(|y| y.neg()).add(Activation::Relu);
    assert_eq!(model.forward(&x).unwrap().to_vec2::<f32>().unwrap(), negative);
}

#[test]
fn a_layer_has_one_input_and_one_output() {
    let session = Session::from_bytes(include_bytes!("plans/state.plan")).threads(1).build().unwrap();
    let error = session.forward(&Tensor::zeros((1, 4), DType::F32, &Device::Cpu).unwrap()).unwrap_err().to_string();
    assert!(error.contains("a layer has one input and one output, and the plan has 2 and 2"), "{error}");
}

#[test]
fn other_bytes_are_an_error() {
    assert!(run::run(b"PK\x03\x04 of an archive").unwrap_err().to_string().contains("is not a plan"));
}

#[test]
fn a_plan_runs_with_a_state() {
    let report = state::run(include_bytes!("plans/state.plan")).unwrap();
    let expected = "present_x becomes past_x, which grows along axis Some(0)\n\
        y [3, 3], and a state of length Some(3) and 48 bytes\n\
        y [1, 4], and a state of length Some(4) and 64 bytes\n\
        y [1, 5], and a state of length Some(5) and 80 bytes\n\
        a fork of length Some(4)\n";
    assert_eq!(report, expected);
}

#[test]
fn a_plan_without_state_is_an_error() {
    let error = state::run(include_bytes!("plans/v1.plan")).unwrap_err();
    assert!(error.to_string().starts_with("the plan has no state"), "{error}");
}

#[test]
fn a_plan_runs_with_other_weights() {
    let plan = include_bytes!("plans/weights.plan");
    let own = weights::run(plan, None).unwrap();
    let stored = "weight: float32 [3, 4], with the sum 12 in the plan\nbias: float32 [3], with the sum 3 in the plan\n";
    assert_eq!(own, format!("{stored}y [4.0, 5.0, 6.0]\n"));
    let mut others = Weights::new();
    others.insert_tensor("bias", &Tensor::zeros(3, DType::F32, &Device::Cpu).unwrap()).unwrap();
    let report = weights::run(plan, Some(others.clone())).unwrap();
    assert!(report.ends_with("y [4.0, 4.0, 4.0]\n"), "{report}");
    others.insert_tensor("bias2", &Tensor::zeros(3, DType::F32, &Device::Cpu).unwrap()).unwrap();
    let error = weights::run(plan, Some(others)).unwrap_err().to_string();
    assert!(error.contains("\"bias2\": the plan has no such weight. Similar names: \"bias\"."), "{error}");
}

#[test]
fn constants_are_tensors_by_name() {
    let plan = include_bytes!("plans/weights.plan");
    let stored = Session::from_bytes(plan).constants().unwrap();
    assert_eq!(stored.keys().collect::<Vec<_>>(), ["bias", "weight"]);
    assert_eq!(stored["bias"].to_vec1::<f32>().unwrap(), [0.0, 1.0, 2.0]);
    assert_eq!((stored["weight"].dims(), stored["weight"].dtype()), (&[3, 4][..], DType::F32));
    let mut others = Weights::new();
    others.insert_tensor("bias", &Tensor::new(&[7f32, 8.0, 9.0], &Device::Cpu).unwrap()).unwrap();
    let builder = Session::from_bytes(plan).threads(1).weights(others);
    let session = builder.clone().keep_constants().build().unwrap();
    let clone = session.with_threads(Some(2)).unwrap();
    for session in [&session, &clone] {
        assert_eq!(session.constant("bias").unwrap().to_vec1::<f32>().unwrap(), [7.0, 8.0, 9.0]);
        assert_eq!(session.constant("weight").unwrap().to_vec2::<f32>().unwrap(), [[1.0; 4]; 3]);
    }
    let said = session.constant("gamma").unwrap_err().to_string();
    assert_eq!(said, "the plan has no constant of numbers \"gamma\": Session::constants lists the names");
    let said = builder.build().unwrap().constant("bias").unwrap_err().to_string();
    assert!(said.ends_with("build it with SessionBuilder::keep_constants"), "{said}");
}

#[test]
fn attributes_of_a_custom_operator_have_kinds() {
    let look = |call: &CustomCall| {
        let said: Vec<String> = [
            call.int("factor").map(|_| ()),
            call.text("factor").map(|_| ()),
            call.ints("none").map(|_| ()),
            call.floats("factor").map(|_| ()),
            call.texts("factor").map(|_| ()),
            call.tensor_attribute("factor").map(|_| ()),
            call.tensor(1).map(|_| ()),
        ]
        .map(|found| found.unwrap_err().to_string())
        .to_vec();
        Err(Error::op(said.join("\n")))
    };
    let session = Session::from_bytes(SCALED).custom_op("example::Scale", look).threads(1).build().unwrap();
    let error = session.run_named([("x", Value::new(vec![0f32; 4], &[2, 2]).unwrap())]).unwrap_err();
    assert_eq!((error.place().unwrap().step(), error.place().unwrap().op()), (0, "Custom"));
    assert_eq!(
        (error.place().unwrap().inputs(), error.place().unwrap().origin()),
        (&["float32 [2, 2]".to_string()][..], "Scale(y)")
    );
    let found = "found Float(2.0)";
    let expected = [
        format!("attribute factor: expected an integer, {found}"),
        format!("attribute factor: expected a text, {found}"),
        "attribute none: expected a list of integers, found nothing".to_string(),
        format!("attribute factor: expected a list of floating-point numbers, {found}"),
        format!("attribute factor: expected a list of texts, {found}"),
        format!("attribute factor: expected a tensor, {found}"),
        "input 1 is missing".to_string(),
    ];
    assert!(error.to_string().ends_with(&expected.join("\n")), "{error}");
}

#[test]
fn a_plan_runs_with_a_custom_operator() {
    assert_eq!(custom::run(SCALED).unwrap(), "y: float32 [n, 2] is [2.0, 4.0, 6.0, 8.0]\n");
}

#[test]
fn a_custom_operator_must_be_registered() {
    for builder in [
        Session::from_bytes(SCALED),
        Session::from_bytes(SCALED).custom_op("example::Other", |_: &CustomCall| Ok(vec![])),
    ] {
        let Err(error) = builder.threads(1).build() else { panic!("it is not registered") };
        assert_eq!(error.kind(), ErrorKind::CustomOp);
        assert!(error.to_string().contains("it needs the custom operator example::Scale, which is not"), "{error}");
    }
}

#[test]
fn wrong_results_of_a_custom_operator_are_errors_of_its_step() {
    let array = |dims: &[usize]| Value::new(vec![0f32; dims.iter().product()], dims).unwrap();
    let doubles = || Value::new(vec![0f64; 4], &[2, 2]).unwrap();
    let run = |results: Vec<Value>| {
        let scale = move |_: &CustomCall| Ok(results.clone());
        let session = Session::from_bytes(SCALED).custom_op("example::Scale", scale).threads(1).build().unwrap();
        session.run_named([("x", array(&[2, 2]))]).map(|_| ()).unwrap_err()
    };
    let of_output = "output 0 of example::Scale: expected float32 [n, 2]";
    for (results, said) in [
        (vec![], "example::Scale has 1 output, and its function returned 0".to_string()),
        (vec![doubles()], format!("{of_output}, found float64 [2, 2]")),
        (vec![array(&[2, 3])], format!("{of_output}, found float32 [2, 3]")),
        (vec![array(&[4])], format!("{of_output}, found float32 [4]")),
        (vec![array(&[3, 2])], format!("{of_output} with n = 2, found float32 [3, 2]")),
    ] {
        let error = run(results);
        let place = error.place().expect("a step failed").to_string();
        assert_eq!((error.kind(), place.as_str()), (ErrorKind::Op, "step 0 Custom(float32 [2, 2]) from Scale(y)"));
        assert!(error.to_string().ends_with(&format!(": {said}")), "{error}");
    }
}

#[test]
fn an_error_of_a_custom_operator_names_its_step() {
    let refuse = |call: &CustomCall| Err(Error::op(format!("no factor of {}", call.float("factor")?)));
    let session = Session::from_bytes(SCALED).custom_op("example::Scale", refuse).threads(1).build().unwrap();
    let error = session.run_named([("x", Value::new(vec![0f32; 4], &[2, 2]).unwrap())]).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "step 0 Custom(float32 [2, 2]) from Scale(y): no factor of 2");
    let whole = |call: &CustomCall| call.int("factor").map(|_| vec![]);
    let session = Session::from_bytes(SCALED).custom_op("example::Scale", whole).threads(1).build().unwrap();
    let error = session.run_named([("x", Value::new(vec![0f32; 4], &[2, 2]).unwrap())]).map(|_| ()).unwrap_err();
    assert!(error.to_string().ends_with("attribute factor: expected an integer, found Float(2.0)"), "{error}");
}
