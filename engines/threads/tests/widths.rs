//! Generated C reads and writes imports by itself; here its functions and values/ are given the
//! same numbers.

use std::ffi::c_void;
use std::process::Command;

use attune_values::{Type, Value, Width};

const SOURCE: &str = r#"
#include "import.h"
static struct attune_instance instance;
uint64_t get(const void *link, int width, int real)
{
    struct attune_import import = { (void *)link, { 0 } };
    union { int64_t number; double real; uint64_t bits; } out;
    if (real) out.real = attune_get_real(&instance, &import, width);
    else out.number = attune_get(&instance, &import, width);
    return out.bits;
}
void set(void *link, int width, int real, uint64_t bits)
{
    struct attune_import import = { link, { 0 } };
    union { uint64_t bits; int64_t number; double real; } in = { bits };
    if (real) attune_set_real(&instance, &import, width, in.real);
    else attune_set(&instance, &import, width, in.number);
}
uint64_t clamped(void) { return instance.clamped; }
"#;

type Get = unsafe extern "C" fn(*const c_void, i32, i32) -> u64;
type Set = unsafe extern "C" fn(*mut c_void, i32, i32, u64);
type Clamped = unsafe extern "C" fn() -> u64;

fn interesting() -> Vec<u64> {
    let ints =
        [0, 1, 2, -1, 127, 128, -128, -129, 255, 256, 32767, 32768, 65535, 65536, 1 << 31, 1 << 32];
    let ints =
        ints.into_iter().chain([i64::MIN, i64::MAX, -(1 << 31), -(1 << 31) - 1, (1 << 31) - 1]);
    let reals =
        [0.5, -0.5, 1.9, -1.9, 255.5, 1e10, -1e10, 1e300, -1e300, 9.3e18, 3.4028235e38, 3.5e38];
    let reals = reals.into_iter().chain([
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        3.4028235677973366e38,
    ]);
    let mut bits: Vec<u64> = ints.map(|n| n as u64).chain(reals.map(f64::to_bits)).collect();
    let mut random = 42u64;
    bits.extend((0..2000).map(|_| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        random.rotate_left(17)
    }));
    bits
}

#[test]
fn generated_code_and_values_agree() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (source, library) = (directory.path().join("w.c"), directory.path().join("w.so"));
    std::fs::write(&source, SOURCE).expect("written");
    let runtime = format!("{}/../../backends/c/runtime", env!("CARGO_MANIFEST_DIR"));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-shared", "-fPIC", "-I", &runtime, "-o"]).arg(&library).arg(&source);
    let output = cc.output().expect("the C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    // SAFETY: the library is the one just made, its functions have these types.
    let (get, set, clamped) = unsafe {
        let path = std::ffi::CString::new(library.to_str().expect("a plain path")).expect("no NUL");
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null());
        (
            std::mem::transmute::<*mut c_void, Get>(libc::dlsym(handle, c"get".as_ptr())),
            std::mem::transmute::<*mut c_void, Set>(libc::dlsym(handle, c"set".as_ptr())),
            std::mem::transmute::<*mut c_void, Clamped>(libc::dlsym(handle, c"clamped".as_ptr())),
        )
    };
    for width in Width::ALL {
        for real in [false, true] {
            for bits in interesting() {
                // SAFETY: eight bytes are enough for any width.
                unsafe {
                    let (number, ty) = if real {
                        (Value::Float(f64::from_bits(bits)), Type::Float)
                    } else {
                        (Value::Int(bits as i64), Type::Int)
                    };
                    let (mut theirs, before) = ([0u8; 8], clamped());
                    set(theirs.as_mut_ptr().cast(), width as i32, real.into(), bits);
                    let ours = width.store(number);
                    let context = format!("{width:?} {number:?}");
                    same(width.load(&theirs).value, width.load(&ours.value).value, &context);
                    assert_eq!(clamped() - before, u64::from(ours.clamped), "store {context}");

                    let before = clamped();
                    // A bool is 0 or 1 in memory; any other byte would be an error of the
                    // program's.
                    let memory = if width == Width::Bool { bits & 1 } else { bits }.to_ne_bytes();
                    let read = get(memory.as_ptr().cast(), width as i32, real.into());
                    let loaded = width.load(&memory);
                    let typed = loaded.value.to_type(ty);
                    let read = if real {
                        Value::Float(f64::from_bits(read))
                    } else {
                        Value::Int(read as i64)
                    };
                    same(read, typed.value, &context);
                    let count = u64::from(loaded.clamped || typed.clamped);
                    assert_eq!(clamped() - before, count, "load {context} {bits:x}");
                }
            }
        }
    }
}

/// Equal, NaN to itself too.
#[track_caller]
fn same(theirs: Value, ours: Value, context: &str) {
    let both_nan = theirs.to_float().is_nan() && ours.to_float().is_nan();
    assert!(both_nan || theirs == ours, "{context}: {theirs:?} in C, {ours:?} here");
}
