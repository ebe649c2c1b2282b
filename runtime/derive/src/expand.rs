//! Writes the implementations of the traits, and the checks that the Rust compiler makes.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{DeriveInput, Error, Ident, Result};

use crate::compare::{differences, Field, FieldKind};
use crate::kernel::{Layout, Source};
use crate::structure::{Declared, Structure, Twin};

/// The folder of the kernels, from the folder of any crate beside theirs.
const KERNELS: &str = "/../device/kernels/";

/// A text, or the end of a sentence about why there is none.
type Text = std::result::Result<String, String>;

/// Implements `Mirror`.
pub fn mirror(input: &DeriveInput) -> TokenStream {
    let structure = match Structure::new(input) {
        Ok(structure) => structure,
        Err(error) => return error.into_compile_error(),
    };
    // If the fields differ, the trait is still implemented: its absence would be a second error.
    let checks = match is_packaged() {
        true => TokenStream::new(),
        false => checks(&structure, kernel).unwrap_or_else(Error::into_compile_error),
    };
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
    // If the structure has an error, `mirror` contains it.
    let kernels = match Structure::new(input) {
        Ok(structure) if !is_packaged() => {
            kernels(&structure, &modules(), kernel).unwrap_or_else(Error::into_compile_error)
        }
        _ => quote!(::core::option::Option::None),
    };
    quote! {
        #mirror
        #[automatically_derived]
        unsafe impl Params for #name {
            const KERNELS: ::core::option::Option<&'static [(&'static str, &'static str)]> = #kernels;
        }
    }
}

/// Whether Cargo packaged the crate. Then the kernels do not lie beside it, and were compared before.
fn is_packaged() -> bool {
    env::var("CARGO_MANIFEST_DIR").is_ok_and(|folder| Path::new(&folder).join("Cargo.toml.orig").is_file())
}

/// Returns the contents of a file of the kernels.
fn kernel(file: &str) -> Text {
    let path = folder() + file;
    fs::read_to_string(&path).map_err(|error| format!("{path} cannot be read: {error}"))
}

/// Returns the names of all modules, sorted: the files of the kernels without their headers.
fn modules() -> Vec<String> {
    let files = fs::read_dir(folder()).into_iter().flatten().flatten();
    let mut names: Vec<String> = files.filter_map(|file| file.file_name().into_string().ok()).collect();
    names.retain(|name| name.ends_with(".cu"));
    names.sort();
    names
}

/// Returns the path of the folder of the kernels.
fn folder() -> String {
    env::var("CARGO_MANIFEST_DIR").unwrap_or_default() + KERNELS
}

/// Returns the modules and names of the kernels with these parameters, and reads the modules when the crate is compiled.
fn kernels(structure: &Structure, modules: &[String], text: impl Fn(&str) -> Text) -> Result<TokenStream> {
    let Twin { name, file } = &structure.twin;
    let mut found = vec![];
    for module in modules.iter().filter(|module| *module == file || file.ends_with(".cuh")) {
        // `checks` reports a file that cannot be read.
        let Ok(source) = Source::read(module, &text) else { continue };
        if source.files().any(|included| included == file) {
            let kernels = source.kernels(&name.to_string()).into_iter();
            found.extend(kernels.map(|kernel| (module.trim_end_matches(".cu").to_string(), kernel)));
        }
    }
    if found.is_empty() {
        let text = format!("`{}`: the struct `{name}` in {file} is not the parameters of a kernel", structure.name);
        return Err(Error::new(name.span(), text));
    }
    let (module, kernel): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let files = module.iter().map(|module| format!("{KERNELS}{module}.cu")).collect::<BTreeSet<_>>().into_iter();
    Ok(quote! {{
        #(const _: &[u8] = ::core::include_bytes!(::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), #files));)*
        ::core::option::Option::Some(&[#((#module, #kernel)),*])
    }})
}

/// Compares the fields, and returns the assertions for the Rust compiler. `text` returns the contents of a file.
fn checks(structure: &Structure, text: impl Fn(&str) -> Text) -> Result<TokenStream> {
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
    let differences = differences(&structure.fields, &layout.fields, twin).into_iter();
    let errors = differences.map(|(own, text)| match own.map(|own| &structure.declared[own].name) {
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
    let fields = structure.declared.iter().zip(&layout.fields);
    let fields = fields.map(|(own, theirs)| assertion(name, own, theirs, twin));
    let wrong_size = format!("`{name}` has not the {size} bytes of {twin}");
    Ok(quote_spanned! {name.span()=>
        #(#fields)*
        ::core::assert!(::core::mem::size_of::<#name>() == #size, #wrong_size);
    })
}

/// Returns assertions about the offset and the size of a field, and about its type if this is a structure.
fn assertion(name: &Ident, own: &Declared, theirs: &Field, twin: &str) -> TokenStream {
    let (Declared { name: field, whole, element }, Field { at, size, .. }) = (own, theirs);
    let misplaced = format!("`{name}.{field}` has not the place or the length of its field of {twin}");
    let structures = match &theirs.kind {
        FieldKind::Number(_) => None,
        FieldKind::Struct(kind) => {
            let other = format!("`{name}.{field}` mirrors another struct than {kind}, its type in {twin}");
            Some(quote_spanned! {field.span()=>
                ::core::assert!(::candle_plan_device::is_mirror::<#element>(#kind), #other);
            })
        }
    };
    quote_spanned! {field.span()=>
        #structures
        ::core::assert!(::core::mem::offset_of!(#name, #field) == #at, #misplaced);
        ::core::assert!(::core::mem::size_of::<#whole>() == #size, #misplaced);
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
