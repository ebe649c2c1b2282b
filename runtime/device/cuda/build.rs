//! Compiles `../kernels/*.cu` with nvcc and ptxas (feature `kernels`).
//!
//! The compiled files are in the folder `kernels` of the target folder. Builds with another profile, and of another workspace
//! with the same target folder, use them too. The names of the files say what they were compiled from (`versions.rs`), so a
//! file never becomes outdated. A build removes the oldest versions of each module; a version that another profile still
//! includes is not lost, because each profile has links of its own.

mod versions;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The options of nvcc, which generates PTX for the oldest supported generation of GPUs. Tests use them too.
const FLAGS: &str = "../kernels/nvcc.flags";
/// The folder of the kernels.
const KERNELS: &str = "../kernels";
/// The headers of the toolkit whose code is in the kernels, and one with the toolkit's version.
const HEADERS: [&str; 5] = ["cuda_runtime_api.h", "cuda_bf16.h", "cuda_bf16.hpp", "cuda_fp16.h", "cuda_fp16.hpp"];
/// The PTX version that every driver for CUDA 13 accepts. Older drivers reject the PTX of newer toolkits.
const PTX: &str = "9.0";
/// The architectures that ptxas assembles the PTX for. A cubin runs on GPUs with the same major version, and the same
/// or a higher minor version. The driver compiles the PTX for other GPUs.
const ARCHITECTURES: [u32; 4] = [80, 90, 100, 120];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=versions.rs");
    println!("cargo::rerun-if-changed={KERNELS}");
    println!("cargo::rerun-if-env-changed=NVCC");
    let mut list = "&[]".to_string();
    if env::var_os("CARGO_FEATURE_KERNELS").is_some() {
        let nvcc = env::var_os("NVCC").map_or_else(|| "nvcc".into(), PathBuf::from);
        let modules = modules(&nvcc);
        let work = empty(&out().join("work"));
        fs::create_dir_all(folder()).expect("it can be created");
        ptx(&modules, &nvcc, &work);
        list = images(&modules, &nvcc.with_file_name("ptxas"), &work);
    }
    fs::write(out().join("images.rs"), list).expect("it can be written");
}

/// Returns the folder that cargo gives this build.
fn out() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"))
}

/// Makes an empty folder: a build before may have left files in it.
fn empty(folder: &Path) -> PathBuf {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir(folder).expect("it can be created");
    folder.to_path_buf()
}

/// Returns the folder of the compiled files. Cargo's folder is `<target>/<profile>/build/<package>/out`.
fn folder() -> PathBuf {
    out().ancestors().nth(4).expect("a target folder").join("kernels")
}

/// A module of kernels.
struct Module {
    source: PathBuf,
    /// The name of the version that its source, the options and the compiler give.
    version: String,
}

impl Module {
    /// Returns the path of a compiled file: its name is the version with this extension.
    fn compiled(&self, extension: &str) -> PathBuf {
        folder().join(format!("{}.{extension}", self.version))
    }
}

/// Returns the modules in sorted order.
fn modules(nvcc: &Path) -> Vec<Module> {
    let entries = fs::read_dir(KERNELS).expect("the folder kernels is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut sources: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|kind| kind == "cu")).collect();
    sources.sort();
    let compilation = compilation(nvcc);
    let version = |source: &PathBuf| versions::version(source, &compilation).expect("it can be read");
    sources.into_iter().map(|source| Module { version: version(&source), source }).collect()
}

/// Returns what the compiled files depend on beside their sources: the options, the compiler, its headers and this program.
fn compilation(nvcc: &Path) -> Vec<Vec<u8>> {
    let said = |program: &Path| {
        let done = Command::new(program).arg("--version").output();
        done.unwrap_or_else(|error| panic!("{program:?} does not start: {error}; see `make cuda`")).stdout
    };
    let include = nvcc.parent().and_then(Path::parent).unwrap_or(Path::new("")).join("include");
    // A header may be elsewhere; then the version of the compiler must do.
    let headers = HEADERS.map(|header| fs::read(include.join(header)).unwrap_or_default());
    let own = [FLAGS, "build.rs"].map(|file| fs::read(file).expect("it can be read"));
    [vec![said(nvcc), said(&nvcc.with_file_name("ptxas"))], headers.into(), own.into()].concat()
}

/// Compiles each module to PTX, unless this was done before.
fn ptx(modules: &[Module], nvcc: &Path, work: &Path) {
    in_parallel(modules, |module| {
        let text = module.compiled("ptx");
        if text.exists() {
            return;
        }
        let unchecked = work.join(&module.version).with_extension("ptx");
        call(nvcc, &["--options-file".as_ref(), FLAGS.as_ref(), "-o".as_ref(), &unchecked, &module.source]);
        let version = version(&fs::read_to_string(&unchecked).expect("nvcc has written it"));
        assert!(
            version == PTX,
            "{nvcc:?} makes PTX {version} where {PTX} is needed: install the extra `cuda-build` and unset CUDA_HOME and \
             NVCC, or set CUDA_HOME to a toolkit of CUDA 13.0"
        );
        fs::rename(unchecked, text).expect("it can be renamed");
    });
}

/// Assembles each module for each architecture, unless this was done before. Returns the source text of a list of the
/// compressed cubins and PTX. A kernel that spills registers is an error.
fn images(modules: &[Module], ptxas: &Path, work: &Path) -> String {
    let cubins = modules.iter().flat_map(|module| ARCHITECTURES.map(|architecture| (module, Some(architecture))));
    let all: Vec<_> = cubins.chain(modules.iter().map(|module| (module, None))).collect();
    in_parallel(&all, |&(module, architecture)| {
        let kept = module.compiled(&extension(architecture));
        if kept.exists() {
            return;
        }
        let image = image(&module.compiled("ptx"), architecture, ptxas, work);
        fs::write(kept.with_extension("size"), image.len().to_string()).expect("it can be written");
        let unfinished = work.join(kept.file_name().expect("it has a name"));
        fs::write(&unfinished, miniz_oxide::deflate::compress_to_vec(&image, 9)).expect("it can be written");
        fs::rename(unfinished, kept).expect("it can be renamed");
    });
    let links = empty(&out().join("images"));
    let entries: String = all.iter().map(|&(module, architecture)| entry(module, architecture, &links)).collect();
    modules.iter().for_each(|module| versions::remove_old(&folder(), &module.version));
    format!("&[\n{entries}]")
}

/// Returns the uncompressed image of a module: a cubin, or PTX that ends with a null byte, which the driver requires.
fn image(text: &Path, architecture: Option<u32>, ptxas: &Path, work: &Path) -> Vec<u8> {
    let Some(architecture) = architecture else {
        return [fs::read(text).expect("nvcc has written it"), vec![0]].concat();
    };
    let name = text.with_extension(format!("{architecture}.cubin"));
    let cubin = work.join(name.file_name().expect("it has a name"));
    let option = PathBuf::from(format!("sm_{architecture}"));
    let [lines, spills, strict] = ["-lineinfo", "--warn-on-spills", "--warning-as-error"].map(Path::new);
    call(ptxas, &[lines, spills, strict, "-arch".as_ref(), &option, "-o".as_ref(), &cubin, text]);
    let image = fs::read(&cubin).expect("ptxas has written it");
    fs::remove_file(cubin).expect("it is there");
    image
}

/// Returns the source text of an image of the list, and links its file into the folder `links`.
fn entry(module: &Module, architecture: Option<u32>, links: &Path) -> String {
    let kept = module.compiled(&extension(architecture));
    let link = links.join(kept.file_name().expect("it has a name"));
    fs::hard_link(&kept, &link).or_else(|_| fs::copy(&kept, &link).map(drop)).expect("it can be linked");
    let bytes = fs::read_to_string(kept.with_extension("size")).expect("it was written");
    let name = module.source.file_stem().and_then(|stem| stem.to_str()).expect("a plain name");
    format!(
        "    Image {{ module: {name:?}, architecture: {architecture:?}, bytes: {bytes}, deflated: include_bytes!({link:?}) }},\n"
    )
}

/// Returns the extension of the file of a compressed image.
fn extension(architecture: Option<u32>) -> String {
    format!("{}.deflated", architecture.map_or("ptx".to_string(), |number| number.to_string()))
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
