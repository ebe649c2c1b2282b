//! CPU kernels: an error that a run raises when it reaches the step.

use crate::bail;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::ops::raise::Raise;
use crate::types::Types;
use crate::value::Value;

impl Kernel for Raise {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, _: &mut Call) -> Result<Vec<Value>> {
        bail!("{}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::testing::run_outputs;
    use crate::types::Type;

    #[test]
    fn raises_its_message() {
        let op = Raise { message: "no".to_string(), types: vec![Type::ranked(DType::Float32, 1)] };
        assert_eq!(run_outputs(&op, &[], 1).unwrap_err().to_string(), "no");
    }
}
