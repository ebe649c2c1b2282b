//! Scenarios with Candle's tensors, and checks of their results.

use std::path::Path;

use candle_core::cuda_backend::{CudaStorage, CudaStorageSlice};
use candle_core::op::BackpropOp;
use candle_core::{DType, Device, Storage, Tensor};
use candle_plan::{DType as Logical, Session, Value};

use crate::runs::{lend, matrix, on_device, session, sum, warm, Result};
use crate::standin;
use crate::Outcome;

pub fn run(name: &str, plan: &Path) -> Outcome {
    match name {
        "shared" => shared(plan),
        "ordered" => ordered(plan, Device::new_cuda_with_stream(0)?),
        "thread" => ordered(plan, Device::new_cuda(0)?),
        "streams" => streams(plan),
        "views" => views(plan),
        "outlives" => outlives(plan),
        "types" => types(plan),
        "booleans" => booleans(plan),
        "refused" => refused(plan),
        "elsewhere" => elsewhere(plan),
        "example" => crate::example::run(),
        _ => crate::layers::run(name, plan),
    }
}

/// No element of an input is copied, and an output is copied once, on the device.
fn shared(plan: &Path) -> Outcome {
    let device = Device::new_cuda_with_stream(0)?;
    let session = warm(plan, &device)?;
    let (x, y) = (matrix(&device, 1.0)?, matrix(&device, 100.0)?);
    standin::reset();
    let found = sum(&session, &x, &y)?;
    // The end of a run copies the kernels' fault word to the host.
    assert_eq!(standin::copies(), [0, 0, 1]);
    assert_eq!((standin::calls("cuLaunchKernel"), standin::calls("cuStreamSynchronize")), (1, 1));
    let tensor = found.to_candle(&device)?;
    assert_eq!((standin::copies(), standin::calls("cuStreamSynchronize")), ([0, 1, 1], 1));
    assert_eq!((tensor.dtype(), tensor.dims(), tensor.device().is_cuda()), (DType::F32, &[3, 4][..], true));
    let expected: Vec<f32> = (0..12).map(|step| 101.0 + 2.0 * step as f32).collect();
    assert_eq!(tensor.flatten_all()?.to_vec1::<f32>()?, expected);
    // The output of one run is the input of the next.
    let again = sum(&session, &tensor, &x)?.to_candle(&device)?;
    assert_eq!(again.to_vec2::<f32>()?[2][3], 123.0 + 12.0);
    Ok(())
}

/// Candle's work and the session's work wait for each other, in whatever order the GPU could run them.
fn ordered(plan: &Path, device: Device) -> Outcome {
    let session = warm(plan, &device)?;
    let mut total = matrix(&device, 0.0)?;
    for _ in 0..10 {
        let step = matrix(&device, 1.0)?;
        let found = sum(&session, &total, &step)?;
        // The other side can reuse freed memory at once.
        drop((total, step));
        total = found.to_candle(&device)?;
        drop(found);
        drop(Tensor::zeros((3, 4), DType::F32, &device)?);
        drop(on_device(&session, vec![lend(&session, &total)?, lend(&session, &total)?])?);
    }
    let expected: Vec<f32> = (0..12).map(|step| 11.0 * step as f32 + 10.0).collect();
    assert_eq!(total.flatten_all()?.to_vec1::<f32>()?, expected);
    Ok(())
}

/// One session takes tensors of two Candle streams, and passes tensors of one stream to the other.
fn streams(plan: &Path) -> Outcome {
    let (device, other) = (Device::new_cuda_with_stream(0)?, Device::new_cuda_with_stream(0)?);
    let session = warm(plan, &device)?;
    for first in 0..10 {
        let (x, y) = (matrix(&device, first as f32)?, matrix(&other, 1.0)?);
        let found = sum(&session, &x, &y)?.to_candle(&other)?;
        let moved = lend(&session, &x)?.to_candle(&other)?;
        drop((x, y));
        // Another stream may now use memory that the first stream has freed.
        device.synchronize()?;
        drop(matrix(&device, 100.0)?);
        assert_eq!(found.to_vec2::<f32>()?[1][0], first as f32 + 9.0);
        assert_eq!(moved.to_vec2::<f32>()?[1][0], first as f32 + 4.0);
    }
    Ok(())
}

/// Views of a tensor's memory. Contiguous views are not copied.
fn views(plan: &Path) -> Outcome {
    let (device, host) = (Device::new_cuda_with_stream(0)?, Device::Cpu);
    let session = warm(plan, &device)?;
    let (there, here) = (matrix(&device, 1.0)?, matrix(&host, 1.0)?);
    let zeros = |like: &Tensor, device: &Device| Tensor::zeros(like.dims(), DType::F32, device);
    type View = fn(&Tensor) -> candle_core::Result<Tensor>;
    let cases: [(View, usize); 6] = [
        (|x| x.narrow(0, 1, 2), 0),
        (|x| x.reshape((4, 3))?.narrow(0, 2, 1), 0),
        (|x| x.t(), 1),
        (|x| x.narrow(1, 1, 2), 1),
        (|x| x.narrow(0, 1, 2)?.t()?.narrow(0, 2, 2), 1),
        (|x| x.narrow(0, 2, 1)?.broadcast_as((5, 4)), 1),
    ];
    for (view, copies) in cases {
        let (x, expected) = (view(&there)?, view(&here)?);
        let zeros = lend(&session, &zeros(&expected, &device)?)?;
        standin::reset();
        let inputs = vec![lend(&session, &x)?, zeros];
        assert_eq!(standin::copies(), [0, 0, 0]);
        assert_eq!(standin::calls("cuLaunchKernel"), copies, "{:?}", x.layout());
        let found = on_device(&session, inputs)?.remove(0).to_candle(&device)?;
        assert_eq!(found.to_vec2::<f32>()?, expected.to_vec2::<f32>()?, "{:?}", x.layout());
    }
    // The views did not change the tensor.
    assert_eq!(there.to_vec2::<f32>()?, here.to_vec2::<f32>()?);
    Ok(())
}

/// A lent tensor lives as long as the value, and an output longer than the session.
fn outlives(plan: &Path) -> Outcome {
    let device = Device::new_cuda_with_stream(0)?;
    let session = warm(plan, &device)?;
    let (x, y) = (matrix(&device, 1.0)?, matrix(&device, 2.0)?);
    let inputs = vec![lend(&session, &x)?, lend(&session, &y)?];
    drop((x, y));
    let outputs = on_device(&session, inputs)?;
    let unused = lend(&session, &matrix(&device, 5.0)?)?;
    drop(session);
    let tensor = outputs[0].to_candle(&device)?;
    let unused = unused.to_candle(&device)?;
    drop(outputs);
    assert_eq!(tensor.to_vec2::<f32>()?[0], [3.0, 5.0, 7.0, 9.0]);
    assert_eq!(unused.to_vec2::<f32>()?[0], [5.0, 6.0, 7.0, 8.0]);
    Ok(())
}

/// Tensors of every common type keep their bits. The plan returns its inputs.
fn types(plan: &Path) -> Outcome {
    let device = Device::new_cuda_with_stream(0)?;
    let session = session(plan, "cuda")?;
    let kinds = [
        DType::U8,
        DType::U32,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::BF16,
        DType::F16,
        DType::F32,
        DType::F64,
        DType::F8E4M3,
    ];
    let numbers = Tensor::new(&[0f32, 1.0, 2.5, 7.0, 100.0], &Device::Cpu)?;
    let here: Vec<Tensor> = kinds.iter().map(|&kind| numbers.to_dtype(kind)).collect::<candle_core::Result<_>>()?;
    let lent: Result<Vec<Value>> = here.iter().map(|tensor| lend(&session, &tensor.to_device(&device)?)).collect();
    for (found, given) in on_device(&session, lent?)?.iter().zip(&here) {
        let back = found.to_candle(&device)?.to_device(&Device::Cpu)?;
        assert_eq!(back.dtype(), given.dtype());
        assert_eq!(back.to_dtype(DType::F32)?.to_vec1::<f32>()?, given.to_dtype(DType::F32)?.to_vec1::<f32>()?);
    }
    Ok(())
}

/// Candle has no booleans, and uses bytes instead. The plan negates them.
fn booleans(plan: &Path) -> Outcome {
    let device = Device::new_cuda_with_stream(0)?;
    let session = session(plan, "cuda")?;
    let bytes = lend(&session, &Tensor::new(&[0u8, 1, 1], &device)?)?;
    let outputs = on_device(&session, vec![bytes.reinterpret(Logical::Bool)?])?;
    let error = outputs[0].to_candle(&device).expect_err("Candle has no booleans").to_string();
    assert!(error.contains("Candle has no type for bool"), "{error}");
    let found = outputs[0].reinterpret(Logical::Uint8)?.to_candle(&device)?;
    assert_eq!(found.to_vec1::<u8>()?, [1, 0, 0]);
    Ok(())
}

/// An error gives the reason why a tensor cannot be an input or output.
fn refused(plan: &Path) -> Outcome {
    let device = Device::new_cuda_with_stream(0)?;
    let session = warm(plan, &device)?;
    refuses(&session, &matrix(&Device::Cpu, 1.0)?, "the tensor is on Cpu, not on cuda: Value::from_candle takes it");
    refuses(&self::session(plan, "cpu")?, &matrix(&device, 1.0)?, "the tensor is on cuda, and the session on cpu");
    let Device::Cuda(cuda) = &device else { return Err("a GPU".into()) };
    let slice = CudaStorageSlice::F4(cuda.alloc_zeros::<u8>(4)?);
    let storage = Storage::Cuda(CudaStorage { slice, device: cuda.clone() });
    refuses(&session, &Tensor::from_storage(storage, 4, BackpropOp::none(), false), "no input is of Candle's type F4");
    let x = matrix(&device, 1.0)?;
    let found = sum(&session, &x, &x)?;
    is_not_taken(&found, &Device::Cpu, "the tensor is on cuda, not on Cpu: Value::to_host");
    is_not_taken(&found.to_host()?, &device, "the tensor is on the host");
    Ok(())
}

/// Tensors and sessions of two GPUs do not mix.
fn elsewhere(plan: &Path) -> Outcome {
    let (device, other) = (Device::new_cuda_with_stream(0)?, Device::new_cuda_with_stream(1)?);
    {
        let (first, second) = (warm(plan, &device)?, session(plan, "cuda:1")?);
        let x = matrix(&device, 1.0)?;
        refuses(&first, &matrix(&other, 1.0)?, "the tensor is on cuda:1, and the session on cuda");
        refuses(&second, &x, "the tensor is on cuda, and the session on cuda:1");
        is_not_taken(&sum(&first, &x, &x)?, &other, "Candle's device is cuda:1, and not cuda");
        let y = matrix(&other, 2.0)?;
        let found = sum(&second, &y, &y)?.to_candle(&other)?;
        assert_eq!(found.to_vec2::<f32>()?[0], [4.0, 6.0, 8.0, 10.0]);
    }
    // Candle drops its handles of cuBLAS in whatever context the thread has.
    for each in [device, other] {
        each.synchronize()?;
    }
    Ok(())
}

fn refuses(session: &Session, tensor: &Tensor, text: &str) {
    let error = lend(session, tensor).expect_err(text).to_string();
    assert!(error.contains(text), "{error}");
}

fn is_not_taken(value: &Value, device: &Device, text: &str) {
    let error = value.to_candle(device).expect_err(text).to_string();
    assert!(error.contains(text), "{error}");
}
