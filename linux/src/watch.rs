//! Hears when a file comes to a place (inotify).

use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

use crate::poll;
use crate::time::{Time, now};

/// A place where a file may come, go, or change who may open it.
#[derive(Debug)]
pub struct Place {
    events: OwnedFd,
    name: OsString,
}

impl Place {
    /// `NotFound`: its folder is not there either.
    pub fn watch(path: &Path) -> io::Result<Place> {
        let (folder, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::NotFound)?;
        let events = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let what = WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE_SELF
            | WatchFlags::ONLYDIR;
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        add_watch(&events, folder, what)?;
        Ok(Place { events, name: name.to_owned() })
    }

    /// Waits until something happens to the file, at most so many nanoseconds. Whether it did; also
    /// when the folder has gone.
    pub fn wait(&self, at_most: Time) -> io::Result<bool> {
        let end = now().saturating_add(at_most);
        loop {
            let mut wait = [poll::readable(self.events.as_fd().as_raw_fd())];
            if poll::wait(&mut wait, end.saturating_sub(now()))? == 0 {
                return Ok(false);
            }
            if self.read()? {
                return Ok(true);
            }
        }
    }

    /// Whether any of the events that have come is about the file.
    fn read(&self) -> io::Result<bool> {
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.events, &mut room);
        let mut ours = false;
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| name.to_bytes());
                    // An event without a name is about the folder, or says that some were lost.
                    ours |= name.is_none_or(|name| name == self.name.as_bytes());
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(ours),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;

    #[test]
    fn only_what_happens_to_the_file_is_heard() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let place = Place::watch(&path).unwrap();
        std::fs::write(folder.path().join("another"), "").unwrap();
        assert!(!place.wait(0).unwrap());
        std::fs::write(&path, "").unwrap();
        assert!(place.wait(60 * SECOND).unwrap());
        assert!(!place.wait(0).unwrap());
    }

    #[test]
    fn a_folder_that_is_not_there_is_told() {
        let error = Place::watch(Path::new("/no-such-folder/socket")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
