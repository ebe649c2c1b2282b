//! Convolutions of images of codes with their channels last.

use super::codes::Codes;
use super::finish::Out;
use super::form::{PackedQuantizedConv, QuantizedConvCase, QuantizedConvForm, Taps};
use super::instructions::Dots;
use super::planner::{choose, FORMS};
use crate::conv_form::has_short_lists;
use crate::conv_shape::Shape;
use crate::form::listed;
use crate::isa::Isa;
use crate::threads::Threads;

/// The packed weights of a convolution.
#[derive(Debug)]
pub struct Filter {
    case: QuantizedConvCase,
    form: String,
    packed: Box<dyn PackedQuantizedConv>,
}

impl Filter {
    /// Packs weights for the cheapest form.
    ///
    /// # Panics
    /// The sizes do not fit.
    pub fn new(isa: Isa, weights: &Taps) -> Filter {
        let case = QuantizedConvCase::of(isa, Dots::of(isa), weights);
        Filter::packed(choose(&case), case, weights)
    }

    /// Packs weights for a form that fits.
    pub(super) fn packed(form: &dyn QuantizedConvForm, case: QuantizedConvCase, weights: &Taps) -> Filter {
        Filter { case, form: form.name(&case), packed: form.pack(&case, weights) }
    }

    /// The name of the chosen form.
    pub fn form(&self) -> &str {
        &self.form
    }

    /// Every form that can compute the convolution, by name, with its cost: the expected time for `pixels` pixels of
    /// the output on one thread, where an instruction on a vector of 16 numbers costs 1.
    pub fn alternatives(&self, pixels: usize) -> Vec<(String, f64)> {
        of_pixels(&self.case, pixels)
    }

    /// The size of the packed weights in bytes.
    pub fn bytes(&self) -> usize {
        self.packed.bytes()
    }

    /// Whether a convolution of this shape needs no scratch memory beyond buffers that fit a cache.
    pub fn is_cached(&self, shape: &Shape) -> bool {
        let has_outputs = shape.batch * shape.pixels() > 0;
        !has_outputs || has_short_lists(shape) && self.packed.is_cached(shape)
    }
}

/// Returns every form that can compute a convolution of this shape, by name, with its cost for one image, as
/// [`Filter::alternatives`]. `is_narrow` if the difference of every weight from its zero point fits in `i8`.
pub fn alternatives(isa: Isa, shape: &Shape, is_narrow: bool) -> Vec<(String, f64)> {
    let &Shape { groups, kernel, .. } = shape;
    let outputs = shape.outputs.checked_div(groups).unwrap_or(0);
    let case = QuantizedConvCase { isa, dots: Dots::of(isa), groups, outputs, kernel, depth: shape.taps(), is_narrow };
    of_pixels(&case, shape.pixels())
}

/// The forms with their costs for some pixels.
fn of_pixels(case: &QuantizedConvCase, pixels: usize) -> Vec<(String, f64)> {
    listed(FORMS, case).into_iter().map(|(form, cost)| (form, pixels as f64 * cost)).collect()
}

/// `sum[n, y, x, o] = bias[o] + Σ (w[o, c, i, j] − zero[o]) · (x[n, y·s + i·d − before, x·s + j·d − before, c] −
/// x.zero)`; outside the image, x is `x.zero`. Converts the sums as `out` specifies and writes them to `out` `[N, H',
/// W', O]`.
///
/// # Panics
/// The slices do not fit the shape.
pub fn conv(threads: &Threads, shape: &Shape, filter: &Filter, x: Codes, bias: Option<&[i32]>, out: Out) {
    check(shape, &x, bias, &out);
    if out.len() > 0 {
        filter.packed.run(threads, shape, x, bias, out);
    }
}

fn check(shape: &Shape, x: &Codes, bias: Option<&[i32]>, out: &Out) {
    assert!(shape.groups > 0 && shape.channels.is_multiple_of(shape.groups), "{shape:?}");
    assert!(
        shape.outputs.is_multiple_of(shape.groups) && bias.is_none_or(|bias| bias.len() == shape.outputs),
        "{shape:?}"
    );
    assert_eq!(shape.lengths([1, 1]), Some([x.bits.len(), out.len()]), "{shape:?}");
}
