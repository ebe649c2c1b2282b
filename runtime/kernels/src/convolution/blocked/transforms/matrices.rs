//! The transforms of `F(2, 3)` and `F(4, 3)` along one axis. For two axes, they are applied one after the other.
//!
//! The transforms evaluate polynomials at points `p`. That of the weights is divided by the products of differences
//! between the points; that of the input has the factors that vanish at the other points.

use crate::vector::Vector;

/// The outputs `M` of a tile along one axis; it has `M + 2` inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::convolution::blocked) enum Tile {
    /// `F(2, 3)`: points 0, ±1, ∞.
    Two = 2,
    /// `F(4, 3)`: points 0, ±2/3, ±3/2, ∞.
    Four = 4,
}

/// The points of `F(4, 3)` besides 0 and ∞ are `±A` and `±B`; their product `A · B` is 1.
const A: f32 = 2.0 / 3.0;
const B: f32 = 3.0 / 2.0;
const A2: f32 = 4.0 / 9.0;
const B2: f32 = 9.0 / 4.0;
const A3: f32 = 8.0 / 27.0;
const B3: f32 = 27.0 / 8.0;

/// The weight transform: one row per point.
pub(super) fn weight_rows(tile: Tile) -> Vec<[f64; 3]> {
    match tile {
        Tile::Two => vec![[-1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]],
        Tile::Four => {
            let mut rows = vec![[1.0, 0.0, 0.0]];
            for [p, other] in [[2.0 / 3.0, 1.5], [1.5, 2.0 / 3.0]] {
                let scale: f64 = 1.0 / (2.0 * p * p * (p * p - other * other));
                rows.extend([p, -p].map(|p| [scale, p * scale, p * p * scale]));
            }
            rows.push([0.0, 0.0, 1.0]);
            rows
        }
    }
}

/// Appends the `(m + 2)²` transformed weights of a 3 × 3 window.
pub(super) fn square(rows: &[[f64; 3]], w: &[f32], out: &mut Vec<f32>) {
    for down in rows {
        let columns = [0, 1, 2].map(|j| dot(down, |k| f64::from(w[3 * k + j])));
        out.extend(rows.iter().map(|across| dot(across, |k| columns[k]) as f32));
    }
}

/// Appends the `m + 2` transformed weights of up to three taps in a line.
pub(super) fn line(rows: &[[f64; 3]], w: &[f32], out: &mut Vec<f32>) {
    let at = |k: usize| w.get(k).map_or(0.0, |&w| f64::from(w));
    out.extend(rows.iter().map(|row| dot(row, at) as f32));
}

fn dot(row: &[f64; 3], at: impl Fn(usize) -> f64) -> f64 {
    (0..3).map(|k| row[k] * at(k)).sum()
}

/// Transforms `M + 2` inputs.
#[inline(always)]
pub(in crate::convolution::blocked) fn input<V: Vector, const M: usize>(d: [V; 6]) -> [V; 6] {
    if M == 2 {
        return [d[2] - d[0], d[2] + d[1], d[2] - d[1], d[3] - d[1], d[4], d[5]];
    }
    let (sum, a2, b2) = (V::splat(A2 + B2), V::splat(A2), V::splat(B2));
    let pair = |factor: V, point: f32| {
        let (even, odd) = (factor.neg_mul_add(d[2], d[4]), factor.neg_mul_add(d[1], d[3]));
        let point = V::splat(point);
        (point.mul_add(odd, even), point.neg_mul_add(odd, even))
    };
    let ((one, two), (three, four)) = (pair(b2, A), pair(a2, B));
    let (zero, infinity) = (sum.neg_mul_add(d[2], d[0] + d[4]), sum.neg_mul_add(d[3], d[1] + d[5]));
    [zero, one, two, three, four, infinity]
}

/// Transforms `M + 2` products to `M` outputs.
#[inline(always)]
pub(in crate::convolution::blocked) fn output<V: Vector, const M: usize>(d: [V; 6]) -> [V; 4] {
    let (even, odd) = (d[1] + d[2], d[1] - d[2]);
    if M == 2 {
        return [d[0] + even, odd + d[3], d[0], d[0]];
    }
    let (even_b, odd_b) = (d[3] + d[4], d[3] - d[4]);
    let both = |a: f32, x: V, b: f32, y: V, rest: V| V::splat(b).mul_add(y, V::splat(a).mul_add(x, rest));
    [
        d[0] + (even + even_b),
        V::splat(B).mul_add(odd_b, V::splat(A) * odd),
        V::splat(B2).mul_add(even_b, V::splat(A2) * even),
        both(A3, odd, B3, odd_b, d[5]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The squares of the entries of a transform of `size` values, as `[result][value]`.
    fn squares<const R: usize>(size: usize, transform: fn([f32; 6]) -> [f32; R]) -> Vec<[f64; 6]> {
        let unit = |p: usize| std::array::from_fn(|i| f32::from(u8::from(i == p)));
        let columns: Vec<[f32; R]> = (0..size).map(|p| transform(unit(p))).collect();
        let square = |p: usize, i: usize| columns.get(p).map_or(0.0, |column| f64::from(column[i]).powi(2));
        (0..R).map(|i| std::array::from_fn(|p| square(p, i))).collect()
    }

    /// The variance of an output's error along one axis, divided by that of a direct sum, if each product has an error
    /// that is proportional to it, for random images and weights.
    fn enlargement<const M: usize>(tile: Tile) -> f64 {
        let (image, back) = (squares(M + 2, input::<f32, M>), squares(M + 2, output::<f32, M>));
        let norm = |row: &[f64; 3]| row.iter().map(|x| x * x).sum::<f64>();
        let products: Vec<f64> =
            weight_rows(tile).iter().zip(&image).map(|(row, image)| norm(row) * image.iter().sum::<f64>()).collect();
        let variance =
            |row: &[f64; 6]| row.iter().zip(&products).map(|(square, product)| square * product).sum::<f64>();
        back[..M].iter().map(variance).sum::<f64>() / M as f64 / 3.0
    }

    /// Along two axes, the variance is the square, so that these are the factors of the error itself.
    #[test]
    fn the_transforms_enlarge_rounding_errors_by_known_factors() {
        let factors = [enlargement::<2>(Tile::Two), enlargement::<4>(Tile::Four)];
        assert_eq!(factors.map(|factor| (100.0 * factor).round()), [167.0, 476.0]);
    }
}
