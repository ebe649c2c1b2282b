//! Convolutions over blocks of channels, tap by tap or by Winograd's algorithm.

use super::conv::Convolution;
use super::direct::Direct;
use super::filter::Filter;
use super::in_place::InPlace;
use super::regions;
use super::window::Windows;
use super::winograd;
use crate::conv_shape::Shape;
use crate::convolution::form::{of_threads, ConvOperands, PackedConv};
use crate::threads::Threads;

/// `out` is `[N, O / B, H', W', B]`. `x` is `[N, C / B, H, W, B]`, or `[N, C, H, W]` for a filter
/// [for rows](Filter::for_rows).
impl PackedConv for Filter {
    fn run(&self, threads: &Threads, operands: ConvOperands) {
        let ConvOperands { shape, x, .. } = operands;
        let length = shape.batch * shape.channels.next_multiple_of(self.unit) * shape.input[0] * shape.input[1];
        assert_eq!(x.len(), length, "{shape:?}");
        if operands.out.is_empty() {
            return;
        }
        let convolution = Convolution::new(self, operands);
        match self.form {
            None => match InPlace::new(&convolution, threads) {
                Some(in_place) => in_place.run(threads),
                None => Direct::new(&convolution, threads).run(threads),
            },
            Some(form) => winograd::run(form, &convolution, threads),
        }
    }

    fn adds_residual(&self) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        Filter::bytes(self)
    }

    fn scratch(&self, shape: &Shape) -> Option<usize> {
        of_threads(shape, |shape| match self.form {
            None => {
                let ([copied, taps, parts], [in_place, regions, axis]) =
                    (Windows::new(shape, self.unit, 1).lengths(shape), regions::lengths(shape, self.unit));
                [copied, taps, parts, in_place, regions, axis]
            }
            Some(form) => {
                let [input, products, taps] = winograd::lengths(form, self, shape);
                [input, products, taps, 0, 0, 0]
            }
        })
    }
}
