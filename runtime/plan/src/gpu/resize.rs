//! GPU kernels: resampling along one or two axes.

use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Buffer, Gpu, Grid, Symbol};

use super::launch::{alloc_uninit, count, kind, launch, uploaded_scratch, width, Params};
use super::OnGpu;
use crate::by_width;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::resample::{AxisMap, Coordinates, Interpolation};
use crate::ops::resize::Interpolate;
use crate::types::Types;
use crate::value::{try_list, with_capacity, Value};

/// X and Y have the shapes that the kernel's struct states, and `Tables` only has indices inside X.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(Resize in "resize.cu")]
struct ResizeParams {
    x: u64,
    y: u64,
    places: [u64; 2],
    weights: [u64; 2],
    source: [u32; 2],
    size: [u32; 2],
    taps: [u32; 2],
    middle: u32,
    inner: u32,
    count: u32,
    rounded: u32,
    fill: u64,
    value: f32,
    padding: u32,
}

/// The place for an element outside the input, as `NOWHERE` in `resize.cu`.
const NOWHERE: u32 = u32::MAX;

/// The bytes of a tap: in the list of taps, in a table, in the bytes to upload, and on the GPU.
const TAP: usize = 24 + 3 * 12;

/// An [`Interpolate`] step, with the tables for the sizes of its last run.
#[derive(Debug)]
pub(crate) struct InterpolateOnGpu {
    op: Interpolate,
    tables: Mutex<Option<(Vec<AxisMap>, Arc<Tables>)>>,
}

/// For both axes, the places of X and their weights for each place of Y, in GPU memory.
#[derive(Debug)]
struct Tables {
    data: Buffer,
    /// The offsets of the places in the data.
    places: [u64; 2],
    weights: [u64; 2],
    taps: [u32; 2],
}

/// The table of one axis, `[taps, size]`.
struct Table {
    taps: usize,
    places: Vec<u32>,
    weights: Vec<f64>,
}

gpu_kernel!(Interpolate: "resize" by |self, operands, _gpu| {
    let fills = self.coordinates == Coordinates::TfCropAndResize && self.extrapolation != 0.0;
    Ok(operands.dtype(0).filter(|&dtype| !fills || has_number(dtype)).map(|_| self.for_gpu()))
});

impl Interpolate {
    /// Returns the step on a GPU.
    pub(crate) fn for_gpu(&self) -> InterpolateOnGpu {
        InterpolateOnGpu { op: self.clone(), tables: Mutex::default() }
    }
}

impl OnGpu for InterpolateOnGpu {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let most = |map: &AxisMap| self.op.mode.most_taps(map, self.op.antialias).saturating_mul(map.output + 1);
        let maps = self.op.known_maps(inputs)?;
        let taps = maps.iter().filter(|map| !map.keeps()).map(most).fold(0, usize::saturating_add);
        Some(taps.saturating_mul(TAP))
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let maps = self.op.maps(call, x.dims())?;
        let (first, last) = match self.op.changed(&maps)?[..] {
            [] => return Ok(vec![x.clone().into()]),
            [one] => (None, one),
            [first, .., last] => (Some(first), last),
        };
        let dims: Vec<usize> = maps.iter().map(|map| map.output).collect();
        let y = alloc_uninit(gpu, &dims, x.dtype())?;
        let tables = self.tables(gpu, &maps, first, last, x.dtype())?;
        let one = AxisMap::identity(1);
        let pair = [first.map_or(&one, |axis| &maps[axis]), &maps[last]];
        let product = |sizes: &[usize]| count(sizes.iter().product());
        let params = ResizeParams {
            x: x.address()?,
            y: y.address()?,
            places: tables.places.map(|start| tables.data.address() + start),
            weights: tables.weights.map(|start| tables.data.address() + start),
            source: [count(pair[0].input)?, count(pair[1].input)?],
            size: [count(pair[0].output)?, count(pair[1].output)?],
            taps: tables.taps,
            middle: first.map_or(Ok(1), |first| product(&dims[first + 1..last]))?,
            inner: product(&dims[last + 1..])?,
            count: count(y.len())?,
            rounded: self.op.antialias.into(),
            fill: if self.is_nearest() { self.fill(x.dtype())? } else { 0 },
            value: self.op.extrapolation,
            padding: 0,
        };
        count(x.len())?;
        let (name, kind) = if self.is_nearest() { ("take", width(x.dtype())?) } else { ("resample", kind(x.dtype())?) };
        launch(gpu, Symbol { module: "resize", name, kind }, Grid::over(params.count), &params)?;
        Ok(vec![y.into()])
    }
}

impl InterpolateOnGpu {
    fn is_nearest(&self) -> bool {
        matches!(self.op.mode, Interpolation::Nearest(_))
    }

    /// Returns the bits of the extrapolation value.
    fn fill(&self, dtype: DType) -> Result<u64> {
        let mut bits = [0; 8];
        by_width!(dtype, W => {
            let fill = self.op.fill::<W>(dtype)?;
            bits[..size_of::<W>()].copy_from_slice(bytemuck::bytes_of(&fill));
            Ok(u64::from_le_bytes(bits))
        })
    }

    /// Returns the tables of the axes that change: the first one, if there are two, and the last one.
    fn tables(
        &self,
        gpu: &Gpu,
        maps: &[AxisMap],
        first: Option<usize>,
        last: usize,
        dtype: DType,
    ) -> Result<Arc<Tables>> {
        let mut kept = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tables)) = kept.as_ref().filter(|(of, _)| of == maps) {
            return Ok(tables.clone());
        }
        let one = || Ok(Table { taps: 1, places: vec![0], weights: vec![1.0] });
        let inner = |axis: usize| maps[axis + 1..].iter().map(|map| map.output).product::<usize>();
        let table = |axis: usize| self.table(&maps[axis], inner(axis), dtype);
        let single = !matches!(dtype, DType::Float64) && dtype.is_float();
        let tables = Arc::new(Tables::new(gpu, [first.map_or_else(one, table)?, table(last)?], single)?);
        *kept = Some((maps.to_vec(), tables.clone()));
        Ok(tables)
    }

    /// Makes the table of an axis; `inner` is the number of output elements per place of it.
    fn table(&self, map: &AxisMap, inner: usize, dtype: DType) -> Result<Table> {
        let number = |place: usize| u32::try_from(place).map_err(|_| Error::op(format!("place {place} is too large")));
        if self.is_nearest() {
            let places = self.op.places(map)?.into_iter().map(|place| place.map_or(Ok(NOWHERE), number));
            return Ok(Table { taps: 1, places: try_list(places)?, weights: Vec::new() });
        }
        let lists = self.op.taps(map, dtype == DType::Float64)?;
        let length = lists.count.saturating_mul(map.output);
        let mut table = Table { taps: lists.count, places: with_capacity(length)?, weights: with_capacity(length)? };
        for k in 0..lists.count {
            // Along the innermost axis, pairs are summed from the last to the first, as on the CPU.
            let k = if inner == 1 && lists.count == 2 { 1 - k } else { k };
            for at in 0..map.output {
                let (place, weight) = lists.tap(at, k);
                let outside = self.op.is_outside(map, map.coordinate::<f32>(self.op.coordinates, at));
                table.places.push(if outside { NOWHERE } else { number(place)? });
                table.weights.push(weight);
            }
        }
        Ok(table)
    }
}

impl Tables {
    /// Copies tables to the GPU; the weights become float32 if they are `single`.
    fn new(gpu: &Gpu, tables: [Table; 2], single: bool) -> Result<Tables> {
        let held = tables.iter().map(|table| size_of_val(&table.weights[..]) + size_of_val(&table.places[..]));
        let mut bytes = with_capacity::<u8>(held.sum())?;
        let weights = tables.each_ref().map(|table| {
            let start = bytes.len() as u64;
            if single {
                bytes.extend(table.weights.iter().flat_map(|&weight| (weight as f32).to_ne_bytes()));
            } else {
                bytes.extend_from_slice(bytemuck::cast_slice(&table.weights));
            }
            start
        });
        let places = tables.each_ref().map(|table| {
            let start = bytes.len() as u64;
            bytes.extend_from_slice(bytemuck::cast_slice(&table.places));
            start
        });
        let taps = [count(tables[0].taps)?, count(tables[1].taps)?];
        Ok(Tables { data: uploaded_scratch(gpu, &bytes)?, places, weights, taps })
    }
}

/// Whether elements of this type can hold an extrapolation value.
fn has_number(dtype: DType) -> bool {
    use DType::*;
    matches!(dtype, Float32 | Float16 | Bfloat16 | Float64 | Uint8 | Int8 | Int16 | Uint16 | Int32 | Uint32)
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::ops::resample::{Coordinates, Rounding};
    use crate::testing::{run, tensor};

    fn resized(op: &Interpolate, x: Value, sizes: &[i64]) {
        let inputs = [Some(x), None, None, Some(tensor(sizes, &[sizes.len()]))];
        run(op, &inputs).unwrap_or_else(|error| panic!("{op:?}: {error}"));
    }

    fn ramp(count: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 37) % 101) as f32 * 0.7 - 20.0).collect()
    }

    const MODES: [Interpolation; 5] = [
        Interpolation::Nearest(Rounding::RoundPreferFloor),
        Interpolation::Nearest(Rounding::Ceil),
        Interpolation::Nearest(Rounding::CeilWhenShrinking),
        Interpolation::Linear,
        Interpolation::Cubic(-0.75),
    ];

    #[test]
    fn all_modes_and_coordinates_grow_and_shrink() {
        use Coordinates::*;
        let places = [HalfPixel, HalfPixelSymmetric, PytorchHalfPixel, TfHalfPixelForNn, AlignCorners, Asymmetric];
        for mode in MODES {
            for coordinates in places {
                for sizes in [[13, 4], [3, 9], [1, 1], [5, 14], [0, 3]] {
                    let x = || tensor(&ramp(2 * 3 * 5 * 7), &[2, 3, 5, 7]);
                    resized(&Interpolate::plain(mode, coordinates, &[2, -1]), x(), &sizes);
                    resized(&Interpolate::plain(mode, coordinates, &[1, 3]), x(), &sizes);
                    let filters = Interpolate {
                        antialias: true,
                        exclude_outside: true,
                        ..Interpolate::plain(mode, coordinates, &[2, 3])
                    };
                    resized(&filters, x(), &sizes);
                }
                resized(&Interpolate::plain(mode, coordinates, &[0]), tensor(&ramp(70), &[7, 10]), &[4]);
                resized(&Interpolate::plain(mode, coordinates, &[0]), tensor(&ramp(70), &[70]), &[333]);
            }
        }
    }

    #[test]
    fn every_type_is_resized() {
        let all = ramp(2 * 5 * 6);
        let dims = [2, 5, 6];
        for mode in MODES {
            for antialias in [false, true] {
                let op = Interpolate { antialias, ..Interpolate::plain(mode, Coordinates::HalfPixel, &[1, 2]) };
                resized(&op, tensor(&all.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>(), &dims), &[7, 4]);
                resized(&op, tensor(&all.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>(), &dims), &[7, 4]);
                resized(&op, tensor(&all.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), &dims), &[7, 4]);
                resized(&op, tensor(&all.iter().map(|&x| (x * 3.0) as u8).collect::<Vec<_>>(), &dims), &[7, 4]);
                resized(&op, tensor(&all.iter().map(|&x| (x * 3.0) as i8).collect::<Vec<_>>(), &dims), &[7, 4]);
                resized(&op, tensor(&all.iter().map(|&x| (x * 900.0) as u16).collect::<Vec<_>>(), &dims), &[7, 4]);
                resized(&op, tensor(&all.iter().map(|&x| (x * 900.0) as i16).collect::<Vec<_>>(), &dims), &[7, 4]);
                resized(&op, tensor(&all.iter().map(|&x| (x * 1e9) as u32).collect::<Vec<_>>(), &dims), &[7, 4]);
                resized(&op, tensor(&all.iter().map(|&x| (x * 1e9) as i32).collect::<Vec<_>>(), &dims), &[7, 4]);
            }
        }
    }

    #[test]
    fn regions_are_cropped_and_extrapolated() {
        for mode in MODES {
            let crop = Interpolate::plain(mode, Coordinates::TfCropAndResize, &[1, 0]);
            let crop = Interpolate { extrapolation: 77.5, ..crop };
            let roi = Some(tensor(&[0.2f32, -0.3, 0.9, 1.2], &[4]));
            let sizes = || Some(tensor(&[5i64, 8], &[2]));
            let inputs = [Some(tensor(&ramp(54), &[9, 6])), roi.clone(), None, sizes()];
            run(&crop, &inputs).expect("a region");
            let bytes: Vec<u8> = (0..54).map(|i| i * 4).collect();
            run(&crop, &[Some(tensor(&bytes, &[9, 6])), roi, None, sizes()]).expect("a region");
        }
    }
}
