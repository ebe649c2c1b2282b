//! Convolutions of any element type by definition, for integers and `f64`.

use crate::conv_shape::Shape;
use crate::gemm::Term;
use crate::threads::Threads;

/// `out[n, o, y, x] = bias[o] + Σ w[o, c, i, j] · x[n, c, y·s + i·d − before, x·s + j·d − before]`
///
/// # Panics
/// The slices do not fit the shape.
pub fn conv_plain<T: Term>(threads: &Threads, s: &Shape, w: &[T], bias: Option<&[T]>, x: &[T], out: &mut [T]) {
    let (channels, window) = (s.channels / s.groups, s.kernel[0] * s.kernel[1]);
    for_each_plane(threads, s, bias, x, out, |o, x, out| {
        for (c, x) in x.chunks_exact((s.input[0] * s.input[1]).max(1)).enumerate() {
            let w = &w[(o * channels + c) * window..][..window];
            for_each_row(s, s.input, s.output, |tap, large, small, count| {
                let large = x[large..].iter().step_by(s.strides[1]);
                let out = &mut out[small..small + count];
                out.iter_mut().zip(large).for_each(|(out, &x)| *out = out.add_product(w[tap], x));
            });
        }
    });
}

/// `out[n, o, y·s + i·d − before, x·s + j·d − before] += w[c, o, i, j] · x[n, c, y, x]`, starting from the bias.
///
/// # Panics
/// The slices do not fit the shape.
pub fn conv_transposed_plain<T: Term>(
    threads: &Threads,
    s: &Shape,
    w: &[T],
    bias: Option<&[T]>,
    x: &[T],
    out: &mut [T],
) {
    let (channels, outputs, window) = (s.channels / s.groups, s.outputs / s.groups, s.kernel[0] * s.kernel[1]);
    for_each_plane(threads, s, bias, x, out, |o, x, out| {
        for (c, x) in x.chunks_exact((s.input[0] * s.input[1]).max(1)).enumerate() {
            let w = &w[((o / outputs * channels + c) * outputs + o % outputs) * window..][..window];
            for_each_row(s, s.output, s.input, |tap, large, small, count| {
                let out = out[large..].iter_mut().step_by(s.strides[1]);
                out.zip(&x[small..small + count]).for_each(|(out, &x)| *out = out.add_product(w[tap], x));
            });
        }
    });
}

/// Initializes every plane of the output with the bias, and calls `plane(output, its group's input, its plane)`.
fn for_each_plane<T: Term>(
    threads: &Threads,
    s: &Shape,
    bias: Option<&[T]>,
    x: &[T],
    out: &mut [T],
    plane: impl Fn(usize, &[T], &mut [T]) + Sync,
) {
    let (outputs, group) = (s.outputs / s.groups, s.channels / s.groups * s.input[0] * s.input[1]);
    threads.for_each_chunk(out, s.output[0] * s.output[1], |i, out| {
        let o = i % s.outputs;
        out.fill(bias.map_or(T::ZERO, |bias| bias[o]));
        plane(o, &x[i / outputs * group..][..group], out);
    });
}

/// Calls `row(tap, start in the large plane, start in the small plane, count)` for every tap and every row of the small
/// plane. The window slides over the large plane.
fn for_each_row(s: &Shape, large: [usize; 2], small: [usize; 2], mut row: impl FnMut(usize, usize, usize, usize)) {
    for (i, j) in (0..s.kernel[0]).flat_map(|i| (0..s.kernel[1]).map(move |j| (i, j))) {
        let first = [(i * s.dilations[0]) as isize - s.before[0], (j * s.dilations[1]) as isize - s.before[1]];
        let inside =
            |limit: isize| usize::try_from(limit - first[1]).map_or(0, |d| d.div_ceil(s.strides[1])).min(small[1]);
        let (begin, end) = (inside(0), inside(large[1] as isize));
        if begin >= end {
            continue;
        }
        let x = (first[1] + (begin * s.strides[1]) as isize) as usize;
        for y in 0..small[0] {
            let ly = first[0] + (y * s.strides[0]) as isize;
            if (0..large[0] as isize).contains(&ly) {
                row(i * s.kernel[1] + j, ly as usize * large[1] + x, y * small[1] + begin, end - begin);
            }
        }
    }
}
