//! The sizes, positions and weights of resizes.

use half::{bf16, f16};

use crate::array::words;
use crate::bail;
use crate::dtype::{Bool, DType};
use crate::error::{Error, Result};
use crate::kernel::Call;
use crate::ops::resample::{AxisMap, Coordinates, Interpolation, Resized};
use crate::ops::resize::Interpolate;
use crate::types::Types;
use crate::value::{list, with_capacity, Array};

impl Interpolate {
    /// The resizing of each axis of X, of shape `dims`.
    ///
    /// # Errors
    /// The inputs do not fit each other.
    pub(crate) fn maps(&self, call: &Call, dims: &[usize]) -> Result<Vec<AxisMap>> {
        let factors = self.factors(|i| call.optional_tensor(i))?;
        let resized = self.resized(dims, Some(&factors))?;
        let map = |axis: &Resized| axis.map().ok_or_else(|| Error::op("a size is not known"));
        resized.iter().map(map).collect()
    }

    /// The map of each axis for inputs of these types, if all sizes are known before a run.
    pub(crate) fn known_maps(&self, inputs: &Types) -> Option<Vec<AxisMap>> {
        let is_fixed = (1..inputs.len()).all(|i| inputs.is_fixed(i));
        let factors = self.factors(|i| Ok(inputs.constant(i))).ok().filter(|_| is_fixed)?;
        let resized = self.resized(&inputs.sizes(0).ok()??, Some(&factors)).ok()?;
        resized.iter().map(Resized::map).collect()
    }

    /// The extrapolation value's bits.
    pub(crate) fn fill<W: words::Word>(&self, dtype: DType) -> Result<W> {
        if self.coordinates != Coordinates::TfCropAndResize || self.extrapolation == 0.0 {
            return Ok(bytemuck::Zeroable::zeroed());
        }
        let value = self.extrapolation;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Integers saturate.
        let value = match dtype {
            DType::Float32 => Array::scalar(value),
            DType::Float64 => Array::scalar(f64::from(value)),
            DType::Float16 => Array::scalar(f16::from_f32(value)),
            DType::Bfloat16 => Array::scalar(bf16::from_f32(value)),
            DType::Int8 => Array::scalar(value as i8),
            DType::Int16 => Array::scalar(value as i16),
            DType::Int32 => Array::scalar(value as i32),
            DType::Uint8 => Array::scalar(value as u8),
            DType::Uint16 => Array::scalar(value as u16),
            DType::Uint32 => Array::scalar(value as u32),
            DType::Int64 => Array::scalar(value as i64),
            DType::Uint64 => Array::scalar(value as u64),
            DType::Bool => Array::scalar(Bool::from(value != 0.0)),
            dtype => bail!("an extrapolation value is not defined for {dtype}"),
        };
        words::read::<W>(&value)?.first().copied().ok_or_else(|| Error::op("no value"))
    }

    /// The source position for each position of the result; `None` outside the region.
    pub(crate) fn places(&self, map: &AxisMap) -> Result<Vec<Option<usize>>> {
        let Interpolation::Nearest(rounding) = self.mode else { bail!("only the mode Nearest has source positions") };
        if map.keeps() {
            return list((0..map.input).map(Some));
        }
        let place = |at: usize| {
            let coordinate = map.coordinate::<f32>(self.coordinates, at);
            let nearest = rounding.round(coordinate, map.scale < 1.0).max(0) as usize;
            (!self.is_outside(map, coordinate)).then_some(nearest.min(map.input - 1))
        };
        list((0..map.output).map(place))
    }

    /// Whether a coordinate lies outside the region.
    pub(crate) fn is_outside(&self, map: &AxisMap, coordinate: f64) -> bool {
        self.coordinates == Coordinates::TfCropAndResize && !(0.0..=map.input as f64 - 1.0).contains(&coordinate)
    }

    /// The source positions and weights for each position of an axis that changes. With `double`, coordinates are
    /// computed in `f64`.
    pub(crate) fn taps(&self, map: &AxisMap, double: bool) -> Result<AxisTaps> {
        let mut taps = with_capacity(map.output.saturating_mul(self.mode.most_taps(map, self.antialias)))?;
        let mut ends = with_capacity(map.output.saturating_add(1))?;
        ends.push(0);
        for at in 0..map.output {
            let at = match double {
                true => map.coordinate::<f64>(self.coordinates, at),
                false => map.coordinate::<f32>(self.coordinates, at),
            };
            self.mode.taps(at, map, self.antialias, self.exclude_outside, &mut taps);
            ends.push(taps.len());
        }
        let count = ends.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        Ok(AxisTaps { count, taps, ends })
    }
}

/// The source positions that each position of a resized axis sums up, and their weights.
pub(crate) struct AxisTaps {
    /// The maximum number of source positions for one position.
    pub count: usize,
    taps: Vec<(usize, f64)>,
    ends: Vec<usize>,
}

impl AxisTaps {
    /// Source position and weight `k`, below `count`, for position `at`. Shorter lists continue with their last
    /// position and weight 0.
    pub fn tap(&self, at: usize, k: usize) -> (usize, f64) {
        let (next, end) = (self.ends[at] + k, self.ends[at + 1]);
        let (position, weight) = self.taps[next.min(end - 1)];
        (position, if next < end { weight } else { 0.0 })
    }
}
