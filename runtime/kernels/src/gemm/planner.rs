//! The planner of matrix products: lists every form with its cost, and chooses the cheapest.

use super::case::ProductCase;
use super::form::ProductForm;
use super::in_place::InPlace;
use super::packed::PackedPanels;
use super::packing::Packing;
use super::rows::FewRows;
use super::turned::Turned;

/// The table of forms. Of two forms with equal costs, the planner chooses the first.
pub(super) const FORMS: &[&dyn ProductForm] = &[&Turned { choose }, &PackedPanels, &FewRows, &InPlace, &Packing];

/// Returns the cheapest form.
///
/// # Panics
/// No form fits; the forms of the table cover every product.
pub(super) fn choose(case: &ProductCase) -> &'static dyn ProductForm {
    let mut forms = fitting(case);
    let first = forms.next().expect("a form fits");
    match forms.next() {
        // The usual case of a packed operand: there is nothing to compare.
        None => first,
        Some(second) => {
            let costs = [first, second].into_iter().chain(forms).map(|form| (form, form.cost(case)));
            costs.reduce(|best, next| if next.1 < best.1 { next } else { best }).map_or(first, |(form, _)| form)
        }
    }
}

fn fitting(case: &ProductCase) -> impl Iterator<Item = &'static dyn ProductForm> + use<'_> {
    FORMS.iter().copied().filter(|form| form.fits(case))
}

/// Returns every form that can compute a product, by name, with its cost: the expected time on one thread, where an
/// instruction on a vector of 16 numbers costs 1. An empty product has no form.
pub fn alternatives(case: &ProductCase) -> Vec<(&'static str, f64)> {
    if case.sizes.m == 0 || case.sizes.n == 0 {
        return Vec::new();
    }
    fitting(case).map(|form| (form.name(case), form.cost(case))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::case::RightCase;
    use super::super::packed::{packed_name, prefers_half};
    use super::super::tiles::Tiles;
    use super::super::{Format, PackedB, Sizes};
    use super::*;
    use crate::isa::Isa;

    /// The choice by thresholds, which the costs must reproduce.
    fn by_thresholds(case: &ProductCase) -> &'static str {
        let (tiles, Sizes { m, n, k }) = (Tiles::of(case.isa), case.sizes);
        let is_row = n == 1 && m != 1 && case.a[0] == 1;
        match case.b {
            RightCase::Packed { format: Format::Float32, .. } if is_row => "transposed, as one row",
            RightCase::Packed { format, .. } => packed_name(format),
            RightCase::Plain(_) if is_row => "transposed, as one row",
            RightCase::Plain([_, column]) if column != 1 => "B packed on the way",
            RightCase::Plain(_) if k > 0 && m <= 4 && n > tiles.lanes * tiles.vectors(m.min(tiles.rows())) => {
                "B in place, row by row"
            }
            RightCase::Plain([row, _]) => match row < 1 << 24 && (k * row <= 8192 || m <= 2 * tiles.rows()) {
                true => "B in place",
                false => "B packed on the way",
            },
        }
    }

    /// The strides of a `rows x columns` matrix in each order, and inside a wider one.
    fn strides([rows, columns]: [usize; 2]) -> [[usize; 2]; 4] {
        [[columns, 1], [1, rows], [columns + 100, 1], [1 << 25, 1]]
    }

    #[test]
    fn the_cheapest_form_is_the_one_by_thresholds() {
        let formats = [Format::Float32, Format::Float16, Format::Bfloat16];
        for (isa, m) in Isa::available().flat_map(|isa| (1..40).chain([63, 200, 3000]).map(move |m| (isa, m))) {
            let tiles = Tiles::of(isa);
            let edges = tiles.lanes * tiles.vectors(m.min(tiles.rows()));
            for n in (1..20).chain([edges - 1, edges, edges + 1, 2 * edges, 2 * edges + 1, 500, 1024, 1025, 5000]) {
                for k in [0, 1, 2, 3, 8, 63, 64, 65, 256, 600, 8192, 8193, 100_000] {
                    let sizes = Sizes { m, n, k };
                    let packed = formats.map(|format| PackedB::case_of(isa, n, format));
                    for b in packed.into_iter().chain(strides([k, n]).map(RightCase::Plain)) {
                        for a in strides([m, k]).into_iter().take(3) {
                            let case = ProductCase { isa, sizes, a, b };
                            assert_eq!(choose(&case).name(&case), by_thresholds(&case), "{case:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn few_rows_prefer_16_bits() {
        assert!((0..=8).all(prefers_half));
        assert!((9..100).chain([1 << 40]).all(|rows| !prefers_half(rows)));
    }
}
