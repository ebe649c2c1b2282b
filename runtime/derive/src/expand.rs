//! Writes the implementations of the traits, and the checks that the Rust compiler makes.

use std::{env, fs};

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{DeriveInput, Error, Result};

use crate::compare::{pairs, Kind, Pair};
use crate::kernel::{Layout, Source};
use crate::structure::Structure;

/// The folder of the kernels, from the folder of any crate beside theirs.
const KERNELS: &str = "/../device/kernels/";

/// Implements `Mirror`.
pub fn mirror(input: &DeriveInput) -> TokenStream {
    let structure = match Structure::new(input) {
        Ok(structure) => structure,
        Err(error) => return error.into_compile_error(),
    };
    // If the fields differ, the trait is still implemented: its absence would be a second error.
    let checks = checks(&structure, kernel).unwrap_or_else(Error::into_compile_error);
    let (name, twin) = (&structure.name, format!("{} in {}", structure.twin.name, structure.twin.file));
    quote! {
        const _: () = { #checks };
        #[automatically_derived]
        unsafe impl ::candle_plan_device::Mirror for #name {
            const TWIN: &'static str = #twin;
        }
    }
}

/// Implements `Mirror` and `Params`.
pub fn params(input: &DeriveInput) -> TokenStream {
    let (mirror, name) = (mirror(input), &input.ident);
    quote! {
        #mirror
        #[automatically_derived]
        unsafe impl Params for #name {}
    }
}

/// Returns the contents of a file of the kernels.
fn kernel(file: &str) -> std::result::Result<String, String> {
    let path = env::var("CARGO_MANIFEST_DIR").unwrap_or_default() + KERNELS + file;
    fs::read_to_string(&path).map_err(|error| format!("{path} cannot be read: {error}"))
}

/// Compares the fields, and returns what the Rust compiler checks. `text` returns the contents of a file.
fn checks(structure: &Structure, text: impl Fn(&str) -> std::result::Result<String, String>) -> Result<TokenStream> {
    let (name, file) = (&structure.twin.name, &structure.twin.file);
    let read = || {
        let source = Source::read(file, text)?;
        let layout = source.layout(&name.to_string())?;
        match layout.file == *file {
            true => Ok((source, layout)),
            false => Err(format!("the struct `{name}` is in {}, not in {file}", layout.file)),
        }
    };
    let (source, layout) = read().map_err(|text| Error::new(name.span(), format!("`{}`: {text}", structure.name)))?;
    let files = source.files().map(|file| format!("{KERNELS}{file}"));
    let assertions = assertions(structure, &layout, &format!("the struct `{name}` in {file}"))?;
    Ok(quote! {
        // A change of a kernel compiles the crate again.
        #(const _: &[u8] = ::core::include_bytes!(::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), #files));)*
        #assertions
    })
}

/// Returns assertions about the places of all fields.
fn assertions(structure: &Structure, layout: &Layout, twin: &str) -> Result<TokenStream> {
    let (name, size) = (&structure.name, layout.size);
    let pairs = pairs(&structure.fields, &layout.fields);
    let differences = pairs.iter().flat_map(|pair| pair.differences(&structure.fields, &layout.fields, twin));
    let errors = differences.map(|(own, text)| match own.map(|own| &structure.declared[own].0) {
        Some(field) => Error::new(field.span(), format!("`{name}.{field}` {text}")),
        None => Error::new(name.span(), format!("`{name}` {text}")),
    });
    let combined = errors.reduce(|mut all, error| {
        all.combine(error);
        all
    });
    if let Some(error) = combined {
        return Err(error);
    }
    let fields = pairs.iter().map(|pair| assertion(structure, layout, pair, twin));
    let wrong_size = format!("`{name}` has not the {size} bytes of {twin}");
    Ok(quote_spanned! {name.span()=>
        #(#fields)*
        ::core::assert!(::core::mem::size_of::<#name>() == #size, #wrong_size);
    })
}

/// Returns assertions about the offsets and sizes of fields, and about their types if these are structures.
fn assertion(structure: &Structure, layout: &Layout, pair: &Pair, twin: &str) -> TokenStream {
    let name = &structure.name;
    let places = pair.places(&structure.fields, &layout.fields).into_iter();
    let assertions = places.map(|(own, at, size)| {
        let (field, all, element) = &structure.declared[own];
        let misplaced = format!("`{name}.{field}` has not the place or the length of its field of {twin}");
        let structures = layout.fields[pair.kernel.clone()].iter().filter_map(|theirs| {
            let Kind::Struct(kind) = &theirs.kind else { return None };
            let other =
                format!("`{name}.{field}` mirrors another struct than {kind}, the type of `{}` in {twin}", theirs.name);
            Some(quote_spanned! {field.span()=>
                ::core::assert!(::candle_plan_device::is_mirror::<#element>(#kind), #other);
            })
        });
        quote_spanned! {field.span()=>
            #(#structures)*
            ::core::assert!(::core::mem::offset_of!(#name, #field) == #at, #misplaced);
            ::core::assert!(::core::mem::size_of::<#all>() == #size, #misplaced);
        }
    });
    assertions.collect()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
