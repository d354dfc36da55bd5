//! Where a manager listens: the same rule for the manager and for the nodes of the same user.

use std::path::PathBuf;

use attune_linux::process;

/// The socket of a cluster. A name with a slash is itself the place. Others are found in
/// `/run/attune` for root, and in the user's own runtime directory for everybody else.
pub fn socket(name: &str) -> PathBuf {
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    locate(name, process::effective_user(), own.map(PathBuf::from))
}

fn locate(name: &str, user: u32, own: Option<PathBuf>) -> PathBuf {
    if name.contains('/') {
        return PathBuf::from(name);
    }
    let folder = match own {
        Some(folder) if user != 0 => folder.join("attune"),
        _ => PathBuf::from("/run/attune"),
    };
    folder.join(format!("cluster-{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_users_have_places_of_their_own() {
        let own = || Some(PathBuf::from("/run/user/7"));
        assert_eq!(locate("farm", 0, own()), PathBuf::from("/run/attune/cluster-farm"));
        assert_eq!(locate("farm", 7, own()), PathBuf::from("/run/user/7/attune/cluster-farm"));
        assert_eq!(locate("farm", 7, None), PathBuf::from("/run/attune/cluster-farm"));
        assert_eq!(locate("./farm", 7, own()), PathBuf::from("./farm"));
    }
}
