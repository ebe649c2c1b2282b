//! Pooling: reductions over a window that slides over the planes of `[P, H, W]`.
//!
//! A window is first reduced along H, into a line of partial results, with START in place of the padding. The line is
//! then reduced along W. Both passes are simple loops that vectorize for any kernel, stride and dilation.

mod indices;
mod line;
mod rule;
pub(crate) mod window;

use crate::float_types::Real;
use crate::isa::Isa;
use crate::lane_loops::per_isa;
use crate::reduce::Ordered;
use crate::scratch::Scratch;
use crate::threads::Threads;

pub use indices::max_with_indices;
use indices::TASK;
use line::reduce_line;
use rule::{Average, Max, Norm, Rule};
use window::{spans, Span};
pub use window::{Divisor, Window, BLOCK};

/// Writes the largest element of every window of `x` `[P, H, W]` to `y`. Ignores NaN. A window without elements gives
/// [`Ordered::LEAST`].
///
/// # Panics
/// The lengths do not fit the windows.
pub fn max<T: Ordered>(isa: Isa, threads: &Threads, x: &[T], windows: [Window; 2], y: &mut [T]) {
    pool(Max(std::marker::PhantomData), isa, threads, x, windows, Divisor::Inside, y);
}

/// Writes the mean of every window of `x` `[P, H, W]` to `y`; `by` defines the number of elements to divide by.
///
/// # Panics
/// The lengths do not fit the windows.
pub fn average<R: Real>(isa: Isa, threads: &Threads, x: &[R], windows: [Window; 2], by: Divisor, y: &mut [R]) {
    let is_power = windows.iter().all(|window| window.is_closed() && window.kernel.is_power_of_two());
    pool(Average(is_power, std::marker::PhantomData), isa, threads, x, windows, by, y);
}

/// Writes `(Σ |x|ᵖ)^(1/p)` of every window of `x` `[P, H, W]` to `y`.
///
/// # Panics
/// The lengths do not fit the windows.
pub fn lp<R: Real>(isa: Isa, threads: &Threads, x: &[R], windows: [Window; 2], p: f64, y: &mut [R]) {
    pool(Norm(p, std::marker::PhantomData), isa, threads, x, windows, Divisor::Inside, y);
}

/// Columns that are worth a line.
const LINE: usize = 256;
/// Elements of the lines that are filled before their windows are reduced.
const LINES: usize = 1024;

fn pool<R: Rule>(
    rule: R,
    isa: Isa,
    threads: &Threads,
    x: &[R::Element],
    [rows, columns]: [Window; 2],
    by: Divisor,
    y: &mut [R::Element],
) {
    let [plane, image] = [rows.output * columns.output, rows.input * columns.input];
    if plane == 0 || y.is_empty() {
        return;
    }
    assert!(y.len() % plane == 0 && x.len() == y.len() / plane * image, "input and output are as many planes");
    // Narrow rows are reduced together if windows do not cross their ends.
    let is_closed = rows.is_closed() && columns.is_closed();
    let together = if is_closed { LINE.div_ceil(columns.input) } else { 1 };
    let row_spans = spans(&rows, by);
    let column_spans = spans(&columns.repeated(together), by);
    let counts = Scratch::of(column_spans.iter().map(|span| rule.weight(span.count)));
    let rows_of_task = (TASK / columns.input.max(columns.output).saturating_mul(rows.kernel)).max(1);
    threads.for_each_chunk(y, rows_of_task * columns.output, |task, y| {
        pool_rows(isa, rule, x, [&rows, &columns], together, &row_spans, &counts, task * rows_of_task, y);
    });
}

per_isa! {
    /// Fills rows `first ..` of the output of all planes; reduces `together` rows at a time.
    fn pool_rows<R: Rule>(
        rule: R,
        x: &[R::Element],
        windows: [&Window; 2],
        together: usize,
        spans: &[Span],
        counts: &[f32],
        first: usize,
        y: &mut [R::Element],
    ) where FMA up to (R::WIDEST) {
        let [rows, columns] = windows;
        let wide = columns.repeated(together);
        // Uses several lines, so that no line is read while its stores are still in progress.
        let length = wide.line(BLOCK);
        let mut lines = Scratch::filled(R::START, length.saturating_mul(LINES.div_ceil(length)));
        let mut counts_of_lines = [1.0; LINES];
        let mut row = first;
        for y in y.chunks_mut(lines.len() / length * wide.output) {
            let of_lines = lines.chunks_exact_mut(length).zip(&mut counts_of_lines);
            for (y, (line, count)) in y.chunks(wide.output).zip(of_lines) {
                for k in 0..y.len() / columns.output {
                    let line = &mut line[columns.pads[0] + k * columns.input..][..columns.input];
                    let x = &x[row / rows.output * rows.input * columns.input..][..rows.input * columns.input];
                    let span = spans[row % rows.output];
                    reduce_row(rule, x, [span.taps, span.from, rows.dilation], line);
                    *count = rule.weight(span.count);
                    row += 1;
                }
            }
            for ((y, line), &count) in y.chunks_mut(wide.output).zip(lines.chunks_exact(length)).zip(&counts_of_lines) {
                reduce_line(rule, line, &wide, count, counts, y);
            }
        }
    }
}

/// Reduces rows of a plane into `line`. `taps` is `[number of rows, first row, distance]`. Blocks overlap at the end.
#[inline(always)]
fn reduce_row<R: Rule>(rule: R, x: &[R::Element], taps: [usize; 3], line: &mut [R::Partial]) {
    match line.len() {
        0..4 => reduce_blocks::<R, 1>(rule, x, taps, line),
        4..8 => reduce_blocks::<R, 4>(rule, x, taps, line),
        8..BLOCK => reduce_blocks::<R, 8>(rule, x, taps, line),
        _ => reduce_blocks::<R, BLOCK>(rule, x, taps, line),
    }
}

#[inline(always)]
fn reduce_blocks<R: Rule, const W: usize>(rule: R, x: &[R::Element], taps: [usize; 3], line: &mut [R::Partial]) {
    let mut start = 0;
    while start < line.len() {
        reduce_columns::<R, W>(rule, x, taps, start.min(line.len() - W), line);
        start += W;
    }
}

/// Reduces `W` columns of the rows; the partial results stay in a register.
#[inline(always)]
fn reduce_columns<R: Rule, const W: usize>(
    rule: R,
    x: &[R::Element],
    [taps, from, step]: [usize; 3],
    start: usize,
    line: &mut [R::Partial],
) {
    let mut partials = [R::START; W];
    for tap in 0..taps {
        let row = &x[(from + tap * step) * line.len() + start..][..W];
        for lane in 0..W {
            partials[lane] = R::join(partials[lane], rule.lift(row[lane]));
        }
    }
    line[start..start + W].copy_from_slice(&partials);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn window(input: usize, kernel: usize, stride: usize, dilation: usize, pads: [usize; 2]) -> Window {
        let output = (input + pads[0] + pads[1] - (kernel - 1) * dilation - 1) / stride + 1;
        Window { input, output, kernel, stride, dilation, pads }
    }

    /// Windows of most kinds: padded, overlapping, dilated, cut off, without pixels.
    pub(crate) fn windows() -> Vec<[Window; 2]> {
        let square = |i, k, s, d, p| [window(i, k, s, d, p), window(i + 3, k, s, d, p)];
        let ceil = Window { output: 3, ..window(6, 3, 2, 1, [0, 0]) };
        vec![
            square(8, 2, 2, 1, [0, 0]),
            [window(14, 2, 2, 1, [0, 0]); 2],
            [window(300, 3, 3, 1, [0, 0]), window(9, 2, 3, 1, [0, 0])],
            square(45, 3, 2, 1, [1, 1]),
            square(37, 3, 1, 1, [1, 0]),
            square(20, 2, 1, 1, [0, 1]),
            square(21, 5, 1, 1, [2, 2]),
            square(20, 13, 1, 1, [6, 6]),
            square(23, 3, 3, 2, [2, 1]),
            square(16, 4, 2, 3, [3, 0]),
            square(3, 3, 1, 1, [5, 5]),
            [ceil, ceil],
            [Window::POINT, window(100, 7, 5, 1, [3, 3])],
            [window(2, 1, 1, 1, [0, 0]), Window { output: 0, ..Window::POINT }],
        ]
    }

    fn data(len: usize) -> Vec<f32> {
        (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 1e6 - 8.0).collect()
    }

    /// Returns the elements of a window.
    fn elements(x: &[f32], [rows, columns]: [Window; 2], at: usize) -> Vec<f32> {
        let mut found = Vec::new();
        for (kr, kc) in (0..rows.kernel).flat_map(|kr| (0..columns.kernel).map(move |kc| (kr, kc))) {
            let row = at / columns.output * rows.stride + kr * rows.dilation;
            let column = at % columns.output * columns.stride + kc * columns.dilation;
            let inside = |w: Window, at: usize| (w.pads[0]..w.pads[0] + w.input).contains(&at);
            if inside(rows, row) && inside(columns, column) {
                found.push(x[(row - rows.pads[0]) * columns.input + column - columns.pads[0]]);
            }
        }
        found
    }

    #[test]
    fn every_instruction_set_reduces_every_window() {
        for windows in windows() {
            let [image, plane] = [windows[0].input * windows[1].input, windows[0].output * windows[1].output];
            let x = data(3 * image);
            for (isa, threads) in Isa::available().flat_map(|isa| [(isa, 1), (isa, 2)]) {
                let threads = Threads::new(threads).unwrap();
                let (mut most, mut mean, mut norm) = (vec![9.0; 3 * plane], vec![9.0; 3 * plane], vec![9.0; 3 * plane]);
                max(isa, &threads, &x, windows, &mut most);
                average(isa, &threads, &x, windows, Divisor::Inside, &mut mean);
                lp(isa, &threads, &x, windows, 3.0, &mut norm);
                let (mut y, mut indices) = (vec![0.0; 3 * plane], vec![0; 3 * plane]);
                max_with_indices(&threads, &x, windows, false, &mut y, &mut indices);
                assert_eq!(most, y);
                for at in 0..3 * plane {
                    let inside = elements(&x[at / plane * image..], windows, at % plane);
                    let expected = inside.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                    assert_eq!(most[at], expected, "{isa:?} {windows:?} {at}");
                    if inside.is_empty() {
                        continue;
                    }
                    assert_eq!(x[usize::try_from(indices[at]).unwrap()], expected);
                    let sum: f64 = inside.iter().map(|&v| f64::from(v)).sum();
                    assert!((f64::from(mean[at]) - sum / inside.len() as f64).abs() < 1e-5, "{isa:?} {windows:?} {at}");
                    let sum: f64 = inside.iter().map(|&v| f64::from(v).abs().powi(3)).sum();
                    assert!((f64::from(norm[at]) / sum.cbrt() - 1.0).abs() < 1e-5, "{isa:?} {windows:?} {at}");
                }
            }
        }
    }

    #[test]
    fn padding_counts_where_it_is_asked_to() {
        let windows = [Window::POINT, Window { output: 4, ..window(6, 3, 2, 1, [1, 0]) }];
        let mut y = [0.0; 4];
        average(Isa::get(), &Threads::serial(), &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], windows, Divisor::Padded, &mut y);
        assert_eq!(y, [1.0, 3.0, 5.0, 6.0]);
    }

    #[test]
    fn bytes_have_a_largest() {
        let windows = [Window::POINT, window(4, 4, 4, 1, [0, 0])];
        let (mut unsigned, mut signed) = ([0u8], [0i8]);
        max(Isa::get(), &Threads::serial(), &[3u8, 200, 7, 9], windows, &mut unsigned);
        max(Isa::get(), &Threads::serial(), &[-128i8, -100, -7, -9], windows, &mut signed);
        assert_eq!((unsigned, signed), ([200], [-7]));
    }

    #[test]
    fn columns_can_be_numbered_first() {
        let windows = [window(2, 2, 2, 1, [0, 0]), window(4, 2, 2, 1, [0, 0])];
        let (mut y, mut indices) = ([0.0; 2], [0; 2]);
        let x = [1.0f32, 2.0, 3.0, 9.0, 8.0, 4.0, 5.0, 6.0];
        max_with_indices(&Threads::serial(), &x, windows, true, &mut y, &mut indices);
        assert_eq!((y, indices), ([8.0, 9.0], [1, 6]));
    }
}
