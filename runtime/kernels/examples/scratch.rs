use candle_plan_kernels::blocked::{Epilogue, Weights};
use candle_plan_kernels::conv::Shape;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::threads::Threads;
use std::time::Instant;
fn main() {
    let isa = Isa::get();
    let threads = Threads::serial();
    // (channels, outputs, kernel, stride, size, groups)
    let cases: &[(usize, usize, [usize; 2], usize, [usize; 2], usize)] = &[
        (16, 16, [3, 3], 1, [30, 40], 16),
        (32, 32, [3, 3], 1, [16, 128], 32),
        (32, 32, [3, 3], 1, [128, 128], 32),
        (64, 64, [3, 3], 1, [52, 52], 64),
        (24, 24, [1, 1], 1, [16, 128], 1),
        (32, 32, [1, 1], 1, [16, 128], 1),
        (32, 32, [1, 1], 1, [128, 128], 1),
        (64, 64, [1, 1], 1, [52, 52], 1),
        (16, 32, [1, 1], 1, [120, 160], 1),
        (128, 128, [1, 1], 1, [26, 26], 1),
        (256, 256, [1, 1], 1, [13, 13], 1),
        (3, 16, [6, 6], 2, [416, 416], 1),
        (3, 16, [6, 6], 2, [52, 416], 1),
    ];
    for kb in [16usize, 64, 300, 1200] {
        let n = kb * 256;
        let a = vec![1f32; n];
        let mut b = vec![0f32; n];
        let mut best = f64::MAX;
        for _ in 0..3000 {
            let t = Instant::now();
            b.copy_from_slice(std::hint::black_box(&a));
            std::hint::black_box(&mut b);
            best = best.min(t.elapsed().as_secs_f64());
        }
        println!("copy {kb} KB: {:.2} us, {:.1} GB/s one way", best * 1e6, kb as f64 * 1024.0 / best / 1e9);
    }
    let want: Option<usize> = std::env::args().nth(1).and_then(|a| a.parse().ok());
    for (i, &(c, o, k, s, size, g)) in cases.iter().enumerate() {
        if want.is_some_and(|w| w != i) {
            continue;
        }
        let pad = [k[0] / 2, k[1] / 2];
        let before = pad.map(|p| p as isize);
        let output = [0, 1].map(|a| (size[a] + 2 * pad[a] - k[a]) / s + 1);
        let shape = Shape {
            batch: 1,
            groups: g,
            channels: c,
            outputs: o,
            input: size,
            output,
            kernel: k,
            strides: [s, s],
            dilations: [1, 1],
            before,
        };
        let w: Vec<f32> = (0..o * c / g * k[0] * k[1]).map(|i| (i % 13) as f32 * 0.01).collect();
        let weights = Weights::new(isa, &shape, &w);
        let rows = Weights::take_rows(&shape);
        let x = vec![0.5f32; (if rows { c } else { c.next_multiple_of(16) }) * size[0] * size[1]];
        let mut out = vec![0f32; o.next_multiple_of(16) * output[0] * output[1]];
        let bias = vec![0.1f32; o];
        let relu = |x: &mut [f32], _: usize| x.iter_mut().for_each(|x| *x = x.max(0.0));
        let mut best = [f64::MAX; 3];
        for (f, best) in best.iter_mut().enumerate() {
            let end = Instant::now();
            let mut n = 0;
            while end.elapsed().as_secs_f64() < 0.25 || n < 20 {
                let t = Instant::now();
                weights.conv(
                    &threads,
                    &shape,
                    Some(&bias),
                    &x,
                    &mut out,
                    match f {
                        0 => Epilogue::NONE,
                        1 => Epilogue { limits: [0.0, f32::INFINITY], finish: None },
                        _ => Epilogue { limits: Epilogue::NO_LIMITS, finish: Some(&relu) },
                    },
                );
                *best = best.min(t.elapsed().as_secs_f64());
                n += 1;
            }
        }
        let flops = 2.0 * (o * c / g * k[0] * k[1] * output[0] * output[1]) as f64;
        println!(
            "{c:4}->{o:4} {k:?} s{s} @{size:?} g{g}: {:8.1} us {:6.1} GF/s; limits {:8.1} finish {:8.1}",
            best[0] * 1e6,
            flops / best[0] / 1e9,
            best[1] * 1e6,
            best[2] * 1e6
        );
    }
}
