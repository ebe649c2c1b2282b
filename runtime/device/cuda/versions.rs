//! The versions of compiled kernels, which `build.rs` keeps for later builds.
//!
//! A version has a hash of all that its code depends on in its name. A build therefore compiles exactly the modules that no
//! build has compiled before with the same sources, options and compiler, whichever branch or profile was built meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The header that replaces CUDA's on the CPU. No kernel for a GPU depends on it.
const EMULATOR: &str = "emulator.h";
/// How many versions of a module are kept.
const KEPT: usize = 8;

/// Returns the name of the version of a module, such as `softmax-0123456789abcdef`. `compilation` describes the compiler and
/// its options.
///
/// # Errors
/// The source or one of its headers cannot be read.
pub fn version(source: &Path, compilation: &[Vec<u8>]) -> io::Result<String> {
    let mut sources = BTreeMap::new();
    read(source, &mut sources)?;
    let mut hasher = DefaultHasher::new();
    compilation.hash(&mut hasher);
    for (path, bytes) in sources {
        (path.file_name(), bytes).hash(&mut hasher);
    }
    let module = source.file_stem().unwrap_or_default().to_string_lossy();
    Ok(format!("{module}-{:016x}", hasher.finish()))
}

/// Reads a source, the headers that it includes by `#include "…"`, and theirs.
fn read(source: &Path, sources: &mut BTreeMap<PathBuf, Vec<u8>>) -> io::Result<()> {
    if sources.contains_key(source) {
        return Ok(());
    }
    let bytes = fs::read(source)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    sources.insert(source.to_path_buf(), bytes);
    for header in text.lines().filter_map(included).filter(|header| *header != EMULATOR) {
        read(&source.with_file_name(header), sources)?;
    }
    Ok(())
}

/// Returns the header that a line includes, if it does so.
fn included(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
    rest.trim_start().strip_prefix('"')?.split_once('"').map(|(header, _)| header)
}

/// Removes the oldest versions of a module from a folder, beyond the [most](KEPT). The version `current` stays. What cannot be
/// removed stays too.
pub fn remove_old(folder: &Path, current: &str) {
    let mut versions: BTreeMap<String, (SystemTime, Vec<PathBuf>)> = BTreeMap::new();
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let version = name.split('.').next().unwrap_or_default();
        let time = file.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        if version != current && module_of(version).is_some_and(|module| Some(module) == module_of(current)) {
            let (newest, files) = versions.entry(version.to_string()).or_insert((time, Vec::new()));
            *newest = time.max(*newest);
            files.push(file.path());
        }
    }
    let mut others: Vec<_> = versions.into_values().collect();
    others.sort_by_key(|(newest, _)| std::cmp::Reverse(*newest));
    for file in others.iter().skip(KEPT - 1).flat_map(|(_, files)| files) {
        let _ = fs::remove_file(file);
    }
}

/// Returns the module of a version.
fn module_of(version: &str) -> Option<&str> {
    version.split_once('-').map(|(module, _)| module)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// An empty folder.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("candle-plan-versions-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("it can be created");
        folder
    }

    #[test]
    fn a_version_depends_on_its_own_sources_and_options() {
        let folder = folder("sources");
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("it can be written");
        let versions = |options: &str| {
            ["sum.cu", "max.cu"].map(|name| version(&folder.join(name), &[options.into()]).expect("it can be read"))
        };
        write("sum.cu", "#include <cuda_fp16.h>\n#include \"lines.cuh\"\n");
        write("max.cu", "#include \"base.cuh\"\n");
        write("lines.cuh", "  # include \"base.cuh\" // and more\n#include \"lines.cuh\"\n");
        write("base.cuh", "#include \"emulator.h\"\n");
        let [sum, max] = versions("-O3");
        assert!(sum.starts_with("sum-") && max.starts_with("max-") && sum.len() == 20, "{sum} {max}");
        assert_eq!(versions("-O3"), [sum.clone(), max.clone()]);
        assert!(versions("-O2").iter().zip([&sum, &max]).all(|(one, other)| one != other));
        write("lines.cuh", "#include \"base.cuh\"\n");
        let [changed, same] = versions("-O3");
        assert!(changed != sum && same == max);
        write("base.cuh", "struct Base {};\n");
        let both = versions("-O3");
        assert!(both[0] != changed && both[1] != max);
        fs::remove_file(folder.join("base.cuh")).expect("it is there");
        assert!(version(&folder.join("max.cu"), &[]).is_err());
        fs::remove_dir_all(folder).expect("it is there");
    }

    #[test]
    fn the_oldest_versions_are_removed() {
        let folder = folder("old");
        let name = |number: usize| format!("sum-{number:016x}");
        for number in 0..2 * KEPT {
            for file in [name(number) + ".ptx", name(number) + ".80.deflated"] {
                let file = fs::File::create(folder.join(file)).expect("it can be written");
                let time = SystemTime::UNIX_EPOCH + Duration::from_secs(number as u64);
                file.set_modified(time).expect("it is ours");
            }
        }
        fs::write(folder.join("sum_of-0.ptx"), "").expect("it can be written");
        remove_old(&folder, &name(1));
        let files = fs::read_dir(&folder).expect("it is there").flatten();
        let mut left: Vec<_> = files.map(|file| file.file_name().into_string().expect("a plain name")).collect();
        left.sort();
        let kept = [1].into_iter().chain(KEPT + 1..2 * KEPT);
        let mut expected: Vec<_> =
            kept.flat_map(|number| [".80.deflated", ".ptx"].map(|end| name(number) + end)).collect();
        expected.push("sum_of-0.ptx".to_string());
        assert_eq!(left, expected);
        fs::remove_dir_all(folder).expect("it is there");
    }
}
