//! Reads a structure in Rust.

use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Data, DataStruct, DeriveInput, Error, Fields, Ident, LitInt, LitStr, Result, Token, Type};

use crate::compare::{Field, FieldKind, PADDING};

/// A structure in Rust.
pub struct Structure {
    pub name: Ident,
    pub twin: Twin,
    /// All fields except padding.
    pub fields: Vec<Field>,
    /// The declarations of these fields.
    pub declared: Vec<Declared>,
}

/// The declaration of a field.
pub struct Declared {
    pub name: Ident,
    /// Its type.
    pub whole: Type,
    /// The type of a list's elements, otherwise that of the field.
    pub element: Type,
}

/// The kernel's struct: `UnaryOf in "unary.cu"`.
pub struct Twin {
    pub name: Ident,
    pub file: String,
}

impl Parse for Twin {
    fn parse(input: ParseStream) -> Result<Twin> {
        let name = input.parse()?;
        input.parse::<Token![in]>()?;
        Ok(Twin { name, file: input.parse::<LitStr>()?.value() })
    }
}

impl Structure {
    /// # Errors
    /// The item is no structure with named fields, or it lacks an attribute.
    pub fn new(input: &DeriveInput) -> Result<Structure> {
        let name = input.ident.clone();
        let error = |text: &str| Error::new(name.span(), format!("`{name}` {text}"));
        let Data::Struct(DataStruct { fields: Fields::Named(named), .. }) = &input.data else {
            return Err(error("is not a structure with named fields"));
        };
        if !input.attrs.iter().any(is_repr_c) {
            return Err(error(
                "needs the attribute #[repr(C)], because the kernel's struct has the memory layout of C",
            ));
        }
        let twin = input.attrs.iter().find(|attribute| attribute.path().is_ident("kernel"));
        let twin = twin.ok_or_else(|| error("needs the attribute #[kernel(Struct in \"file.cu\")]"))?.parse_args()?;
        let (mut fields, mut declared) = (vec![], vec![]);
        for field in &named.named {
            let Some(ident) = field.ident.clone().filter(|ident| ident != PADDING) else { continue };
            let (element, count) = elements(&field.ty);
            let kind = element.to_token_stream().to_string();
            let kind = FieldKind::number(&kind).map_or(FieldKind::Struct(kind), |(number, _)| number);
            fields.push(Field { name: ident.to_string(), kind, count, at: 0, size: 0 });
            declared.push(Declared { name: ident, whole: field.ty.clone(), element: element.clone() });
        }
        Ok(Structure { name, twin, fields, declared })
    }
}

fn is_repr_c(attribute: &Attribute) -> bool {
    attribute.path().is_ident("repr") && attribute.parse_args::<Ident>().is_ok_and(|repr| repr == "C")
}

/// Returns the type of a list's elements, and their number, which is `None` if a length is not a literal.
fn elements(mut all: &Type) -> (&Type, Option<usize>) {
    let mut count = Some(1);
    while let Type::Array(array) = all {
        let length = syn::parse2::<LitInt>(array.len.to_token_stream()).and_then(|length| length.base10_parse());
        count = count.zip(length.ok()).map(|(count, length): (usize, usize)| count * length);
        all = &array.elem;
    }
    (all, count)
}
