//! Padding, cropping, mirroring: each axis of the result shows chosen places of the source.

use crate::strided::{copy_run, Word};
use crate::threads::Threads;

/// For each place of an axis of the result: the place of the source that it shows, or `None` for the fill value.
pub type Places = Vec<Option<usize>>;

/// Fills `out` with the elements of a tensor of shape `dims` at the places of each axis:
/// `out[i₀, i₁, …] = source[places₀[i₀], places₁[i₁], …]`, or `fill` where one of them is `None`.
///
/// # Panics
/// A place is outside its axis, or the lengths do not fit.
pub fn pad<T: Word>(source: &[T], dims: &[usize], places: &[Places], fill: T, out: &mut [T], threads: &Threads) {
    assert_eq!(
        (dims.len(), dims.iter().product::<usize>()),
        (places.len(), source.len()),
        "the source has shape {dims:?}"
    );
    assert_eq!(places.iter().map(Vec::len).product::<usize>(), out.len(), "the result has a place for each");
    assert!(places.iter().zip(dims).all(|(places, dim)| places.iter().flatten().all(|place| place < dim)));
    if out.is_empty() {
        return;
    }
    // The axes at the end that are taken whole, in order, move as one unit.
    let whole = |(places, &dim): (&Places, &usize)| places.iter().copied().eq((0..dim).map(Some));
    let kept = places.iter().zip(dims).rev().skip_while(|&axis| whole(axis)).count();
    let unit: usize = dims[kept..].iter().product();
    let Some((last, outer)) = places[..kept].split_last() else { return copy_run(source, out) };
    let rows = Rows { dims: &dims[..kept], outer, segments: segments(last), unit };

    let width = last.len() * unit;
    let task = if threads.count() == 1 { out.len() / width } else { (64usize << 10).div_ceil(width * size_of::<T>()) };
    threads.for_each_chunk(out, task * width, |chunk, out| {
        for (i, out) in out.chunks_exact_mut(width).enumerate() {
            match rows.start(chunk * task + i) {
                Some(start) => rows.fill(&source[start..], fill, out),
                None => out.fill(fill),
            }
        }
    });
}

/// The last axis in pieces: `length` places that are filled, or that show neighbours from `from` on.
struct Segment {
    from: Option<usize>,
    length: usize,
}

fn segments(places: &Places) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    for &place in places {
        match segments.last_mut() {
            Some(last) if place == last.from.map(|from| from + last.length) => last.length += 1,
            _ => segments.push(Segment { from: place, length: 1 }),
        }
    }
    segments
}

/// The rows of the result, each made of the same segments.
struct Rows<'a> {
    dims: &'a [usize],
    outer: &'a [Places],
    segments: Vec<Segment>,
    unit: usize,
}

impl Rows<'_> {
    /// Where the source's row begins that row `row` of the result shows; `None` for a row that is filled.
    fn start(&self, mut row: usize) -> Option<usize> {
        let mut stride = self.dims[self.dims.len() - 1] * self.unit;
        let mut start = 0;
        for (places, dim) in self.outer.iter().zip(self.dims).rev() {
            start += places[row % places.len()]? * stride;
            row /= places.len();
            stride *= dim;
        }
        Some(start)
    }

    fn fill<T: Word>(&self, source: &[T], fill: T, mut out: &mut [T]) {
        for segment in &self.segments {
            let (head, tail) = out.split_at_mut(segment.length * self.unit);
            match segment.from {
                Some(from) => copy_run(&source[from * self.unit..][..head.len()], head),
                None => head.fill(fill),
            }
            out = tail;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::for_overwrite;

    fn check(dims: &[usize], places: &[Places]) {
        let source: Vec<u32> = (1..=dims.iter().product::<usize>() as u32).collect();
        let element = |mut i: usize| {
            let (mut at, mut stride) = (Some(0), 1);
            for (places, dim) in places.iter().zip(dims).rev() {
                at = at.zip(places[i % places.len()]).map(|(at, place)| at + place * stride);
                i /= places.len();
                stride *= dim;
            }
            at.map_or(0, |at| source[at])
        };
        let count = places.iter().map(Vec::len).product();
        let expected: Vec<u32> = (0..count).map(element).collect();
        for threads in [Threads::serial(), Threads::new(2).expect("two threads")] {
            let mut out = for_overwrite(count);
            pad(&source, dims, places, 0, &mut out, &threads);
            assert!(out == expected, "{dims:?} {places:?}");
        }
    }

    #[test]
    fn any_places() {
        let all = |n: usize| (0..n).map(Some).collect::<Places>();
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
