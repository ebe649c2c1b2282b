//! CPU kernels: resizes tensors along one or two axes.

use candle_plan_kernels::blocking::Blocking;
use candle_plan_kernels::float_types::Real;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::pad::{pad, Places};
use candle_plan_kernels::reduce::Number;
use candle_plan_kernels::resize::{resample, take, Filter};
use candle_plan_kernels::scratch::Scratch;
use candle_plan_kernels::threads::Threads;
use candle_plan_memory::buffer::is_cached;
use half::{bf16, f16};

use super::blocks::Blocked;
use super::bounds::{counted, is_short, len, output_len};
use super::choice::{HasBlocksKernel, OnBlocks};
use super::convert::is_wide;
use super::planned::CpuOperands;
use super::sampled::Sampled;
use crate::array::words;
use crate::by_width;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::layout::{Image, Layout};
use crate::movable::Movable;
use crate::ops::resample::{AxisMap, Coordinates, Interpolation};
use crate::ops::resize::Interpolate;
use crate::types::{Type, Types};
use crate::value::{alloc_uninit, Array, Value};

impl Kernel for Interpolate {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let (maps, dtype) = (self.known_maps(inputs)?, inputs.tensor(0).ok()?.dtype);
        let changed = maps.iter().position(|map| !map.keeps()).unwrap_or(maps.len());
        let largest = |map: &AxisMap| map.input.max(map.output);
        // Between two axes, each thread has an image, which may be one of blocks of channels.
        let image = maps[changed..].iter().map(largest).fold(Blocking::MOST, usize::saturating_mul);
        let is_nearest = matches!(self.mode, Interpolation::Nearest(_));
        if self.antialias || !maps.iter().all(|map| is_short(largest(map))) || !is_nearest && !is_cached::<f64>(image) {
            return None;
        }
        match dtype {
            _ if is_nearest || is_wide(dtype) => Some(0),
            _ => Some(counted::<f32>(len(inputs, 0)?).saturating_add(counted::<f32>(output_len(self, inputs)?))),
        }
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.value(0)?;
        let maps = self.maps(call, x.dims()?)?;
        if self.changed(&maps)?.is_empty() {
            return Ok(vec![x.clone()]);
        }
        if let Interpolation::Nearest(_) = self.mode {
            return Ok(vec![self.nearest(x, &maps, call.threads)?]);
        }
        let x = x.tensor()?;
        dispatch!("Interpolate", x.dtype(), [f32, f16, bf16, f64, u8, i8, i16, u16, i32, u32], T => {
            Ok(vec![self.weighted::<T>(x, &maps, call.threads)?.into()])
        })
    }
}

impl HasBlocksKernel for Interpolate {
    fn on_blocks(&self, operands: &CpuOperands, outputs: &[Option<&Type>]) -> Option<OnBlocks> {
        let (x, y) = (
            Image::of(operands.constants.types.first().copied().flatten()?)?,
            Image::of(outputs.first().copied().flatten()?)?,
        );
        let in_plane = self.axes.iter().flatten().all(|&axis| (2..x.rank as i64).contains(&axis));
        let inputs = (0..operands.constants.types.len()).map(|i| if i == 0 { Layout::Blocks } else { Layout::Rows });
        let layouts = Blocked {
            rank: x.rank,
            inputs: inputs.collect(),
            outputs: vec![Layout::Blocks],
            times: [0.0, y.wasted(operands.blocking) as f64],
        };
        (self.axes.is_some() && in_plane).then_some(OnBlocks::with_own(layouts))
    }
}

impl Interpolate {
    fn nearest(&self, x: &Value, maps: &[AxisMap], threads: &Threads) -> Result<Value> {
        let data = Movable::new(&[x])?;
        let x = &data.arrays[0];
        let places = maps.iter().map(|map| self.places(map)).collect::<Result<Vec<_>>>()?;
        let dims: Vec<usize> = places.iter().map(Vec::len).collect();
        let taken = by_width!(x.dtype(), W => {
            let source = words::read::<W>(x)?;
            let y = words::alloc_uninit::<W>(&dims)?;
            let last = maps.iter().rposition(|map| !map.keeps()).unwrap_or(0);
            let before_unchanged = last < 2 || maps[..last - 1].iter().all(|map| map.keeps());
            let is_inside = |place: &Option<usize>| place.is_some_and(|place| u32::try_from(place).is_ok());
            let y = match last > 0 && before_unchanged && places.iter().flatten().all(is_inside) {
                true => {
                    let unit = dims[last + 1..].iter().product();
                    let planes = [x.dims()[last - 1], x.dims()[last]];
                    let number = |place: &Option<usize>| place.unwrap_or_default() as u32;
                    let [rows, columns] = [last - 1, last].map(|axis| Scratch::of(places[axis].iter().map(number)));
                    y.overwrite(|y| take(Isa::get(), threads, source, planes, unit, [&rows, &columns], y))
                }
                false => {
                    let fill = self.fill::<W>(x.dtype())?;
                    let places: Vec<Places> = places.iter().map(|axis| axis.iter().copied().collect()).collect();
                    y.overwrite(|y| pad(source, x.dims(), &places, fill, y, threads))
                }
            };
            words::array(y, &dims, x.dtype())
        })?;
        data.restore(taken)
    }

    fn weighted<T: Sampled>(&self, x: &Array, maps: &[AxisMap], threads: &Threads) -> Result<Array> {
        let filter = |map: &AxisMap| -> Result<Option<Filter<T::Wide>>> {
            if map.keeps() {
                return Ok(None);
            }
            let taps = self.taps(map, T::DTYPE == DType::Float64)?;
            let tap = |at: usize, k: usize| {
                let (place, weight) = taps.tap(at, k);
                (place, T::Wide::from_f64(weight))
            };
            Ok(Some(Filter::new(map.input, map.output, taps.count, tap)))
        };
        let dims: Vec<usize> = maps.iter().map(|map| map.output).collect();
        let y = alloc_uninit::<T::Wide>(&dims)?;
        let filters = maps.iter().map(filter).collect::<Result<Vec<_>>>()?;
        let source = T::widen(x.read::<T>()?);
        let mut y = y.overwrite(|y| resample(Isa::get(), threads, &source, x.dims(), &filters, y));
        if self.coordinates == Coordinates::TfCropAndResize {
            self.extrapolate(maps, &mut y);
        }
        Array::new(T::narrow(y, self.antialias), &dims)
    }

    /// Sets the elements whose coordinate is outside the input on any axis.
    fn extrapolate<R: Real>(&self, maps: &[AxisMap], y: &mut [R]) {
        let mut inner = 1;
        for map in maps.iter().rev() {
            let outside = |at: usize| !map.keeps() && self.is_outside(map, map.coordinate::<f32>(self.coordinates, at));
            for at in (0..map.output).filter(|&at| outside(at)) {
                for part in y.chunks_exact_mut(map.output * inner) {
                    part[at * inner..(at + 1) * inner].fill(R::from_f64(f64::from(self.extrapolation)));
                }
            }
            inner *= map.output;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::resample::Rounding;
    use crate::testing::{run, tensor};

    fn op(mode: Interpolation, coordinates: Coordinates) -> Interpolate {
        Interpolate::plain(mode, coordinates, &[-1])
    }

    fn resized(
        op: &Interpolate,
        x: Value,
        scales: Option<&[f32]>,
        sizes: Option<&[i64]>,
    ) -> Result<(Vec<usize>, Vec<f32>)> {
        let scales = scales.map(|scales| tensor(scales, &[scales.len()]));
        let sizes = sizes.map(|sizes| tensor(sizes, &[sizes.len()]));
        let inputs = [Some(x), None, scales, sizes];
        let count = if inputs[3].is_some() { 4 } else { 3 };
        let y = run(op, &inputs[..count])?;
        let y = y.tensor()?;
        let data = y.read::<f32>()?.to_vec();
        Ok((y.dims().to_vec(), data))
    }

    #[test]
    fn coordinates_follow_their_formulas() {
        use Coordinates::*;
        let x = || tensor(&[0f32, 10.0, 20.0, 30.0], &[1, 4]);
        let cases: [(Coordinates, &[f32]); 5] = [
            (Asymmetric, &[0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 30.0]),
            (HalfPixel, &[0.0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0]),
            (PytorchHalfPixel, &[0.0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0]),
            (HalfPixelSymmetric, &[0.0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0]),
            (TfHalfPixelForNn, &[2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30.0, 30.0]),
        ];
        for (coordinates, expected) in cases {
            let (_, y) = resized(&op(Interpolation::Linear, coordinates), x(), Some(&[2.0]), None).unwrap();
            assert_eq!(y, expected, "{coordinates:?}");
        }
        let (dims, y) = resized(&op(Interpolation::Linear, AlignCorners), x(), None, Some(&[7])).unwrap();
        assert_eq!((dims, y), (vec![1, 7], vec![0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]));
        let (_, y) = resized(&op(Interpolation::Linear, PytorchHalfPixel), x(), None, Some(&[1])).unwrap();
        assert_eq!(y, [0.0]);
    }

    #[test]
    fn a_given_scale_is_used_in_the_formula() {
        let x = tensor(&(0..10).map(|i| i as f32).collect::<Vec<_>>(), &[10]);
        let floor = op(Interpolation::Nearest(Rounding::Floor), Coordinates::Asymmetric);
        let (dims, y) = resized(&floor, x.clone(), Some(&[1.55]), None).unwrap();
        assert_eq!((dims[0], y[14]), (15, 9.0));
        let (dims, y) = resized(&floor, x, None, Some(&[15])).unwrap();
        assert_eq!((dims[0], y[14]), (15, 9.0));
        // With both size and scale, the size sets the result's size, and the scale is part of the formula.
        let both = resized(&floor, tensor(&[0f32, 1.0, 2.0], &[3]), Some(&[2.0]), Some(&[4])).unwrap();
        assert_eq!(both, (vec![4], vec![0.0, 0.0, 1.0, 1.0]));
    }

    #[test]
    fn nearest_takes_any_axes_and_types() {
        let mut nearest = op(Interpolation::Nearest(Rounding::RoundPreferFloor), Coordinates::HalfPixel);
        nearest.axes = Some(vec![0, 2]);
        let y = run(&nearest, &[Some(tensor(&[1i64, 2, 3, 4], &[2, 1, 2])), None, Some(tensor(&[2f32, 2.0], &[2]))]);
        let y = y.unwrap();
        assert_eq!(y.tensor().unwrap().dims(), [4, 1, 4]);
        let expected = [1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4];
        assert_eq!(y.tensor().unwrap().read::<i64>().unwrap().to_vec(), expected);
    }

    #[test]
    fn integers_truncate_exactly() {
        let x = tensor(&[7u8; 5], &[5]);
        let y =
            run(&op(Interpolation::Linear, Coordinates::HalfPixel), &[Some(x), None, Some(tensor(&[1.7f32], &[1]))]);
        assert_eq!(y.unwrap().tensor().unwrap().read::<u8>().unwrap().to_vec(), [7; 8]);
    }

    #[test]
    fn elements_outside_the_region_are_extrapolated() {
        for mode in [Interpolation::Linear, Interpolation::Nearest(Rounding::Floor)] {
            let crop = Interpolate { extrapolation: 9.5, ..op(mode, Coordinates::TfCropAndResize) };
            let x = tensor(&[0f32, 1.0, 2.0], &[3]);
            let inputs = [Some(x), Some(tensor(&[-0.5f32, 1.0], &[2])), None, Some(tensor(&[4i64], &[1]))];
            let y = run(&crop, &inputs).unwrap();
            assert_eq!(y.tensor().unwrap().read::<f32>().unwrap().to_vec(), [9.5, 0.0, 1.0, 2.0], "{:?}", crop.mode);
        }
    }

    #[test]
    fn mismatched_inputs_are_refused() {
        let all = Interpolate { axes: None, ..op(Interpolation::Linear, Coordinates::HalfPixel) };
        let cube = || tensor(&[0f32; 8], &[2, 2, 2]);
        assert!(resized(&all, cube(), Some(&[2.0; 3]), None).is_err_and(|e| e.to_string().contains("3-D resizing")));
        assert!(resized(&all, cube(), Some(&[2.0; 2]), None).is_err());
        assert!(resized(&all, cube(), Some(&[1.0, 1.0, -1.0]), None).is_err());
        assert!(resized(&all, cube(), Some(&[1.0, 1.0, f32::INFINITY]), None).is_err());
        assert!(resized(&all, tensor(&[0f32; 0], &[1, 0]), None, Some(&[1, 3])).is_err());
        assert!(resized(&all, cube(), None, Some(&[2, 2, -4])).is_err());
        assert!(run(&all, &[Some(tensor(&[1i64], &[1])), None, Some(tensor(&[2f32], &[1]))]).is_err());
    }
}
