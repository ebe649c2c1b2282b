//! Convolutions over blocks of channels: the part that all forms share.

use super::addend::Addend;
use super::filter::Filter;
use super::terms::Tap;
use super::tile::{Tile, PIECE};
use crate::conv_shape::Shape;
use crate::convolution::form::{ConvOperands, Epilogue, Residual};
use crate::gemm::Shared;
use crate::scratch::Scratch;
use crate::threads::Threads;

/// Multiplications that are worth a thread.
const TASK: usize = 1 << 19;

/// One convolution.
pub(super) struct Convolution<'a> {
    pub shape: &'a Shape,
    pub filter: &'a Filter,
    bias: Option<Scratch<f32>>,
    pub epilogue: Epilogue<'a>,
    x: &'a [f32],
    out: Shared,
}

impl<'a> Convolution<'a> {
    /// Creates the convolution of `x`, or of a transformed input that its form passes instead.
    ///
    /// # Panics
    /// The output, the bias, the residual or the filter does not fit the shape.
    pub fn new(filter: &'a Filter, operands: ConvOperands<'a>) -> Convolution<'a> {
        let ConvOperands { shape, bias, x, out, epilogue } = operands;
        assert!(shape.groups > 0 && shape.strides.iter().all(|&s| s > 0) && shape.fits(), "{shape:?}");
        assert!(filter.is_for(shape), "{shape:?}");
        assert!(bias.is_none_or(|bias| bias.len() == shape.outputs), "{shape:?}");
        let length = shape.lengths([1, filter.block()]).map(|[_, length]| length);
        assert_eq!(length, Some(out.len()), "{shape:?}");
        if let Some(Residual::Separate(residual)) = epilogue.residual {
            assert_eq!(residual.len(), out.len(), "{shape:?}");
        }
        let bias = bias.map(|bias| filter.padded(bias));
        Convolution { shape, filter, bias, epilogue, x, out: Shared::new(out) }
    }
}

impl Convolution<'_> {
    /// The channels of a block.
    pub fn block(&self) -> usize {
        self.filter.block()
    }

    /// The number of images: batch entries times groups.
    pub fn images(&self) -> usize {
        self.shape.batch * self.shape.groups
    }

    /// Returns how many threads to use for this number of multiplications.
    pub fn wanted(&self, threads: &Threads, multiplications: usize) -> usize {
        if multiplications < 2 * TASK {
            1
        } else {
            threads.count()
        }
    }

    /// The input of one image, `[C / unit, H, W, unit]`.
    pub fn input(&self, image: usize) -> &[f32] {
        let size = self.filter.channels.next_multiple_of(self.filter.unit) * self.shape.input[0] * self.shape.input[1];
        &self.x[image * size..(image + 1) * size]
    }

    /// The bias from `output` on, one value per lane.
    pub fn bias(&self, image: usize, output: usize) -> Option<&[f32]> {
        let lane = image % self.filter.groups * self.filter.lanes() + output;
        self.bias.as_ref().map(|bias| &bias[lane..])
    }

    /// The number of taps of a tile outside full blocks of channels: those of the last blocks, or all taps if channels
    /// are single. `window` is the number of taps per block.
    pub fn last(&self, taps: usize, window: usize) -> usize {
        match (self.filter.unit, self.filter.partial()) {
            (1, _) => taps,
            (_, [_, blocks]) => blocks * window,
        }
    }

    /// The tile of one image's outputs from `first` on that starts at a pixel, for an input of one row of pixels, whose
    /// address and [last taps](Convolution::last) the caller sets.
    pub fn tile<'t>(&'t self, image: usize, first: usize, pixel: usize, taps: &'t [Tap]) -> Tile<'t> {
        let filter = self.filter;
        Tile {
            x: std::ptr::null(),
            pixel: self.block(),
            row: 0,
            taps,
            piece: PIECE,
            last: 0,
            last_channels: if filter.unit == 1 { 1 } else { filter.partial()[0] },
            w: filter.span(image % filter.groups, first).as_ptr(),
            start: self.bias(image, first).map_or(std::ptr::null(), <[f32]>::as_ptr),
            out: self.at(image, first, pixel),
            out_block: self.out_block(),
            out_row: self.shape.output[1] * self.block(),
            residual: self.residual(image, first, pixel),
            limits: self.epilogue.limits,
        }
    }

    /// The stride from one block of outputs to the next, in elements.
    pub fn out_block(&self) -> usize {
        self.shape.pixels() * self.block()
    }

    /// Returns the index of a pixel's outputs.
    fn offset(&self, image: usize, output: usize, pixel: usize) -> usize {
        (image * self.filter.lanes() + output) * self.shape.pixels() + pixel * self.block()
    }

    /// Returns the address of a pixel's outputs. The pixel must belong to the caller's task.
    pub fn at(&self, image: usize, output: usize, pixel: usize) -> *mut f32 {
        self.out.at(self.offset(image, output, pixel))
    }

    /// Returns the residual of a pixel's outputs.
    pub fn residual(&self, image: usize, output: usize, pixel: usize) -> Addend {
        match self.epilogue.residual {
            None => Addend::NONE,
            Some(Residual::InPlace) => Addend::new(self.at(image, output, pixel)),
            Some(Residual::Separate(residual)) => {
                Addend::new(residual.as_ptr().wrapping_add(self.offset(image, output, pixel)))
            }
        }
    }

    /// Runs the function of the epilogue on the outputs of one block for some pixels.
    ///
    /// # Safety
    /// They belong to the caller's task and have been written.
    pub unsafe fn finish(&self, image: usize, block: usize, first: usize, pixels: usize) {
        if let Some(finish) = self.epilogue.finish {
            let start = self.offset(image, block, first);
            // SAFETY: guaranteed by the caller.
            finish(unsafe { std::slice::from_raw_parts_mut(self.out.at(start), pixels * self.block()) }, start);
        }
    }
}

/// Calls `work` for all units and spans of outputs of a convolution, in tasks for `wanted` threads. If there are too
/// few units, a task takes only some of the spans of a unit.
pub(super) fn split<S: Default>(
    threads: &Threads,
    wanted: usize,
    units: usize,
    spans: &[[usize; 2]],
    work: impl Fn(usize, &[[usize; 2]], &mut S) + Sync,
) {
    if wanted == 1 {
        let mut scratch = S::default();
        return (0..units).for_each(|unit| work(unit, spans, &mut scratch));
    }
    let shares = (2 * wanted).div_ceil(units.max(1)).clamp(1, spans.len().max(1));
    threads.for_each(units * shares, |task| {
        let (unit, share) = (task / shares, task % shares);
        let [first, end] = [share, share + 1].map(|i| spans.len() * i / shares);
        work(unit, &spans[first..end], &mut S::default());
    });
}
