//! Scenarios with sessions as layers of a Candle model, which take Candle's tensors and return them.

use std::path::Path;

use candle_core::{DType, Device, Module, Storage, Tensor};
use candle_nn::{seq, Linear, Sequential};
use candle_plan::{DType as Logical, Request, Session};

use crate::runs::{lend, matrix, on_device, session, sum, warm, Result};
use crate::standin;
use crate::Outcome;

pub fn run(name: &str, plan: &Path) -> Outcome {
    match name {
        "layer" => layer(plan),
        "threads" => threads(plan),
        "uncopied" => uncopied(plan),
        "shared stream" => shared_stream(plan),
        "given" => given(plan),
        "memory" => memory(plan),
        "no events" => no_events(plan),
        "parts" => parts(plan),
        "returned" => returned(plan),
        "typed" => typed(plan),
        "wrong" => wrong(plan),
        "wrong device" => wrong_device(plan),
        _ => Err("there is no such scenario".into()),
    }
}

/// A session on the stream of a device of Candle.
fn on_stream_of(plan: &Path, device: &Device) -> Result<Session> {
    // SAFETY: nobody changes the plan of the test.
    Ok(unsafe { Session::builder(plan).candle_device(device).threads(1).build_mapped() }?)
}

/// The output of a plan with the inputs `x` and `y`.
fn total(session: &Session, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    Ok(session.run_tensors([("x", x), ("y", y)])?.remove("sum").ok_or("an output")?)
}

/// A model with the plan between two layers of Candle.
fn model(device: &Device, middle: Session) -> Result<Sequential> {
    let weights = |step: usize| {
        let numbers: Vec<f32> = (0..16).map(|at| (at * step % 7) as f32 - 3.0).collect();
        Tensor::from_vec(numbers, (4, 4), device)
    };
    Ok(seq().add(Linear::new(weights(3)?, None)).add(middle).add(Linear::new(weights(5)?, None)))
}

/// The address of a tensor's memory.
fn address(tensor: &Tensor) -> Result<u64> {
    use candle_core::cuda_backend::cudarc::driver::DevicePtr;
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cuda(storage) = &*storage else { return Err("a GPU".into()) };
    let stream = storage.device.cuda_stream();
    let (start, _guard) = storage.as_cuda_slice::<f32>()?.device_ptr(&stream);
    Ok(start + 4 * layout.start_offset() as u64)
}

/// A plan between two layers of Candle has the CPU's results, with a stream of its own and on Candle's.
fn layer(plan: &Path) -> Outcome {
    let rows = |device: &Device| matrix(device, -5.0);
    let expected = model(&Device::Cpu, session(plan, "cpu")?)?.forward(&rows(&Device::Cpu)?)?.to_vec2::<f32>()?;
    let (device, of_thread) = (Device::new_cuda_with_stream(0)?, Device::new_cuda(0)?);
    let cases = [
        (&device, session(plan, "cuda")?),
        (&device, on_stream_of(plan, &device)?),
        (&of_thread, session(plan, "cuda")?),
        (&of_thread, on_stream_of(plan, &device)?),
    ];
    for (device, middle) in cases {
        let model = model(device, middle)?;
        for _ in 0..3 {
            let found = model.forward(&rows(device)?)?;
            assert!(found.device().same_device(device));
            assert_eq!(found.to_vec2::<f32>()?, expected);
        }
    }
    Ok(())
}

/// Several threads use one model, whose session is on Candle's stream.
fn threads(plan: &Path) -> Outcome {
    let device = Device::new_cuda_with_stream(0)?;
    let session = on_stream_of(plan, &device)?;
    let pass = |first: f32| -> candle_core::Result<()> {
        for step in 0..5 {
            let numbers: Vec<f32> = (0..12).map(|at| first + (at + step) as f32).collect();
            let x = Tensor::from_vec(numbers.clone(), (3, 4), &device)?;
            let sums = total(&session, &x, &x).map_err(|error| candle_core::Error::msg(error.to_string()))?;
            let expected: Vec<f32> = numbers.iter().map(|number| 2.0 * number).collect();
            assert_eq!(sums.flatten_all()?.to_vec1::<f32>()?, expected);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|at| scope.spawn(move || pass(100.0 * at as f32))).collect();
        all.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    Ok(())
}

/// A run copies no elements, and the output is the memory that the session has allocated.
fn uncopied(plan: &Path) -> Outcome {
    let device = Device::new_cuda_with_stream(0)?;
    for session in [session(plan, "cuda")?, on_stream_of(plan, &device)?] {
        let (x, y) = (matrix(&device, 1.0)?, matrix(&device, 100.0)?);
        total(&session, &x, &y)?;
        standin::reset();
        let found = total(&session, &x, &y)?;
        // The end of a run copies the kernels' fault word to the host.
        assert_eq!((standin::copies(), standin::calls("cuLaunchKernel")), ([0, 0, 1], 1));
        let allocations = ["cuMemAllocFromPoolAsync", "cuMemAlloc_v2", "cuMemAllocAsync"].map(standin::calls);
        assert_eq!((allocations[0] + allocations[1], allocations[2]), (1, 0));
        assert_eq!(["cuMemFreeAsync", "cuMemFree_v2"].map(standin::calls).iter().sum::<usize>(), 0);
        assert_eq!((found.dims(), found.to_vec2::<f32>()?[2][3]), (&[3, 4][..], 123.0));
        drop(found);
        assert_eq!(["cuMemFreeAsync", "cuMemFree_v2"].map(standin::calls).iter().sum::<usize>(), 1);
    }
    Ok(())
}

/// A session on Candle's stream waits for no other stream, and no stream waits for it.
fn shared_stream(plan: &Path) -> Outcome {
    let device = Device::new_cuda_with_stream(0)?;
    for (session, waits) in [(session(plan, "cuda")?, 3), (on_stream_of(plan, &device)?, 0)] {
        let mut x = matrix(&device, 1.0)?;
        total(&session, &x, &x)?;
        standin::reset();
        let found = total(&session, &x, &x)?;
        assert_eq!(standin::calls("waits_between_streams"), waits);
        assert_eq!((standin::calls("cuStreamCreate"), standin::calls("cuStreamSynchronize")), (0, 1));
        for _ in 0..10 {
            let sums = total(&session, &x, &found)?;
            drop(Tensor::zeros((3, 4), DType::F32, &device)?);
            x = lend(&session, &sums)?.to_candle(&device)?;
        }
        assert_eq!(x.to_vec2::<f32>()?[0], [21.0, 42.0, 63.0, 84.0]);
    }
    Ok(())
}

/// Outputs outlive the session, and the memory pool that they are from.
fn given(plan: &Path) -> Outcome {
    let device = Device::new_cuda_with_stream(0)?;
    let (x, y) = (matrix(&device, 1.0)?, matrix(&device, 2.0)?);
    let session = session(plan, "cuda")?;
    let first = total(&session, &x, &y)?;
    let inputs = vec![lend(&session, &x)?, lend(&session, &y)?];
    let second = on_device(&session, inputs)?.remove(0).into_candle_on(&device)?;
    drop((session, x, y));
    device.synchronize()?;
    assert_eq!(first.to_vec2::<f32>()?, second.to_vec2::<f32>()?);
    // A session on the stream of a device that is dropped works on.
    let session = on_stream_of(plan, &device)?;
    drop(device);
    let other = Device::new_cuda_with_stream(0)?;
    let x = matrix(&other, 1.0)?;
    let third = total(&session, &x, &x)?;
    drop((session, x));
    assert_eq!((first.to_vec2::<f32>()?[0][0], third.to_vec2::<f32>()?[0][0]), (3.0, 2.0));
    Ok(())
}

/// Candle frees the outputs: a GPU of little memory runs a plan again and again.
fn memory(plan: &Path) -> Outcome {
    let device = Device::new_cuda_with_stream(0)?;
    for session in [session(plan, "cuda")?, on_stream_of(plan, &device)?] {
        let mut x = Tensor::zeros((512, 1024), DType::F32, &device)?;
        for _ in 0..30 {
            x = total(&session, &x, &x)?;
        }
        assert_eq!(x.get(511)?.get(1023)?.to_scalar::<f32>()?, 0.0);
    }
    Ok(())
}

/// If the driver makes no event for a tensor, there is an error, and the memory is freed.
fn no_events(plan: &Path) -> Outcome {
    let device = Device::new_cuda_with_stream(0)?;
    let session = on_stream_of(plan, &device)?;
    let x = matrix(&device, 1.0)?;
    let found = sum(&session, &x, &x)?;
    standin::configure("fail=cuEventCreate:1+:2");
    let error = found.into_candle_on(&device).expect_err("no event").to_string();
    assert!(error.contains("CUDA_ERROR_OUT_OF_MEMORY"), "{error}");
    assert_eq!(standin::calls("cuMemFreeAsync"), 1);
    standin::reset();
    assert_eq!(total(&session, &x, &x)?.to_vec2::<f32>()?[0][0], 2.0);
    Ok(())
}

/// Parts of tensors, and tensors without elements.
fn parts(plan: &Path) -> Outcome {
    let device = Device::new_cuda_with_stream(0)?;
    let (there, here) = (matrix(&device, 1.0)?, matrix(&Device::Cpu, 1.0)?);
    for session in [session(plan, "cuda")?, on_stream_of(plan, &device)?] {
        type View = fn(&Tensor) -> candle_core::Result<Tensor>;
        let views: [(View, usize); 3] =
            [(|x| x.narrow(0, 1, 2), 1), (|x| x.t(), 3), (|x| x.narrow(0, 2, 1)?.broadcast_as((5, 4)), 3)];
        for (view, launches) in views {
            let (x, expected) = (view(&there)?, view(&here)?);
            total(&session, &x, &x)?;
            standin::reset();
            let found = total(&session, &x, &x)?;
            // A view with gaps is copied on the device, for each input.
            assert_eq!((standin::copies(), standin::calls("cuLaunchKernel")), ([0, 0, 1], launches));
            assert_eq!(found.to_vec2::<f32>()?, (&expected + &expected)?.to_vec2::<f32>()?);
        }
        let empty = there.narrow(0, 0, 0)?;
        let found = total(&session, &empty, &empty)?;
        assert_eq!((found.dims(), found.flatten_all()?.to_vec1::<f32>()?), (&[0, 4][..], vec![]));
    }
    Ok(())
}

/// Candle takes over the memory of an output unless something else uses it. The plan is a sum.
fn returned(plan: &Path) -> Outcome {
    let device = Device::new_cuda_with_stream(0)?;
    let session = warm(plan, &device)?;
    let x = matrix(&device, 1.0)?;
    let found = sum(&session, &x, &x)?;
    let (start, other) = (found.tensor()?.address()?, found.clone());
    standin::reset();
    let copy = found.into_candle_on(&device)?;
    assert_eq!((standin::copies(), address(&copy)? == start), ([0, 1, 0], false));
    let rows = other.rows(1, 2)?.into_candle_on(&device)?;
    assert_eq!((standin::copies(), rows.dims()), ([0, 2, 0], &[2, 4][..]));
    let tensor = other.into_candle_on(&device)?;
    assert_eq!((standin::copies(), address(&tensor)?), ([0, 2, 0], start));
    let lent = lend(&session, &x)?.into_candle_on(&device)?;
    assert_eq!((standin::copies(), address(&lent)? == address(&x)?), ([0, 3, 0], false));
    assert_eq!(tensor.to_vec2::<f32>()?, copy.to_vec2::<f32>()?);
    assert_eq!((rows.to_vec2::<f32>()?[1][3], lent.to_vec2::<f32>()?[2][3]), (24.0, 12.0));
    // Candle frees the memory while the session may still copy from it to another stream.
    let second = Device::new_cuda_with_stream(0)?;
    let found = sum(&session, &x, &x)?;
    let copy = found.to_candle(&second)?;
    drop(found.into_candle_on(&device)?);
    device.synchronize()?;
    assert_eq!(copy.to_vec2::<f32>()?, tensor.to_vec2::<f32>()?);
    Ok(())
}

/// Booleans are `U8`, as on the CPU. An output that is an input is copied on the device. The plan returns its input too.
fn typed(plan: &Path) -> Outcome {
    let device = Device::new_cuda_with_stream(0)?;
    let session = on_stream_of(plan, &device)?;
    let x = Tensor::new(&[[0u8, 1, 1]], &device)?;
    session.run_tensors([("x", &x)])?;
    standin::reset();
    let outputs = session.run_tensors([("x", &x)])?;
    // The host checks the booleans, and reads the kernels' fault word.
    assert_eq!(standin::copies(), [0, 1, 2]);
    assert_eq!(
        (outputs["y"].to_vec2::<u8>()?, outputs["same"].to_vec2::<u8>()?),
        (vec![vec![1, 0, 0]], vec![vec![0, 1, 1]])
    );
    let wrong = Tensor::new(&[[0u8, 2, 1]], &device)?;
    let error = session.run_tensors([("x", &wrong)]).expect_err("2 is no boolean").to_string();
    assert_eq!(error, "input \"x\": byte 1 is 2, which no bool has");
    let values =
        session.run_request(vec![lend(&session, &x)?.reinterpret(Logical::Bool)?], &Request::default().on_device())?;
    let error = values[0].clone().into_candle_on(&device).expect_err("Candle has no booleans").to_string();
    assert!(error.contains("Candle has no type for bool"), "{error}");
    Ok(())
}

/// Wrong uses on one GPU end in a sentence that says what to do.
fn wrong(plan: &Path) -> Outcome {
    let device = Device::new_cuda_with_stream(0)?;
    let (there, here) = (matrix(&device, 1.0)?, matrix(&Device::Cpu, 1.0)?);
    let session = on_stream_of(plan, &device)?;
    // Tensors on the CPU are copied to the GPU, and the outputs back.
    assert!(total(&session, &here, &here)?.device().is_cpu());
    let to_one = "bring them to one device with Tensor::to_device";
    refuses(&session, &there, &here, &format!("inputs \"x\" and \"y\" are on Cuda {{ gpu_id: 0 }} and Cpu: {to_one}"));
    let second = matrix(&Device::new_cuda_with_stream(0)?, 1.0)?;
    let places = "two devices of Candle at Cuda { gpu_id: 0 }";
    refuses(&session, &there, &second, &format!("inputs \"x\" and \"y\" are on {places}: {to_one}"));
    let on_cpu = self::session(plan, "cpu")?;
    refuses(
        &on_cpu,
        &there,
        &there,
        "input \"x\": the tensor is on cuda, and the session on cpu: bring the tensor there",
    );
    let other = there.to_device(&Device::Cpu)?.to_dtype(DType::F64)?.to_device(&device)?;
    refuses(&session, &other, &there, "input \"x\": expected float32, a Candle tensor of F32, found one of F64");
    refuses(&session, &there.narrow(0, 0, 2)?, &there, "input \"y\": expected float32");
    let error = session.forward(&there).expect_err("two inputs").to_string();
    assert!(error.starts_with("a layer has one input and one output, and the plan has 2 and 1"), "{error}");
    let of_thread = Device::new_cuda(0)?;
    let error =
        Session::builder(plan).candle_device(&of_thread).build().map(drop).expect_err("many streams").to_string();
    assert!(error.contains("device \"cuda\"") && error.contains("Device::new_cuda_with_stream"), "{error}");
    let value = sum(&session, &there, &there)?;
    let error = value.to_host()?.into_candle_on(&device).expect_err("on the host").to_string();
    assert!(error.contains("the tensor is on the host"), "{error}");
    let error = value.into_candle_on(&Device::Cpu).expect_err("on the GPU").to_string();
    assert!(error.contains("the tensor is on cuda, not on Cpu: Value::to_host"), "{error}");
    Ok(())
}

/// Tensors of another GPU are refused. A session on Candle's device is on that device's GPU.
fn wrong_device(plan: &Path) -> Outcome {
    let (device, other) = (Device::new_cuda_with_stream(0)?, Device::new_cuda_with_stream(1)?);
    {
        let session = on_stream_of(plan, &other)?;
        assert_eq!(session.device(), "cuda:1");
        let (x, y) = (matrix(&device, 1.0)?, matrix(&other, 1.0)?);
        refuses(
            &session,
            &x,
            &x,
            "input \"x\": the tensor is on cuda, and the session on cuda:1: bring the tensor there",
        );
        refuses(&session, &x, &y, "are on Cuda { gpu_id: 0 } and Cuda { gpu_id: 1 }: bring them to one device");
        assert_eq!(total(&session, &y, &y)?.to_vec2::<f32>()?[0], [2.0, 4.0, 6.0, 8.0]);
        let error = sum(&session, &y, &y)?.into_candle_on(&device).expect_err("another GPU").to_string();
        assert!(error.contains("Candle's device is cuda, and not cuda:1"), "{error}");
    }
    // Candle drops its handles of cuBLAS in whatever context the thread has.
    for each in [device, other] {
        each.synchronize()?;
    }
    Ok(())
}

fn refuses(session: &Session, x: &Tensor, y: &Tensor, text: &str) {
    let error = session.run_tensors([("x", x), ("y", y)]).expect_err(text).to_string();
    assert!(error.contains(text), "{error}");
}
