//! Properties of the machine.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Returns the memory in bytes that this process can use: the machine's memory, or the limit of an enclosing control
/// group if that is smaller, plus the swap space. `usize::MAX` on systems other than Linux. Reads it once.
///
/// Linux overcommits memory: it grants any size, and kills the process when it uses more than there is.
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

/// Returns a size in bytes from `/proc/meminfo`.
fn bytes(meminfo: &str, field: &str) -> Option<usize> {
    let size = meminfo.lines().find_map(|line| line.strip_prefix(field)?.trim().strip_suffix(" kB"))?;
    size.parse::<usize>().ok()?.checked_mul(1024)
}

/// Returns the limit files of the control groups (v1 or v2) in `/proc/self/cgroup`, and of their ancestors. In a
/// container, the names may be those of the host; then the outermost visible group is the container's own.
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
    fn the_system_lists_its_caches() {
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
