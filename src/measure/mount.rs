//! The mount that a file lies on, from /proc/self/mountinfo.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// One line of /proc/self/mountinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Device number as `major:minor`.
    pub device: String,
    /// Where it is mounted.
    pub point: PathBuf,
    /// File system type.
    pub fs_type: String,
    /// What is mounted, such as `/dev/vda1`.
    pub source: String,
    /// Options of the mount and of the file system, each once, in the kernel's order.
    pub options: String,
}

/// All mounts of this process, in the order in which they were made; empty where /proc is not mounted.
pub fn all() -> Vec<Mount> {
    fs::read("/proc/self/mountinfo").map(|text| parse(&text)).unwrap_or_default()
}

/// The mount that `path`, which must exist, lies on: by its name, or by its device's number for a file without a name.
pub fn of_file(path: &Path) -> Option<Mount> {
    let mounts = all();
    if let Ok(path) = fs::canonicalize(path) {
        return containing(&mounts, &path);
    }
    let dev = nix::sys::stat::stat(path).ok()?.st_dev;
    let device = format!("{}:{}", nix::sys::stat::major(dev), nix::sys::stat::minor(dev));
    mounts.into_iter().find(|mount| mount.device == device)
}

/// The last mount on the longest mount point above `path`: a later mount on the same point hides an earlier one.
fn containing(mounts: &[Mount], path: &Path) -> Option<Mount> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
        .cloned()
}

/// Parses mountinfo (proc(5)): `id parent major:minor root point options [optional fields] - type source super`.
fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|&byte| byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').filter(|field| !field.is_empty()).collect();
    let separator = fields.iter().position(|field| *field == b"-")?;
    let text = |index: usize| fields.get(index).map(|field| OsStr::from_bytes(field).to_string_lossy().into_owned());
    let mut options: Vec<String> = Vec::new();
    for list in [text(5)?, text(separator + 3).unwrap_or_default()] {
        for option in list.split(',').filter(|option| !option.is_empty()) {
            if !options.iter().any(|known| known == option) {
                options.push(option.to_owned());
            }
        }
    }
    Some(Mount {
        device: text(2)?,
        point: PathBuf::from(unescape(fields.get(4)?)),
        fs_type: text(separator + 1)?,
        source: unescape(fields.get(separator + 2)?).to_string_lossy().into_owned(),
        options: options.join(","),
    })
}

/// Undoes the kernel's octal escapes of space, tab, newline and backslash.
fn unescape(field: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = (first == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(byte) = octal {
            bytes.push(byte);
            rest = &tail[3..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MOUNTINFO: &[u8] = b"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
        30 27 0:40 / /mnt/my\\040disk rw,noatime shared:5 master:1 - btrfs /dev/sdb rw,noatime,ssd\n\
        31 27 0:41 / /mnt rw - tmpfs none rw,size=4k\n\
        broken line\n";

    #[test]
    fn a_mount_point_with_a_space_and_optional_fields_is_read() {
        let mounts = parse(MOUNTINFO);
        assert_eq!(mounts.len(), 3);
        assert_eq!(mounts[1].point, Path::new("/mnt/my disk"));
        assert_eq!((mounts[1].fs_type.as_str(), mounts[1].source.as_str()), ("btrfs", "/dev/sdb"));
        assert_eq!(mounts[1].options, "rw,noatime,ssd");
    }

    #[test]
    fn the_longest_mount_point_wins() {
        let mounts = parse(MOUNTINFO);
        let kind = |path: &str| containing(&mounts, Path::new(path)).unwrap().fs_type;
        assert_eq!(kind("/mnt/my disk/a.db"), "btrfs");
        assert_eq!(kind("/mnt/my diskette/a.db"), "tmpfs");
        assert_eq!(kind("/home/a.db"), "ext4");
    }

    #[test]
    fn a_file_without_a_name_is_found_by_its_device() {
        use std::os::fd::AsRawFd;
        let file = tempfile::tempfile_in(".").unwrap();
        let link = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        assert_eq!(of_file(&link).unwrap().fs_type, of_file(Path::new(".")).unwrap().fs_type);
    }

    #[test]
    fn the_root_is_found_on_this_machine() {
        assert!(of_file(Path::new("/")).is_some());
    }
}
