//! Kernels of operators, with their packed constants.

use std::fmt::{self, Debug, Formatter};

use crate::dtype::DType;
use crate::error::Result;
use crate::form::{Alternative, Form};
use crate::kernel::{Call, Constants, Kernel};
use crate::ops::{each_op, Op};
use crate::types::Types;
use crate::value::Value;

/// An operator whose kernel packs constants before a run. It has the methods of [`Kernel`], with an argument for the
/// packed constants. The argument is `None` if the operands are not constant. The trait lacks [`Kernel::fault`],
/// because only the kernels of a device report values.
pub(super) trait Packs: Debug + Clone + Send + Sync + 'static {
    /// The packed constants.
    type Packed: Send + Sync + 'static;

    /// Packs the constants among the operands, if possible.
    ///
    /// # Errors
    /// The constants do not fit the operator.
    fn pack(&self, operands: &Constants) -> Result<Option<Self::Packed>>;

    /// See [`Kernel::takes_sequence`].
    fn takes_sequence(&self, _input: usize) -> bool {
        false
    }

    /// See [`Kernel::is_replaced`]. Only called if the operands were packed.
    fn is_replaced(&self, _input: usize) -> bool {
        false
    }

    /// See [`Kernel::takes`].
    fn takes(&self, _input: usize, _dtype: DType) -> bool {
        false
    }

    /// See [`Kernel::reads_grown`].
    fn reads_grown(&self, _input: usize, _from_end: usize) -> bool {
        false
    }

    /// See [`Kernel::form`].
    fn form(&self, _packed: Option<&Self::Packed>) -> Form {
        Form::default()
    }

    /// See [`Kernel::alternatives`].
    fn alternatives(&self, _packed: Option<&Self::Packed>, _inputs: &Types) -> Vec<Alternative> {
        Vec::new()
    }

    /// See [`Kernel::scratch`].
    fn scratch(&self, _packed: Option<&Self::Packed>, _inputs: &Types) -> Option<usize> {
        None
    }

    /// See [`Kernel::run`].
    ///
    /// # Errors
    /// The inputs do not fit the operator.
    fn run(&self, packed: Option<&Self::Packed>, call: &mut Call) -> Result<Vec<Value>>;
}

/// Returns the kernel of an operator for values in the layout of the plan.
///
/// # Errors
/// The constants do not fit the operator.
pub(crate) fn kernel(op: &Op, operands: &Constants) -> Result<Box<dyn Kernel>> {
    each_op!(op, op => Packed::boxed(op, operands))
}

/// An operator that packs nothing is its own kernel. Its packed constants are always present and empty, so
/// [`Packed`] also calls its `is_replaced`.
impl<K: Kernel + Clone + 'static> Packs for K {
    type Packed = ();

    fn pack(&self, _: &Constants) -> Result<Option<()>> {
        Ok(Some(()))
    }

    fn takes_sequence(&self, input: usize) -> bool {
        Kernel::takes_sequence(self, input)
    }

    fn reads_grown(&self, input: usize, from_end: usize) -> bool {
        Kernel::reads_grown(self, input, from_end)
    }

    fn is_replaced(&self, input: usize) -> bool {
        Kernel::is_replaced(self, input)
    }

    fn takes(&self, input: usize, dtype: DType) -> bool {
        Kernel::takes(self, input, dtype)
    }

    fn form(&self, _: Option<&()>) -> Form {
        Kernel::form(self)
    }

    fn alternatives(&self, _: Option<&()>, inputs: &Types) -> Vec<Alternative> {
        Kernel::alternatives(self, inputs)
    }

    fn scratch(&self, _: Option<&()>, inputs: &Types) -> Option<usize> {
        Kernel::scratch(self, inputs)
    }

    fn run(&self, _: Option<&()>, call: &mut Call) -> Result<Vec<Value>> {
        Kernel::run(self, call)
    }
}

/// An operator's kernel with its packed constants.
pub(super) struct Packed<O: Packs> {
    op: O,
    packed: Option<O::Packed>,
}

impl<O: Packs> Packed<O> {
    /// Makes the kernel for these operands.
    ///
    /// # Errors
    /// See [`Packs::pack`].
    pub fn boxed(op: &O, operands: &Constants) -> Result<Box<dyn Kernel>> {
        Ok(Packed::with(op, op.pack(operands)?))
    }

    /// Makes the kernel with these packed constants.
    pub fn with(op: &O, packed: Option<O::Packed>) -> Box<dyn Kernel> {
        Box::new(Packed { op: op.clone(), packed })
    }
}

impl<O: Packs> Debug for Packed<O> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.op.fmt(f)
    }
}

impl<O: Packs> Kernel for Packed<O> {
    fn takes(&self, input: usize, dtype: DType) -> bool {
        self.op.takes(input, dtype)
    }

    fn takes_sequence(&self, input: usize) -> bool {
        self.op.takes_sequence(input)
    }

    fn reads_grown(&self, input: usize, from_end: usize) -> bool {
        self.op.reads_grown(input, from_end)
    }

    fn is_replaced(&self, input: usize) -> bool {
        self.packed.is_some() && self.op.is_replaced(input)
    }

    fn form(&self) -> Form {
        self.op.form(self.packed.as_ref())
    }

    fn alternatives(&self, inputs: &Types) -> Vec<Alternative> {
        self.op.alternatives(self.packed.as_ref(), inputs)
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        self.op.scratch(self.packed.as_ref(), inputs)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        self.op.run(self.packed.as_ref(), call)
    }
}

#[cfg(test)]
mod tests {
    use candle_plan_kernels::blocking::Blocking;
    use candle_plan_kernels::isa::Isa;

    use super::*;
    use crate::kernel::Memory;

    /// A kernel whose every answer differs from the default of [`Kernel`].
    #[derive(Debug, Clone)]
    struct Unusual;

    impl Kernel for Unusual {
        fn takes(&self, input: usize, dtype: DType) -> bool {
            input == 1 && dtype == DType::Int8
        }

        fn takes_sequence(&self, input: usize) -> bool {
            input == 2
        }

        fn reads_grown(&self, input: usize, from_end: usize) -> bool {
            (input, from_end) == (4, 5)
        }

        fn is_replaced(&self, input: usize) -> bool {
            input == 3
        }

        fn form(&self) -> Form {
            Form::named("unusual")
        }

        fn alternatives(&self, inputs: &Types) -> Vec<Alternative> {
            Alternative::all([("unusual", inputs.outputs as f64)])
        }

        fn scratch(&self, inputs: &Types) -> Option<usize> {
            Some(inputs.outputs)
        }

        fn run(&self, _: &mut Call) -> Result<Vec<Value>> {
            Ok(vec![])
        }
    }

    #[test]
    fn a_kernel_that_packs_nothing_keeps_its_answers() {
        let blocking = Blocking::largest(Isa::get());
        let operands = Constants { values: &[], types: &[], memory: Memory::Full, blocking };
        let kernel = Packed::boxed(&Unusual, &operands).expect("it packs nothing");
        let inputs = Types::of(&[], 7);
        assert!(kernel.takes(1, DType::Int8) && kernel.takes_sequence(2) && kernel.is_replaced(3));
        assert!(kernel.reads_grown(4, 5) && !kernel.reads_grown(5, 4));
        assert_eq!((kernel.form(), kernel.scratch(&inputs)), (Form::named("unusual"), Some(7)));
        assert_eq!(kernel.alternatives(&inputs), Alternative::all([("unusual", 7.0)]));
    }
}
