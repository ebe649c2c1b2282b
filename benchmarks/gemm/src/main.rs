//! Our matrix product beside those of the crates `gemm` and `rten-gemm`, one thread, in turns; the right side is a
//! constant, packed before where the library can.
//!
//! `cargo run --release` in this folder prints the table in `benchmarks/results/gemm.md`.

use std::time::Instant;

use candle_plan_kernels::gemm::{Bias, Matrix, PackedB, ProductSizes, Right};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::products::multiply;
use candle_plan_kernels::threads::Threads;
use gemm::{gemm as gemm_crate, Parallelism};
use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions};
use rten_tensor::NdTensorView;

/// `[m, n, k]`: projections and products of transformers, the layers of image models as products, single rows.
const SIZES: [[usize; 3]; 10] = [
    [128, 768, 768],
    [128, 3072, 768],
    [128, 768, 3072],
    [197, 384, 384],
    [512, 512, 512],
    [1024, 1024, 1024],
    [64, 3136, 576],
    [256, 196, 2304],
    [1, 768, 768],
    [4, 3072, 768],
];
const ROUNDS: usize = 40;

fn main() {
    // rten-gemm takes rayon's global pool.
    std::env::set_var("RTEN_NUM_THREADS", "1");
    let rten = GemmExecutor::<f32>::default();
    println!(
        "| m × n × k | ours GFLOP/s | gemm | rten-gemm ({}) | ours ÷ best of the others, time |",
        rten.kernel_name()
    );
    println!("|---|---:|---:|---:|---:|");
    for [m, n, k] in SIZES {
        let a = numbers(m * k);
        let b = numbers(k * n);
        let packed = PackedB::new(
            Isa::get(),
            &Threads::serial(),
            k,
            n,
            &Matrix::contiguous(&b, n),
        );
        let b_view = NdTensorView::from_data([k, n], b.as_slice());
        let rten_packed = rten.prepack_b(b_view);
        let a_view = NdTensorView::from_data([m, k], a.as_slice());
        let [mut x, mut y, mut z] = [(); 3].map(|()| vec![0.0; m * n]);
        let mut times = [f64::INFINITY; 3];
        for _ in 0..ROUNDS {
            times[0] = times[0].min(seconds(|| {
                let (sizes, a) = (ProductSizes { m, n, k }, Matrix::contiguous(&a, k));
                multiply(
                    Isa::get(),
                    &Threads::serial(),
                    sizes,
                    &a,
                    &Right::Packed(&packed),
                    Bias::None,
                    &mut x,
                    None,
                );
            }));
            times[1] = times[1].min(seconds(|| crate_gemm([m, n, k], &a, &b, &mut y)));
            times[2] = times[2].min(seconds(|| {
                let options = GemmOptions::default();
                rten.gemm(
                    &mut z,
                    GemmInputA::Unpacked(a_view),
                    GemmInputB::Packed(&rten_packed),
                    options,
                )
                .unwrap();
            }));
        }
        for (x, others) in x.iter().zip(y.iter().zip(&z)) {
            assert!(
                (x - others.0).abs() < 1e-3 && (x - others.1).abs() < 1e-3,
                "the products differ"
            );
        }
        let speed = times.map(|time| 2e-9 * (m * n * k) as f64 / time);
        let ratio = times[0] / times[1].min(times[2]);
        println!(
            "| {m} × {n} × {k} | {:.0} | {:.0} | {:.0} | {ratio:.2} |",
            speed[0], speed[1], speed[2]
        );
    }
}

fn crate_gemm([m, n, k]: [usize; 3], a: &[f32], b: &[f32], out: &mut [f32]) {
    let [n_, k_] = [n, k].map(|size| size as isize);
    // SAFETY: the slices hold row-major matrices of these sizes.
    unsafe {
        gemm_crate(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n_,
            false,
            a.as_ptr(),
            1,
            k_,
            b.as_ptr(),
            1,
            n_,
            0.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

fn numbers(count: usize) -> Vec<f32> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    std::iter::repeat_with(next).take(count).collect()
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}
