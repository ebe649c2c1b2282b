//! The ops of a plan, one file per family. An op has the same name everywhere: as a struct here, as a tag in the plan,
//! and as a class in `compiler/plan/ops/`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::error::Result;
use crate::operator::{Operator, OperatorKind};
use crate::types::{Type, Types};
use block::{Block, MAX_DEPTH};
use control::ControlFlow;

pub mod block;
pub(crate) mod matrices;
pub(crate) mod nested;
pub(crate) mod padding;
pub(crate) mod places;
pub(crate) mod recurrent_inputs;
pub(crate) mod resample;
pub(crate) mod transposed_window;
pub mod window;

// The macro `with_operators`, which `build.rs` writes: it knows the operators that each file implements.
include!(concat!(env!("OUT_DIR"), "/operators.rs"));

/// Declares the families and their ops. A line of the table holds a family, which is a file, and its ops. `<Op>` follows an
/// op with nested graphs, which consist of ops. The first token is a dollar sign, which the generated macros need.
macro_rules! ops {
    ($d:tt $($family:ident: $($op:ident $(<$inner:ident>)?)*;)*) => {
        $(pub mod $family;)*

        /// An operation and its attributes, tagged by its name.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub enum Op {
            $($(
                #[allow(missing_docs)]
                $op($family::$op $(<$inner>)?),
            )*)*
        }

        $($(
            impl From<$family::$op $(<$inner>)?> for Op {
                fn from(op: $family::$op $(<$inner>)?) -> Op {
                    Op::$op(op)
                }
            }
        )*)*

        /// Evaluates an expression with the struct inside an [`Op`], whichever op it is.
        macro_rules! each_op {
            ($d value:expr, $d op:ident => $d result:expr) => {
                match $d value { $($($crate::ops::Op::$op($d op) => $d result,)*)* }
            };
        }
        pub(crate) use each_op;

        /// Declares a module for each family of ops.
        macro_rules! family_modules {
            () => { $(mod $family;)* };
        }
        pub(crate) use family_modules;

        impl Op {
            /// The op's name.
            pub fn name(&self) -> &'static str {
                match self { $($(Op::$op(_) => stringify!($op),)*)* }
            }

            /// The kind of operands.
            pub fn kind(&self) -> OperatorKind {
                match self { $($(Op::$op(_) => <$family::$op $(<$inner>)? as Operator>::kind(),)*)* }
            }

            /// The op as control flow, if it has nested graphs.
            pub fn control_flow(&self) -> Option<&dyn ControlFlow<Op>> {
                match self {
                    $($($(Op::$op(op) => Some(op as &dyn ControlFlow<$inner>),)?)*)*
                    _ => None,
                }
            }

            /// Every op's family, name and kind, in the table's order.
            pub fn all() -> Vec<(&'static str, &'static str, OperatorKind)> {
                vec![$($((stringify!($family), stringify!($op), <$family::$op $(<$inner>)? as Operator>::kind()),)*)*]
            }
        }
    };
}

with_operators!(ops $);

impl Op {
    /// The op's meaning: its arity, types and work.
    pub fn operator(&self) -> &dyn Operator {
        each_op!(self, op => op)
    }

    /// The nested graphs, in the order of the struct's fields.
    pub fn blocks(&self) -> Vec<&Block<Op>> {
        self.control_flow().map_or_else(Vec::new, ControlFlow::blocks)
    }

    /// Infers the outputs' types from the inputs': [`Operator::infer`], with a [check](Type::check) of all these types.
    ///
    /// # Errors
    /// As [`Operator::infer`] and [`Operator::check`], where a type has [no value](crate::types::Type::check), and where
    /// blocks nest deeper than [`MAX_DEPTH`].
    pub fn infer(&self, types: &Types) -> Result<Vec<Type>> {
        if self.blocks().into_iter().any(|block| block.depth() >= MAX_DEPTH) {
            bail!("blocks nest deeper than {MAX_DEPTH}");
        }
        types.inputs.iter().flatten().try_for_each(|kind| kind.check())?;
        let outputs = self.operator().infer(types)?;
        outputs.iter().try_for_each(Type::check)?;
        self.operator().check(types, &outputs.iter().map(Some).collect::<Vec<_>>())?;
        Ok(outputs)
    }

    /// Checks that the outputs can have the types that a plan states; `None` stands for an output that nobody reads.
    ///
    /// # Errors
    /// As [`Op::infer`], where a stated type does not agree with the inferred one, and as [`Operator::check`].
    pub fn check(&self, types: &Types, stated: &[Option<&Type>]) -> Result<()> {
        let inferred = self.infer(types)?;
        for (index, stated) in stated.iter().enumerate().filter_map(|(index, stated)| Some((index, (*stated)?))) {
            match inferred.get(index) {
                None => bail!("output {index} is never computed"),
                Some(found) if !stated.agrees_with(found) => {
                    bail!("output {index} is declared {stated}, and computed {found}")
                }
                Some(_) => {}
            }
        }
        self.operator().check(types, stated)
    }
}

impl Block<Op> {
    /// The depth of nested blocks in this one; 0 if there are none.
    pub fn depth(&self) -> usize {
        let nested = self.steps.iter().flat_map(|step| step.op.blocks());
        nested.map(|block| 1 + block.depth()).max().unwrap_or(0)
    }
}
