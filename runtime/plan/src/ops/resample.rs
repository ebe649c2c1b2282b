//! Resampling of an axis: the source coordinate of each position of the result, and the source positions that it
//! combines.

use candle_plan_descriptors::number::Arithmetic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::error::Result;
use crate::extent::fits;
use crate::value::element_count;

/// The interpolation of a value at a coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum Interpolation {
    /// The value at the nearest position.
    Nearest(Rounding),
    /// Linear interpolation between two positions.
    Linear,
    /// Interpolation between four positions by cubic convolution with this coefficient (usually −0.75 or −0.5).
    Cubic(f32),
}

/// The largest error of a coordinate in the middle of two positions, as [`Rounding`] sees it. `y / scale` in `f32` may be a
/// rounding error away from the middle.
const HALFWAY: f64 = 1e-6;

/// The rounding of a coordinate to the nearest position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Rounding {
    /// `⌊x⌋`
    Floor,
    /// `⌈x⌉`
    Ceil,
    /// The nearest position; of two, the lower one. A coordinate less than [`HALFWAY`] from the middle of two is as near to
    /// both, as in onnxruntime.
    RoundPreferFloor,
    /// The nearest position; of two, the higher one. The same holds near the middle.
    RoundPreferCeil,
    /// `⌈x⌉` if the axis shrinks, else `⌊x⌋`, as in onnxruntime before opset 11.
    CeilWhenShrinking,
}

/// The source coordinate of a position `y` of the result. `scale` is the scale of the axis, `n` and `m` are its old and
/// new size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Coordinates {
    /// `(y + ½) / scale − ½`
    HalfPixel,
    /// `HalfPixel` relative to the center: plus `n / 2 · (1 − m / (scale · n))`.
    HalfPixelSymmetric,
    /// `HalfPixel`, but 0 if `m` is 1.
    PytorchHalfPixel,
    /// `(y + ½) / scale`
    TfHalfPixelForNn,
    /// `y · (n − 1) / (m − 1)`, but 0 if `m` is 1.
    AlignCorners,
    /// `y / scale`
    Asymmetric,
    /// `start · (n − 1) + y · (end − start) · (n − 1) / (m − 1)`, but the middle if `m` is 1.
    TfCropAndResize,
}

/// The resizing of one axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AxisMap {
    pub input: usize,
    pub output: usize,
    pub scale: f32,
    /// Start and end of the region to crop, as fractions of the axis.
    pub region: [f32; 2],
}

/// The resizing of one axis, as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resized {
    pub input: Option<usize>,
    pub output: Option<usize>,
    pub scale: Option<f32>,
    /// As an [`AxisMap`] has it.
    pub region: [f32; 2],
}

impl Resized {
    /// An axis that stays as it is.
    pub fn identity(size: Option<usize>) -> Resized {
        Resized { input: size, output: size, scale: Some(1.0), region: WHOLE }
    }

    /// An axis of size `input`, whose output size and scale are unknown.
    pub fn unknown(input: Option<usize>) -> Resized {
        Resized { input, output: None, scale: None, region: WHOLE }
    }

    /// An axis of size `input` with a scale, a size, or both; a size that follows from the scale may be rounded.
    ///
    /// # Errors
    /// Neither is given, the scale is no positive number, or the size is too large.
    pub fn of(input: Option<usize>, scale: Option<f32>, size: Option<usize>, rounded: bool) -> Result<Resized> {
        if scale.is_none() && size.is_none() {
            bail!("neither a scale nor a size is given");
        }
        if let Some(scale) = scale.filter(|scale| !(*scale > 0.0 && scale.is_finite())) {
            bail!("{scale:?} is not a scale");
        }
        let scaled = |scale: f32| {
            let size = input? as f32 * scale;
            Some((if rounded { (size + 0.5).floor() } else { size.floor() }) as usize)
        };
        let ratio = |size: usize| Some(if input? == size { 1.0 } else { size as f32 / input? as f32 });
        let output = size.or_else(|| scaled(scale?));
        element_count(&[output.unwrap_or(0)])?;
        Ok(Resized { input, output, scale: scale.or_else(|| ratio(size?)), region: WHOLE })
    }

    /// Whether the axis is known to change.
    pub fn changes(&self) -> bool {
        self.scale.is_some_and(|scale| scale != 1.0) || !fits(&self.input, &self.output) || self.region != WHOLE
    }

    /// Refuses to resize an axis of size 0 to a larger one. Also refuses very small scales, so that a filter is at most
    /// a few times as wide as the axis.
    pub fn check(&self) -> Result<()> {
        let Some(AxisMap { input, output, scale, .. }) = self.map().filter(|map| !map.keeps()) else { return Ok(()) };
        if input == 0 && output > 0 {
            bail!("an axis of size 0 cannot be resized to {output}");
        }
        if output > 0 && scale * (input as f32 + 1.0) < 0.5 {
            bail!("a scale of {scale} leaves nothing of an axis of size {input}");
        }
        Ok(())
    }

    /// Returns the axis of a run; `None` if a size or the scale is unknown.
    pub fn map(&self) -> Option<AxisMap> {
        Some(AxisMap { input: self.input?, output: self.output?, scale: self.scale?, region: self.region })
    }
}

/// The region that covers a whole axis.
pub(crate) const WHOLE: [f32; 2] = [0.0, 1.0];

impl AxisMap {
    /// An axis that does not change.
    pub fn identity(size: usize) -> AxisMap {
        AxisMap { input: size, output: size, scale: 1.0, region: WHOLE }
    }

    /// Whether the axis stays as it is.
    pub fn keeps(&self) -> bool {
        let AxisMap { input, output, scale, region } = *self;
        !Resized { input: Some(input), output: Some(output), scale: Some(scale), region }.changes()
    }

    /// The factor of distances in the filter. It is below 1 if `antialias` widens the filter because the axis shrinks.
    fn shrink(&self, antialias: bool) -> f64 {
        if antialias {
            f64::from(self.scale).min(1.0)
        } else {
            1.0
        }
    }

    /// Returns the source coordinate of position `at`, computed in `R`.
    pub fn coordinate<R: Arithmetic>(&self, by: Coordinates, at: usize) -> f64 {
        let real = |v: f64| R::from_f64(v);
        let [half, y, n, m] = [real(0.5), real(at as f64), real(self.input as f64), real(self.output as f64)];
        let [scale, start, end] = [self.scale, self.region[0], self.region[1]].map(|v| real(f64::from(v)));
        // The order and the precision of the operations are onnxruntime's, because they decide which of two positions
        // is nearer.
        let center = (y + half) / scale;
        let x = match by {
            Coordinates::PytorchHalfPixel | Coordinates::AlignCorners if self.output == 1 => R::ZERO,
            Coordinates::HalfPixel | Coordinates::PytorchHalfPixel => center - half,
            Coordinates::HalfPixelSymmetric => {
                let offset = n / real(2.0) * (R::ONE - m / (scale * n));
                real(offset.to_f64() + (at as f64 + 0.5) / f64::from(self.scale) - 0.5)
            }
            Coordinates::TfHalfPixelForNn => center,
            Coordinates::AlignCorners => y * (n - R::ONE) / (m - R::ONE),
            Coordinates::Asymmetric => y / scale,
            Coordinates::TfCropAndResize if self.output == 1 => half * (start + end) * (n - R::ONE),
            Coordinates::TfCropAndResize => start * (n - R::ONE) + y * (end - start) * (n - R::ONE) / (m - R::ONE),
        };
        x.to_f64()
    }
}

impl Rounding {
    /// The position nearest to a coordinate. It may lie outside the axis.
    pub fn round(self, x: f64, shrinks: bool) -> i64 {
        let (below, beyond) = (x.floor(), x - x.floor() - 0.5);
        (match self {
            Rounding::Floor => below,
            Rounding::Ceil => x.ceil(),
            Rounding::CeilWhenShrinking if shrinks => x.ceil(),
            Rounding::CeilWhenShrinking => below,
            Rounding::RoundPreferFloor => below + f64::from(beyond >= HALFWAY),
            Rounding::RoundPreferCeil => below + f64::from(beyond > -HALFWAY),
        }) as i64
    }
}

impl Interpolation {
    /// The maximum number of source positions that a value combines.
    pub(crate) fn most_taps(self, map: &AxisMap, antialias: bool) -> usize {
        let wide = |reach: f64| (2.0 * reach / map.shrink(antialias)).ceil() as usize;
        match self {
            Interpolation::Nearest(_) => 1,
            Interpolation::Linear => wide(1.0).max(2),
            Interpolation::Cubic(_) => wide(2.0),
        }
    }

    /// Appends the source positions that the value at a coordinate combines, with weights that sum up to 1.
    ///
    /// `antialias` widens the filter if the axis shrinks. A position outside the axis counts as the outermost one, or,
    /// with `exclude_outside`, not at all.
    pub(crate) fn taps(
        self,
        x: f64,
        map: &AxisMap,
        antialias: bool,
        exclude_outside: bool,
        taps: &mut Vec<(usize, f64)>,
    ) {
        let last = map.input - 1;
        let inside = |position: f64| position.clamp(0.0, last as f64) as usize;
        let shrink = map.shrink(antialias);
        match self {
            Interpolation::Nearest(rounding) => taps.push((inside(rounding.round(x, map.scale < 1.0) as f64), 1.0)),
            Interpolation::Linear if shrink == 1.0 => {
                let x = x.clamp(0.0, last as f64);
                let (low, high) = (inside(x), inside(x + 1.0));
                let part = if low == high { 0.5 } else { x - low as f64 };
                taps.extend([(low, 1.0 - part), (high, part)]);
            }
            Interpolation::Linear => {
                filter(x, map, exclude_outside, 1.0 / shrink, |d| (1.0 - d * shrink).max(0.0), taps)
            }
            Interpolation::Cubic(a) => {
                filter(x, map, exclude_outside, 2.0 / shrink, |d| cubic(d * shrink, f64::from(a)), taps);
            }
        }
    }
}

/// Appends the positions closer than `reach` to `x`, weighted by their distance.
fn filter(
    x: f64,
    map: &AxisMap,
    exclude_outside: bool,
    reach: f64,
    weight: impl Fn(f64) -> f64,
    taps: &mut Vec<(usize, f64)>,
) {
    let last = map.input as f64 - 1.0;
    // Coordinates far outside use only the outermost position.
    let x = x.clamp(-reach - 1.0, last + reach + 1.0);
    let (mut position, begin, mut total) = ((x - reach).floor() + 1.0, taps.len(), 0.0);
    while position < x + reach {
        if !exclude_outside || (0.0..=last).contains(&position) {
            taps.push((position.clamp(0.0, last) as usize, weight((position - x).abs())));
            total += weight((position - x).abs());
        }
        position += 1.0;
    }
    if total == 0.0 {
        taps.truncate(begin);
        taps.push((x.clamp(0.0, last) as usize, 1.0));
        return;
    }
    for tap in &mut taps[begin..] {
        tap.1 /= total;
    }
}

/// The cubic convolution with coefficient `a`, at distance `d`.
fn cubic(d: f64, a: f64) -> f64 {
    match d {
        d if d <= 1.0 => ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0,
        d if d < 2.0 => ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rounding_rounds_halves() {
        use Rounding::*;
        for (rounding, expected) in
            [(Floor, [-1, 0, 1]), (Ceil, [0, 1, 2]), (RoundPreferFloor, [-1, 0, 1]), (RoundPreferCeil, [0, 1, 2])]
        {
            assert_eq!([-0.5, 0.5, 1.5].map(|x| rounding.round(x, false)), expected, "{rounding:?}");
        }
        assert_eq!([false, true].map(|shrinks| CeilWhenShrinking.round(1.25, shrinks)), [1, 2]);
    }

    #[test]
    fn coordinates_near_the_middle_are_halves() {
        for x in [7.499_999_5f32, 7.5, 7.500_000_5].map(f64::from) {
            assert_eq!(Rounding::RoundPreferFloor.round(x, false), 7);
            assert_eq!(Rounding::RoundPreferCeil.round(x, false), 8);
        }
        for (x, nearest) in [(28.499_998f32, 28), (28.500_002, 29)] {
            assert_eq!(Rounding::RoundPreferFloor.round(x.into(), false), nearest);
            assert_eq!(Rounding::RoundPreferCeil.round(x.into(), false), nearest);
        }
    }

    #[test]
    fn weights_sum_up_to_one() {
        let map = AxisMap { input: 7, output: 3, scale: 0.4, region: [0.0, 1.0] };
        for mode in [Interpolation::Linear, Interpolation::Cubic(-0.75)] {
            for (antialias, exclude) in [(false, false), (false, true), (true, false), (true, true)] {
                for x in [-1e9, -3.2, -0.4, 0.0, 2.0, 3.3, 6.4, 1e9] {
                    let mut taps = Vec::new();
                    mode.taps(x, &map, antialias, exclude, &mut taps);
                    let total: f64 = taps.iter().map(|tap| tap.1).sum();
                    assert!((total - 1.0).abs() < 1e-12, "{mode:?} {antialias} {exclude} {x}: {taps:?}");
                    assert!(taps.iter().all(|tap| tap.0 < 7));
                    assert!(taps.len() <= mode.most_taps(&map, antialias));
                }
            }
        }
    }
}
