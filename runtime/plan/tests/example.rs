//! The example of docs/using-from-rust.md runs a plan.

#[path = "../examples/run.rs"]
#[allow(dead_code)] // its main
mod run;

#[test]
fn a_plan_runs_on_zeros() {
    let said = run::run(include_bytes!("../../../tests/golden/v1.plan")).unwrap();
    let expected = "input x: float32 [batch, 4]\noutput y: [1, 2] [0.500, 0.500] …\n";
    assert_eq!(said, expected);
}

#[test]
fn what_is_no_plan_is_an_error() {
    assert!(run::run(b"PK\x03\x04").unwrap_err().to_string().contains("safetensors"));
}
