//! Compiles `../kernels/*.cu` with nvcc and ptxas (feature `kernels`).
//!
//! The images are in the folder `kernels` of the target folder. Builds with another profile, and of another workspace with the
//! same target folder, use them too.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The options of nvcc, which generates PTX for the oldest supported generation of GPUs. Tests use them too.
const FLAGS: &str = "../kernels/nvcc.flags";
/// The folder of the kernels.
const KERNELS: &str = "../kernels";
/// The PTX version that every driver for CUDA 13 accepts. Older drivers reject the PTX of newer toolkits.
const PTX: &str = "9.0";
/// The architectures that ptxas assembles the PTX for. A cubin runs on GPUs with the same major version, and the same
/// or a higher minor version. The driver compiles the PTX for other GPUs.
const ARCHITECTURES: [u32; 4] = [80, 90, 100, 120];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={KERNELS}");
    println!("cargo::rerun-if-env-changed=NVCC");
    let mut list = "&[]".to_string();
    if env::var_os("CARGO_FEATURE_KERNELS").is_some() {
        let nvcc = env::var_os("NVCC").map_or_else(|| "nvcc".into(), PathBuf::from);
        let texts = ptx(&sources(), &nvcc);
        list = images(&texts, &nvcc.with_file_name("ptxas"));
    }
    fs::write(out().join("images.rs"), list).expect("it can be written");
}

/// Returns the folder that cargo gives this build.
fn out() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"))
}

/// Returns the folder of the images. Cargo's folder is `<target>/<profile>/build/<package>/out`.
fn folder() -> PathBuf {
    out().ancestors().nth(4).expect("a target folder").join("kernels")
}

/// Returns the modules in sorted order.
fn sources() -> Vec<PathBuf> {
    let entries = fs::read_dir(KERNELS).expect("the folder kernels is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut sources: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|kind| kind == "cu")).collect();
    sources.sort();
    sources
}

/// Compiles each module, and returns the paths of the PTX files.
fn ptx(sources: &[PathBuf], nvcc: &Path) -> Vec<PathBuf> {
    let folder = folder();
    fs::create_dir_all(&folder).expect("it can be created");
    let target = |source: &PathBuf| folder.join(source.file_stem().expect("a name")).with_extension("ptx");
    let shared = shared(nvcc, &folder);
    in_parallel(sources, |source| {
        let text = target(source);
        if is_newer(&text, shared.iter().chain([source])) {
            return;
        }
        let unchecked = text.with_extension("unchecked.ptx");
        call(nvcc, &["--options-file".as_ref(), FLAGS.as_ref(), "-o".as_ref(), &unchecked, source]);
        let version = version(&fs::read_to_string(&unchecked).expect("nvcc has written it"));
        assert!(
            version == PTX,
            "{nvcc:?} makes PTX {version} where {PTX} is needed: install the extra `cuda-build` and unset CUDA_HOME and \
             NVCC, or set CUDA_HOME to a toolkit of CUDA 13.0"
        );
        fs::rename(unchecked, text).expect("it can be renamed");
    });
    sources.iter().map(target).collect()
}

/// Assembles each module for each architecture. Returns the source text of a list of the compressed cubins and PTX. A kernel
/// that spills registers is an error.
fn images(texts: &[PathBuf], ptxas: &Path) -> String {
    let cubins = texts.iter().flat_map(|text| ARCHITECTURES.map(|architecture| (text, Some(architecture))));
    let all: Vec<_> = cubins.chain(texts.iter().map(|text| (text, None))).collect();
    in_parallel(&all, |(text, architecture)| {
        if is_newer(&deflated(text, *architecture), [*text]) {
            return;
        }
        let image = match architecture {
            Some(architecture) => {
                let cubin = text.with_extension(format!("{architecture}.cubin"));
                let option = PathBuf::from(format!("sm_{architecture}"));
                let [lines, spills, strict] = ["-lineinfo", "--warn-on-spills", "--warning-as-error"].map(Path::new);
                call(ptxas, &[lines, spills, strict, "-arch".as_ref(), &option, "-o".as_ref(), &cubin, text]);
                fs::read(cubin).expect("ptxas has written it")
            }
            // The PTX ends with a null byte, which the driver requires.
            None => [fs::read(text).expect("nvcc has written it"), vec![0]].concat(),
        };
        let deflated = deflated(text, *architecture);
        fs::write(deflated.with_extension("size"), image.len().to_string()).expect("it can be written");
        let unfinished = deflated.with_extension("unfinished");
        fs::write(&unfinished, miniz_oxide::deflate::compress_to_vec(&image, 9)).expect("it can be written");
        fs::rename(unfinished, deflated).expect("it can be renamed");
    });
    let entry = |(text, architecture): &(&PathBuf, Option<u32>)| {
        let deflated = deflated(text, *architecture);
        let bytes = fs::read_to_string(deflated.with_extension("size")).expect("it was written");
        let module = name(text);
        format!(
            "    Image {{ module: {module:?}, architecture: {architecture:?}, bytes: {bytes}, \
             deflated: include_bytes!({deflated:?}) }},\n"
        )
    };
    let entries: String = all.iter().map(entry).collect();
    format!("&[\n{entries}]")
}

/// Returns the files that every module depends on: the headers, the options, the compiler and this program.
fn shared(nvcc: &Path, folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(KERNELS).expect("the folder kernels is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut shared: Vec<_> = paths.filter(|path| path.extension().is_some_and(|kind| kind == "cuh")).collect();
    // Another compiler, or the sources of another checkout, may be older than the output of the previous ones.
    let (record, paths) = (folder.join("sources"), format!("{nvcc:?} {:?}", fs::canonicalize(KERNELS)));
    if fs::read_to_string(&record).ok().as_ref() != Some(&paths) {
        fs::write(&record, paths).expect("it can be written");
    }
    shared.extend([record, FLAGS.into(), "build.rs".into()]);
    shared.extend(nvcc.is_absolute().then(|| nvcc.to_path_buf()));
    shared
}

/// Whether `made` was written after all of `sources`.
fn is_newer<'a>(made: &Path, sources: impl IntoIterator<Item = &'a PathBuf>) -> bool {
    let written = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    written(made).is_some_and(|made| sources.into_iter().all(|path| written(path).is_some_and(|time| time < made)))
}

/// Returns the path of a compressed image.
fn deflated(text: &Path, architecture: Option<u32>) -> PathBuf {
    text.with_extension(format!("{}.deflated", architecture.map_or("ptx".to_string(), |number| number.to_string())))
}

/// Calls `work` for all items, with as many threads as cargo allows.
fn in_parallel<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let jobs = env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(1);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}

fn call(program: &Path, arguments: &[&Path]) {
    let status = Command::new(program).args(arguments).status();
    let status = status.unwrap_or_else(|error| panic!("{program:?} does not start: {error}; see `make cuda`"));
    assert!(status.success(), "{program:?} refuses {:?}", arguments.last());
}

/// Returns the PTX version in the text of a module.
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
