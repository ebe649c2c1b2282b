//! Runs a plan with other weights: `cargo run --release -p candle-plan --example weights -- kept.plan tuned.gguf`.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt::Write;

use candle_core::{DType, Device, Tensor};
use candle_plan::{Session, Weights};

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = std::env::args().skip(1);
    let plan = files.next().ok_or("usage: weights FILE.plan [FILE.safetensors]")?;
    let weights = files.next().map(Weights::read).transpose()?;
    print!("{}", run(&std::fs::read(plan)?, weights)?);
    Ok(())
}

/// Runs a plan with one input `x [n, 4]` on ones, with these weights or with its own, and describes both.
pub fn run(plan: &[u8], weights: Option<Weights>) -> Result<String, Box<dyn Error>> {
    let mut builder = Session::from_bytes(plan).threads(2);
    if let Some(weights) = weights {
        builder = builder.weights(weights);
    }
    let session = builder.build()?;
    let mut report = String::new();
    let stored = Session::from_bytes(plan).constants()?;
    for (name, kind) in session.weights() {
        writeln!(report, "{name}: {kind}, with the sum {} in the plan", stored[name].sum_all()?.to_scalar::<f32>()?)?;
    }
    let outputs = session.run_tensors([("x", &Tensor::ones((1, 4), DType::F32, &Device::Cpu)?)])?;
    for (name, _) in session.outputs() {
        writeln!(report, "{name} {:?}", outputs[name].flatten_all()?.to_vec1::<f32>()?)?;
    }
    Ok(report)
}
