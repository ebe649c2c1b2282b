//! Derives for structures that Rust and the GPU kernels share.
//!
//! A structure names the kernel's struct, and the file in `runtime/device/kernels/` that declares it:
//!
//! ```ignore
//! #[derive(Clone, Copy, Pod, Zeroable, Params)]
//! #[repr(C)]
//! #[kernel(UnaryOf in "unary.cu")]
//! struct UnaryParams {
//!     x: u64,
//!     y: u64,
//!     count: u32,
//!     function: Function,
//! }
//! ```
//!
//! The derive reads this file when the structure is compiled. It is an error if the fields differ in name, order, type,
//! length or place. These differences are allowed:
//!
//! - Fields with the name `padding` may be missing.
//! - Integers may differ in their sign.
//!
//! A field that is a structure needs a derive of its own: [`Mirror`](macro@Mirror).

#![forbid(unsafe_code)]

mod compare;
mod expand;
mod kernel;
mod structure;

use proc_macro::TokenStream;
use syn::parse_macro_input;

/// Compares a structure with the struct of the kernels that the attribute `kernel` names, and implements the trait
/// `candle_plan_device::Mirror`.
#[proc_macro_derive(Mirror, attributes(kernel))]
pub fn mirror(item: TokenStream) -> TokenStream {
    expand::mirror(&parse_macro_input!(item)).into()
}

/// Compares the structure as [`Mirror`](macro@Mirror) does. Implements the trait `candle_plan_device::Mirror` and the
/// trait `Params` that is in scope. Lists the kernels that declare the struct as their parameters, such as
/// `KERNEL(unary_f32, UnaryOf, …)`, so that a launch can refuse other kernels.
///
/// The macro cannot check the other part of the trait's contract: code that fills the structure provides valid
/// addresses and sizes.
#[proc_macro_derive(Params, attributes(kernel))]
pub fn params(item: TokenStream) -> TokenStream {
    expand::params(&parse_macro_input!(item)).into()
}
