//! The weights of a convolution over blocks of channels, packed once for a form.

use std::ops::Range;

use super::regions::Regions;
use super::terms::{parts, SUMMED};
use super::tile::Tiles;
use super::transforms::Transform;
use super::window::Windows;
use crate::blocking::Blocking;
use crate::buffer::{collected_up_to, with_capacity};
use crate::conv_shape::Shape;
use crate::recent_values::Recent;
use crate::scratch::Scratch;

/// Weights in the order in which tiles read them.
#[derive(Debug, Clone)]
pub struct Filter {
    pub(super) blocking: Blocking,
    pub(super) groups: usize,
    /// Per group.
    pub(super) channels: usize,
    /// Per group.
    pub(super) outputs: usize,
    pub(super) kernel: [usize; 2],
    /// The channels of a pixel that are contiguous in the input: a block, or 1 for an input `[N, C, H, W]`.
    pub(super) unit: usize,
    /// The tiles of Winograd's algorithm; `None`: tap by tap.
    pub(super) form: Option<Transform>,
    /// For each group and span of outputs: `[C / n][kh][kw][n][outputs of the span]`, where `n` is [`SUMMED`] for blocks,
    /// and 1 for an input `[N, C, H, W]`. For Winograd's algorithm, see [`Transform::pack`].
    data: Vec<f32>,
    /// How recent inputs were read, with their number of parts.
    pub(super) windows: Recent<(Shape, usize), Windows>,
    /// How recent inputs were read in place, with their number of threads; `None` if they were copied.
    pub(super) regions: Recent<(Shape, usize), Option<Regions>>,
}

impl Filter {
    /// Whether a convolution can run on an image in blocks: it fills a block, and each group has whole blocks.
    pub fn takes_blocks(blocking: Blocking, shape: &Shape) -> bool {
        Filter::has_blocks(blocking, shape) && !Filter::takes_rows(blocking, shape)
    }

    /// Whether a convolution reads its image as `[N, C, H, W]`: the image has too few channels to fill a block.
    pub fn takes_rows(blocking: Blocking, shape: &Shape) -> bool {
        shape.groups == 1 && shape.channels < blocking.block()
    }

    /// Whether each of several groups has whole blocks.
    fn has_blocks(blocking: Blocking, shape: &Shape) -> bool {
        let Shape { groups, channels, outputs, .. } = *shape;
        let is_whole = |size: usize| size.is_multiple_of(groups) && (size / groups).is_multiple_of(blocking.block());
        groups == 1 || (groups > 1 && is_whole(channels) && is_whole(outputs))
    }

    /// Packs the weights `w` `[O, C / groups, kernel…]` for a form of Winograd's algorithm, or tap by tap.
    ///
    /// # Panics
    /// `w` does not have this shape, or the groups are not whole blocks.
    pub(super) fn new(blocking: Blocking, shape: &Shape, w: &[f32], form: Option<Transform>) -> Filter {
        Filter::pack(blocking, shape, w, form, blocking.block())
    }

    /// Like [`Filter::new`], tap by tap, for an input `[N, C, H, W]` with too few channels to fill a block.
    ///
    /// # Panics
    /// As for [`Filter::new`].
    pub fn for_rows(blocking: Blocking, shape: &Shape, w: &[f32]) -> Filter {
        Filter::pack(blocking, shape, w, None, 1)
    }

    fn pack(blocking: Blocking, shape: &Shape, w: &[f32], form: Option<Transform>, unit: usize) -> Filter {
        let Shape { groups, kernel, .. } = *shape;
        let (channels, outputs, window) = (shape.channels / groups, shape.outputs / groups, kernel[0] * kernel[1]);
        assert!(Filter::has_blocks(blocking, shape), "{shape:?}");
        assert_eq!(w.len(), shape.outputs * channels * window, "{shape:?}");
        let (data, windows, regions) = (Vec::new(), Recent::default(), Recent::default());
        let mut filter = Filter { blocking, groups, channels, outputs, kernel, unit, form, data, windows, regions };
        filter.data = with_capacity(groups * filter.group_len());
        for w in w.chunks_exact((outputs * channels * window).max(1)) {
            match form {
                None => filter.pack_group(w),
                Some(form) => form.pack(channels, kernel, &filter.spans(), w, &mut filter.data),
            }
        }
        filter
    }

    /// The channels of a block.
    pub(super) fn block(&self) -> usize {
        self.blocking.block()
    }

    /// The lanes of one group's blocks of outputs.
    pub(super) fn lanes(&self) -> usize {
        self.outputs.next_multiple_of(self.block())
    }

    /// The channels beyond whole multiples of [`SUMMED`] if they do not fill whole blocks, and the number of their
    /// blocks; otherwise zeros.
    pub(super) fn partial(&self) -> [usize; 2] {
        match self.channels % SUMMED {
            partial if partial.is_multiple_of(self.block()) => [0, 0],
            partial => [partial, partial.div_ceil(self.block())],
        }
    }

    /// The size of the packed weights in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.data[..])
    }

    /// Whether the weights fit the convolution.
    pub(super) fn is_for(&self, shape: &Shape) -> bool {
        let sizes = [self.channels * shape.groups, self.outputs * shape.groups] == [shape.channels, shape.outputs];
        let window = self.form.is_none_or(|form| form.fits(shape));
        self.groups == shape.groups && shape.has_window(self.kernel) && sizes && window
    }

    /// Packs one group's weights for [`super::direct`].
    fn pack_group(&mut self, w: &[f32]) {
        let window = self.kernel[0] * self.kernel[1];
        for [first, end] in self.spans() {
            for (c, tap) in self.terms() {
                let weight = |o: usize| if o < self.outputs { w[(o * self.channels + c) * window + tap] } else { 0.0 };
                self.data.extend((first..end).map(weight));
            }
        }
    }

    /// The outputs of one group in spans that a tile covers. The last span may extend beyond the last output.
    pub(super) fn spans(&self) -> Vec<[usize; 2]> {
        collected_up_to(self.lanes() / self.block(), Tiles::of(self.blocking).spans(self.lanes()))
    }

    /// The terms of an output's sum in order, as channel and tap.
    fn terms(&self) -> Vec<(usize, usize)> {
        let window = self.kernel[0] * self.kernel[1];
        let of = |part: Range<usize>| (0..window).flat_map(move |tap| part.clone().map(move |c| (c, tap)));
        collected_up_to(self.channels * window, parts(self.channels, self.unit).flat_map(of))
    }

    /// The number of packed weights per output.
    fn output_len(&self) -> usize {
        self.channels * self.form.map_or(self.kernel[0] * self.kernel[1], |form| form.products(self.kernel).count())
    }

    fn group_len(&self) -> usize {
        self.lanes() * self.output_len()
    }

    /// The weights of the span of outputs that starts with `first`, in a group.
    pub(super) fn span(&self, group: usize, first: usize) -> &[f32] {
        &self.data[group * self.group_len() + first * self.output_len()..]
    }

    /// Pads the bias to one value per lane of every block.
    pub(super) fn padded(&self, bias: &[f32]) -> Scratch<f32> {
        let lanes = self.lanes();
        let mut padded = Scratch::filled(0.0, self.groups * lanes);
        for (group, bias) in padded.chunks_exact_mut(lanes.max(1)).zip(bias.chunks_exact(self.outputs.max(1))) {
            group[..bias.len()].copy_from_slice(bias);
        }
        padded
    }
}
