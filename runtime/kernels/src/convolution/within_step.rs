//! A form on blocks of channels for images in rows: the step converts the image to blocks, and its result back.

use crate::blocked::{from_blocks, to_blocks, Images};
use crate::conv_form::{ConvOperands, Epilogue, ImageLayout, PackedConv};
use crate::conv_shape::Shape;
use crate::isa::Isa;
use crate::scratch::Scratch;
use crate::threads::Threads;

/// Weights packed for a form with these layouts.
#[derive(Debug)]
pub(super) struct WithinStep {
    layouts: [ImageLayout; 2],
    packed: Box<dyn PackedConv>,
}

impl WithinStep {
    pub fn boxed(layouts: [ImageLayout; 2], packed: Box<dyn PackedConv>) -> Box<dyn PackedConv> {
        Box::new(WithinStep { layouts, packed })
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
        let mut moved;
        let x = match image {
            ImageLayout::Rows => x,
            ImageLayout::Blocks => {
                moved = Scratch::for_overwrite(from.blocked_len(self.isa()));
                to_blocks(self.isa(), threads, from, x, &mut moved);
                &moved
            }
        };
        match result {
            ImageLayout::Rows => self.packed.run(threads, ConvOperands { shape, bias, x, out, epilogue }),
            ImageLayout::Blocks => {
                let mut blocks = Scratch::for_overwrite(to.blocked_len(self.isa()));
                let (finish, epilogue) = (epilogue.finish, Epilogue { finish: None, ..epilogue });
                self.packed.run(threads, ConvOperands { shape, bias, x, out: &mut blocks, epilogue });
                from_blocks(self.isa(), threads, to, &blocks, out, finish);
            }
        }
    }

    fn bytes(&self) -> usize {
        self.packed.bytes()
    }

    fn scratch(&self, shape: &Shape) -> usize {
        let moved = images(shape).into_iter().zip(self.layouts).filter(|(_, layout)| *layout == ImageLayout::Blocks);
        moved.map(|(images, _)| images.blocked_len(self.isa())).sum::<usize>() + self.packed.scratch(shape)
    }

    fn isa(&self) -> Isa {
        self.packed.isa()
    }
}
