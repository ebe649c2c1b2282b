//! The machine that runs programs. Eight vectors of values stay in registers from the first instruction to the last.

use std::mem::MaybeUninit;

use super::registers::Registers;
use super::unary::{clip, leaky_relu, max, min, relu, truth, unary_in_place};
use super::{Program, Unary};
use crate::isa::Isa;
use crate::vector::{dispatch_isa, math, pow_in_place, short_power, Vector};

/// The maximum number of elements in a block: eight of the widest vectors.
pub(super) const BLOCK: usize = 128;

/// The length of an operand that cycles: a whole number of blocks of channels. Vectors have at most this many lanes, and
/// their length divides it.
pub(super) const CYCLE: usize = 16;

/// A resolved instruction; operands are indices of [`Place`]s.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Save(usize),
    Unary(Unary),
    Join(Join, usize),
    Select(usize, usize),
    /// `acc` to the power `operand`
    Pow(usize),
    /// `acc = function(acc, operand)`, through memory.
    Through(InPlace, usize),
    /// `acc = function(operand, acc)`, through memory.
    ThroughReversed(InPlace, usize),
}

/// `x[i] = function(x[i], y[i])`
pub(super) type InPlace = fn(Isa, &mut [f32], &[f32]);

/// The functions of the accumulator and an operand that are computed in registers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Join {
    Load,
    // The same for exchanged operands.
    Add,
    Mul,
    Min,
    Max,
    Equal,
    And,
    Or,
    Xor,
    // The others.
    Sub,
    SubFrom,
    Div,
    DivInto,
    PRelu,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The location of an operand's elements in one run of the machine.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// One element per lane, starting at this address.
    Advance(*const f32),
    /// The [`CYCLE`] elements at this address, repeated.
    Cycle(*const f32),
    /// The element at this address, for every lane.
    Repeat(*const f32),
    /// A slot.
    Saved(usize),
}

/// Runs the program on the `len` elements at `out`.
///
/// # Safety
/// `len` elements can be read and written at `out`. Each `Advance` has `len` elements, and each `Repeat` has one. Each
/// `Cycle` has [`CYCLE`] elements. An operand overlaps `out` only if it equals
/// `out`. Every index in `steps` has a place. Slots are below [`Program::SLOTS`], and saved before they are read.
pub(super) unsafe fn run(isa: Isa, steps: &[Step], places: &[Place], out: *mut f32, len: usize) {
    dispatch_isa!(isa, (isa: Isa = isa, steps: &[Step] = steps, places: &[Place] = places, out: *mut f32 = out, len: usize = len),
    V => {
        let mut slots = Slots([MaybeUninit::uninit(); Program::SLOTS as usize]);
        let mut machine = Machine { isa, steps, places, out, slots: &mut slots };
        let mut at = 0;
        // SAFETY: the blocks are inside `len`; the caller guarantees the rest.
        unsafe {
            // Without optimization, every temporary has its own stack space: with eight vectors, megabytes.
            #[cfg(not(unoptimized))]
            while at + 8 * V::LANES <= len {
                machine.block::<V, [V; 8]>(at, 8 * V::LANES);
                at += 8 * V::LANES;
            }
            while at < len {
                machine.block::<V, [V; 1]>(at, (len - at).min(V::LANES));
                at += V::LANES;
            }
        }
    });
}

struct Slots([MaybeUninit<[f32; BLOCK]>; Program::SLOTS as usize]);

struct Machine<'a> {
    isa: Isa,
    steps: &'a [Step],
    places: &'a [Place],
    out: *mut f32,
    slots: &'a mut Slots,
}

/// Applies `$function` to every vector of `$acc` and of the operand `$source`. A closure has the instruction set's
/// features only if it is inlined.
macro_rules! each_pair {
    ($acc:ident, $source:ident, $count:ident, |$x:ident, $y:ident| $function:expr) => {
        match $source {
            // SAFETY: an operand that advances has as many elements as the block.
            Source::Lanes(from) => $acc.map(
                #[inline(always)]
                |i, $x: V| {
                    let $y = unsafe { load::<V, R>(from, i, $count) };
                    $function
                },
            ),
            // SAFETY: an operand that cycles has `CYCLE` elements.
            Source::Cycle(from) => $acc.map(
                #[inline(always)]
                |i, $x: V| {
                    let $y = unsafe { V::load(from.wrapping_add(i * V::LANES % CYCLE)) };
                    $function
                },
            ),
            Source::One(from) => {
                // SAFETY: an operand that repeats has one element.
                let $y = V::splat(unsafe { *from });
                $acc.map(
                    #[inline(always)]
                    |_, $x: V| $function,
                )
            }
        }
    };
}

impl Machine<'_> {
    /// Runs the program on elements `at .. at + count`: a full block of registers, or up to one vector.
    ///
    /// # Safety
    /// As for [`run`], with the block inside its range.
    #[inline(always)]
    unsafe fn block<V: Vector, R: Registers<V>>(&mut self, at: usize, count: usize) {
        // SAFETY: guaranteed by the caller, here and for every access below.
        unsafe {
            let out = self.out.add(at);
            let mut acc = R::build(
                #[inline(always)]
                |i| load::<V, R>(out, i, count),
            );
            for &step in self.steps {
                acc = self.step::<V, R>(step, acc, at, count);
            }
            acc.for_each(
                #[inline(always)]
                |i, v| {
                    if size_of::<R>() == size_of::<V>() {
                        v.store_first(out, count);
                    } else {
                        v.store(out.add(i * V::LANES));
                    }
                },
            );
        }
    }

    /// # Safety
    /// As for [`Machine::block`].
    #[inline(always)]
    unsafe fn step<V: Vector, R: Registers<V>>(&mut self, step: Step, acc: R, at: usize, count: usize) -> R {
        match step {
            Step::Save(slot) => {
                let to = self.slots.0[slot].as_mut_ptr().cast::<f32>();
                // SAFETY: a block has at most as many elements as a slot.
                acc.for_each(
                    #[inline(always)]
                    |i, v| unsafe { v.store(to.add(i * V::LANES)) },
                );
                acc
            }
            Step::Unary(function) => self.unary::<V, R>(function, acc),
            Step::Select(yes, no) => {
                let (yes, no) = (self.source(yes, at), self.source(no, at));
                acc.map(
                    #[inline(always)]
                    |i, x: V| V::select(x.equal(V::splat(0.0)), no.lane::<V, R>(i, count), yes.lane::<V, R>(i, count)),
                )
            }
            Step::Pow(y) => self.power::<V, R>(acc, self.source(y, at), count),
            Step::Through(function, y) => {
                let y = self.source(y, at).registers(count);
                self.both_through_memory::<V, R>(function, acc, y, count)
            }
            Step::ThroughReversed(function, y) => {
                let y = self.source(y, at).registers(count);
                self.both_through_memory::<V, R>(function, y, acc, count)
            }
            Step::Join(join, y) => self.join(join, acc, self.source(y, at), count),
        }
    }

    /// `acc = function(acc, y)`
    #[inline(always)]
    fn join<V: Vector, R: Registers<V>>(&self, function: Join, acc: R, source: Source, count: usize) -> R {
        match function {
            Join::Load => each_pair!(acc, source, count, |_x, y| y),
            Join::Add => each_pair!(acc, source, count, |x, y| x + y),
            Join::Sub => each_pair!(acc, source, count, |x, y| x - y),
            Join::SubFrom => each_pair!(acc, source, count, |x, y| y - x),
            Join::Mul => each_pair!(acc, source, count, |x, y| x * y),
            Join::Div => each_pair!(acc, source, count, |x, y| x / y),
            Join::DivInto => each_pair!(acc, source, count, |x, y| y / x),
            Join::Min => each_pair!(acc, source, count, |x, y| min(x, y)),
            Join::Max => each_pair!(acc, source, count, |x, y| max(x, y)),
            Join::PRelu => each_pair!(acc, source, count, |x, y| V::select(x.less(V::splat(0.0)), x * y, x)),
            Join::Equal => each_pair!(acc, source, count, |x, y| truth::<V>(x.equal(y))),
            Join::Less => each_pair!(acc, source, count, |x, y| truth::<V>(x.less(y))),
            Join::LessOrEqual => each_pair!(acc, source, count, |x, y| truth::<V>(x.less_or_equal(y))),
            Join::Greater => each_pair!(acc, source, count, |x, y| truth::<V>(y.less(x))),
            Join::GreaterOrEqual => each_pair!(acc, source, count, |x, y| truth::<V>(y.less_or_equal(x))),
            Join::And => each_pair!(acc, source, count, |x, y| logic(x, y, |x, y| x * y)),
            Join::Or => each_pair!(acc, source, count, |x, y| logic(x, y, V::greater)),
            Join::Xor => each_pair!(acc, source, count, |x, y| logic(x, y, |x, y| (x - y).abs())),
        }
    }

    #[inline(always)]
    fn source(&self, place: usize, at: usize) -> Source {
        match self.places[place] {
            Place::Advance(from) => Source::Lanes(from.wrapping_add(at)),
            // A block of several vectors starts at a whole cycle.
            Place::Cycle(from) => Source::Cycle(from.wrapping_add(at % CYCLE)),
            Place::Repeat(from) => Source::One(from),
            Place::Saved(slot) => Source::Lanes(self.slots.0[slot].as_ptr().cast()),
        }
    }

    /// Computes short or frequent functions in registers, and others through memory.
    #[inline(always)]
    fn unary<V: Vector, R: Registers<V>>(&self, function: Unary, acc: R) -> R {
        // A closure has the instruction set's features only if it is inlined.
        macro_rules! each {
            (|$x:ident| $function:expr) => {
                acc.map(
                    #[inline(always)]
                    |_, $x: V| $function,
                )
            };
        }
        match function {
            Unary::Abs => each!(|x| x.abs()),
            Unary::Neg => each!(|x| x.neg()),
            Unary::Sqrt => each!(|x| x.sqrt()),
            Unary::Reciprocal => each!(|x| V::splat(1.0) / x),
            Unary::Square => each!(|x| x * x),
            Unary::Relu => each!(|x| relu(x)),
            Unary::LeakyRelu { alpha } => each!(|x| leaky_relu(x, alpha)),
            Unary::Clip { min, max } => each!(|x| clip(x, min, max)),
            Unary::HardSwish => each!(|x| math::hard_swish(x)),
            Unary::HardSigmoid { alpha, beta } => each!(|x| math::hard_sigmoid(x, alpha, beta)),
            _ => self.long_unary::<V, R>(function, acc),
        }
    }

    /// Computes functions of many operations.
    #[inline(always)]
    fn long_unary<V: Vector, R: Registers<V>>(&self, function: Unary, acc: R) -> R {
        macro_rules! together {
            (|$x:ident| $function:expr) => {
                acc.map_together(
                    #[inline(always)]
                    |$x| $function,
                    #[inline(always)]
                    |$x| $function,
                )
            };
        }
        match function {
            Unary::Exp => together!(|x| math::exp(x)),
            Unary::Sigmoid => together!(|x| math::sigmoid(x)),
            Unary::Tanh => together!(|x| math::tanh(x)),
            Unary::Erf => together!(|x| math::erf(x)),
            Unary::Gelu => together!(|x| math::gelu(x)),
            Unary::GeluTanh => together!(|x| math::gelu_tanh(x)),
            Unary::Swish { alpha: 1.0 } => together!(|x| math::silu(x)),
            _ => self.through_memory(acc, |values| unary_in_place(self.isa, function, values)),
        }
    }

    #[inline(always)]
    fn through_memory<V: Vector, R: Registers<V>>(&self, acc: R, rewrite: impl FnOnce(&mut [f32])) -> R {
        let mut values = [0.0; BLOCK];
        let at = |i: usize| i * V::LANES;
        // SAFETY: a block has at most `BLOCK` elements.
        acc.for_each(
            #[inline(always)]
            |i, v| unsafe { v.store(values.as_mut_ptr().add(at(i))) },
        );
        rewrite(&mut values[..size_of::<R>() / size_of::<f32>()]);
        // SAFETY: as above.
        R::build(
            #[inline(always)]
            |i| unsafe { V::load(values.as_ptr().add(at(i))) },
        )
    }

    /// `acc` to the power of the operand. Uses registers if the operand is a single number with a short power.
    #[inline(always)]
    fn power<V: Vector, R: Registers<V>>(&self, acc: R, source: Source, count: usize) -> R {
        // SAFETY: an operand that repeats has one element.
        let exponent = if let Source::One(from) = source { unsafe { *from } } else { f32::NAN };
        // A match on constants, so that each one gets its own loop.
        macro_rules! short {
            ($($exponent:literal),*) => {
                match exponent {
                    $($exponent => acc.map(
                        #[inline(always)]
                        |_, x: V| short_power(x, $exponent).unwrap_or(x),
                    ),)*
                    _ => self.both_through_memory::<V, R>(pow_in_place, acc, source.registers(count), count),
                }
            };
        }
        short!(2.0, 3.0, 0.5, -1.0, 1.0)
    }

    #[inline(always)]
    fn both_through_memory<V: Vector, R: Registers<V>>(&self, function: InPlace, x: R, y: R, count: usize) -> R {
        let mut other = [0.0; BLOCK];
        // SAFETY: a block has at most `BLOCK` elements.
        y.for_each(
            #[inline(always)]
            |i, v| unsafe { v.store(other.as_mut_ptr().add(i * V::LANES)) },
        );
        self.through_memory(x, |values| function(self.isa, &mut values[..count], &other[..count]))
    }
}

#[derive(Clone, Copy)]
enum Source {
    Lanes(*const f32),
    Cycle(*const f32),
    One(*const f32),
}

impl Source {
    #[inline(always)]
    fn registers<V: Vector, R: Registers<V>>(self, count: usize) -> R {
        R::build(
            #[inline(always)]
            |i| self.lane::<V, R>(i, count),
        )
    }

    #[inline(always)]
    fn lane<V: Vector, R: Registers<V>>(self, i: usize, count: usize) -> V {
        // SAFETY: an operand that advances has as many elements as the block, one that cycles has `CYCLE`, and one that
        // repeats has one.
        unsafe {
            match self {
                Source::Lanes(from) => load::<V, R>(from, i, count),
                Source::Cycle(from) => V::load(from.wrapping_add(i * V::LANES % CYCLE)),
                Source::One(from) => V::splat(*from),
            }
        }
    }
}

/// Loads vector `i` of a block of `count` elements.
///
/// # Safety
/// `count` elements can be read at `from`.
#[inline(always)]
unsafe fn load<V: Vector, R: Registers<V>>(from: *const f32, i: usize, count: usize) -> V {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if size_of::<R>() == size_of::<V>() {
            V::load_first(from, count)
        } else {
            V::load(from.wrapping_add(i * V::LANES))
        }
    }
}

/// Applies `function` to both values as booleans 0 and 1.
#[inline(always)]
fn logic<V: Vector>(x: V, y: V, function: impl Fn(V, V) -> V) -> V {
    let zero = V::splat(0.0);
    let number = |x: V| V::select(x.equal(zero), zero, V::splat(1.0));
    function(number(x), number(y))
}
