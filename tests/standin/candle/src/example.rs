//! The example of docs/candle-on-a-gpu.md.

use candle_core::{Device, Module, Tensor};
use candle_plan::{Request, Session};

use crate::Outcome;

pub fn run() -> Outcome {
    candle_plan_device_cuda::register(); // the device "cuda"
    let device = Device::new_cuda_with_stream(0)?;
    // SAFETY: nobody changes the file while the session lives.
    let session = unsafe { Session::builder("model.plan").candle_device(&device).build_mapped() }?;
    let tokens = Tensor::new(&[[1i64, 2, 3]], &device)?;
    let logits: Tensor = session.forward(&tokens)?; // or `session.run_tensors([("tokens", &tokens)])?`
    assert_eq!(logits.to_vec2::<f32>()?, [[1.0, 2.0, 3.0]]);
    requested(&session, &tokens)
}

fn requested(session: &Session, tokens: &Tensor) -> Outcome {
    // SAFETY: nobody writes into the tensor in place before the run has returned.
    let inputs = vec![unsafe { session.lend_tensor(tokens) }?];
    let outputs = session.run_request(inputs, &Request::default().on_device())?;
    let logits: Tensor = outputs.into_iter().next().ok_or("an output")?.into_candle_on(tokens.device())?;
    assert_eq!(logits.to_vec2::<f32>()?, [[1.0, 2.0, 3.0]]);
    Ok(())
}
