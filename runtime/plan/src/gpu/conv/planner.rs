//! The planner of convolutions on a GPU: lists every form with its expected time.

use std::fmt;

use super::case::Case;
use super::direct::GpuDirectForm;
use super::form::GpuConvForm;
use super::product::GpuProductForm;
use super::tiles::GpuTileForm;
use crate::form::Estimate;

/// Every form: of equally fast forms, the first one is chosen. Small tiles can compute every convolution.
pub(super) const FORMS: &[&dyn GpuConvForm] =
    &[&GpuProductForm, &GpuDirectForm, &GpuTileForm::LARGE, &GpuTileForm::MEDIUM, &GpuTileForm::SMALL];

/// A form, and the number of parts into which it splits every sum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    pub form: &'static dyn GpuConvForm,
    pub parts: usize,
}

impl Choice {
    /// Returns a form with its own number of parts.
    pub fn new(form: &'static dyn GpuConvForm, case: &Case) -> Choice {
        Choice { form, parts: form.parts(case) }
    }

    fn cost(&self, case: &Case) -> f64 {
        self.form.cost(case, self.parts)
    }
}

/// The name of the form, with its parts if it splits sums: `direct`, `small:2`.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.form.name())?;
        if self.form.splits() {
            write!(f, ":{}", self.parts)?;
        }
        Ok(())
    }
}

/// Returns the forms that can compute a convolution, each with its own number of parts.
fn choices<'a>(case: &'a Case<'a>) -> impl Iterator<Item = Choice> + 'a {
    FORMS.iter().filter(move |form| form.refusal(case).is_none()).map(move |&form| Choice::new(form, case))
}

/// Returns the form with the least expected time, of those within their limits.
pub(super) fn fastest(case: &Case) -> Choice {
    choices(case)
        .filter(|choice| choice.form.limit(case).is_none())
        .min_by(|a, b| a.cost(case).total_cmp(&b.cost(case)))
        .unwrap_or_else(|| Choice::new(&GpuTileForm::SMALL, case))
}

/// Lists the forms that can compute a convolution, with their expected times. If a form is requested, it is the chosen
/// one.
pub(super) fn estimates(case: &Case, requested: Option<Choice>) -> Vec<Estimate> {
    let chosen = requested.unwrap_or_else(|| fastest(case));
    let is_chosen = |choice: &Choice| choice.form.name() == chosen.form.name();
    let estimate = |choice: Choice| Estimate {
        form: choice.to_string(),
        microseconds: choice.cost(case),
        chosen: is_chosen(&choice),
        limit: match requested {
            Some(_) if !is_chosen(&choice) => Some("another form is requested"),
            Some(_) => None,
            None => choice.form.limit(case),
        },
    };
    choices(case).map(|choice| if is_chosen(&choice) { chosen } else { choice }).map(estimate).collect()
}

#[cfg(test)]
mod tests {
    use candle_plan_descriptors::conv::Shape;

    use super::*;
    use crate::dtype::DType;

    /// Makes a convolution of images of `size × size`.
    fn shape([batch, channels, outputs, groups]: [usize; 4], size: usize, kernel: usize, stride: usize) -> Shape {
        Shape {
            batch,
            channels,
            outputs,
            groups,
            input: [size; 2],
            output: [size.div_ceil(stride); 2],
            kernel: [kernel; 2],
            strides: [stride; 2],
            dilations: [1; 2],
            before: [(kernel / 2) as isize; 2],
        }
    }

    fn chosen(shape: &Shape, transposed: bool, dtype: DType) -> String {
        fastest(&Case { shape, transposed, dtype }).to_string()
    }

    #[test]
    fn layers_of_networks() {
        for (numbers, size, kernel, form) in [
            ([1, 64, 256, 1], 56, 1, "product"),
            ([1, 64, 64, 1], 56, 3, "small:2"),
            ([1, 128, 128, 1], 28, 3, "small:3"),
            ([1, 256, 256, 1], 14, 3, "medium:16"),
            ([1, 512, 512, 1], 7, 3, "medium:32"),
            ([32, 64, 64, 1], 56, 3, "medium:1"),
            ([32, 256, 256, 1], 28, 3, "large:1"),
            ([1, 96, 96, 96], 56, 3, "direct"),
            ([1, 128, 128, 32], 56, 3, "direct"),
            ([2, 64, 64, 2], 28, 1, "small:1"),
        ] {
            let found = chosen(&shape(numbers, size, kernel, 1), false, DType::Float32);
            assert_eq!(found, form, "{numbers:?} {size} {kernel}");
        }
    }

    /// Returns the choice by limits alone: the first of product, direct, large, medium and small within its limits.
    fn by_limits(shape: &Shape, transposed: bool, dtype: DType) -> String {
        let [outputs, channels] = [shape.outputs / shape.groups, shape.channels / shape.groups];
        let is_point = shape.kernel == [1, 1] && shape.strides == [1, 1];
        if !transposed && is_point && (shape.groups == 1 || shape.batch == 1 && outputs >= 16 && channels >= 16) {
            return "product".to_string();
        }
        let step = if transposed { shape.strides[0] } else { 1 };
        let depth = channels * shape.kernel[0].div_ceil(step).pow(2);
        let pixels = shape.output[0] * shape.output[1];
        if outputs < 16 && (depth <= 64 || shape.batch * shape.outputs * pixels >= 1 << 18) {
            return "direct".to_string();
        }
        let windows = shape.batch * shape.output[0].div_ceil(step).pow(2);
        let pieces = shape.groups * step.min(shape.output[0]).pow(2);
        let blocks = |[high, wide]: [usize; 2]| outputs.div_ceil(high) * windows.div_ceil(wide) * pieces;
        let parts = |tile| 256usize.div_ceil(blocks(tile)).min(depth / 128).clamp(1, 32);
        let most = blocks([32, 32]) * 32 * 32 / 3 * 4;
        let tiles: [(&str, [usize; 2]); 2] = [("large", [128, 64]), ("medium", [64, 64])];
        let (name, tile) = tiles
            .into_iter()
            .filter(|(name, _)| *name != "large" || dtype != DType::Float64)
            .find(|&(_, tile)| blocks(tile) * parts(tile) >= 256 && blocks(tile) * tile[0] * tile[1] <= most)
            .unwrap_or(("small", [32, 32]));
        format!("{name}:{}", parts(tile))
    }

    /// The sizes of layers, each transposed or not, with their groups.
    fn layers() -> impl Iterator<Item = (Shape, bool)> {
        let widths = [1, 3, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 512, 1024];
        let kinds = [(1, 1, false), (1, 2, false), (3, 1, false), (3, 2, false), (7, 2, false), (4, 2, true)];
        let sizes = [1, 8, 32].into_iter().flat_map(move |batch| [7, 14, 28, 56, 112].map(|size| (batch, size)));
        sizes.flat_map(move |(batch, size)| {
            kinds.into_iter().flat_map(move |(kernel, stride, transposed)| {
                widths.into_iter().flat_map(move |channels| {
                    let fitting =
                        move |(outputs, groups): &(usize, usize)| channels % groups == 0 && outputs % groups == 0;
                    let of_widths = widths.into_iter().flat_map(move |outputs| [(outputs, 1), (outputs, 8)]);
                    of_widths.chain([(channels, channels)]).filter(fitting).map(move |(outputs, groups)| {
                        let mut shape = shape([batch, channels, outputs, groups], size, kernel, stride);
                        if transposed {
                            shape.output = [size * stride; 2];
                        }
                        (shape, transposed)
                    })
                })
            })
        })
    }

    /// Costs decide between the sizes of tiles, and between `direct` and tiles. All else follows from the limits.
    #[test]
    fn a_choice_differs_from_that_by_limits_only_in_smaller_tiles_and_tiles_for_direct() {
        let order = |name: &str| ["small", "medium", "large"].into_iter().position(|tile| name.starts_with(tile));
        let (mut all, mut smaller, mut tiles) = (0, 0, 0);
        for (dtype, (shape, transposed)) in
            [DType::Float32, DType::Float64].into_iter().flat_map(|dtype| layers().map(move |layer| (dtype, layer)))
        {
            let (found, before) = (chosen(&shape, transposed, dtype), by_limits(&shape, transposed, dtype));
            all += 1;
            if found != before {
                let is_direct = before == "direct";
                let is_smaller = is_direct || order(&found) < order(&before);
                assert!(order(&found).is_some() && is_smaller, "{shape:?} {before} {found}");
                *(if is_direct { &mut tiles } else { &mut smaller }) += 1;
            }
        }
        assert!(all > 80_000 && smaller * 50 < all && tiles * 20 < all, "{smaller} and {tiles} of {all}");
    }

    #[test]
    fn estimates_name_the_chosen_form_and_the_limits() {
        let layer = shape([1, 128, 128, 1], 28, 3, 1);
        let case = Case { shape: &layer, transposed: false, dtype: DType::Float32 };
        let told = |requested, expected: [String; 4]| {
            let words = estimates(&case, requested).into_iter().map(|each| (each.form, each.chosen, each.limit));
            let words = words.map(|(form, chosen, limit)| format!("{form} {chosen} {}", limit.unwrap_or("-")));
            let words: Vec<String> = words.collect();
            assert!(expected.iter().all(|line| words.contains(line)), "{words:?}");
        };
        let (few, unused) = ("too few blocks to fill the GPU", "many outputs in a group");
        told(
            None,
            [
                format!("direct false {unused}"),
                format!("large:9 false {few}"),
                format!("medium:9 false {few}"),
                "small:3 true -".to_string(),
            ],
        );
        let other = |form| format!("{form} false another form is requested");
        told(
            Some(Choice { form: &GpuTileForm::MEDIUM, parts: 4 }),
            [other("direct"), other("large:9"), "medium:4 true -".to_string(), other("small:3")],
        );
    }

    /// The times that an H100 took, in `benchmarks/results/cuda-tune.md`.
    #[test]
    fn estimates_are_near_measurements() {
        for (numbers, size, kernel, stride, form, measured) in [
            ([1, 3, 64, 1], 224, 7, 2, "small:1", 25.08),
            ([1, 256, 64, 1], 56, 1, 1, "product", 7.701),
            ([1, 64, 64, 1], 56, 3, 1, "small:2", 23.42),
            ([1, 2048, 512, 1], 7, 1, 1, "product", 9.099),
            ([1, 512, 512, 1], 7, 3, 1, "medium:32", 23.16),
            ([1, 512, 1024, 1], 28, 1, 2, "medium:4", 21.64),
            ([32, 3, 64, 1], 224, 7, 2, "medium:1", 428.2),
            ([32, 512, 128, 1], 28, 1, 1, "product", 87.5),
            ([32, 128, 128, 1], 28, 3, 1, "large:1", 274.4),
            ([32, 512, 512, 1], 7, 3, 1, "large:3", 363.7),
        ] {
            let layer = shape(numbers, size, kernel, stride);
            let case = Case { shape: &layer, transposed: false, dtype: DType::Float32 };
            let found = fastest(&case);
            let allowed = if form == "product" { 0.15 } else { 0.07 };
            assert_eq!(found.to_string(), form);
            let time = found.cost(&case);
            assert!((time / measured - 1.0).abs() < allowed, "{numbers:?} {form}: {time} for {measured}");
        }
    }
}
