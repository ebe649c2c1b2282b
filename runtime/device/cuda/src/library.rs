//! Opens NVIDIA's libraries at run time, and looks up their functions.
//!
//! Nothing is linked, so the extension also loads on a machine without a driver.

use std::sync::OnceLock;

use crate::failure::Failure;

/// A shared library, opened on first use. It stays open until the process ends.
pub(super) struct Library {
    name: &'static str,
    /// The functions that this crate calls.
    functions: &'static [&'static str],
    opened: OnceLock<libloading::Library>,
}

impl Library {
    pub const fn new(name: &'static str, functions: &'static [&'static str]) -> Library {
        Library { name, functions, opened: OnceLock::new() }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn is_there(&self) -> bool {
        self.open().is_some()
    }

    /// Looks up every function.
    ///
    /// # Errors
    /// [`Failure::Missing`]: the first function that is missing.
    pub fn check(&self) -> Result<(), Failure> {
        // SAFETY: the address is not called.
        self.functions.iter().try_for_each(|name| unsafe { self.function::<*const ()>(name) }.map(drop))
    }

    fn open(&self) -> Option<&libloading::Library> {
        if self.opened.get().is_none() {
            // SAFETY: the initializers of NVIDIA's libraries have no requirements.
            let library = unsafe { libloading::Library::new(self.name) }.ok()?;
            // Another thread may have opened the library in the meantime. The system counts references, so either
            // handle is valid.
            let _ = self.opened.set(library);
        }
        self.opened.get()
    }

    /// Returns the function with this name.
    ///
    /// # Errors
    /// [`Failure::Missing`].
    ///
    /// # Safety
    /// `F` is a function pointer of the function's type.
    pub unsafe fn function<F: Copy>(&self, name: &'static str) -> Result<F, Failure> {
        let missing = Failure::Missing { library: self.name, function: name };
        let library = self.open().ok_or(missing)?;
        // SAFETY: guaranteed by the caller.
        unsafe { library.get::<F>(name) }.map(|function| *function).map_err(|_| missing)
    }
}

/// Declares functions of a library that return a status. The Rust function has the name of the symbol, and converts a
/// status other than 0 to a [`Failure`].
macro_rules! functions {
    ($library:ident, $failure:path; $(fn $name:ident($($argument:ident: $kind:ty),* $(,)?);)*) => {
        const FUNCTIONS: &[&str] = &[$(stringify!($name)),*];
    $(
        /// # Safety
        /// The arguments meet the requirements in NVIDIA's documentation of this function.
        #[allow(clippy::too_many_arguments)]
        pub(super) unsafe fn $name($($argument: $kind),*) -> Result<(), $crate::failure::Failure> {
            type Symbol = unsafe extern "C" fn($($kind),*) -> u32;
            static SYMBOL: std::sync::OnceLock<Symbol> = std::sync::OnceLock::new();
            let function = match SYMBOL.get() {
                Some(function) => *function,
                None => {
                    // SAFETY: the signature is that of NVIDIA's header.
                    let found = unsafe { $library.function::<Symbol>(stringify!($name)) }?;
                    *SYMBOL.get_or_init(|| found)
                }
            };
            // SAFETY: guaranteed by the caller.
            match unsafe { function($($argument),*) } {
                0 => Ok(()),
                status => Err($failure(status)),
            }
        }
    )*};
}
pub(super) use functions;
