//! A prepared plan with the memory limit of a session.

use std::ops::Deref;
use std::sync::Arc;

use crate::custom::CustomOps;
use crate::device::Device;
use crate::error::Result;
use crate::kernel::Memory;
use crate::plan::Plan;
use crate::prepare::PreparedPlan;
use crate::value::by_address::Addresses;
use crate::value::held::addresses;
use crate::value::Value;

/// A plan that is ready to run. Sessions with different limits may share the prepared plan.
pub struct Executable {
    prepared: Arc<PreparedPlan>,
    /// The most bytes that the values of a run hold at once, beyond the constants.
    pub(crate) max_memory: Option<usize>,
    /// The storages of the constants, if there is such a limit.
    pub(crate) addresses: Addresses,
}

impl Executable {
    /// A plan with its own limit, prepared as [`PreparedPlan::prepare`] does.
    ///
    /// # Errors
    /// As [`PreparedPlan::prepare`].
    pub fn prepare(
        plan: Plan,
        constants: Vec<Value>,
        device: &Device,
        memory: Memory,
        custom: &CustomOps,
    ) -> Result<Executable> {
        let prepared = PreparedPlan::prepare(plan, constants, device, memory, custom, None)?;
        Ok(Executable::limited(Arc::new(prepared), None))
    }

    /// A prepared plan with the lower one of its own limit and `max_memory`.
    pub fn limited(prepared: Arc<PreparedPlan>, max_memory: Option<usize>) -> Executable {
        let max_memory = prepared.plan.max_memory.into_iter().chain(max_memory).min();
        let addresses = addresses(prepared.constants.iter().filter(|_| max_memory.is_some()));
        Executable { prepared, max_memory, addresses }
    }

    /// The prepared plan.
    pub(crate) fn prepared(&self) -> &Arc<PreparedPlan> {
        &self.prepared
    }
}

impl Deref for Executable {
    type Target = PreparedPlan;

    fn deref(&self) -> &PreparedPlan {
        &self.prepared
    }
}
