//! Runs a plan again and again with a state: `cargo run --release -p candle-plan --example state -- decoder.plan`.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt::Write;

use candle_plan::{Request, Session, Value};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: state FILE.plan")?;
    print!("{}", run(&std::fs::read(file)?)?);
    Ok(())
}

/// Runs a plan whose only input beside the state is `x [n, 4]`, and describes the results and the state.
pub fn run(plan: &[u8]) -> Result<String, Box<dyn Error>> {
    let session = Session::from_bytes(plan).threads(2).build()?;
    let mut report = String::new();
    for (output, input, axis) in session.state_pairs() {
        writeln!(report, "{output} becomes {input}, which grows along axis {axis:?}")?;
    }
    let mut state = session.new_state()?;
    for rows in [3, 1, 1] {
        let x = Value::new(vec![1f32; rows * 4], &[rows, 4])?;
        let outputs = session.run_with(&mut state, vec![x], &Request::default())?;
        let dims = outputs[0].dims()?;
        writeln!(report, "y {dims:?}, and a state of length {:?} and {} bytes", state.length(), state.bytes())?;
    }
    let mut fork = state.clone();
    fork.truncate(4)?;
    writeln!(report, "a fork of length {:?}", fork.length())?;
    Ok(report)
}
