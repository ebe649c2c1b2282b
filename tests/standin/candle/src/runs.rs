//! Sessions, tensors and runs of the scenarios.

use std::path::Path;

use candle_core::{Device, Tensor};
use candle_plan::{Request, Session, Value};

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

pub fn session(plan: &Path, device: &str) -> Result<Session> {
    // SAFETY: nobody changes the plan of the test.
    Ok(unsafe { Session::builder(plan).device(device).threads(1).build_mapped() }?)
}

/// The session of a plan `sum = x + y` on the GPU, after a first run, which makes additional calls.
pub fn warm(plan: &Path, device: &Device) -> Result<Session> {
    let session = session(plan, "cuda")?;
    let x = matrix(device, 0.0)?;
    sum(&session, &x, &x)?;
    Ok(session)
}

/// Three rows of four numbers from `first` on.
pub fn matrix(device: &Device, first: f32) -> Result<Tensor> {
    let numbers: Vec<f32> = (0..12).map(|step| first + step as f32).collect();
    Ok(Tensor::from_vec(numbers, (3, 4), device)?)
}

pub fn lend(session: &Session, tensor: &Tensor) -> Result<Value> {
    // SAFETY: the scenarios write no tensor in place.
    Ok(unsafe { session.lend_tensor(tensor) }?)
}

/// The outputs of a run on the device.
pub fn on_device(session: &Session, inputs: Vec<Value>) -> Result<Vec<Value>> {
    Ok(session.run_request(inputs, &Request::default().on_device())?)
}

pub fn sum(session: &Session, x: &Tensor, y: &Tensor) -> Result<Value> {
    let inputs = vec![lend(session, x)?, lend(session, y)?];
    Ok(on_device(session, inputs)?.remove(0))
}
