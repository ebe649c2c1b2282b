//! The modules of kernels, which are loaded when one of their kernels is first launched.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Mutex, PoisonError, RwLock};

use candle_plan_device::{Error, Result, Symbol};

use crate::driver::{cuModuleGetFunction, cuModuleLoadData, cuModuleUnload, FunctionHandle, ModuleHandle};
use crate::failure::Failure;
use crate::images::image;
use crate::pool::Pool;

/// The loaded modules and functions.
#[derive(Debug, Default)]
pub(super) struct Modules {
    functions: RwLock<HashMap<Symbol, FunctionHandle>>,
    /// Locked while a module is loaded.
    loaded: Mutex<HashMap<&'static str, ModuleHandle>>,
}

impl Modules {
    /// Returns a kernel for the GPU of `pool`, whose context must be bound to the thread.
    ///
    /// # Errors
    /// The kernel does not exist, or the driver reports an error.
    pub fn function(&self, pool: &Pool, capability: (u32, u32), symbol: Symbol) -> Result<FunctionHandle> {
        let known = self.functions.read().unwrap_or_else(PoisonError::into_inner).get(&symbol).copied();
        if let Some(function) = known {
            return Ok(function);
        }
        let module = self.module(pool, capability, symbol.module)?;
        let name = CString::new(symbol.to_string()).map_err(|error| Error::Failed(error.to_string()))?;
        let mut function = FunctionHandle::NULL;
        // SAFETY: the call writes one handle. The module is loaded, and the name ends with a null byte.
        let found = pool.with_memory(|| unsafe { cuModuleGetFunction(&raw mut function, module, name.as_ptr()) });
        found.map_err(|error| of_kernel(symbol, error))?;
        self.functions.write().unwrap_or_else(PoisonError::into_inner).insert(symbol, function);
        Ok(function)
    }

    fn module(&self, pool: &Pool, capability: (u32, u32), name: &'static str) -> Result<ModuleHandle> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = loaded.get(name) {
            return Ok(*module);
        }
        let image = image(name, capability)?;
        let mut module = ModuleHandle::NULL;
        // SAFETY: the call writes one handle. The image is a cubin, or PTX that ends with a null byte.
        let done = pool.with_memory(|| unsafe { cuModuleLoadData(&raw mut module, image.as_ptr().cast()) });
        done.map_err(|error| Error::Failed(format!("the kernels of {name} cannot be loaded: {error}")))?;
        loaded.insert(name, module);
        Ok(module)
    }

    /// Unloads all modules. The context must be bound to the thread.
    pub fn unload(&mut self) {
        self.functions.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        for (_, module) in self.loaded.get_mut().unwrap_or_else(PoisonError::into_inner).drain() {
            // SAFETY: nothing launches its kernels any more.
            let _ = unsafe { cuModuleUnload(module) };
        }
    }
}

/// Returns the error of a kernel.
pub(super) fn of_kernel(symbol: Symbol, failure: Failure) -> Error {
    Error::Failed(format!("{}/{symbol}: {failure}", symbol.module))
}
