//! Reads structs and the declarations of kernels from the source of a module.

use crate::compare::{Field, FieldKind, PADDING};

/// The words and signs of a kernel's file and of the headers that it includes, without comments.
pub struct Source {
    files: Vec<(String, Vec<String>)>,
}

/// The memory layout of a struct.
pub struct Layout {
    /// The name of the file that declares the struct.
    pub file: String,
    /// All fields except padding.
    pub fields: Vec<Field>,
    pub size: usize,
    align: usize,
}

/// A declared field: its type, its name, and the lengths of a list.
type Declared = (String, String, Vec<String>);

impl Source {
    /// Reads a file and its headers. `text` returns the contents of a file.
    ///
    /// # Errors
    /// `text` fails.
    pub fn read(file: &str, text: impl Fn(&str) -> Result<String, String>) -> Result<Source, String> {
        let (mut files, mut waiting): (Vec<(String, Vec<String>)>, _) = (vec![], vec![file.to_string()]);
        while let Some(file) = waiting.pop() {
            if files.iter().all(|(known, _)| *known != file) {
                let text = text(&file)?;
                let headers = text.lines().filter_map(|line| line.strip_prefix("#include \"")?.strip_suffix('"'));
                waiting.extend(headers.filter(|header| header.ends_with(".cuh")).map(str::to_string));
                files.push((file, words(&text)));
            }
        }
        Ok(Source { files })
    }

    /// Returns the names of the files.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(file, _)| file.as_str())
    }

    /// Returns the layout of a struct.
    ///
    /// # Errors
    /// No file declares it, or this module cannot read a field.
    pub fn layout(&self, name: &str) -> Result<Layout, String> {
        let declared = self.files.iter().find_map(|(file, words)| Some((file, body(words, name)?)));
        let (file, words) = declared.ok_or_else(|| format!("{} has no struct `{name}`", self.files[0].0))?;
        let mut layout = Layout { file: file.clone(), fields: vec![], size: 0, align: 1 };
        for (kind, field, lengths) in fields(words).map_err(|text| format!("the struct `{name}` in {file} {text}"))? {
            let (kind, size, align) = match FieldKind::number(&kind) {
                Some((number, size)) => (number, size, size),
                None => {
                    let inner = self.layout(&kind)?;
                    (FieldKind::Struct(format!("{kind} in {}", inner.file)), inner.size, inner.align)
                }
            };
            let lengths: Vec<_> = lengths.iter().map(|length| self.number(length)).collect::<Result<_, _>>()?;
            let (at, count) = (layout.size.next_multiple_of(align), lengths.iter().product());
            layout.size = at + size * count;
            layout.align = layout.align.max(align);
            if field != PADDING {
                layout.fields.push(Field { name: field, kind, count: Some(count), at, size: size * count });
            }
        }
        layout.size = layout.size.next_multiple_of(layout.align);
        Ok(layout)
    }

    /// Returns the names of the kernels whose parameters are a struct: `KERNEL(unary_f32, UnaryOf, …)` declares one. In a
    /// name that a macro composes, `*` stands for each argument of the macro: `conv_direct_*` for `conv_direct_##kind`.
    pub fn kernels(&self, name: &str) -> Vec<String> {
        let of_file = |words: &[String]| (0..words.len()).filter_map(|at| kernel(words, at, name)).collect::<Vec<_>>();
        self.files.iter().flat_map(|(_, words)| of_file(words)).collect()
    }

    /// Returns the value of a number, or of a constant: `const u32 RANK = 8;`.
    fn number(&self, word: &str) -> Result<usize, String> {
        if let Ok(number) = word.parse() {
            return Ok(number);
        }
        let all = self.files.iter().flat_map(|(_, words)| words.windows(4));
        let stated = all.filter(|words| words[0] == word && words[1] == "=" && [",", ";"].contains(&&*words[3]));
        let mut found: Vec<usize> = stated.filter_map(|words| words[2].parse().ok()).collect();
        found.dedup();
        match found[..] {
            [number] => Ok(number),
            _ => Err(format!("{} does not state the number `{word}`, or states several", self.files[0].0)),
        }
    }
}

/// Splits C++ into words and signs. Numbers are words.
fn words(text: &str) -> Vec<String> {
    let mut spaced = String::new();
    for line in text.lines().filter_map(|line| line.split("//").next()) {
        for sign in line.chars() {
            match sign.is_alphanumeric() || sign == '_' {
                true => spaced.push(sign),
                false => spaced.extend([' ', sign, ' ']),
            }
        }
        spaced.push(' ');
    }
    spaced.split_whitespace().map(str::to_string).collect()
}

/// Returns the name of the kernel that is declared from a word on, if its parameters are a struct.
fn kernel(words: &[String], at: usize, parameters: &str) -> Option<String> {
    let (before, declared) = words.split_at(at);
    if !["KERNEL", "COOPERATIVE"].contains(&declared[0].as_str()) || declared.get(1)? != "(" {
        return None;
    }
    let mut items = declared[2..].split(|word| word == ",");
    let (name, kind) = (items.next()?, items.next()?);
    let arguments = if name.len() > 1 { arguments(before) } else { &[] };
    let part = |word: &String| if arguments.contains(word) { "*".to_string() } else { word.clone() };
    (kind == [parameters]).then(|| name.iter().filter(|word| *word != "#").map(part).collect())
}

/// Returns the arguments of the macro that the last `#define` among these words begins, and the commas between them.
fn arguments(words: &[String]) -> &[String] {
    let after = words.iter().rposition(|word| word == "define").map_or(&[][..], |at| &words[at..]);
    let end = after.iter().position(|word| word == ")").unwrap_or_default();
    after.get(3..end).unwrap_or_default()
}

/// Returns the words after the opening brace of a struct.
fn body<'a>(words: &'a [String], name: &str) -> Option<&'a [String]> {
    let start = words.windows(3).position(|word| word[0] == "struct" && word[1] == name && word[2] == "{")?;
    Some(&words[start + 3..])
}

/// Returns the fields of a struct up to its closing brace, without its functions.
///
/// # Errors
/// A declaration is neither a function nor a plain field. The text is the end of a sentence about the struct.
fn fields(words: &[String]) -> Result<Vec<Declared>, String> {
    let (mut all, mut depth, mut start) = (vec![], 0, 0);
    for (i, word) in words.iter().enumerate() {
        match word.as_str() {
            "{" => depth += 1,
            "}" if depth == 0 => return Ok(all),
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 && (word == ";" || word == "}") {
            let declaration = &words[start..i];
            let is_function = declaration.iter().any(|word| word == "(");
            let fields = if is_function { Some(vec![]) } else { declared(declaration) };
            all.extend(fields.ok_or_else(|| format!("has a field like `{}`", declaration.join(" ")))?);
            start = i + 1;
        }
    }
    Err("does not end".to_string())
}

/// Reads `u32 count, size[RANK]`. Returns `None` for any other declaration.
fn declared(words: &[String]) -> Option<Vec<Declared>> {
    let Some((kind, names)) = words.split_first() else { return Some(vec![]) };
    let read = |words: &[String]| {
        let (name, lengths) = words.split_first()?;
        let lengths = lengths.chunks(3).map(|length| match length {
            [open, length, close] if open == "[" && close == "]" => Some(length.clone()),
            _ => None,
        });
        let is_name = |word: &String| word.starts_with(|sign: char| sign.is_alphabetic() || sign == '_');
        let lengths = lengths.collect::<Option<Vec<_>>>()?;
        (is_name(kind) && is_name(name)).then(|| (kind.clone(), name.clone(), lengths))
    };
    names.split(|word| word == ",").map(read).collect()
}
