//! Control groups (cgroup v2), read: which group a process is in, and what its group weighs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A group, by its folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cgroup {
    folder: PathBuf,
    name: String,
}

impl Cgroup {
    /// The group of a process. `Unsupported`: the system has no cgroup v2.
    pub fn of(process: u32) -> io::Result<Cgroup> {
        let groups = fs::read_to_string(format!("/proc/{process}/cgroup"))?;
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        match (mount_point(&mounts), name_in(&groups)) {
            (Some(mount), Some(name)) => Ok(Cgroup::under(mount, name)),
            _ => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this system has no cgroup v2: mount it (mount -t cgroup2 none /sys/fs/cgroup), or \
                 start Linux with systemd.unified_cgroup_hierarchy=1",
            )),
        }
    }

    /// The group of that name below a mount of cgroup v2; `/` is the root.
    pub fn under(mount: &Path, name: &str) -> Cgroup {
        let name = format!("/{}", name.trim_matches('/'));
        Cgroup { folder: mount.join(name.trim_start_matches('/')), name }
    }

    /// From the root, such as `/user.slice/app.scope`.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The group above it; None: it is the root.
    pub fn parent(&self) -> Option<Cgroup> {
        let (above, _) = self.name.rsplit_once('/').filter(|_| self.name != "/")?;
        let above = if above.is_empty() { "/" } else { above };
        Some(Cgroup { folder: self.folder.parent()?.to_owned(), name: above.to_owned() })
    }

    /// Its weight among its siblings: 1 to 10 000, and 100 unless another was set. An idle
    /// group (cpu.idle) weighs 0. `NotFound`: the group's CPU time is not controlled.
    pub fn weight(&self) -> io::Result<u32> {
        let text = fs::read_to_string(self.folder.join("cpu.weight")).map_err(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                return error;
            }
            let message = format!(
                "the cgroup {} has no cpu.weight: enable the controller above it (echo +cpu > \
                 cgroup.subtree_control); the root never has one",
                self.name
            );
            io::Error::new(io::ErrorKind::NotFound, message)
        })?;
        text.trim().parse().map_err(|_| {
            let message = format!("the weight of cgroup {} is \"{}\"", self.name, text.trim());
            io::Error::new(io::ErrorKind::InvalidData, message)
        })
    }

    /// The processes in it, those of groups below it aside.
    pub fn processes(&self) -> io::Result<Vec<u32>> {
        let text = fs::read_to_string(self.folder.join("cgroup.procs"))?;
        Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
    }
}

/// Where cgroup v2 is mounted, by the text of /proc/self/mounts.
fn mount_point(mounts: &str) -> Option<&Path> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (place, kind) = (fields.next()?, fields.next()?);
        (kind == "cgroup2").then_some(Path::new(place))
    })
}

/// The name of the v2 group, by the text of /proc/PID/cgroup.
fn name_in(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| line.strip_prefix("0::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_v2_group_is_found_beside_those_of_v1() {
        let groups = "12:cpu,cpuacct:/old\n0::/user.slice/app.scope\n";
        assert_eq!(name_in(groups), Some("/user.slice/app.scope"));
        assert_eq!(name_in("1:name=systemd:/\n"), None);
        let mounts = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(mount_point(mounts), Some(Path::new("/sys/fs/cgroup/unified")));
        assert_eq!(mount_point("proc /proc proc rw 0 0\n"), None);
    }

    #[test]
    fn a_group_tells_its_weight_its_processes_and_its_parents() {
        let mount = tempfile::tempdir().unwrap();
        let group = Cgroup::under(mount.path(), "/user.slice/app.scope");
        fs::create_dir_all(group.folder()).unwrap();
        let message = group.weight().unwrap_err().to_string();
        assert!(message.contains("app.scope") && message.contains("+cpu"), "{message}");
        fs::write(group.folder().join("cpu.weight"), "250\n").unwrap();
        fs::write(group.folder().join("cgroup.procs"), "7\n12\n").unwrap();
        assert_eq!((group.weight().unwrap(), group.processes().unwrap()), (250, vec![7, 12]));
        fs::write(group.folder().join("cpu.weight"), "much\n").unwrap();
        assert_eq!(group.weight().unwrap_err().kind(), io::ErrorKind::InvalidData);

        let above: Vec<String> =
            std::iter::successors(Some(group), Cgroup::parent).map(|group| group.name).collect();
        assert_eq!(above, ["/user.slice/app.scope", "/user.slice", "/"]);
    }

    #[test]
    fn this_process_is_in_a_group_where_there_are_groups() {
        match Cgroup::of(std::process::id()) {
            // In a namespace the group may lie above what is mounted.
            Ok(group) => assert!(group.name().starts_with('/')),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}"),
        }
    }
}
