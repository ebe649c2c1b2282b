//! Products with the tiles of AMX.

use super::amx::{steps, PackedTiles, PAIRS, SIDE, WIDTH};
use super::case::{Halves, RoundedCase, ROUND};
use super::form::RoundedForm;
use super::pack::{PackedRounded, Stored, TILES};
use super::sums::TileSums;
use crate::form::Form;
use crate::gemm::{time_of_vector, Format, ProductSizes, UNIT};
use crate::threads::Threads;

/// The form for AMX.
pub(crate) struct InTiles;

/// The time of an instruction and of its loads, divided by the pairs of a tile. Measured where the weights are in the L3
/// cache.
const PRODUCT: f64 = 6.0;
/// The time to fetch a tile from memory, divided by that of vectors of as many bytes.
const FETCH: f64 = 1.25;

impl Form<RoundedCase> for InTiles {
    fn name(&self, _: &RoundedCase) -> String {
        TILES.to_string()
    }

    /// A tile of a smaller matrix would be mostly empty.
    fn fits(&self, case: &RoundedCase) -> bool {
        TileSums::of(case.isa).is_some() && case.sizes.k >= PAIRS && case.sizes.n >= SIDE
    }

    /// While the tiles of some pairs are multiplied, the next pairs are fetched.
    fn cost(&self, case: &RoundedCase) -> f64 {
        let ProductSizes { m, n, k } = case.sizes;
        let vectors = n.div_ceil(WIDTH) * WIDTH / SIDE;
        let fetch = FETCH * time_of_vector(Format::Float32, 1);
        let products = (PRODUCT * m.div_ceil(SIDE) as f64).max(fetch);
        (steps(k) * PAIRS * vectors) as f64 * products + ROUND * m as f64 * k as f64 / UNIT
    }
}

impl RoundedForm for InTiles {
    fn pack(&self, case: &RoundedCase, threads: &Threads, matrix: &Halves) -> PackedRounded {
        let sums = TileSums::of(case.isa).unwrap_or_else(|| unreachable!("the form fits"));
        PackedRounded(Stored::Tiles(PackedTiles::new(sums, threads, matrix)))
    }
}
