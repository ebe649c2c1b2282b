//! Writes the tables of operators, which macros of `src/ops/mod.rs` and `src/gpu/mod.rs` read: the operators that each file
//! of `src/ops/` implements, and those of them that have a kernel in `src/gpu/`.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The operators of each family, which is a file.
type Table = BTreeMap<String, BTreeSet<String>>;

fn main() -> Result<(), Box<dyn Error>> {
    let (ops, gpu) = (Path::new("src/ops"), Path::new("src/gpu"));
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", ops.display());
    println!("cargo::rerun-if-changed={}", gpu.display());
    let mut operators = Table::new();
    for file in sources(ops)? {
        let family = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        operators.insert(family, fs::read_to_string(&file)?.lines().filter_map(operator).collect());
    }
    operators.retain(|_, names| !names.is_empty());
    let mut kernels = BTreeSet::new();
    for file in sources(gpu)? {
        for line in fs::read_to_string(&file)?.lines() {
            kernels.extend(kernel(line)?);
        }
    }
    let mut on_gpu = operators.clone();
    on_gpu.values_mut().for_each(|names| names.retain(|name| kernels.contains(name)));
    on_gpu.retain(|_, names| !names.is_empty());
    let folder = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(folder.join("operators.rs"), table("with_operators", &operators))?;
    fs::write(folder.join("gpu_kernels.rs"), table("with_gpu_kernels", &on_gpu))?;
    Ok(())
}

/// The Rust files in a folder and its subfolders.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}

/// The operator that a line implements, as `impl Operator for Name {` or `operator! { Name, …`. `<Op>` follows an operator
/// with nested graphs, which is generic.
fn operator(line: &str) -> Option<String> {
    let named = match line.strip_prefix("impl") {
        Some(implemented) => implemented.split_once(" Operator for ")?.1,
        None => line.strip_prefix("operator! { ")?,
    };
    let (name, after) = split_name(named);
    Some(if after.starts_with('<') { format!("{name}<Op>") } else { name.to_owned() })
}

/// The operator whose kernel a line declares, as `gpu_kernel!(Name: …` or `on_gpu! { Name }`. The macros themselves have a
/// parameter `$Op` in the place of the name.
///
/// # Errors
/// The line begins a declaration and has no name.
fn kernel(line: &str) -> Result<Option<String>, String> {
    let line = line.trim_start();
    let Some(named) = line.strip_prefix("gpu_kernel!(").or_else(|| line.strip_prefix("on_gpu! {")) else {
        return Ok(None);
    };
    match split_name(named.trim_start()) {
        ("", rest) if rest.starts_with('$') => Ok(None),
        ("", _) => Err(format!("write the operator's name in the line `{line}` of src/gpu/")),
        (name, _) => Ok(Some(name.to_owned())),
    }
}

/// The name at the beginning of a text, and the rest.
fn split_name(text: &str) -> (&str, &str) {
    text.split_at(text.find(|char: char| !char.is_alphanumeric()).unwrap_or(text.len()))
}

/// A macro that calls the macro `$called` with a table. The generated macros need the dollar sign `$d`.
fn table(name: &str, operators: &Table) -> String {
    let lines = operators.iter().map(|(family, names)| {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        format!("            {family}: {};\n", names.join(" "))
    });
    let lines: String = lines.collect();
    format!(
        "macro_rules! {name} {{\n    ($called:ident $d:tt) => {{\n        $called! {{\n            $d\n{lines}        }}\n    }};\n}}\n"
    )
}
