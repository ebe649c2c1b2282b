//! Resampling along one axis after the other. Every element of the output is a weighted sum of input elements, or, for
//! nearest neighbors, one of them.

use smallvec::SmallVec;

use crate::broadcast::Dims;
use crate::float_types::Real;
use crate::isa::Isa;
use crate::lane_loops::per_isa;
use crate::scratch::Scratch;
use crate::threads::Threads;
use candle_plan_descriptors::word::Word;

/// The taps of each output index along one axis: the input indices and weights of its sum. Every output index has the
/// same number of taps.
#[derive(Debug)]
pub struct Filter<R> {
    input: usize,
    output: usize,
    taps: usize,
    /// `[taps, output]`; each index is below `input`.
    indices: Scratch<u32>,
    /// `[taps, output]`
    weights: Scratch<R>,
}

impl<R: Real> Filter<R> {
    /// Creates a filter from an axis of size `input` to one of size `output`. `tap(index, k)` returns the input index
    /// and the weight of tap `k < taps` for an output index.
    ///
    /// # Panics
    /// An input index is out of bounds, or does not fit in `u32`.
    pub fn new(input: usize, output: usize, taps: usize, tap: impl Fn(usize, usize) -> (usize, R)) -> Filter<R> {
        let tap = &tap;
        let count = taps.saturating_mul(output);
        let (mut indices, mut weights) = (Scratch::filled(0, count), Scratch::filled(R::ZERO, count));
        let number = |index: usize| u32::try_from(index).ok().filter(|_| index < input).expect("a place of the input");
        let all = (0..taps).flat_map(|k| (0..output).map(move |place| tap(place, k)));
        for ((index, weight), tap) in indices.iter_mut().zip(weights.iter_mut()).zip(all) {
            (*index, *weight) = (number(tap.0), tap.1);
        }
        Filter { input, output, taps, indices, weights }
    }

    /// Returns the input indices and weights of tap `k`.
    #[inline(always)]
    fn tap(&self, k: usize) -> (&[u32], &[R]) {
        let range = k * self.output..(k + 1) * self.output;
        (&self.indices[range.clone()], &self.weights[range])
    }
}

/// Elements written that are worth a separate task.
const TASK: usize = 1 << 15;
/// Elements that are summed in parallel: a 512-bit vector of `f32`.
const BLOCK: usize = 16;

/// Resamples `x` of shape `dims` into `y`, along the axes that have a filter. Starts with the axis that gives the
/// smallest intermediate result; of equal ones, the last.
///
/// # Panics
/// The filters or the lengths do not fit the shape.
pub fn resample<R: Real>(
    isa: Isa,
    threads: &Threads,
    x: &[R],
    dims: &[usize],
    filters: &[Option<Filter<R>>],
    y: &mut [R],
) {
    assert_eq!(dims.len(), filters.len(), "every axis has a filter or none");
    let fits = |(filter, &dim): (&Option<Filter<R>>, &usize)| filter.as_ref().is_none_or(|filter| filter.input == dim);
    assert!(filters.iter().zip(dims).all(fits), "the filters are for {dims:?}");
    let Some(first) = filters.iter().position(Option::is_some) else {
        return y.copy_from_slice(x);
    };
    let size = |(filter, &dim): (&Option<Filter<R>>, &usize)| filter.as_ref().map_or(dim, |filter| filter.output);
    let image: usize = dims[first..].iter().product();
    let result: usize = filters[first..].iter().zip(&dims[first..]).map(size).product();
    let images: usize = dims[..first].iter().product();
    assert_eq!((x.len(), y.len()), (images * image, images * result), "input and output fill their shapes");
    if y.is_empty() {
        return;
    }
    let (group, order) = ((TASK / result).max(1), order(&filters[first..]));
    threads.for_each_chunk(y, group * result, |i, y| {
        let mut scratch = [Scratch::new(), Scratch::new()];
        for (x, y) in x[i * group * image..].chunks_exact(image).zip(y.chunks_exact_mut(result)) {
            resample_image(isa, threads, x, &dims[first..], &order, &mut scratch, y);
        }
    });
}

/// Returns the filters with their axes, in the order with the smallest intermediate results.
fn order<R>(filters: &[Option<Filter<R>>]) -> SmallVec<[(usize, &Filter<R>); 2]> {
    let all = filters.iter().enumerate().rev();
    let mut order: SmallVec<_> = all.filter_map(|(axis, filter)| Some((axis, filter.as_ref()?))).collect();
    order.sort_by(|(_, a): &(usize, &Filter<R>), (_, b)| {
        let [a, b] = [[a.output, b.input], [b.output, a.input]].map(|[new, old]| new as u128 * old as u128);
        a.cmp(&b)
    });
    order
}

fn resample_image<R: Real>(
    isa: Isa,
    threads: &Threads,
    x: &[R],
    dims: &[usize],
    order: &[(usize, &Filter<R>)],
    [from, to]: &mut [Scratch<R>; 2],
    y: &mut [R],
) {
    let Some(((last, filter), before)) = order.split_last() else { return y.copy_from_slice(x) };
    let mut dims = Dims::from_slice(dims);
    let mut source = x;
    for (axis, filter) in before {
        dims[*axis] = filter.output;
        let length = dims.iter().fold(1, |length: usize, &dim| length.saturating_mul(dim));
        let inner = dims[axis + 1..].iter().product();
        to.overwrite(length, |y| resample_axis(isa, threads, filter, source, inner, y));
        std::mem::swap(from, to);
        source = &from[..length];
    }
    resample_axis(isa, threads, filter, source, dims[last + 1..].iter().product(), y);
}

/// Resamples the middle axis of `x` `[outer, input, inner]`. Threads share the rows if `outer` is 1, else the outer
/// indices. Inside a task, the caller does all the work.
fn resample_axis<R: Real>(isa: Isa, threads: &Threads, filter: &Filter<R>, x: &[R], inner: usize, y: &mut [R]) {
    let [input, output] = [filter.input * inner, filter.output * inner];
    if inner > 1 && y.len() == output {
        let rows = (TASK / inner).max(1);
        return threads.for_each_chunk(y, rows * inner, |i, y| resample_rows(isa, filter, i * rows, x, inner, y));
    }
    let group = (TASK / output).max(1);
    threads.for_each_chunk(y, group * output, |i, y| {
        for (x, y) in x[i * group * input..].chunks_exact(input).zip(y.chunks_exact_mut(output)) {
            match inner {
                1 => resample_line(isa, filter, x, y),
                _ => resample_rows(isa, filter, 0, x, inner, y),
            }
        }
    });
}

per_isa! {
    /// `y[i] = Σₖ weights[k, i] · x[indices[k, i]]`
    fn resample_line<R: Real>(filter: &Filter<R>, x: &[R], y: &mut [R]) where FMA up to (R::WIDEST) {
        assert_eq!((x.len(), y.len()), (filter.input, filter.output));
        // SAFETY: `Filter::new` checked that every index is below `input`, which is the length of `x`.
        let at = |index: u32| unsafe { *x.get_unchecked(index as usize) };
        if filter.taps == 2 {
            let ((left, a), (right, b)) = (filter.tap(0), filter.tap(1));
            for i in 0..y.len() {
                y[i] = at(left[i]).mul_add::<FMA>(a[i], at(right[i]) * b[i]);
            }
            return;
        }
        y.fill(R::ZERO);
        for k in 0..filter.taps {
            let (indices, weights) = filter.tap(k);
            for ((y, &index), &weight) in y.iter_mut().zip(indices).zip(weights) {
                *y = at(index).mul_add::<FMA>(weight, *y);
            }
        }
    }
}

per_isa! {
    /// Row `i` of `y` is `Σₖ weights[k, first + i]` · row `indices[k, first + i]` of `x` `[input, inner]`.
    fn resample_rows<R: Real>(filter: &Filter<R>, first: usize, x: &[R], inner: usize, y: &mut [R]) where FMA up to (R::WIDEST) {
        for (i, y) in y.chunks_exact_mut(inner).enumerate() {
            match inner {
                0..4 => sum_rows::<R, 1, FMA>(filter, first + i, x, y),
                4..BLOCK => sum_rows::<R, 4, FMA>(filter, first + i, x, y),
                _ if filter.taps == 2 => sum_two_rows::<R, FMA>(filter, first + i, x, y),
                _ => sum_rows::<R, BLOCK, FMA>(filter, first + i, x, y),
            }
        }
    }
}

/// [`sum_rows`] for two taps.
#[inline(always)]
fn sum_two_rows<R: Real, const FMA: bool>(filter: &Filter<R>, row: usize, x: &[R], y: &mut [R]) {
    let inner = y.len();
    let ((above, a), (below, b)) = (filter.tap(0), filter.tap(1));
    let (above, below) = (&x[above[row] as usize * inner..][..inner], &x[below[row] as usize * inner..][..inner]);
    for i in 0..inner {
        y[i] = below[i].mul_add::<FMA>(b[row], above[i] * a[row]);
    }
}

/// Sums `W` columns at a time; the last block overlaps the previous one.
#[inline(always)]
fn sum_rows<R: Real, const W: usize, const FMA: bool>(filter: &Filter<R>, row: usize, x: &[R], y: &mut [R]) {
    let inner = y.len();
    let mut next = 0;
    while next < inner {
        let start = next.min(inner - W);
        let mut sums = [R::ZERO; W];
        for k in 0..filter.taps {
            let (indices, weights) = filter.tap(k);
            let row_of_x = &x[indices[row] as usize * inner + start..][..W];
            for lane in 0..W {
                sums[lane] = row_of_x[lane].mul_add::<FMA>(weights[row], sums[lane]);
            }
        }
        y[start..start + W].copy_from_slice(&sums);
        next += W;
    }
}

/// `y[o, i, j] = x[o, rows[i], columns[j]]` for units of `unit` elements, where `x` is
/// `[outer, dims[0], dims[1], unit]`.
///
/// # Panics
/// An index is out of bounds, or the lengths do not fit.
pub fn take<T: Word>(
    isa: Isa,
    threads: &Threads,
    x: &[T],
    dims: [usize; 2],
    unit: usize,
    [rows, columns]: [&[u32]; 2],
    y: &mut [T],
) {
    let [image, width] = [dims[0] * dims[1] * unit, columns.len() * unit];
    let result = rows.len() * width;
    assert!(
        rows.iter().all(|&row| (row as usize) < dims[0]) && columns.iter().all(|&place| (place as usize) < dims[1])
    );
    if y.is_empty() {
        return;
    }
    assert_eq!((y.len() % result, x.len()), (0, y.len() / result * image), "input and output are as many images");
    let group = (TASK / result).max(1);
    threads.for_each_chunk(y, group * result, |i, y| {
        for (x, y) in x[i * group * image..].chunks_exact(image).zip(y.chunks_exact_mut(result)) {
            for (i, &row) in rows.iter().enumerate() {
                if i > 0 && rows[i - 1] == row {
                    y.copy_within((i - 1) * width..i * width, i * width);
                } else {
                    let x = &x[row as usize * dims[1] * unit..][..dims[1] * unit];
                    gather_row(isa, x, unit, columns, &mut y[i * width..][..width]);
                }
            }
        }
    });
}

per_isa! {
    fn gather_row<T: Word>(x: &[T], unit: usize, columns: &[u32], y: &mut [T]) where FMA {
        let is_doubled = unit == 1 && columns.len() == 2 * x.len();
        if is_doubled && columns.iter().enumerate().all(|(i, &place)| place as usize == i / 2) {
            for (i, &value) in x.iter().enumerate() {
                y[2 * i] = value;
                y[2 * i + 1] = value;
            }
        } else if unit == 1 {
            for (y, &place) in y.iter_mut().zip(columns) {
                *y = x[place as usize];
            }
        } else {
            for (y, &place) in y.chunks_exact_mut(unit).zip(columns) {
                y.copy_from_slice(&x[place as usize * unit..][..unit]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter with arbitrary indices and weights.
    fn filter(input: usize, output: usize, taps: usize) -> Filter<f32> {
        Filter::new(input, output, taps, |place, k| {
            (((place * input) / output.max(1) + 3 * k) % input, 0.3 + (place % 5) as f32 / 8.0 - k as f32 / 4.0)
        })
    }

    fn data(len: usize) -> Vec<f32> {
        (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 1e6 - 8.0).collect()
    }

    /// The sum over all axes at once, in `f64`.
    fn element(x: &[f32], dims: &[usize], filters: &[Option<Filter<f32>>], mut at: usize) -> f64 {
        let mut terms = vec![(0, 1.0)];
        let mut stride = 1;
        for (filter, &dim) in filters.iter().zip(dims).rev() {
            let size = filter.as_ref().map_or(dim, |filter| filter.output);
            let place = at % size;
            at /= size;
            let taps: Vec<(usize, f64)> = match filter {
                None => vec![(place, 1.0)],
                Some(filter) => (0..filter.taps)
                    .map(|k| (filter.tap(k).0[place] as usize, f64::from(filter.tap(k).1[place])))
                    .collect(),
            };
            let all = terms.iter().flat_map(|&(offset, weight)| {
                taps.iter().map(move |&(place, other)| (offset + place * stride, weight * other))
            });
            terms = all.collect();
            stride *= dim;
        }
        terms.iter().map(|&(offset, weight)| f64::from(x[offset]) * weight).sum()
    }

    #[test]
    fn every_instruction_set_sums_every_axis() {
        let cases: [(&[usize], Vec<Option<Filter<f32>>>); 11] = [
            (&[2, 9], vec![None, Some(filter(9, 21, 2))]),
            (&[3, 7, 5], vec![None, Some(filter(7, 3, 4)), None]),
            (&[2, 6, 37], vec![None, Some(filter(6, 11, 2)), Some(filter(37, 50, 2))]),
            (&[5, 6, 7], vec![Some(filter(5, 4, 3)), None, Some(filter(7, 9, 4))]),
            (&[2, 5, 6, 3], vec![None, Some(filter(5, 10, 2)), Some(filter(6, 12, 2)), None]),
            (&[2, 30, 9, 21], vec![None, Some(filter(30, 70, 2)), Some(filter(9, 40, 2)), None]),
            (&[2, 30, 9], vec![None, Some(filter(30, 7, 2)), Some(filter(9, 40, 3))]),
            (&[40, 30, 9, 21], vec![Some(filter(40, 3, 2)), None, Some(filter(9, 40, 3)), None]),
            (&[5, 8, 6], vec![Some(filter(5, 4, 3)), Some(filter(8, 2, 2)), Some(filter(6, 7, 4))]),
            (&[2, 3], vec![None, Some(filter(3, 0, 2))]),
            (&[2, 3], vec![None, None]),
        ];
        for (dims, filters) in cases {
            let x = data(dims.iter().product());
            let sizes = filters.iter().zip(dims).map(|(filter, &dim)| filter.as_ref().map_or(dim, |f| f.output));
            let len = sizes.product();
            let expected: Vec<f64> = (0..len).map(|at| element(&x, dims, &filters, at)).collect();
            for (isa, threads) in Isa::available().flat_map(|isa| [(isa, 1), (isa, 2)]) {
                let mut y = vec![9.0; len];
                resample(isa, &Threads::new(threads).unwrap(), &x, dims, &filters, &mut y);
                for (at, (&y, expected)) in y.iter().zip(&expected).enumerate() {
                    assert!((f64::from(y) - expected).abs() < 2e-5, "{isa:?} {dims:?} {at}: {y} {expected}");
                }
            }
        }
    }

    #[test]
    fn the_axis_that_makes_the_least_is_first() {
        let (shrinks, grows) = (filter(100, 1, 2), filter(1, 100, 2));
        let axes = |filters: &[Option<Filter<f32>>]| order(filters).iter().map(|(axis, _)| *axis).collect::<Vec<_>>();
        assert_eq!(axes(&[None, Some(shrinks), Some(grows)]), [1, 2]);
        assert_eq!(axes(&[Some(filter(2, 4, 2)), Some(filter(3, 6, 2))]), [1, 0]);
        assert_eq!(axes(&[Some(filter(usize::MAX, 1, 0)), Some(filter(1, usize::MAX, 0))]), [0, 1]);
    }

    #[test]
    fn elements_are_taken_from_rows_and_columns() {
        let (rows, doubled) = ([2, 0, 0, 1u32], [0, 0, 1, 1, 2, 2, 3, 3u32]);
        let x: Vec<u16> = (0..48).collect();
        for (columns, unit) in [(&doubled[..], 1), (&[3, 0, 2][..], 1), (&[1, 1, 0][..], 2)] {
            for isa in Isa::available() {
                let mut y = vec![999; 48 / 12 / unit * 4 * columns.len() * unit];
                take(isa, &Threads::serial(), &x, [3, 4], unit, [&rows, columns], &mut y);
                for (at, &y) in y.iter().enumerate() {
                    let (at, element) = (at / unit, at % unit);
                    let (row, image) = (at / columns.len() % 4, at / columns.len() / 4);
                    let place = (image * 3 + rows[row] as usize) * 4 + columns[at % columns.len()] as usize;
                    assert_eq!(usize::from(y), place * unit + element, "{isa:?} {columns:?} {at}");
                }
            }
        }
    }
}
