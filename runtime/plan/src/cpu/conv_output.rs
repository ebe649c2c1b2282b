//! The output of a convolution: its epilogue, and the storage that it takes over on blocks of channels.

use candle_plan_kernels::convolution::{Epilogue, Residual};
use candle_plan_kernels::program::Program;

use super::finish::with_finish;
use crate::epilogue;
use crate::error::Result;
use crate::kernel::Call;
use crate::value::{alloc_uninit, Array};

/// How a convolution finishes its output. If the epilogue begins with the addition of an input, the form adds this input
/// as a residual, in place if no later step reads it.
#[derive(Debug)]
pub(super) struct ConvOutput {
    /// The residual's input, and the program without its addition.
    residual: Option<(usize, Program)>,
}

impl ConvOutput {
    /// The output of a form that can add a residual or not.
    pub fn new(program: Option<&Program>, adds_residual: bool) -> ConvOutput {
        ConvOutput { residual: program.filter(|_| adds_residual).and_then(epilogue::residual) }
    }

    /// See [`Kernel::takes`](crate::kernel::Kernel::takes).
    pub fn takes(&self, input: usize) -> bool {
        self.residual.as_ref().is_some_and(|(residual, _)| *residual == input)
    }

    /// Returns the result of shape `dims`; `compute` writes its elements and applies the epilogue. `program` is the
    /// program of [`ConvOutput::new`].
    ///
    /// # Errors
    /// See [`with_finish`].
    pub fn write(
        &self,
        program: Option<&Program>,
        call: &mut Call,
        dims: &[usize],
        compute: impl FnOnce(&Call, &mut [f32], Epilogue) -> Result<()>,
    ) -> Result<Array> {
        let residual = self.residual.as_ref().map(|(input, rest)| (*input, rest));
        let fits = |input: usize| call.tensor(input).is_ok_and(|residual| residual.dims() == dims);
        let Some((input, rest)) = residual.filter(|(input, _)| fits(*input)) else {
            let out = alloc_uninit(dims)?;
            let compute = |epilogue: Epilogue| out.try_overwrite(|out| compute(call, out, epilogue));
            return Array::new(with_epilogue(program, call, dims, compute)?, dims);
        };
        if let Some(mut taken) = call.take(input) {
            taken.update::<f32>(|out| {
                with_epilogue(Some(rest), call, dims, |epilogue| {
                    compute(call, out, Epilogue { residual: Some(Residual::InPlace), ..epilogue })
                })
            })?;
            return Ok(taken);
        }
        let (out, residual) = (alloc_uninit(dims)?, call.read(input)?);
        let out = with_epilogue(Some(rest), call, dims, |epilogue| {
            let epilogue = Epilogue { residual: Some(Residual::Separate(residual)), ..epilogue };
            out.try_overwrite(|out| compute(call, out, epilogue))
        })?;
        Array::new(out, dims)
    }
}

/// Calls `compute` with the epilogue of a result of shape `result`: limits if the program only clips, else the program.
///
/// # Errors
/// See [`with_finish`].
pub(super) fn with_epilogue<R>(
    program: Option<&Program>,
    call: &Call,
    result: &[usize],
    compute: impl FnOnce(Epilogue) -> Result<R>,
) -> Result<R> {
    let limits = epilogue::limits(program);
    with_finish(program.filter(|_| limits.is_none()), call, result, |finish| {
        compute(Epilogue { limits: limits.unwrap_or(Epilogue::NO_LIMITS), finish, ..Epilogue::NONE })
    })
}
