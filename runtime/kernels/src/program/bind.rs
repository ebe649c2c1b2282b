//! A program with the operands of one execution.

use smallvec::SmallVec;

use super::machine::{self, Join, Place, Step, BLOCK, CYCLE};
use super::unary::{floor_mods, prelus, remainders};
use super::{Binary, Instruction, Invalid, Operand, Program};
use crate::broadcast::{for_each_run, Broadcast};
use crate::isa::Isa;
use crate::scratch::Scratch;
use crate::threads::Threads;
use crate::vector::pow_in_place;

/// One input of the step in an execution.
#[derive(Debug, Clone, Copy)]
pub enum Argument<'a> {
    /// An input that is absent, or that the program does not read.
    Absent,
    /// The elements in row-major order, and their dimensions.
    Tensor(&'a [f32], &'a [usize]),
    /// The value of the result buffer before the run: for an input that the result overwrites.
    Result,
}

/// A program that is ready to run on any part of a result of known shape.
#[derive(Debug)]
pub struct Bound<'a> {
    steps: SmallVec<[Step; 4]>,
    operands: SmallVec<[Resolved<'a>; 4]>,
    broadcast: Broadcast,
    /// If set, the number of elements over which every operand advances, is repeated, or repeats a last dimension whose
    /// length divides [`CYCLE`].
    cycles: Option<usize>,
    length: usize,
}

/// An operand of the machine. Tensors come first, in the order of the broadcast's operands.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Resolved<'a> {
    Tensor(&'a [f32], &'a [usize]),
    Constant(f32),
    Saved(usize),
    Result,
}

/// Shorter runs that end within a block of the machine are not worth their dispatch; their broadcast operands are
/// expanded.
const LONG_SPAN: usize = 1 << 10;
/// The elements that are expanded at a time.
const TILE: usize = 1024;
/// Elements times instructions that are worth a separate task.
const TASK: usize = 200_000;

impl<'a> Bound<'a> {
    /// Resolves the operands of a program for a result of shape `result`. Operands broadcast to it by NumPy's rules.
    ///
    /// # Errors
    /// The program does not pass [`check`](Program::check), or an operand is absent, does not match its shape, or does
    /// not broadcast.
    pub fn new(program: &Program, result: &[usize], arguments: &[Argument<'a>]) -> Result<Bound<'a>, Invalid> {
        let mut binder = Binder { arguments, operands: SmallVec::new(), saved: [false; Program::SLOTS as usize] };
        let mut steps = SmallVec::with_capacity(program.code.len());
        for (at, step) in program.code.iter().enumerate() {
            steps.push(binder.step(at, *step)?);
        }
        let operands = binder.operands;
        let shapes: SmallVec<[&[usize]; 4]> = operands.iter().map(Resolved::dims).collect();
        let broadcast = Broadcast::new(result, &shapes)
            .map_err(|i| Invalid::Broadcast { operand: shapes[i].to_vec(), result: result.to_vec() })?;
        drop(shapes);
        let cycles = cycles(&broadcast, 0..operands.len());
        Ok(Bound { steps, operands, broadcast, cycles, length: result.iter().product() })
    }

    /// Rewrites elements `offset .. offset + values.len()` of the result. `values` holds the start values of the
    /// accumulator; a program that starts with [`Instruction::Load`] does not read them.
    ///
    /// # Panics
    /// The range is not inside the result.
    pub fn run(&self, isa: Isa, offset: usize, values: &mut [f32]) {
        assert!(offset <= self.length && values.len() <= self.length - offset, "a run outside the result");
        let is_whole = offset.is_multiple_of(self.broadcast.span());
        if let Some(span) = self.cycles.filter(|_| is_whole) {
            self.run_spans(isa, span, offset, values);
        } else if self.has_long_spans(values.len()) {
            self.run_spans(isa, self.broadcast.span(), offset, values);
        } else {
            self.run_tiles(isa, offset, values);
        }
    }

    /// Whether the innermost merged dimension is long enough for one machine run per span, in a range of `length`
    /// elements.
    fn has_long_spans(&self, length: usize) -> bool {
        let span = self.broadcast.span();
        self.broadcast.dims.len() == 1 || span.is_multiple_of(BLOCK) || span >= LONG_SPAN || length <= span
    }

    /// Rewrites the whole result.
    ///
    /// # Panics
    /// `values` does not have the length of the result.
    pub fn run_all(&self, isa: Isa, threads: &Threads, values: &mut [f32]) {
        assert_eq!(values.len(), self.length);
        let chunk = (TASK / self.steps.len().max(1)).next_multiple_of(TILE);
        threads.for_each_chunk(values, chunk, |i, values| self.run(isa, i * chunk, values));
    }

    /// Runs the program per span of the innermost merged dimension, or of the two innermost ones if operands may cycle.
    fn run_spans(&self, isa: Isa, span: usize, offset: usize, values: &mut [f32]) {
        let cycles = span > self.broadcast.span();
        for_each_run(span, offset, values.len(), |position, count| {
            let repeated = if cycles { self.repeated(position) } else { SmallVec::new() };
            // Reads and writes go through one pointer: creating a second one would invalidate the first.
            let out = values[position - offset..][..count].as_mut_ptr();
            let place = |(i, operand): (usize, &Resolved)| match *operand {
                Resolved::Tensor(data, _) => {
                    let start = self.broadcast.offset(i, position);
                    if !self.broadcast.advances(i) {
                        Place::Repeat(&data[start])
                    } else if let Some(repeated) = repeated.get(i).filter(|_| !self.broadcast.advances_outside(i)) {
                        Place::Cycle(repeated.as_ptr())
                    } else {
                        Place::Advance(data[start..start + count].as_ptr())
                    }
                }
                Resolved::Constant(ref value) => Place::Repeat(value),
                Resolved::Saved(slot) => Place::Saved(slot),
                Resolved::Result => Place::Advance(out.cast_const()),
            };
            let places: SmallVec<[Place; 4]> = self.operands.iter().enumerate().map(place).collect();
            // SAFETY: the pointers come from the slices of `count` elements or one cycle, and from the references
            // above. Slots are saved before they are read.
            unsafe { machine::run(isa, &self.steps, &places, out, count) };
        });
    }

    /// For a span of the two innermost merged dimensions: for each operand that repeats the innermost one, [`CYCLE`] of its
    /// elements from a position on.
    fn repeated(&self, position: usize) -> SmallVec<[[f32; CYCLE]; 4]> {
        let length = self.broadcast.span();
        let repeated = |(i, operand): (usize, &Resolved)| match *operand {
            Resolved::Tensor(data, _) if self.broadcast.advances(i) && !self.broadcast.advances_outside(i) => {
                let start = self.broadcast.offset(i, position);
                std::array::from_fn(|lane| data[start + lane % length])
            }
            _ => [0.0; CYCLE],
        };
        self.operands.iter().enumerate().map(repeated).collect()
    }

    /// Runs the program tile by tile, with broadcast operands expanded to the tile.
    fn run_tiles(&self, isa: Isa, offset: usize, values: &mut [f32]) {
        let size = TILE.min(values.len()).max(1);
        drop(Scratch::overwritten(size * self.operands.len(), |expanded| {
            for (i, tile) in values.chunks_mut(size).enumerate() {
                self.run_tile(isa, offset + i * size, tile, expanded.chunks_exact_mut(size));
            }
        }));
    }

    /// Runs the program on a tile. `expanded` has memory for the elements of each operand.
    fn run_tile<'e>(&self, isa: Isa, start: usize, tile: &mut [f32], expanded: impl Iterator<Item = &'e mut [f32]>) {
        let (out, count) = (tile.as_mut_ptr(), tile.len());
        let place = |(i, (operand, expanded)): (usize, (&Resolved, &mut [f32]))| match *operand {
            Resolved::Tensor(data, _) if data.len() < self.length => {
                let expanded = &mut expanded[..count];
                self.expand(i, data, start, expanded);
                Place::Advance(expanded.as_ptr())
            }
            Resolved::Tensor(data, _) => Place::Advance(data[start..start + count].as_ptr()),
            Resolved::Constant(ref value) => Place::Repeat(value),
            Resolved::Saved(slot) => Place::Saved(slot),
            Resolved::Result => Place::Advance(out.cast_const()),
        };
        let places: SmallVec<[Place; 4]> = self.operands.iter().zip(expanded).enumerate().map(place).collect();
        // SAFETY: every expanded operand has the length of the tile. Slots are saved before they are read.
        unsafe { machine::run(isa, &self.steps, &places, out, count) };
    }

    /// Copies the elements of an operand for the elements of the result from `start` on.
    fn expand(&self, operand: usize, data: &[f32], start: usize, out: &mut [f32]) {
        let advances = self.broadcast.advances(operand);
        for_each_run(self.broadcast.span(), start, out.len(), |position, count| {
            let (out, offset) = (&mut out[position - start..][..count], self.broadcast.offset(operand, position));
            if advances {
                out.copy_from_slice(&data[offset..offset + count]);
            } else {
                out.fill(data[offset]);
            }
        });
    }
}

/// The number of elements over which every operand advances, is repeated, or repeats a last dimension whose length
/// divides [`CYCLE`] and fills a vector of 8 lanes; [`None`] if there is no such number.
fn cycles(broadcast: &Broadcast, mut operands: std::ops::Range<usize>) -> Option<usize> {
    let [.., outer, length @ (8 | CYCLE)] = broadcast.dims[..] else { return None };
    let fits = |strides: &[usize]| match strides[strides.len() - 2..] {
        [across, 1] => across == 0 || across == length,
        [across, inside] => across == 0 && inside == 0,
        _ => false,
    };
    operands.all(|i| fits(broadcast.strides(i))).then_some(outer * length)
}

impl Resolved<'_> {
    /// The dimensions to broadcast; an operand that is not a tensor fits any shape.
    fn dims(&self) -> &[usize] {
        match self {
            Resolved::Tensor(_, dims) => dims,
            _ => &[],
        }
    }
}

struct Binder<'b, 'a> {
    arguments: &'b [Argument<'a>],
    operands: SmallVec<[Resolved<'a>; 4]>,
    saved: [bool; Program::SLOTS as usize],
}

impl Binder<'_, '_> {
    fn step(&mut self, at: usize, instruction: Instruction) -> Result<Step, Invalid> {
        Ok(match instruction {
            Instruction::Load(operand) => Step::Join(Join::Load, self.place(at, operand)?),
            Instruction::Save(slot) => {
                *self.saved.get_mut(usize::from(slot)).ok_or(Invalid::Slot { at, slot })? = true;
                Step::Save(usize::from(slot))
            }
            Instruction::Unary(function) => Step::Unary(function),
            Instruction::Binary(function, operand) => binary(at, function, self.place(at, operand)?)?,
            Instruction::Reverse(function, operand) => reverse(at, function, self.place(at, operand)?)?,
            Instruction::Select(yes, no) => Step::Select(self.place(at, yes)?, self.place(at, no)?),
        })
    }

    fn place(&mut self, at: usize, operand: Operand) -> Result<usize, Invalid> {
        let resolved = match operand {
            Operand::Constant(value) => Resolved::Constant(value),
            Operand::Saved(slot) if self.saved.get(usize::from(slot)) == Some(&true) => {
                Resolved::Saved(usize::from(slot))
            }
            Operand::Saved(slot) => return Err(Invalid::Slot { at, slot }),
            Operand::Input(input) => match self.arguments.get(input) {
                Some(Argument::Result) => Resolved::Result,
                Some(&Argument::Tensor(data, dims)) if dims.iter().product::<usize>() == data.len() => {
                    Resolved::Tensor(data, dims)
                }
                Some(Argument::Tensor(data, dims)) => return Err(Invalid::Elements(data.len(), dims.to_vec())),
                Some(Argument::Absent) | None => return Err(Invalid::Absent(input)),
            },
        };
        if let Some(place) = self.operands.iter().position(|other| other.is(&resolved)) {
            return Ok(place);
        }
        self.operands.push(resolved);
        Ok(self.operands.len() - 1)
    }
}

impl Resolved<'_> {
    fn is(&self, other: &Resolved) -> bool {
        match (self, other) {
            (Resolved::Tensor(a, x), Resolved::Tensor(b, y)) => std::ptr::eq(*a, *b) && x == y,
            (Resolved::Constant(a), Resolved::Constant(b)) => a.to_bits() == b.to_bits(),
            (Resolved::Saved(a), Resolved::Saved(b)) => a == b,
            (Resolved::Result, Resolved::Result) => true,
            _ => false,
        }
    }
}

/// `acc = function(acc, y)`
fn binary(at: usize, function: Binary, y: usize) -> Result<Step, Invalid> {
    Ok(match function {
        Binary::Add => Step::Join(Join::Add, y),
        Binary::Sub => Step::Join(Join::Sub, y),
        Binary::Mul => Step::Join(Join::Mul, y),
        Binary::Div => Step::Join(Join::Div, y),
        Binary::Pow => Step::Pow(y),
        Binary::Mod => Step::Through(floor_mods, y),
        Binary::Fmod => Step::Through(remainders, y),
        Binary::Min => Step::Join(Join::Min, y),
        Binary::Max => Step::Join(Join::Max, y),
        Binary::PRelu => Step::Join(Join::PRelu, y),
        Binary::Equal => Step::Join(Join::Equal, y),
        Binary::Less => Step::Join(Join::Less, y),
        Binary::LessOrEqual => Step::Join(Join::LessOrEqual, y),
        Binary::Greater => Step::Join(Join::Greater, y),
        Binary::GreaterOrEqual => Step::Join(Join::GreaterOrEqual, y),
        Binary::And => Step::Join(Join::And, y),
        Binary::Or => Step::Join(Join::Or, y),
        Binary::Xor => Step::Join(Join::Xor, y),
        _ => return Err(Invalid::Function { at, function: format!("{function:?}") }),
    })
}

/// `acc = function(y, acc)`
fn reverse(at: usize, function: Binary, y: usize) -> Result<Step, Invalid> {
    Ok(match function {
        Binary::Sub => Step::Join(Join::SubFrom, y),
        Binary::Div => Step::Join(Join::DivInto, y),
        Binary::Pow => Step::ThroughReversed(pow_in_place, y),
        Binary::Mod => Step::ThroughReversed(floor_mods, y),
        Binary::Fmod => Step::ThroughReversed(remainders, y),
        Binary::PRelu => Step::ThroughReversed(prelus, y),
        Binary::Less => Step::Join(Join::Greater, y),
        Binary::LessOrEqual => Step::Join(Join::GreaterOrEqual, y),
        Binary::Greater => Step::Join(Join::Less, y),
        Binary::GreaterOrEqual => Step::Join(Join::LessOrEqual, y),
        symmetric => binary(at, symmetric, y)?,
    })
}
