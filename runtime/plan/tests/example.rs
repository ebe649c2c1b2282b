//! The examples of docs/using-from-rust.md run plans.

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

use candle_core::{DType, Device, Tensor};
use candle_plan::weights::Weights;

#[test]
fn a_plan_runs_on_zeros() {
    let report = run::run(include_bytes!("../../../tests/golden/v1.plan")).unwrap();
    let expected = "input x: float32 [batch, 4]\noutput y: [1, 2] [0.500, 0.500] …\n";
    assert_eq!(report, expected);
}

#[test]
fn a_plan_is_a_layer() {
    let report = module::run(include_bytes!("../../../tests/golden/v1.plan")).unwrap();
    assert_eq!(report, "classes [3, 5], with sums [1.000, 1.000, 1.000]\n");
}

#[test]
fn other_bytes_are_an_error() {
    assert!(run::run(b"PK\x03\x04 of an archive").unwrap_err().to_string().contains("is not a plan"));
}

#[test]
fn a_plan_runs_with_a_state() {
    let report = state::run(include_bytes!("../../../tests/golden/state.plan")).unwrap();
    let expected = "present_x becomes past_x, which grows along axis Some(0)\n\
        y [3, 3], and a state of length Some(3) and 48 bytes\n\
        y [1, 4], and a state of length Some(4) and 64 bytes\n\
        y [1, 5], and a state of length Some(5) and 80 bytes\n\
        a fork of length Some(4)\n";
    assert_eq!(report, expected);
}

#[test]
fn a_plan_without_state_is_an_error() {
    let error = state::run(include_bytes!("../../../tests/golden/v1.plan")).unwrap_err();
    assert!(error.to_string().starts_with("the plan has no state"), "{error}");
}

#[test]
fn a_plan_runs_with_other_weights() {
    let plan = include_bytes!("../../../tests/golden/weights.plan");
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
