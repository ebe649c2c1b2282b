//! The planner of convolutions of codes: lists every form with its cost, and chooses the cheapest.

use super::dense::DenseForm;
use super::depthwise::DepthwiseForm;
use super::form::{QuantizedConvCase, QuantizedConvForm};
#[cfg(target_arch = "x86_64")]
use super::interleaved::InterleavedForm;
#[cfg(target_arch = "x86_64")]
use super::paired::PairedForm;
use crate::form::cheapest;

/// The table of forms. Of two forms with equal costs, the planner chooses the first.
pub(super) const FORMS: &[&dyn QuantizedConvForm] = &[
    #[cfg(target_arch = "x86_64")]
    &InterleavedForm,
    #[cfg(target_arch = "x86_64")]
    &PairedForm,
    &DepthwiseForm,
    &DenseForm,
];

/// Returns the cheapest form.
pub(super) fn choose(case: &QuantizedConvCase) -> &'static dyn QuantizedConvForm {
    cheapest(FORMS, case).unwrap_or(&DenseForm)
}

#[cfg(test)]
mod tests {
    use super::super::instructions::Dots;
    use super::*;
    use crate::form::Form;

    /// The name of the form without costs: the most special one that fits.
    fn by_rule(case: &QuantizedConvCase) -> String {
        let has_vnni = matches!(case.dots.name(), "AVX-VNNI" | "AVX-512 VNNI" | "AMX");
        match case.groups > 1 && case.outputs == 1 && case.depth == case.taps() && case.depth > 0 {
            true if has_vnni && case.is_narrow => "int8, depthwise, rows interleaved for VNNI".to_string(),
            true if case.dots.name() == "AVX2" && case.groups >= 16 => "int8, depthwise, taps in pairs".to_string(),
            true => "int8, depthwise".to_string(),
            false => DenseForm.name(case),
        }
    }

    #[test]
    fn the_cheapest_form_is_the_most_special_one() {
        let kernels = [[0, 3], [1, 1], [1, 2], [1, 31], [2, 2], [3, 3], [4, 1], [5, 5], [9, 2], [64, 64]];
        for ((isa, dots), kernel) in Dots::available().into_iter().flat_map(|each| kernels.map(|kernel| (each, kernel)))
        {
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
