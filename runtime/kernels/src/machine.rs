//! What the machine has.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The most bytes of memory that a process can have here: those of the machine, or of a control group that it is in
/// where these are fewer, and the swap space. `usize::MAX` where nothing tells (it is not Linux). Read once.
///
/// A system that promises more than it has, as Linux does, refuses no size, and ends the process that uses it.
pub fn memory() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let Ok(meminfo) = read_to_string("/proc/meminfo") else { return usize::MAX };
        let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
        let limits = limit_files(&groups).into_iter().filter_map(|file| read_to_string(file).ok()?.trim().parse().ok());
        let memory = limits.chain(bytes(&meminfo, "MemTotal:")).min();
        memory.map_or(usize::MAX, |memory| memory.saturating_add(bytes(&meminfo, "SwapTotal:").unwrap_or(0)))
    })
}

/// A size that `/proc/meminfo` tells.
fn bytes(meminfo: &str, field: &str) -> Option<usize> {
    let size = meminfo.lines().find_map(|line| line.strip_prefix(field)?.trim().strip_suffix(" kB"))?;
    size.parse::<usize>().ok()?.checked_mul(1024)
}

/// The files with the limits of the control groups, of either version, that `/proc/self/cgroup` names, and of those around
/// them. In a container, the names may be those outside: then the outermost group that is seen is its own.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(kinds), Some(group)) = (fields.next(), fields.next()) else { continue };
        let (root, file) = match kinds {
            "" => ("/sys/fs/cgroup", "memory.max"),
            kinds if kinds.split(',').any(|kind| kind == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let around = Path::new(group.trim_start_matches('/')).ancestors();
        files.extend(around.map(|group| Path::new(root).join(group).join(file)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_tells() {
        let meminfo = "MemTotal:       24599828 kB\nMemFree:         1 kB\nSwapTotal:             0 kB\n";
        assert_eq!(bytes(meminfo, "MemTotal:"), Some(24599828 * 1024));
        assert_eq!(bytes(meminfo, "SwapTotal:"), Some(0));
        assert_eq!(bytes(meminfo, "HugePages:"), None);
        let files = limit_files("7:cpu,memory:/docker/1\n2:pids:/docker/1\n0::/user\nbroken\n");
        let expected = [
            "/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/user/memory.max",
            "/sys/fs/cgroup/memory.max",
        ];
        assert_eq!(files, expected.map(PathBuf::from));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn there_is_some() {
        assert!((1 << 20..usize::MAX).contains(&memory()));
    }
}
