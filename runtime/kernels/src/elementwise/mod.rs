//! Elementwise functions on tensors of any element type; operands broadcast by NumPy's rules.
//!
//! `f32` and 16-bit floats use [`crate::program`] instead.

pub mod float;
pub mod integer;

use crate::broadcast::{for_each_run, Broadcast};
use crate::program::Binary;
use crate::threads::Threads;

/// Elements that are worth a separate task.
const TASK: usize = 32 * 1024;

/// Calls `task(first, chunk)` for chunks of `out`, where `first` is the index of the chunk's first element.
///
/// The task is a trait object, so that the code that splits the work is compiled once per element type, not once per
/// function.
fn for_each_task<O: Send>(threads: &Threads, out: &mut [O], task: &(dyn Fn(usize, &mut [O]) + Sync)) {
    match out.len() <= TASK {
        true => task(0, out),
        false => threads.for_each_chunk(out, TASK, |i, out| task(i * TASK, out)),
    }
}

/// Why a function has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Undefined {
    /// The function is not defined for the element type.
    #[error("the function is not defined for this element type")]
    Function,
    /// An integer was divided by element `.0` of the second operand, which is zero.
    #[error("an integer is divided by element {0}, which is zero")]
    DivisionByZero(usize),
}

/// `out[i] = function(x[i])`
pub fn map<X: Copy + Sync, O: Send>(threads: &Threads, x: &[X], out: &mut [O], function: impl Fn(X) -> O + Sync) {
    for_each_task(threads, out, &|first, out| {
        out.iter_mut().zip(&x[first..]).for_each(|(out, &x)| *out = function(x));
    });
}

/// The operands of a function of two elements, and the threads that compute it.
#[derive(Clone, Copy)]
pub struct OperandPair<'a, T> {
    /// The threads.
    pub threads: &'a Threads,
    /// How the operands broadcast; `x` and `y` are its operands 0 and 1.
    pub broadcast: &'a Broadcast,
    /// The first operand.
    pub x: &'a [T],
    /// The second operand.
    pub y: &'a [T],
}

impl<T: Copy + Sync> OperandPair<'_, T> {
    /// `out = function(x, y)`
    fn map<O: Send>(&self, out: &mut [O], function: impl Fn(T, T) -> O + Sync) {
        zip(self.threads, self.broadcast, (self.x, self.y), out, function);
    }
}

/// `out = function(x, y)`, where `x` and `y` are operands 0 and 1 of `broadcast`.
pub fn zip<X: Copy + Sync, Y: Copy + Sync, O: Send>(
    threads: &Threads,
    broadcast: &Broadcast,
    (x, y): (&[X], &[Y]),
    out: &mut [O],
    function: impl Fn(X, Y) -> O + Sync,
) {
    if let [only] = out {
        *only = function(x[0], y[0]);
        return;
    }
    for_each_task(threads, out, &|first, out| {
        for_each_run(broadcast.span(), first, out.len(), |position, count| {
            let out = &mut out[position - first..][..count];
            let (x, y) = (&x[broadcast.offset(0, position)..], &y[broadcast.offset(1, position)..]);
            match (broadcast.advances(0), broadcast.advances(1)) {
                (true, true) => {
                    out.iter_mut().zip(x.iter().zip(y)).for_each(|(out, (&x, &y))| *out = function(x, y));
                }
                (true, false) => out.iter_mut().zip(x).for_each(|(out, &x)| *out = function(x, y[0])),
                (false, true) => out.iter_mut().zip(y).for_each(|(out, &y)| *out = function(x[0], y)),
                (false, false) => out.fill_with(|| function(x[0], y[0])),
            }
        });
    });
}

/// `out = x if condition is not 0, else y`, where `condition`, `x` and `y` are operands 0, 1 and 2 of `broadcast`.
pub fn select<T: Copy + Send + Sync>(
    threads: &Threads,
    broadcast: &Broadcast,
    (condition, x, y): (&[u8], &[T], &[T]),
    out: &mut [T],
) {
    for_each_task(threads, out, &|first, out| {
        for_each_run(broadcast.span(), first, out.len(), |position, count| {
            let out = &mut out[position - first..][..count];
            let [c, x_at, y_at] = [0, 1, 2].map(|operand| broadcast.offset(operand, position));
            let [c_step, x_step, y_step] = [0, 1, 2].map(|operand| usize::from(broadcast.advances(operand)));
            for (i, out) in out.iter_mut().enumerate() {
                let yes = condition[c + i * c_step] != 0;
                *out = if yes { x[x_at + i * x_step] } else { y[y_at + i * y_step] };
            }
        });
    });
}

/// An element type that supports comparisons. The loops over slices are methods, so that they are compiled once, in
/// this crate.
pub trait Comparable: Copy + Sync + PartialOrd {
    /// Writes the comparison `function` of `x` and `y` as 0 or 1.
    ///
    /// # Errors
    /// The function is not a comparison.
    fn compare(function: Binary, operands: OperandPair<Self>, out: &mut [u8]) -> Result<(), Undefined>;
}

macro_rules! comparable {
    ($($type:ty)*) => {
        $(impl Comparable for $type {
            fn compare(function: Binary, operands: OperandPair<Self>, out: &mut [u8]) -> Result<(), Undefined> {
                let OperandPair { threads, broadcast, x, y } = operands;
                match function {
                    Binary::Equal => operands.map(out, |x, y| u8::from(x == y)),
                    Binary::Less => operands.map(out, less),
                    Binary::LessOrEqual => operands.map(out, less_or_equal),
                    Binary::Greater => zip(threads, &broadcast.swapped(), (y, x), out, less),
                    Binary::GreaterOrEqual => zip(threads, &broadcast.swapped(), (y, x), out, less_or_equal),
                    _ => return Err(Undefined::Function),
                }
                Ok(())
            }
        })*
    };
}

comparable! { i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 half::f16 half::bf16 }

fn less<T: PartialOrd>(x: T, y: T) -> u8 {
    u8::from(x < y)
}

fn less_or_equal<T: PartialOrd>(x: T, y: T) -> u8 {
    u8::from(x <= y)
}

/// Applies the boolean operation `function` to bytes that are 0 or 1.
///
/// # Errors
/// The function is not an operation on booleans.
pub fn logic(
    threads: &Threads,
    function: Binary,
    broadcast: &Broadcast,
    operands: (&[u8], &[u8]),
    out: &mut [u8],
) -> Result<(), Undefined> {
    match function {
        Binary::And => zip(threads, broadcast, operands, out, |x, y| x & y),
        Binary::Or => zip(threads, broadcast, operands, out, |x, y| x | y),
        Binary::Xor => zip(threads, broadcast, operands, out, |x, y| x ^ y),
        Binary::Equal => zip(threads, broadcast, operands, out, |x, y| u8::from(x == y)),
        _ => return Err(Undefined::Function),
    }
    Ok(())
}
