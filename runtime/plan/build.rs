//! Writes the tables of operators, which macros of `src/ops/mod.rs`, `src/cpu/choice.rs` and `src/gpu/mod.rs` read: the
//! operators that each file of `src/ops/` implements, those with a kernel in `src/cpu/` for images in blocks of channels, and
//! those with a kernel in `src/gpu/`. Also writes the declarations of the modules in `src/gpu/`. The families whose feature is
//! off are left out, and `src/newer.rs` reads their operators.

mod tables;

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use tables::{Declaration, Table};

/// A function that returns the declarations in a file: it gets the file's name and code.
type Reader = fn(&str, &str) -> Result<Vec<Declaration>, String>;

fn main() -> Result<(), Box<dyn Error>> {
    let (ops, cpu, gpu) = (Path::new("src/ops"), Path::new("src/cpu"), Path::new("src/gpu"));
    for read in [Path::new("build.rs"), Path::new("tables.rs"), ops, cpu, gpu] {
        println!("cargo::rerun-if-changed={}", read.display());
    }
    let mut operators = Table::new();
    for (file, code) in sources(ops)? {
        let family = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for Declaration { name, .. } in tables::operators(&file.to_string_lossy(), &code)? {
            operators.entry(family.clone()).or_default().insert(name);
        }
    }
    let mut on_blocks = tables::with_kernels(&operators, &declared(cpu, tables::blocks_kernels)?)?;
    let mut on_gpu = tables::with_kernels(&operators, &declared(gpu, tables::gpu_kernels)?)?;
    let is_on = |feature: &str| env::var_os(format!("CARGO_FEATURE_{}", feature.to_uppercase())).is_some();
    let left_out = tables::left_out(&mut operators, is_on);
    tables::left_out(&mut on_blocks, is_on);
    tables::left_out(&mut on_gpu, is_on);
    let folder = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(folder.join("operators.rs"), tables::table_macro("with_operators", &operators))?;
    fs::write(folder.join("left_out.rs"), tables::features_constant("LEFT_OUT", &left_out))?;
    fs::write(folder.join("blocks_kernels.rs"), tables::table_macro("with_blocks_kernels", &on_blocks))?;
    fs::write(folder.join("gpu_kernels.rs"), tables::table_macro("with_gpu_kernels", &on_gpu))?;
    fs::write(
        folder.join("gpu_modules.rs"),
        tables::modules_macro("gpu_modules", tables::compiled(modules(gpu)?, is_on)),
    )?;
    Ok(())
}

/// Returns the declarations in all Rust files of a folder.
fn declared(folder: &Path, read: Reader) -> Result<Vec<Declaration>, Box<dyn Error>> {
    let mut found = Vec::new();
    for (file, code) in sources(folder)? {
        found.extend(read(&file.to_string_lossy(), &code)?);
    }
    Ok(found)
}

/// Returns the modules in a folder: its files and subfolders, except `mod.rs`.
fn modules(folder: &Path) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "rs") {
            found.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    found.remove("mod");
    Ok(found)
}

/// Returns the Rust files in a folder and its subfolders, with their code.
fn sources(folder: &Path) -> Result<Vec<(PathBuf, String)>, Box<dyn Error>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let code = fs::read_to_string(&path)?;
            found.push((path, code));
        }
    }
    Ok(found)
}
