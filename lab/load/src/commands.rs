//! Programs that are started again and again, several at a time: what each takes, from its start to
//! its end.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::clock;

/// Runs `count` of them, at most `at_once` at a time. Err: one failed.
pub fn run(count: u32, at_once: u32, command: impl Fn(u32) -> Command) -> Result<Value> {
    ensure!(count > 0 && (1..=1000).contains(&at_once), "1 to 1000 at once, and at least one");
    let (start, mut alive) = (clock::now(), VecDeque::new());
    for number in 0..count {
        if alive.len() >= at_once as usize
            && let Some(oldest) = alive.pop_front()
        {
            finish(oldest)?;
        }
        let mut command = command(number);
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        alive.push_back(child.with_context(|| format!("cannot run {program}"))?);
    }
    alive.into_iter().try_for_each(finish)?;
    let time = clock::now() - start;
    Ok(json!({ "commands": count, "time_ns": time,
            "ns_per_command": time as f64 / f64::from(count) }))
}

fn finish(mut child: Child) -> Result<()> {
    let status = child.wait()?;
    ensure!(status.success(), "a command failed ({status})");
    Ok(())
}

/// A C text of some length that includes nothing, so that a compiler alone is needed.
fn text() -> String {
    (0..FUNCTIONS).map(|number| FUNCTION.replace('$', &number.to_string())).collect()
}

const FUNCTIONS: usize = 10;

/// Sorting, searching and hashing: loops, calls and memory, as programs have.
const FUNCTION: &str = "
struct entry$ { const char *name; unsigned long key; struct entry$ *next; };
static struct entry$ *table$[64];
static unsigned long hash$(const char *name)
{
    unsigned long key = 5381 + $;
    while (*name)
        key = key * 33 ^ (unsigned char)*name++;
    return key;
}
struct entry$ *find$(const char *name)
{
    unsigned long key = hash$(name);
    for (struct entry$ *entry = table$[key % 64]; entry; entry = entry->next) {
        const char *one = entry->name, *other = name;
        while (*one && *one == *other)
            one++, other++;
        if (entry->key == key && *one == *other)
            return entry;
    }
    return 0;
}
void insert$(struct entry$ *entry)
{
    entry->key = hash$(entry->name);
    entry->next = table$[entry->key % 64];
    table$[entry->key % 64] = entry;
}
static void sift$(long *heap, int length, int at)
{
    for (int child; (child = 2 * at + 1) < length; at = child) {
        if (child + 1 < length && heap[child + 1] > heap[child])
            child++;
        if (heap[at] >= heap[child])
            return;
        long swap = heap[at];
        heap[at] = heap[child], heap[child] = swap;
    }
}
void sort$(long *numbers, int length)
{
    for (int at = length / 2; at-- > 0;)
        sift$(numbers, length, at);
    while (--length > 0) {
        long swap = numbers[0];
        numbers[0] = numbers[length], numbers[length] = swap;
        sift$(numbers, length, 0);
    }
}
double solve$(double (*matrix)[8], double *right)
{
    double sum = 0;
    for (int pivot = 0; pivot < 8; pivot++)
        for (int row = pivot + 1; row < 8; row++) {
            double factor = matrix[row][pivot] / matrix[pivot][pivot];
            for (int column = pivot; column < 8; column++)
                matrix[row][column] -= factor * matrix[pivot][column];
            right[row] -= factor * right[pivot];
            sum += factor;
        }
    return sum;
}
";

/// A folder of this process that goes away with the value.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // It is in the system's temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Compilations by the machine's `cc`.
pub fn compile(count: u32, at_once: u32) -> Result<Value> {
    let folder = Folder(std::env::temp_dir().join(format!("attune-load-{}", std::process::id())));
    fs::create_dir_all(&folder.0).with_context(|| format!("cannot make {}", folder.0.display()))?;
    let source = folder.0.join("unit.c");
    fs::write(&source, text()).with_context(|| format!("cannot write {}", source.display()))?;
    run(count, at_once, |number| compiler(&source, &folder.0.join(format!("unit{number}.o"))))
}

fn compiler(source: &Path, object: &Path) -> Command {
    let mut command = Command::new("cc");
    // It includes nothing, and in a deterministic machine there are no headers to look for.
    command.args(["-O1", "-pipe", "-nostdinc", "-c"]).arg(source).arg("-o").arg(object);
    command
}
