//! Runs a plan with a custom operator: `cargo run --release -p candle-plan --example custom -- scaled.plan`.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt::Write;

use candle_plan::{CustomCall, Result as PlanResult, Session, Value};

/// `example::Scale`: the input, float32, times the attribute `factor`.
fn scale(call: &CustomCall) -> PlanResult<Vec<Value>> {
    let (x, factor) = (call.tensor(0)?, call.float("factor")?);
    let scaled: Vec<f32> = x.read::<f32>()?.iter().map(|number| factor * number).collect();
    Ok(vec![Value::new(scaled, x.dims()?)?])
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: custom FILE.plan")?;
    print!("{}", run(&std::fs::read(file)?)?);
    Ok(())
}

/// Runs a plan with one input `x [n, 2]` on two rows, and describes its outputs.
pub fn run(plan: &[u8]) -> Result<String, Box<dyn Error>> {
    let session = Session::from_bytes(plan).custom_op("example::Scale", scale).threads(2).build()?;
    let outputs = session.run_named([("x", Value::new(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?)])?;
    let mut report = String::new();
    for (name, kind) in session.outputs() {
        writeln!(report, "{name}: {kind} is {:?}", outputs[name].read::<f32>()?)?;
    }
    Ok(report)
}
