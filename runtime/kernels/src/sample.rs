//! Interpolation between the pixels of an image: weighted sums of pixels around a point.

pub use candle_plan_descriptors::sample::NOWHERE;

use crate::float_types::Real;

/// The indices of `N` pixels of an image, and their weights.
#[derive(Debug, Clone, Copy)]
pub struct Taps<R, const N: usize> {
    /// The indices in row-major order. [`NOWHERE`] or any other index outside the image counts as a zero pixel.
    pub places: [u32; N],
    /// The weights.
    pub weights: [R; N],
}

impl<R: Real, const N: usize> Taps<R, N> {
    /// All pixels are zero.
    pub const NOTHING: Taps<R, N> = Taps { places: [NOWHERE; N], weights: [R::ZERO; N] };

    #[inline(always)]
    fn sum(&self, image: &[R]) -> R {
        let mut sum = R::ZERO;
        for (&place, &weight) in self.places.iter().zip(&self.weights) {
            // A pixel outside the image contributes 0 even if its weight is infinite.
            sum += image.get(place as usize).map_or(R::ZERO, |&pixel| pixel * weight);
        }
        sum
    }
}

/// Computes the weighted sum of an image's pixels for each point.
pub fn sample<R: Real, const N: usize>(image: &[R], points: &[Taps<R, N>], out: &mut [R]) {
    for (out, taps) in out.iter_mut().zip(points) {
        *out = taps.sum(image);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_elsewhere_are_zeros() {
        let points = [
            Taps { places: [0, 1], weights: [0.25f32, 0.75] },
            Taps { places: [NOWHERE, 1], weights: [f32::INFINITY, 2.0] },
            Taps { places: [3, 2], weights: [1.0, 1.0] },
            Taps::NOTHING,
        ];
        let mut out = [f32::NAN; 4];
        sample(&[4.0, 8.0], &points, &mut out);
        assert_eq!(out, [7.0, 16.0, 0.0, 0.0]);
        sample(&[], &points, &mut out);
        assert_eq!(out, [0.0; 4]);
    }
}
