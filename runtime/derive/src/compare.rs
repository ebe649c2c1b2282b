//! Compares the fields of a structure in Rust with those of the kernel's struct.

/// The name of fields that are not compared.
pub const PADDING: &str = "padding";

/// A field of a structure in Rust or of a kernel's struct.
pub struct Field {
    pub name: String,
    pub kind: FieldKind,
    /// The number of elements, which is 1 if the field is no list. `None` if only the Rust compiler knows it.
    pub count: Option<usize>,
    /// The offset and the size in the kernel's struct, in bytes. Both are 0 for a field in Rust.
    pub at: usize,
    pub size: usize,
}

/// The type of a field, or of a list's elements.
pub enum FieldKind {
    Number(String),
    /// A structure: in Rust its type, and in a kernel its name and its file.
    Struct(String),
}

impl FieldKind {
    /// Returns the number type of this name and its size in bytes, if there is one.
    pub fn number(name: &str) -> Option<(FieldKind, usize)> {
        let size = match name {
            "u8" | "i8" => 1,
            "u16" | "i16" => 2,
            "u32" | "i32" | "f32" => 4,
            "u64" | "i64" | "f64" => 8,
            _ => return None,
        };
        Some((FieldKind::Number(name.to_string()), size))
    }

    fn name(&self) -> &str {
        let (FieldKind::Number(name) | FieldKind::Struct(name)) = self;
        name
    }

    /// Whether the types are equal except for the sign of integers. The Rust compiler compares structures.
    fn fits(&self, other: &FieldKind) -> bool {
        match (self, other) {
            (FieldKind::Number(one), FieldKind::Number(other)) => one.replace('i', "u") == other.replace('i', "u"),
            (FieldKind::Struct(_), FieldKind::Struct(_)) => true,
            _ => false,
        }
    }
}

/// Returns the differences as ends of sentences: each about a field in Rust, or about the structure. `twin` is the name
/// of the kernel's struct. Structures without differences have the same fields in the same order.
pub fn differences(own: &[Field], kernel: &[Field], twin: &str) -> Vec<(Option<usize>, String)> {
    let (mut all, mut i, mut j) = (vec![], 0, 0);
    while i < own.len() || j < kernel.len() {
        let (mine, theirs) = match (own.get(i), kernel.get(j)) {
            (Some(mine), Some(theirs)) => match (has(kernel, mine), has(own, theirs)) {
                (true, false) => (None, Some(theirs)),
                (false, true) => (Some(mine), None),
                _ => (Some(mine), Some(theirs)),
            },
            ends => ends,
        };
        all.extend(difference(mine, theirs, twin).map(|text| (mine.map(|_| i), text)));
        i += usize::from(mine.is_some());
        j += usize::from(theirs.is_some());
    }
    all
}

fn has(fields: &[Field], field: &Field) -> bool {
    fields.iter().any(|other| other.name == field.name)
}

/// Returns the difference between two fields. One is `None` if only the other structure has such a field.
fn difference(mine: Option<&Field>, theirs: Option<&Field>, twin: &str) -> Option<String> {
    let (mine, theirs) = match (mine, theirs) {
        (Some(mine), Some(theirs)) => (mine, theirs),
        (Some(_), None) => return Some(format!("is not a field of {twin}")),
        (None, theirs) => return theirs.map(|theirs| format!("has no field `{}`, but {twin} does", theirs.name)),
    };
    if mine.name != theirs.name {
        return Some(format!("is where {twin} has `{}`", theirs.name));
    }
    if let Some((one, other)) = mine.count.zip(theirs.count).filter(|(one, other)| one != other) {
        return Some(format!("has the length {one}, but {other} in {twin}"));
    }
    let (kind, other) = (mine.kind.name(), theirs.kind.name());
    let text = || format!("has the type {kind}, but `{}` in {twin} has {other}", theirs.name);
    (!mine.kind.fits(&theirs.kind)).then(text)
}
