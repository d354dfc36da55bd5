//! Loads and attaches a BPF program, and says what the kernel has against it.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Mutex, Once};

use libbpf_rs::{Link, Map, MapCore, Object, ObjectBuilder, OpenObject, PrintLevel};

use crate::Error;

/// Where the kernel describes its types.
pub const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Bytes that libbpf, which reads an object in place, finds aligned.
#[repr(align(8))]
pub struct Aligned<T: ?Sized>(pub T);

/// The object that the build script has compiled from `bpf/NAME.c`: `object!("NAME.o")`.
#[macro_export]
macro_rules! object {
    ($name:literal) => {{
        static OBJECT: &$crate::load::Aligned<[u8]> =
            &$crate::load::Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name)));
        &OBJECT.0
    }};
}

/// libbpf's messages since the last load or attachment.
static LOG: Mutex<String> = Mutex::new(String::new());
static PRINT: Once = Once::new();

/// Opens an object, lets `configure` size its maps and choose its programs, and loads it.
pub fn load(
    object: &'static [u8],
    configure: impl FnOnce(&mut OpenObject) -> libbpf_rs::Result<()>,
) -> Result<Object, Error> {
    PRINT.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
            if let Ok(mut log) = LOG.lock() {
                log.push_str(&text);
            }
        })));
    });
    if !Path::new(BTF).exists() {
        return Err(Error::NoBtf);
    }
    clear_log();
    let mut open = ObjectBuilder::default().open_memory(object).map_err(refused)?;
    configure(&mut open).map_err(refused)?;
    open.load().map_err(refused)
}

/// Attaches all programs that were loaded, until the links are dropped.
pub fn attach(object: &Object) -> Result<Vec<Link>, Error> {
    clear_log();
    let loaded = object.progs_mut().filter(|program| program.autoload());
    loaded.map(|program| program.attach().map_err(refused)).collect()
}

pub fn map<'object>(object: &'object Object, name: &str) -> Result<Map<'object>, Error> {
    let found = object.maps().find(|map| map.name() == OsStr::new(name));
    found.ok_or_else(|| Error::Refused(format!("the loaded program has no map {name}")))
}

fn clear_log() {
    if let Ok(mut log) = LOG.lock() {
        log.clear();
    }
}

/// What libbpf says, with its last messages.
pub fn refused(error: libbpf_rs::Error) -> Error {
    if error.kind() == libbpf_rs::ErrorKind::PermissionDenied || denied(&error) {
        return Error::NoPrivilege;
    }
    let log = LOG.lock().map(|log| log.clone()).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let last = lines[lines.len().saturating_sub(5)..].join("\n");
    Error::Refused(format!("{error}\n{last}").trim_end().to_owned())
}

/// Whether some error below is the system's EPERM or EACCES.
fn denied(error: &libbpf_rs::Error) -> bool {
    let first: &(dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |error| error.source()).any(|error| {
        error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == ErrorKind::PermissionDenied)
    })
}
