//! Padding, cropping and mirroring: each axis of the result selects indices of the source.

use smallvec::SmallVec;

use crate::buffer::with_capacity;
use crate::strided::copy_run;
use crate::threads::Threads;
use candle_plan_descriptors::word::Word;

/// The source indices that an axis of the result selects, as consecutive runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    runs: SmallVec<[Run; 3]>,
    length: usize,
}

/// A run of `length` indices: the source indices `first`, `first + step`, …, or the fill value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    first: Option<usize>,
    step: isize,
    length: usize,
}

impl Run {
    fn place(&self, i: usize) -> Option<usize> {
        self.first?.checked_add_signed(i as isize * self.step)
    }
}

impl Places {
    /// Selects all indices of an axis of `size`.
    pub fn all(size: usize) -> Places {
        let mut places = Places::default();
        places.forward(0, size);
        places
    }

    /// The number of selected indices.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether no index is selected.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends `length` consecutive source indices, starting with `first`.
    pub fn forward(&mut self, first: usize, length: usize) {
        self.add(Run { first: Some(first), step: 1, length });
    }

    /// Appends the fill value `length` times.
    pub fn fill(&mut self, length: usize) {
        self.add(Run { first: None, step: 0, length });
    }

    /// Appends one source index.
    fn push(&mut self, place: usize) {
        match self.runs.last_mut() {
            Some(last) if last.length == 1 && last.first.is_some_and(|first| first.abs_diff(place) <= 1) => {
                last.step = place as isize - last.first.unwrap_or(place) as isize;
                last.length = 2;
                self.length += 1;
            }
            Some(last) if last.first.is_some() && last.place(last.length) == Some(place) => {
                last.length += 1;
                self.length += 1;
            }
            _ => self.forward(place, 1),
        }
    }

    fn add(&mut self, run: Run) {
        if run.length > 0 {
            if self.runs.len() == self.runs.capacity() {
                let mut longer = with_capacity(2 * self.runs.len());
                longer.extend_from_slice(&self.runs);
                self.runs = SmallVec::from_vec(longer);
            }
            self.runs.push(run);
            self.length += run.length;
        }
    }

    /// Returns the source index at position `i`; `None` for the fill value.
    fn get(&self, mut i: usize) -> Option<usize> {
        for run in &self.runs {
            if i < run.length {
                return run.place(i);
            }
            i -= run.length;
        }
        None
    }

    fn are_inside(&self, size: usize) -> bool {
        let is_inside = |run: &Run| {
            let ends = [0, run.length - 1].map(|i| run.place(i));
            run.first.is_none() || ends.iter().all(|place| place.is_some_and(|place| place < size))
        };
        self.runs.iter().all(is_inside)
    }

    fn are_all(&self, size: usize) -> bool {
        size == self.length && (size == 0 || *self.runs == [Run { first: Some(0), step: 1, length: size }])
    }
}

impl Extend<Option<usize>> for Places {
    /// Appends source indices, or the fill value for `None`.
    fn extend<I: IntoIterator<Item = Option<usize>>>(&mut self, shown: I) {
        for place in shown {
            match place {
                Some(place) => self.push(place),
                None => self.fill(1),
            }
        }
    }
}

impl FromIterator<Option<usize>> for Places {
    fn from_iter<I: IntoIterator<Item = Option<usize>>>(shown: I) -> Places {
        let mut places = Places::default();
        places.extend(shown);
        places
    }
}

/// Fills `out` with the selected elements of a tensor of shape `dims`:
/// `out[i₀, i₁, …] = source[places₀[i₀], places₁[i₁], …]`, or `fill` if an axis selects the fill value.
///
/// # Panics
/// A source index exceeds its axis, or the lengths do not match.
pub fn pad<T: Word>(source: &[T], dims: &[usize], places: &[Places], fill: T, out: &mut [T], threads: &Threads) {
    assert_eq!(
        (dims.len(), dims.iter().product::<usize>()),
        (places.len(), source.len()),
        "the source has shape {dims:?}"
    );
    assert_eq!(places.iter().map(Places::len).product::<usize>(), out.len(), "the result has a place for each");
    assert!(places.iter().zip(dims).all(|(places, &dim)| places.are_inside(dim)), "{places:?} of {dims:?}");
    if out.is_empty() {
        return;
    }
    // Trailing axes that are copied whole, in order, form one contiguous unit.
    let kept = places.iter().zip(dims).rev().skip_while(|(places, &dim)| places.are_all(dim)).count();
    let unit: usize = dims[kept..].iter().product();
    let Some((last, outer)) = places[..kept].split_last() else { return copy_run(source, out) };
    let rows = Rows { dims: &dims[..kept], outer, last, unit };

    let width = last.len() * unit;
    let task = if threads.count() == 1 { out.len() / width } else { (64usize << 10).div_ceil(width * size_of::<T>()) };
    threads.for_each_chunk(out, task * width, |chunk, out| {
        for (out, start) in out.chunks_exact_mut(width).zip(rows.starts(chunk * task)) {
            match start {
                Some(start) => rows.fill(&source[start..], fill, out),
                None => out.fill(fill),
            }
        }
    });
}

/// The rows of the result; each consists of the same runs.
struct Rows<'a> {
    dims: &'a [usize],
    outer: &'a [Places],
    last: &'a Places,
    unit: usize,
}

impl Rows<'_> {
    /// Returns the start of the source row for each row of the result, from row `first` on; `None` for a row of fill values.
    fn starts(&self, first: usize) -> impl Iterator<Item = Option<usize>> + '_ {
        let (one, stride) = (Places::all(1), self.dims[self.dims.len() - 1] * self.unit);
        let (inner, outer) = self.outer.split_last().map_or((one, self.outer), |(inner, outer)| (inner.clone(), outer));
        let (mut plane, mut row) = (first / inner.len(), first % inner.len());
        let mut start = self.plane(outer, plane);
        std::iter::from_fn(move || {
            if row == inner.len() {
                (plane, row) = (plane + 1, 0);
                start = self.plane(outer, plane);
            }
            row += 1;
            Some(start.and_then(|start| Some(start + inner.get(row - 1)? * stride)))
        })
    }

    /// Returns the start of the source plane, a matrix of two axes, for plane `plane` of the result.
    fn plane(&self, outer: &[Places], mut plane: usize) -> Option<usize> {
        let mut stride: usize = self.dims[outer.len()..].iter().product::<usize>() * self.unit;
        let mut start = 0;
        for (places, dim) in outer.iter().zip(self.dims).rev() {
            start += places.get(plane % places.len())? * stride;
            plane /= places.len();
            stride *= dim;
        }
        Some(start)
    }

    fn fill<T: Word>(&self, source: &[T], fill: T, mut out: &mut [T]) {
        for run in &self.last.runs {
            let (head, tail) = out.split_at_mut(run.length * self.unit);
            match run.first {
                None => head.fill(fill),
                Some(first) if run.step == 1 => copy_run(&source[first * self.unit..][..head.len()], head),
                Some(_) => {
                    for (i, out) in head.chunks_exact_mut(self.unit).enumerate() {
                        let from = run.place(i).unwrap_or(0) * self.unit;
                        copy_run(&source[from..][..self.unit], out);
                    }
                }
            }
            out = tail;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uninit::Uninit;

    fn check(dims: &[usize], shown: &[Vec<Option<usize>>]) {
        let source: Vec<u32> = (1..=dims.iter().product::<usize>() as u32).collect();
        let element = |mut i: usize| {
            let (mut at, mut stride) = (Some(0), 1);
            for (shown, dim) in shown.iter().zip(dims).rev() {
                at = at.zip(shown[i % shown.len()]).map(|(at, place)| at + place * stride);
                i /= shown.len();
                stride *= dim;
            }
            at.map_or(0, |at| source[at])
        };
        let count = shown.iter().map(Vec::len).product();
        let expected: Vec<u32> = (0..count).map(element).collect();
        let places: Vec<Places> = shown.iter().map(|shown| shown.iter().copied().collect()).collect();
        for threads in [Threads::serial(), Threads::new(2).expect("two threads")] {
            let out = Uninit::new(count).overwrite(|out| pad(&source, dims, &places, 0, out, &threads));
            assert!(out == expected, "{dims:?} {shown:?}");
        }
    }

    #[test]
    fn places_are_kept_in_runs() {
        let shown = [None, Some(2), Some(1), Some(0), Some(1), Some(2), Some(2), Some(2), Some(7)];
        let places: Places = shown.into_iter().collect();
        let runs: Vec<_> = places.runs.iter().map(|run| (run.first, run.step, run.length)).collect();
        let expected = [(None, 0, 1), (Some(2), -1, 3), (Some(1), 1, 2), (Some(2), 0, 2), (Some(7), 1, 1)];
        assert_eq!((runs, places.len()), (expected.to_vec(), 9));
        assert!(Places::all(0).is_empty() && Places::all(3).are_all(3) && !Places::all(3).are_all(4));
    }

    #[test]
    fn any_places() {
        let all = |n: usize| (0..n).map(Some).collect::<Vec<_>>();
        let around = |n: usize| [vec![None; 2], all(n), vec![None]].concat();
        let mirrored = |n: usize| [vec![Some(2), Some(1)], all(n), vec![Some(n - 2)]].concat();
        check(&[3, 4], &[around(3), around(4)]);
        check(&[3, 4], &[mirrored(3), mirrored(4)]);
        check(&[3, 4, 5], &[all(3), mirrored(4), all(5)]);
        check(&[3, 4, 5], &[all(3), all(4), all(5)]);
        check(&[2, 30, 70, 90], &[all(2), all(30), around(70), around(90)]);
        check(&[3, 4], &[vec![Some(2), None, Some(0)], all(4)]);
        check(&[3, 0], &[all(3), vec![None; 3]]);
        check(&[3], &[vec![]]);
        check(&[], &[]);
    }
}
