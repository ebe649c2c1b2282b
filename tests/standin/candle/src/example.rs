//! The example of docs/cuda.md.

use candle_core::{Device, Tensor};
use candle_plan::{Request, Session};

use crate::Outcome;

pub fn run() -> Outcome {
    candle_plan_device_cuda::register(); // the device "cuda"
    let device = Device::new_cuda(0)?;
    // SAFETY: nobody changes the file while the session lives.
    let session = unsafe { Session::builder("model.plan").device("cuda").build_mapped() }?;
    let tokens = Tensor::new(&[[1i64, 2, 3]], &device)?;
    // SAFETY: nobody writes into the tensor in place before the run has returned.
    let inputs = vec![unsafe { session.lend_tensor(&tokens) }?];
    let outputs = session.run_request(inputs, &Request::default().on_device())?;
    let logits: Tensor = outputs[0].to_candle(&device)?;
    assert_eq!(logits.to_vec2::<f32>()?, [[1.0, 2.0, 3.0]]);
    Ok(())
}
