//! Products of few rows with a large matrix of contiguous rows. The matrix is read once, in its order, at memory speed.
//!
//! Some rows of the right operand are added to a stretch of sums at a time. The sums stay in the L1 cache. Every sum
//! has the same terms in the same order as in a tile.

use super::case::ProductCase;
use super::cost::Cover;
use super::form::ProductForm;
use super::operands::{Matrix, ProductSizes, Shared};
use super::problem::Problem;
use super::tile::{Start, PIECE};
use crate::form::Form;
use crate::threads::Threads;
use crate::vector::{dispatch_isa, Vector};

/// The maximum number of rows.
const MOST: usize = 4;
/// For each number of rows, the rows of the right operand that are added to the sums at a time.
const TERMS: [usize; MOST] = [8, 8, 4, 4];
/// Columns per stretch.
const STRETCH: usize = 1024;
/// The part of the loads and stores of sums that takes time of its own. The processor executes the rest beside the
/// multiply-adds.
const EXPOSED: f64 = 0.1;

/// The form for few rows and more columns than a tile has. One tile also reads the matrix in its order, and keeps the
/// sums in registers.
pub(crate) struct FewRows;

impl Form<ProductCase> for FewRows {
    fn name(&self, _: &ProductCase) -> String {
        "B in place, row by row".to_string()
    }

    fn fits(&self, case: &ProductCase) -> bool {
        let ProductSizes { m, k, .. } = case.sizes;
        k > 0 && m <= MOST && case.plain().is_some_and(|[_, column]| column == 1) && Cover::of(case).panels > 1.0
    }

    /// For each vector of the right operand, there is one load, and one multiply-add per row. Loads and stores of the
    /// sums, and broadcasts, are added.
    fn cost(&self, case: &ProductCase) -> f64 {
        let (cover, ProductSizes { m, n, .. }) = (Cover::of(case), case.sizes);
        let sums = EXPOSED * 2.0 * cover.rows * cover.vectors / TERMS[m - 1] as f64;
        let broadcasts = cover.rows * n.div_ceil(STRETCH) as f64;
        cover.instruction * cover.depth * (cover.vectors + cover.rows * cover.vectors + sums + broadcasts)
    }
}

impl ProductForm for FewRows {
    fn run(&self, problem: &Problem, threads: &Threads, out: Shared) {
        Rows { problem, b: problem.plain() }.run(threads, out);
    }
}

/// A product with few rows.
struct Rows<'a> {
    problem: &'a Problem<'a>,
    /// The right operand; its columns are contiguous.
    b: Matrix<'a>,
}

impl Rows<'_> {
    fn run(&self, threads: &Threads, out: Shared) {
        let ProductSizes { m, n, .. } = self.problem.sizes;
        let length = n.div_ceil(threads.count()).next_multiple_of(16).min(STRETCH);
        threads.for_each(n.div_ceil(length), |i| {
            let columns = [i * length, n.min((i + 1) * length)];
            dispatch_isa!(self.problem.isa, (this: &Rows = self, out: Shared = out, columns: [usize; 2] = columns), V =>
            match this.problem.sizes.m {
                1 => this.stretch::<V, 1, { TERMS[0] }>(out, columns),
                2 => this.stretch::<V, 2, { TERMS[1] }>(out, columns),
                3 => this.stretch::<V, 3, { TERMS[2] }>(out, columns),
                _ => this.stretch::<V, 4, { TERMS[3] }>(out, columns),
            });
            // SAFETY: the columns belong to this task.
            unsafe { self.problem.finish(out, [0, m], columns) }
        });
    }

    /// Computes columns `columns[0] .. columns[1]` of all `M` rows, from `TERMS` rows of the right operand at a time.
    #[inline(always)]
    fn stretch<V: Vector, const M: usize, const TERMS: usize>(&self, out: Shared, columns: [usize; 2]) {
        let k = self.problem.sizes.k;
        let mut sums = [[0.0; STRETCH]; M];
        for first in (0..k).step_by(PIECE) {
            let end = k.min(first + PIECE);
            let mut depth = first;
            while depth + TERMS <= end {
                self.add::<V, M, TERMS>(&mut sums, depth, depth == first, columns);
                depth += TERMS;
            }
            while depth < end {
                self.add::<V, M, 1>(&mut sums, depth, depth == first, columns);
                depth += 1;
            }
            for (row, sums) in sums.iter().enumerate() {
                self.write::<V>(out, row, &sums[..columns[1] - columns[0]], columns[0], first);
            }
        }
    }

    /// `sums[row] = (0 or sums[row]) + Σ a[row, k] · b[k]` over the `TERMS` values of `k` from `depth` on.
    #[inline(always)]
    fn add<V: Vector, const M: usize, const TERMS: usize>(
        &self,
        sums: &mut [[f32; STRETCH]; M],
        depth: usize,
        fresh: bool,
        columns: [usize; 2],
    ) {
        let a = self.problem.a;
        let factor = |row: usize, term: usize| V::splat(a.data[row * a.row + (depth + term) * a.column]);
        let factors: [[V; TERMS]; M] = std::array::from_fn(|row| std::array::from_fn(|term| factor(row, term)));
        let at = |term: usize, column: usize| {
            self.b.data.as_ptr().wrapping_add((depth + term) * self.b.row + columns[0] + column)
        };
        let count = columns[1] - columns[0];
        let whole = count - count % V::LANES;
        for column in (0..whole).step_by(V::LANES) {
            // SAFETY: `Problem::new` checked that `b` has rows of `n` columns; `columns` are some of them.
            let b = std::array::from_fn(|term| unsafe { V::load(at(term, column)) });
            add_terms(sums, column, fresh, &factors, &b);
        }
        if whole < count {
            // SAFETY: as above.
            let b = std::array::from_fn(|term| unsafe { V::load_first(at(term, whole), count - whole) });
            add_terms(sums, whole, fresh, &factors, &b);
        }
    }

    /// Adds the sums of the terms from `depth` on to the start values or the output.
    #[inline(always)]
    fn write<V: Vector>(&self, out: Shared, row: usize, sums: &[f32], column: usize, depth: usize) {
        let start = self.problem.start(row, column, depth);
        let to = out.at(row * self.problem.sizes.n + column);
        for i in (0..sums.len()).step_by(V::LANES) {
            let width = (sums.len() - i).min(V::LANES);
            // SAFETY: the output and the bias have these columns. The output's columns belong to this task.
            unsafe {
                let sum = V::load_first(sums.as_ptr().add(i), width);
                let sum = match start {
                    Start::Zero => sum,
                    Start::Rows(value) => V::splat(*value) + sum,
                    Start::Columns(values) => V::load_first(values.add(i), width) + sum,
                    Start::Output => V::load_first(to.add(i), width) + sum,
                };
                sum.store_first(to.add(i), width);
            }
        }
    }
}

/// Adds products to a vector of the sums of every row.
#[inline(always)]
fn add_terms<V: Vector, const M: usize, const TERMS: usize>(
    sums: &mut [[f32; STRETCH]; M],
    column: usize,
    fresh: bool,
    factors: &[[V; TERMS]; M],
    b: &[V; TERMS],
) {
    debug_assert!(column + V::LANES <= STRETCH);
    for (sums, factors) in sums.iter_mut().zip(factors) {
        let sums = sums.as_mut_ptr().wrapping_add(column);
        // SAFETY: a stretch consists of whole vectors, and `column` is the start of one.
        unsafe {
            let mut sum = if fresh { V::splat(0.0) } else { V::load(sums) };
            for (factor, &b) in factors.iter().zip(b) {
                sum = factor.mul_add(b, sum);
            }
            sum.store(sums);
        }
    }
}
