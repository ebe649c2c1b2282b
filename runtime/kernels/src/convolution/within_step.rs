//! A form on blocks of channels for images in rows: the step converts the image to blocks, and its result back.

use crate::blocking::Blocking;
use crate::conv_shape::Shape;
use crate::convolution::blocked::{run_from_blocks, to_blocks, Images};
use crate::convolution::form::{ConvOperands, Epilogue, ImageLayout, PackedConv};
use crate::gemm::Shared;
use crate::scratch::Scratch;
use crate::threads::Threads;

/// Weights packed for a form with these layouts.
#[derive(Debug)]
pub(super) struct WithinStep {
    blocking: Blocking,
    layouts: [ImageLayout; 2],
    packed: Box<dyn PackedConv>,
}

impl WithinStep {
    pub fn boxed(blocking: Blocking, layouts: [ImageLayout; 2], packed: Box<dyn PackedConv>) -> Box<dyn PackedConv> {
        Box::new(WithinStep { blocking, layouts, packed })
    }
}

/// The sizes of a convolution's image and result.
fn images(shape: &Shape) -> [Images; 2] {
    [(shape.channels, shape.input), (shape.outputs, shape.output)].map(|(channels, [h, w])| Images {
        batch: shape.batch,
        channels,
        plane: h * w,
    })
}

impl PackedConv for WithinStep {
    fn run(&self, threads: &Threads, operands: ConvOperands) {
        let ConvOperands { shape, bias, x, out, epilogue } = operands;
        let ([from, to], [image, result]) = (images(shape), self.layouts);
        let moved;
        let x = match image {
            ImageLayout::Rows => x,
            ImageLayout::Blocks => {
                moved = Scratch::overwritten(from.blocked_len(self.blocking), |moved| {
                    to_blocks(self.blocking, threads, from, x, moved);
                });
                &moved
            }
        };
        match result {
            ImageLayout::Rows => self.packed.run(threads, ConvOperands { shape, bias, x, out, epilogue }),
            ImageLayout::Blocks => {
                assert_eq!(out.len(), to.len(), "{shape:?}");
                // Moves runs of pixels while they are in the L1 cache.
                let (finish, out) = (epilogue.finish, Shared::new(out));
                let moved = |run: &mut [f32], offset: usize| {
                    // SAFETY: the form calls this for each run of its result once, and the result has these sizes.
                    unsafe { run_from_blocks(self.blocking, to, run, offset, out, finish) }
                };
                let epilogue = Epilogue { finish: Some(&moved), ..epilogue };
                Scratch::overwritten(to.blocked_len(self.blocking), |out| {
                    self.packed.run(threads, ConvOperands { shape, bias, x, out, epilogue });
                });
            }
        }
    }

    fn bytes(&self) -> usize {
        self.packed.bytes()
    }

    fn scratch(&self, shape: &Shape) -> Option<usize> {
        let moved = images(shape).into_iter().zip(self.layouts).filter(|(_, layout)| *layout == ImageLayout::Blocks);
        let moved: usize = moved.map(|(images, _)| images.blocked_len(self.blocking)).sum();
        Some(moved.saturating_add(self.packed.scratch(shape)?))
    }
}
