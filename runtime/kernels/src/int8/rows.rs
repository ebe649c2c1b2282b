//! Converts and stores rows of sums in registers.

use super::finish::{Bounds, Finish, Sink};
use super::operands::Tile;
use super::vector::Vector;

/// Converts and stores the sums of a tile.
///
/// # Safety
/// As for [`write`].
#[inline(always)]
pub(super) unsafe fn write_tile<V: Vector, const N: usize, const R: usize>(sums: &[[V; N]; R], tile: &Tile) {
    let (finish, count) = (tile.finish, tile.columns.min(N * V::LANES));
    // SAFETY: guaranteed by the caller.
    unsafe {
        match finish.sink {
            Sink::Codes(to, by) if count == N * V::LANES && by.is_small && !finish.needs_row_sums() => {
                let to = to.add(tile.out);
                if by.low < 0 {
                    small_codes::<V, N, R, true>(sums, tile, &by, to);
                } else {
                    small_codes::<V, N, R, false>(sums, tile, &by, to);
                }
            }
            _ => {
                for (row, sums) in sums.iter().enumerate() {
                    write(sums, finish, tile.column, tile.row_sum(row), tile.at(row), count);
                }
            }
        }
    }
}

/// Stores the codes of whole rows of a tile whose scaled sums fit in 32 bits. `to` is the first code.
///
/// # Safety
/// As for [`write`].
#[inline(always)]
unsafe fn small_codes<V: Vector, const N: usize, const R: usize, const SIGNED: bool>(
    sums: &[[V; N]; R],
    tile: &Tile,
    by: &Bounds,
    to: *mut u8,
) {
    let (zero, [least, most]) = (V::splat(by.zeros), by.limits.map(V::splat));
    for (row, sums) in sums.iter().enumerate() {
        let mut rounded = [V::splat(0); 4];
        for (v, (rounded, sum)) in rounded.iter_mut().zip(sums).enumerate() {
            // SAFETY: guaranteed by the caller.
            *rounded = unsafe { sum.scaled(tile.finish.scale.as_ptr().add(tile.column + v * V::LANES)) }.rounded();
        }
        let low = rounded[0].packs_i32(rounded[1]).adds_i16(zero);
        let high = rounded[2].packs_i32(rounded[3]).adds_i16(zero);
        let codes = match SIGNED {
            true => low.packs_i16(high).max_i8(least).min_i8(most),
            false => low.packus_i16(high).max_u8(least).min_u8(most),
        };
        // SAFETY: guaranteed by the caller.
        unsafe { codes.in_order().store_some(to.add(row * tile.out_row), N * V::LANES) };
    }
}

/// Converts and stores the first `count` sums of `N` vectors, at most four, for columns `column ..`; see
/// [`Finish::write`].
///
/// # Safety
/// As for [`Finish::write`]; the processor has the instruction set.
#[inline(always)]
pub(super) unsafe fn write<V: Vector, const N: usize>(
    sums: &[V; N],
    finish: &Finish,
    column: usize,
    row_sum: i32,
    offset: usize,
    count: usize,
) {
    let mut totals = *sums;
    // SAFETY: guaranteed by the caller: `finish` is padded to whole vectors of columns.
    unsafe {
        if !finish.zeros.is_empty() {
            for (v, total) in totals.iter_mut().enumerate() {
                let zeros = V::load(finish.zeros.as_ptr().add(column + v * V::LANES).cast());
                *total = total.sub_i32(zeros.mul_i32(V::splat(row_sum)));
            }
        }
        let scale = finish.scale.as_ptr().add(column);
        match &finish.sink {
            Sink::Codes(to, by) => codes(&totals, scale, by).store_some(to.add(offset), count),
            Sink::Sums(to) => put(&totals, to.add(offset).cast(), count),
            Sink::Floats(to) => {
                for (v, total) in totals.iter_mut().enumerate() {
                    *total = total.scaled(scale.add(v * V::LANES));
                }
                put(&totals, to.add(offset).cast(), count);
            }
        }
    }
}

/// Stores the first `count` lanes.
///
/// # Safety
/// `count` lanes can be written at `to`.
#[inline(always)]
unsafe fn put<V: Vector, const N: usize>(lanes: &[V; N], to: *mut u8, count: usize) {
    for (v, lanes) in lanes.iter().enumerate() {
        let left = count.saturating_sub(v * V::LANES).min(V::LANES);
        // SAFETY: guaranteed by the caller.
        unsafe { lanes.store_some(to.wrapping_add(v * V::BYTES), 4 * left) };
    }
}

/// Returns the codes of up to four vectors, in their order.
///
/// # Safety
/// `scale` has one element per lane; the processor has the instruction set.
#[inline(always)]
unsafe fn codes<V: Vector, const N: usize>(totals: &[V; N], scale: *const f32, by: &Bounds) -> V {
    let mut rounded = [V::splat(0); 4];
    for (v, (rounded, total)) in rounded.iter_mut().zip(totals).enumerate() {
        // SAFETY: guaranteed by the caller.
        let scaled = unsafe { total.scaled(scale.add(v * V::LANES)) };
        *rounded = if by.is_small { scaled.rounded() } else { scaled.at_most(by.high).rounded() };
    }
    let (mut low, mut high) = (rounded[0].packs_i32(rounded[1]), rounded[2].packs_i32(rounded[3]));
    if !by.is_plain {
        let zero = V::splat(by.zeros);
        (low, high) = (low.adds_i16(zero), high.adds_i16(zero));
    }
    let (least, most) = (V::splat(by.limits[0]), V::splat(by.limits[1]));
    let codes = match (by.low < 0, by.is_plain) {
        (true, true) => low.packs_i16(high),
        (true, false) => low.packs_i16(high).max_i8(least).min_i8(most),
        (false, true) => low.packus_i16(high),
        (false, false) => low.packus_i16(high).max_u8(least).min_u8(most),
    };
    codes.in_order()
}
