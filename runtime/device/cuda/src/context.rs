//! A GPU that all sessions of the process share: its primary context, its memory pool and its modules.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use candle_plan_device::{Error, Result};

use crate::checks::{attribute, check_libraries, find, UsableGpu, FORKED};
use crate::driver::{
    cuCtxGetCurrent, cuCtxSetCurrent, cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRetain, cuPointerGetAttribute,
    ContextHandle, DEVICE_ORDINAL, INVALID_VALUE, MEMORY_POOLS_SUPPORTED,
};
use crate::failure::Failure;
use crate::modules::Modules;
use crate::pool::Pool;

/// The open GPUs, by their numbers.
static OPEN: Mutex<BTreeMap<usize, Weak<Context>>> = Mutex::new(BTreeMap::new());

/// The primary context of a GPU, which other libraries in the process share.
#[derive(Debug)]
pub(super) struct Context {
    pub name: String,
    pub capability: (u32, u32),
    pub modules: Modules,
    pub pool: Pool,
    device: c_int,
    handle: ContextHandle,
    /// The process that opened the GPU. A forked process cannot use it.
    process: u32,
}

/// While this guard exists, the context is bound to the thread.
#[must_use]
pub(super) struct Bound {
    /// The context that was bound to the thread before.
    former: Option<ContextHandle>,
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let Some(former) = self.former {
            // SAFETY: this was the thread's context; other libraries keep it alive.
            let _ = unsafe { cuCtxSetCurrent(former) };
        }
    }
}

impl Context {
    /// Returns GPU number `ordinal`; opens it if no session has done so.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: the reason.
    pub fn open(ordinal: usize) -> Result<Arc<Context>> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = open.get(&ordinal).and_then(Weak::upgrade) {
            return context.bind().map(|_| context);
        }
        let context = Arc::new(Context::new(ordinal)?);
        open.insert(ordinal, Arc::downgrade(&context));
        Ok(context)
    }

    fn new(ordinal: usize) -> Result<Context> {
        let UsableGpu { device, capability } = find(ordinal)?;
        check_libraries()?;
        let mut handle = ContextHandle::NULL;
        // SAFETY: the call writes one handle.
        unsafe { cuDevicePrimaryCtxRetain(&raw mut handle, device) }?;
        let name = if ordinal == 0 { "cuda".to_string() } else { format!("cuda:{ordinal}") };
        let (process, modules) = (std::process::id(), Modules::default());
        let mut context = Context { name, capability, modules, pool: Pool::default(), device, handle, process };
        let bound = context.bind()?;
        if attribute(device, MEMORY_POOLS_SUPPORTED)? > 0 {
            context.pool = Pool::new(device)?;
        }
        drop(bound);
        Ok(context)
    }

    /// Checks that the process is not a fork of the one that opened the GPU.
    ///
    /// # Errors
    /// It is a fork.
    pub fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(Error::Unavailable(FORKED.to_string()))
    }

    /// Makes this GPU current for the driver's calls in this thread. If another GPU was current, dropping the guard
    /// restores it, because other libraries select their GPU in this way.
    ///
    /// # Errors
    /// The process was forked, or the driver reports an error.
    pub fn bind(&self) -> Result<Bound> {
        self.check_process()?;
        let mut current = ContextHandle::NULL;
        // SAFETY: the call writes one handle.
        let known = unsafe { cuCtxGetCurrent(&raw mut current) }.is_ok();
        if known && current == self.handle {
            return Ok(Bound { former: None });
        }
        // SAFETY: the context is retained.
        unsafe { cuCtxSetCurrent(self.handle) }?;
        Ok(Bound { former: Some(current).filter(|former| known && *former != ContextHandle::NULL) })
    }

    /// Checks that an address belongs to this GPU's memory. The context must be bound to the thread.
    ///
    /// # Errors
    /// It does not, or the driver reports an error.
    pub fn check_address(&self, address: u64) -> Result<()> {
        let mut device: c_int = -1;
        // SAFETY: the call writes one number.
        let known = unsafe { cuPointerGetAttribute((&raw mut device).cast(), DEVICE_ORDINAL, address) };
        match known {
            Ok(()) if device == self.device => Ok(()),
            Ok(()) => Err(Error::Failed(format!("the memory is on GPU {device}"))),
            Err(Failure::Driver(INVALID_VALUE)) => Err(Error::Failed("the memory is on no GPU".to_string())),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Context {
    /// After a fatal error of the GPU, these calls fail, and the driver cleans up when the process ends.
    fn drop(&mut self) {
        let Ok(_bound) = self.bind() else { return };
        self.modules.unload();
        // SAFETY: streams hold the context, so no stream is left, and no memory except what was given up.
        unsafe {
            self.pool.destroy();
            let _ = cuDevicePrimaryCtxRelease_v2(self.device);
        }
    }
}
