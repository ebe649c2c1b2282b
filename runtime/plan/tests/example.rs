//! The example of docs/using-from-rust.md runs a plan.

#[path = "../examples/run.rs"]
#[allow(dead_code)] // its main
mod run;

#[test]
fn a_plan_runs_on_zeros() {
    let report = run::run(include_bytes!("../../../tests/golden/v1.plan")).unwrap();
    let expected = "input x: float32 [batch, 4]\noutput y: [1, 2] [0.500, 0.500] …\n";
    assert_eq!(report, expected);
}

#[test]
fn other_bytes_are_an_error() {
    assert!(run::run(b"PK\x03\x04").unwrap_err().to_string().contains("safetensors"));
}
