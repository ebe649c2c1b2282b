//! Convolutions of images of codes with their channels last.

pub(crate) use super::planner::QUANTIZED;
use crate::conv_shape::Shape;
use crate::convolution::form::has_short_lists;
use crate::form::{cheapest, listed};
use crate::int8::{Codes, Dots, Out, PackedQuantizedConv, QuantizedConvCase, QuantizedConvForm, Taps};
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
    pub(crate) fn packed(form: &dyn QuantizedConvForm, case: QuantizedConvCase, weights: &Taps) -> Filter {
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

/// Returns the cheapest form.
///
/// # Panics
/// No form fits; the forms of the table cover every convolution.
fn choose(case: &QuantizedConvCase) -> &'static dyn QuantizedConvForm {
    cheapest(QUANTIZED, case).expect("a form fits")
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
    listed(QUANTIZED, case).into_iter().map(|(form, cost)| (form, pixels as f64 * cost)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Form;
    use crate::int8::DenseForm;

    /// The name of the form without costs: the most special one that fits.
    fn by_rule(case: &QuantizedConvCase) -> String {
        let has_vnni = matches!(case.dots.name(), "AVX-VNNI" | "AVX-512 VNNI" | "AMX");
        let has_i8mm = case.dots.name() == "NEON i8mm";
        match case.groups > 1 && case.outputs == 1 && case.depth == case.taps() && case.depth > 0 {
            true if has_vnni && case.is_narrow => "int8, depthwise, rows interleaved for VNNI".to_string(),
            true if has_i8mm && case.is_narrow => "int8, depthwise, rows interleaved for NEON".to_string(),
            true if case.dots.name() == "AVX2" && case.groups >= 16 => "int8, depthwise, taps in pairs".to_string(),
            true => "int8, depthwise".to_string(),
            false => DenseForm.name(case),
        }
    }

    #[test]
    fn the_cheapest_form_is_the_most_special_one() {
        let kernels = [[0, 3], [1, 1], [1, 2], [1, 31], [2, 2], [3, 3], [4, 1], [5, 5], [9, 2], [64, 64]];
        // `dotprod` needs two instructions for unsigned bytes: windows of few taps are faster without it.
        let available = Dots::available().into_iter().filter(|(_, dots)| dots.name() != "NEON dotprod");
        for ((isa, dots), kernel) in available.flat_map(|each| kernels.map(|kernel| (each, kernel))) {
            for groups in [1, 2, 7, 16, 64, 1000] {
                for (outputs, channels) in [(0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (40, 16)] {
                    for is_narrow in [false, true] {
                        let depth = channels * kernel[0] * kernel[1];
                        let case = QuantizedConvCase { isa, dots, groups, outputs, kernel, depth, is_narrow };
                        assert_eq!(choose(&case).name(&case), by_rule(&case), "{case:?}");
                    }
                }
            }
        }
    }
}
