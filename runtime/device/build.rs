//! Compiles `kernels/*.cu`: to PTX with nvcc (feature `cuda`), and as C++ (feature `emulator`).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How nvcc is called, also by tests: for the oldest generation of GPUs; the driver compiles the PTX for the one that is there.
const FLAGS: &str = "kernels/nvcc.flags";
/// The PTX that every driver for CUDA 13 takes: an older driver of those refuses what a newer toolkit makes.
const PTX: &str = "9.0";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=kernels");
    println!("cargo::rerun-if-env-changed=NVCC");
    let sources = sources();
    if env::var_os("CARGO_FEATURE_CUDA").is_some() {
        ptx(&sources);
    }
    #[cfg(feature = "emulator")]
    emulator(&sources);
}

/// The modules, in order.
fn sources() -> Vec<PathBuf> {
    let entries = fs::read_dir("kernels").expect("the folder kernels is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut sources: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|kind| kind == "cu")).collect();
    sources.sort();
    sources
}

/// Writes the text of each module, and `ptx.rs`: a list of their names and texts.
fn ptx(sources: &[PathBuf]) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let nvcc = env::var_os("NVCC").unwrap_or_else(|| "nvcc".into());
    let jobs = env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(1);
    let mut table = String::from("&[\n");
    for group in sources.chunks(jobs) {
        let compile = |source: &PathBuf| {
            let target = out.join(source.file_stem().expect("a name")).with_extension("ptx");
            let mut command = Command::new(&nvcc);
            command.args(["--options-file", FLAGS, "-o"]).arg(&target).arg(source);
            let running =
                command.spawn().unwrap_or_else(|error| panic!("{nvcc:?} does not start: {error}; see `make cuda`"));
            (target, running)
        };
        let running: Vec<_> = group.iter().map(compile).collect();
        for (source, (target, mut nvcc)) in group.iter().zip(running) {
            assert!(nvcc.wait().expect("it ends").success(), "nvcc refuses {}", source.display());
            let version = version(&fs::read_to_string(&target).expect("nvcc has written it"));
            assert!(
                version == PTX,
                "{nvcc:?} makes PTX {version} where {PTX} is needed: install the extra `cuda-build` and unset CUDA_HOME and \
                 NVCC, or set CUDA_HOME to a toolkit of CUDA 13.0"
            );
            table += &format!("    ({:?}, include_str!({target:?})),\n", name(source));
        }
    }
    fs::write(out.join("ptx.rs"), table + "]\n").expect("it can be written");
}

/// The version that a module says it is of.
fn version(text: &str) -> String {
    text.lines()
        .find_map(|line| line.strip_prefix(".version "))
        .expect("PTX begins with its version")
        .trim()
        .to_string()
}

fn name(source: &Path) -> String {
    source.file_stem().and_then(|stem| stem.to_str()).expect("a plain name").to_string()
}

/// A library of all modules, each of which lists its kernels when the program starts. Each is in a namespace of its own, for
/// modules have functions of the same names.
#[cfg(feature = "emulator")]
fn emulator(sources: &[PathBuf]) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(2).include("kernels").file("kernels/emulator.cpp");
    // Products are not fused: what the compiler made of them would depend on it.
    build.flag("-ffp-contract=off").flag("-Wno-unknown-pragmas").flag("-Wno-unused");
    for source in sources {
        // As for CUDA, what two modules name alike is not the same.
        let module = out.join(name(source)).with_extension("cpp");
        let name = name(source);
        let text =
            format!("#define MODULE \"{name}\"\n#include \"device.cuh\"\nnamespace {{\n#include \"{name}.cu\"\n}}\n");
        fs::write(&module, text).expect("it can be written");
        build.file(module);
    }
    build.link_lib_modifier("+whole-archive").compile("candle_plan_emulator");
}
