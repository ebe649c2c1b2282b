//! Convolutions of any element type by definition, for integers and `f64`.

use crate::conv_shape::Shape;
use crate::gemm::Term;
use crate::threads::Threads;

/// `out[n, o, y, x] = bias[o] + Σ w[o, c, i, j] · x[n, c, y·s + i·d − before, x·s + j·d − before]`
///
/// # Panics
/// The slices do not fit the shape.
pub fn conv_plain<T: Term>(threads: &Threads, s: &Shape, w: &[T], bias: Option<&[T]>, x: &[T], out: &mut [T]) {
    let s = &in_one_row(s);
    match s.outputs / s.groups.max(1) % 4 {
        0 => conv_together::<T, 4>(threads, s, [x, w], bias, out),
        2 => conv_together::<T, 2>(threads, s, [x, w], bias, out),
        _ => conv_together::<T, 1>(threads, s, [x, w], bias, out),
    }
}

/// The same convolution with all pixels in one row, if its window is one pixel and reads every pixel of the image.
fn in_one_row(s: &Shape) -> Shape {
    let is_one = s.kernel == [1, 1] && s.strides == [1, 1] && s.before == [0, 0] && s.input == s.output;
    let sizes = if is_one { [s.input, s.output].map(|[h, w]| [1, h * w]) } else { [s.input, s.output] };
    Shape { input: sizes[0], output: sizes[1], ..s.clone() }
}

/// Computes `TOGETHER` outputs of a group at a time.
fn conv_together<T: Term, const TOGETHER: usize>(
    threads: &Threads,
    s: &Shape,
    [x, w]: [&[T]; 2],
    bias: Option<&[T]>,
    out: &mut [T],
) {
    let (outputs, group) = (s.outputs / s.groups, s.channels / s.groups * s.input[0] * s.input[1]);
    let (plane, terms) = (s.output[0] * s.output[1], s.channels / s.groups * s.kernel[0] * s.kernel[1]);
    threads.for_each_chunk(out, plane * TOGETHER, |i, out| {
        let first = i * TOGETHER % s.outputs;
        let planes = Planes::<T, TOGETHER> {
            shape: s,
            x: &x[i * TOGETHER / outputs * group..][..group],
            w: std::array::from_fn(|o| &w[(first + o) * terms..][..terms]),
            bias: std::array::from_fn(|o| bias.map_or(T::ZERO, |bias| bias[first + o])),
        };
        for (y, column) in (0..s.output[0]).flat_map(|y| (0..s.output[1]).step_by(PIXELS).map(move |x| (y, x))) {
            let sums = planes.sums(y, column);
            let count = PIXELS.min(s.output[1] - column);
            for (o, sums) in sums.iter().enumerate() {
                out[o * plane + y * s.output[1] + column..][..count].copy_from_slice(&sums[..count]);
            }
        }
    });
}

/// Adjacent pixels whose sums are in registers together.
const PIXELS: usize = 4;

/// The planes of some outputs of one group in one image.
struct Planes<'a, T, const TOGETHER: usize> {
    shape: &'a Shape,
    /// `[C / groups, height, width]`
    x: &'a [T],
    /// For each output `[C / groups, kernel…]`.
    w: [&'a [T]; TOGETHER],
    bias: [T; TOGETHER],
}

impl<T: Term, const TOGETHER: usize> Planes<'_, T, TOGETHER> {
    /// The sums of some pixels of row `y` from column `first` on. Those beyond the row have no meaning.
    fn sums(&self, y: usize, first: usize) -> [[T; PIXELS]; TOGETHER] {
        let Planes { shape: s, x, w, bias } = self;
        let [height, width] = s.input;
        let place = |at: usize, tap: usize, a: usize| (at * s.strides[a] + tap * s.dilations[a]) as isize - s.before[a];
        let mut sums = bias.map(|bias| [bias; PIXELS]);
        for (c, x) in x.chunks_exact((height * width).max(1)).enumerate() {
            for i in 0..s.kernel[0] {
                let row = place(y, i, 0);
                if !(0..height as isize).contains(&row) {
                    continue;
                }
                let row = &x[row as usize * width..][..width];
                for j in 0..s.kernel[1] {
                    let tap = (c * s.kernel[0] + i) * s.kernel[1] + j;
                    let start = place(first, j, 1);
                    let w: [T; TOGETHER] = std::array::from_fn(|o| w[o][tap]);
                    let adjacent = usize::try_from(start).ok().filter(|_| s.strides[1] == 1);
                    if let Some(x) = adjacent.and_then(|start| row.get(start..)?.first_chunk()) {
                        add(&mut sums, w, *x, [true; PIXELS]);
                        continue;
                    }
                    // The place of a pixel beyond the row of outputs may overflow.
                    let place = |p: usize| start.wrapping_add(p.wrapping_mul(s.strides[1]) as isize);
                    let inside = |p: usize| usize::try_from(place(p)).ok().and_then(|place| row.get(place));
                    let x = std::array::from_fn(|p| inside(p).copied().unwrap_or(T::ZERO));
                    add(&mut sums, w, x, std::array::from_fn(|p| inside(p).is_some()));
                }
            }
        }
        sums
    }
}

/// Adds the products to the sums of the pixels that are inside the image.
#[inline(always)]
fn add<T: Term, const TOGETHER: usize>(
    sums: &mut [[T; PIXELS]; TOGETHER],
    w: [T; TOGETHER],
    x: [T; PIXELS],
    is_inside: [bool; PIXELS],
) {
    for (sums, w) in sums.iter_mut().zip(w) {
        for p in 0..PIXELS {
            let sum = sums[p].add_product(w, x[p]);
            sums[p] = if is_inside[p] { sum } else { sums[p] };
        }
    }
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
