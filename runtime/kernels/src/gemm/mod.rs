//! Matrix products in `f32`: `out = a · b`. The sums start with a bias, and an epilogue processes each block while it
//! is in the cache.
//!
//! Every output is a sum of partial sums over short pieces of the depth, in order, whatever the number of threads or
//! the instruction set.

mod blocks;
mod case;
mod cost;
mod form;
mod in_place;
mod lines;
mod operands;
mod pack;
mod packed;
mod packing;
mod panels;
mod plain;
mod planner;
mod problem;
mod rows;
mod stored;
mod strip;
mod table;
pub(crate) mod tile;
pub(crate) mod tiles;
mod turned;

#[cfg(test)]
pub(crate) mod tests;

pub use case::{ProductCase, RightCase};
pub(crate) use cost::UNIT;
pub(crate) use lines::Lines;
pub(crate) use operands::Shared;
pub use operands::{Bias, Finish, Matrix, Sizes};
pub use pack::PackedB;
pub use packed::{packed_name, prefers_half};
pub use plain::{product, Plain, Term};
pub use planner::alternatives;
pub use problem::Right;
pub use stored::Format;

use crate::isa::Isa;
use crate::threads::Threads;
use problem::Problem;

/// Multiplications that are worth several threads.
const SPLIT: usize = 1 << 20;

/// `out = a · b + bias`, where `out` is `[m, n]`. Calls `finish` on every row of every block.
///
/// # Panics
/// The slices are too short for the sizes, or `b` was packed from a smaller matrix.
#[allow(clippy::too_many_arguments)]
pub fn gemm(
    isa: Isa,
    threads: &Threads,
    sizes: Sizes,
    a: &Matrix,
    b: &Right,
    bias: Bias,
    out: &mut [f32],
    finish: Option<Finish>,
) {
    let Sizes { m, n, k } = sizes;
    assert!(a.holds(m, k) && out.len() == m * n, "the slices do not fit a product of {sizes:?}");
    match bias {
        Bias::Rows(bias) => assert_eq!(bias.len(), m),
        Bias::Columns(bias) => assert_eq!(bias.len(), n),
        Bias::None => {}
    }
    match b {
        Right::Packed(b) => assert!(b.k >= k && b.n >= n && b.isa == isa, "b is packed as {} x {}", b.k, b.n),
        Right::Plain(b) => assert!(b.holds(k, n), "b does not fit a product of {sizes:?}"),
    }
    if m == 0 || n == 0 {
        return;
    }
    let serial = Threads::serial();
    let threads = if m * n * k > SPLIT { threads } else { &serial };
    let problem = Problem { isa, sizes, a: *a, b: *b, bias, finish };
    planner::choose(&problem.case()).run(&problem, threads, Shared::new(out));
}
