//! Compiles `../kernels/*.cu` as C++.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the kernels.
const KERNELS: &str = "../kernels";

/// Builds a library of all modules, which registers their kernels when the program starts. Each module has its own
/// namespace, because modules have functions with equal names.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={KERNELS}");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(2).include(KERNELS).file(Path::new(KERNELS).join("emulator.cpp"));
    // Disables fused multiply-adds, whose use would depend on the compiler.
    build.flag("-ffp-contract=off").flag("-Wno-unknown-pragmas").flag("-Wno-unused");
    for name in modules() {
        // As in CUDA, equal names in two modules are different things.
        let module = out.join(&name).with_extension("cpp");
        let text =
            format!("#define MODULE \"{name}\"\n#include \"device.cuh\"\nnamespace {{\n#include \"{name}.cu\"\n}}\n");
        fs::write(&module, text).expect("it can be written");
        build.file(module);
    }
    build.link_lib_modifier("+whole-archive").compile("candle_plan_emulator");
}

/// Returns the names of the modules, sorted.
fn modules() -> Vec<String> {
    let files =
        fs::read_dir(KERNELS).expect("the folder is there").map(|file| file.expect("it can be read").file_name());
    let name = |file: std::ffi::OsString| Some(file.to_str()?.strip_suffix(".cu")?.to_string());
    let mut modules: Vec<String> = files.filter_map(name).collect();
    modules.sort();
    modules
}
