//! Compares the fields of a structure in Rust with those of the kernel's struct.

use std::ops::Range;

/// The name of fields that are not compared.
pub const PADDING: &str = "padding";

/// A field of a structure in Rust or of a kernel's struct.
pub struct Field {
    pub name: String,
    pub kind: Kind,
    /// The number of elements, which is 1 if the field is no list. `None` if only the Rust compiler knows it.
    pub count: Option<usize>,
    /// The offset in the kernel's struct, and the size of an element, in bytes. Both are 0 for a field in Rust.
    pub at: usize,
    pub size: usize,
}

/// The type of a field, or of a list's elements.
pub enum Kind {
    Number(String),
    /// A structure: in Rust its type, and in a kernel its name and its file.
    Struct(String),
}

impl Kind {
    /// Returns the number type of this name and its size in bytes, if there is one.
    pub fn number(name: &str) -> Option<(Kind, usize)> {
        let size = match name {
            "u8" | "i8" => 1,
            "u16" | "i16" => 2,
            "u32" | "i32" | "f32" => 4,
            "u64" | "i64" | "f64" => 8,
            _ => return None,
        };
        Some((Kind::Number(name.to_string()), size))
    }

    fn name(&self) -> &str {
        let (Kind::Number(name) | Kind::Struct(name)) = self;
        name
    }

    /// Whether the types are equal except for the sign of integers. The Rust compiler compares structures.
    fn fits(&self, other: &Kind) -> bool {
        match (self, other) {
            (Kind::Number(one), Kind::Number(other)) => one.replace('i', "u") == other.replace('i', "u"),
            (Kind::Struct(_), Kind::Struct(_)) => true,
            _ => false,
        }
    }
}

/// The fields of both structures that stand at the same place, by their indices. A list stands where the other
/// structure has several fields. One side is empty if the other structure has no such field.
pub struct Pair {
    pub own: Range<usize>,
    pub kernel: Range<usize>,
}

/// Returns all fields in pairs.
pub fn pairs(own: &[Field], kernel: &[Field]) -> Vec<Pair> {
    let (mut pairs, mut i, mut j) = (vec![], 0, 0);
    while i < own.len() || j < kernel.len() {
        let (m, n) = match (own.get(i), kernel.get(j)) {
            (None, _) => (0, 1),
            (_, None) => (1, 0),
            (Some(mine), Some(theirs)) if mine.name == theirs.name => (1, 1),
            (Some(mine), Some(theirs)) => {
                let one_to_many = parts(own, i, kernel, j).map(|n| (1, n));
                let many_to_one = || parts(kernel, j, own, i).map(|m| (m, 1));
                one_to_many.or_else(many_to_one).unwrap_or(match (has(kernel, mine), has(own, theirs)) {
                    (true, false) => (0, 1),
                    (false, true) => (1, 0),
                    _ => (1, 1),
                })
            }
        };
        pairs.push(Pair { own: i..i + m, kernel: j..j + n });
        (i, j) = (i + m, j + n);
    }
    pairs
}

fn has(fields: &[Field], field: &Field) -> bool {
    fields.iter().any(|other| other.name == field.name)
}

/// Returns how many of the other structure's fields from `from` on are the elements of the list `at`: two or more, with
/// names that only one structure has.
fn parts(own: &[Field], at: usize, others: &[Field], from: usize) -> Option<usize> {
    let mut rest = own[at].count.filter(|_| !has(others, &own[at]))?;
    for (n, field) in others[from..].iter().enumerate() {
        rest = rest.checked_sub(field.count?).filter(|_| !has(own, field))?;
        if rest == 0 {
            return (n > 0).then_some(n + 1);
        }
    }
    None
}

impl Pair {
    /// Returns the differences as ends of sentences: about a field in Rust, or about the structure. `twin` is the name
    /// of the kernel's struct.
    pub fn differences(&self, own: &[Field], kernel: &[Field], twin: &str) -> Vec<(Option<usize>, String)> {
        let (mine, theirs) = (&own[self.own.clone()], &kernel[self.kernel.clone()]);
        let first = self.own.start;
        match (mine, theirs) {
            ([], _) => vec![(None, format!("has no field `{}`, but {twin} does", theirs[0].name))],
            (_, []) => vec![(Some(first), format!("is not a field of {twin}"))],
            ([one], [other]) if one.name != other.name => {
                vec![(Some(first), format!("is where {twin} has `{}`", other.name))]
            }
            ([Field { count: Some(one), .. }], [Field { count: Some(other), .. }]) if one != other => {
                vec![(Some(first), format!("has the length {one}, but {other} in {twin}"))]
            }
            _ => {
                let all = (first..).zip(mine).flat_map(|(i, one)| theirs.iter().map(move |other| (i, one, other)));
                let wrong = all.filter(|(_, one, other)| !one.kind.fits(&other.kind));
                wrong.map(|(i, one, other)| (Some(i), one.difference(other, twin))).collect()
            }
        }
    }

    /// Returns the indices of the fields in Rust, with the offset and the size that they have in the kernel's struct.
    pub fn places(&self, own: &[Field], kernel: &[Field]) -> Vec<(usize, usize, usize)> {
        let theirs = &kernel[self.kernel.clone()];
        let all = theirs.iter().filter_map(|field| field.count).sum();
        let mut at = theirs[0].at;
        let place = |i: usize| {
            let count = if self.own.len() == 1 { all } else { own[i].count.unwrap_or(1) };
            let size = count * theirs[0].size;
            at += size;
            (i, at - size, size)
        };
        self.own.clone().map(place).collect()
    }
}

impl Field {
    fn difference(&self, other: &Field, twin: &str) -> String {
        let (mine, theirs) = (self.kind.name(), other.kind.name());
        format!("has the type {mine}, but `{}` in {twin} has {theirs}", other.name)
    }
}
