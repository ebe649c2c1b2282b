//! The first elements along an axis in sorted order, and their indices.
//!
//! An element is mapped to an unsigned integer with the same order. This integer and the element's index are packed
//! into a wider integer, so no two are equal, and of equal elements the one with the smaller index comes first. A
//! single pass keeps the candidates. If few of many elements are requested, one vector comparison rejects most blocks.

mod best;
mod keys;
#[cfg(test)]
mod tests;

use half::{bf16, f16};

use crate::buffer;
use crate::isa::Isa;
use crate::lane_loops::per_isa;
use crate::scratch::Scratch;
use crate::threads::Threads;
use best::{list_len, offer_row, Best, BLOCK};
use keys::{Key, Keyed, Packed};

/// Elements that are worth a separate task: about 20 µs.
const TASK: usize = 1 << 15;
/// Keys of a row that are written at a time.
const PIECE: usize = 16 * BLOCK;
/// The rows of a tile. A task writes the keys of one tile at a time.
const ROWS: usize = 2 * BLOCK;
/// The columns of a tile: several cache lines of a row, which arrive together.
const COLUMNS: usize = 4 * BLOCK;

/// The requested elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// `[outer, n, inner]`: the sizes before, at and after the axis.
    pub dims: [usize; 3],
    /// The number of requested elements; at most `n`.
    pub k: usize,
    /// Whether the largest elements come first, instead of the smallest.
    pub largest: bool,
}

/// Element types with an order.
pub trait Ranked: Copy {
    /// Writes the first `k` elements along the axis of `x` `[outer, n, inner]`, in sorted order, and their indices,
    /// both `[outer, k, inner]`. Of equal elements, the one with the smaller index comes first. NaN is larger than
    /// every number.
    ///
    /// # Panics
    /// The slices do not fit the sizes.
    fn top(isa: Isa, threads: &Threads, x: &[Self], order: Order, values: &mut [Self], indices: &mut [i64]);
}

macro_rules! ranked {
    ($($element:ident: $packed:ident;)*) => {
        $(impl Ranked for $element {
            fn top(isa: Isa, threads: &Threads, x: &[$element], order: Order, values: &mut [$element], indices: &mut [i64]) {
                if order.dims[1] <= u32::MAX as usize {
                    find::<$element, $packed>(isa, threads, x, order, indices);
                } else {
                    find::<$element, u128>(isa, threads, x, order, indices);
                }
                pick(threads, x, order, indices, values);
            }
        })*
    };
}

ranked! {
    f32: u64;
    f64: u128;
    f16: u64;
    bf16: u64;
    i8: u64;
    i16: u64;
    i32: u64;
    i64: u128;
    u8: u64;
    u16: u64;
    u32: u64;
    u64: u128;
}

/// Finds the indices of the first elements, `[outer, k, inner]`.
fn find<T: Keyed, P: Packed<T::Key>>(isa: Isa, threads: &Threads, x: &[T], order: Order, indices: &mut [i64]) {
    let Order { dims: [outer, n, inner], k, .. } = order;
    assert_eq!((x.len(), indices.len()), (outer * n * inner, outer * k * inner), "{order:?}");
    if indices.is_empty() {
        return;
    }
    if inner == 1 {
        return find_columns::<T, P>(isa, threads, x, order, indices);
    }
    let mut columns = Scratch::filled(0, indices.len());
    find_columns::<T, P>(isa, threads, x, order, &mut columns);
    let rows = (TASK / inner).max(1);
    threads.for_each_chunk(indices, rows * inner, |task, indices| {
        for (row, indices) in (task * rows..).zip(indices.chunks_exact_mut(inner)) {
            let columns = columns[row / k * inner * k + row % k..].iter().step_by(k);
            indices.iter_mut().zip(columns).for_each(|(index, &place)| *index = place);
        }
    });
}

/// Finds the indices of the first elements of each column, `[outer, inner, k]`.
fn find_columns<T: Keyed, P: Packed<T::Key>>(isa: Isa, threads: &Threads, x: &[T], order: Order, places: &mut [i64]) {
    let Order { dims: [_, n, inner], k, largest } = order;
    let flip = if largest { T::Key::MAX } else { T::Key::MIN };
    // Long lists of candidates take much memory, and then the rows take little time beside them.
    let is_short = buffer::is_cached::<P>(COLUMNS.saturating_mul(list_len(n, k)));
    let most = if is_short { COLUMNS } else { BLOCK }.min(inner);
    let together = (TASK / n).max(1).next_multiple_of(most);
    threads.for_each_chunk(places, together * k, |task, places| {
        let width = most.min(places.len() / k);
        let mut best: Scratch<Best<T::Key, P>> = Scratch::of((0..width).map(|_| Best::new(n, k)));
        let mut column = task * together;
        let mut places = places.chunks_exact_mut(k);
        while places.len() > 0 {
            let (block, first) = (column / inner, column % inner);
            let width = width.min(inner - first).min(places.len());
            let best = &mut best[..width];
            let x = &x[block * n * inner..][..n * inner];
            match &mut *best {
                [best] if inner == 1 => scan_row(isa, x, flip, best),
                best => scan_columns(isa, x, [first, inner], flip, best),
            }
            best.iter_mut().zip(&mut places).for_each(|(best, places)| best.finish(places));
            column += width;
        }
    });
}

/// Adds the row `x` to the candidates `best`.
fn scan_row<T: Keyed, P: Packed<T::Key>>(isa: Isa, x: &[T], flip: T::Key, best: &mut Best<T::Key, P>) {
    let mut keys = [flip; PIECE];
    for (i, piece) in x.chunks(PIECE).enumerate() {
        let keys = &mut keys[..piece.len()];
        write_keys(isa, piece, flip, keys);
        offer_row(isa, keys, i * PIECE, best);
    }
}

/// Adds columns `first ..` of `x` `[n, inner]` to the candidates, one `best` per column.
fn scan_columns<T: Keyed, P: Packed<T::Key>>(
    isa: Isa,
    x: &[T],
    [first, inner]: [usize; 2],
    flip: T::Key,
    best: &mut [Best<T::Key, P>],
) {
    let mut keys = [[flip; COLUMNS]; ROWS];
    let mut columns = [[flip; ROWS]; BLOCK];
    for (i, rows) in x.chunks(ROWS * inner).enumerate() {
        let keys = &mut keys[..rows.len() / inner];
        for (keys, row) in keys.iter_mut().zip(rows.chunks_exact(inner)) {
            write_keys(isa, &row[first..][..best.len()], flip, &mut keys[..best.len()]);
        }
        for (block, best) in best.chunks_mut(BLOCK).enumerate() {
            transpose(isa, keys, block * BLOCK, &mut columns);
            for (column, best) in columns.iter().zip(best) {
                offer_row(isa, &column[..keys.len()], i * ROWS, best);
            }
        }
    }
}

per_isa! {
    /// Copies the keys of columns `first ..` to one list per column, so that a comparison takes several keys of one column.
    fn transpose<K: Key>(rows: &[[K; COLUMNS]], first: usize, columns: &mut [[K; ROWS]; BLOCK]) where FMA {
        for (place, row) in rows.iter().enumerate().take(ROWS) {
            let row = &row[first..][..BLOCK];
            for c in 0..BLOCK {
                columns[c][place] = row[c];
            }
        }
    }
}

per_isa! {
    fn write_keys<T: Keyed>(x: &[T], flip: T::Key, keys: &mut [T::Key]) where FMA {
        for (key, x) in keys.iter_mut().zip(x) {
            *key = x.key() ^ flip;
        }
    }
}

/// Gathers the elements at the indices along the axis.
fn pick<T: Copy + Send + Sync>(threads: &Threads, x: &[T], order: Order, indices: &[i64], values: &mut [T]) {
    let Order { dims: [_, n, inner], k, .. } = order;
    assert_eq!(values.len(), indices.len(), "{order:?}");
    let rows = (TASK / inner.max(1)).max(1);
    threads.for_each_chunk(values, rows * inner, |task, values| {
        let (mut block, mut row) = (task * rows / k, task * rows % k);
        let indices = indices[task * rows * inner..].chunks_exact(inner);
        for (values, indices) in values.chunks_exact_mut(inner).zip(indices) {
            let x = &x[block * n * inner..];
            for (c, (value, &place)) in values.iter_mut().zip(indices).enumerate() {
                *value = x[place as usize * inner + c];
            }
            row += 1;
            if row == k {
                (block, row) = (block + 1, 0);
            }
        }
    });
}
