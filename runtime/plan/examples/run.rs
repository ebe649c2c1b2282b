//! Runs a plan on zeros: `cargo run --release -p candle-plan --example run -- ../build/demo/digits.plan`.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt::Write;
use std::process::ExitCode;

use candle_plan::{Session, Type, Value};

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: run FILE.plan");
        return ExitCode::from(2);
    };
    match std::fs::read(&file).map_err(Into::into).and_then(|plan| run(&plan)) {
        Ok(report) => print!("{report}"),
        Err(error) => {
            eprintln!("{file}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Runs a plan on zeros, and describes its inputs and outputs.
pub fn run(plan: &[u8]) -> Result<String, Box<dyn Error>> {
    let session = Session::from_bytes(plan).threads(2).build()?;
    let mut report = String::new();
    let mut inputs = Vec::new();
    for (name, kind) in session.inputs() {
        writeln!(report, "input {name}: {kind}")?;
        let dims = sizes(kind);
        inputs.push((name, Value::new(vec![0f32; dims.iter().product()], &dims)?));
    }
    let outputs = session.run_named(inputs)?;
    for (name, _) in session.outputs() {
        let tensor = &outputs[name];
        let first: Vec<f32> = tensor.read::<f32>()?.iter().copied().take(2).collect();
        writeln!(report, "output {name}: {:?} {first:.3?} …", tensor.dims()?)?;
    }
    Ok(report)
}

/// The dimensions of an input, with 1 for each symbol.
fn sizes(kind: &Type) -> Vec<usize> {
    (0..kind.rank().unwrap_or(0)).map(|axis| kind.size(axis).unwrap_or(1)).collect()
}
