//! Processes that are there already.

use std::fs;

/// A process and all below it, as far as they live; itself first. Empty if there is no such
/// process.
pub fn descendants(process: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![process];
    while let Some(next) = open.pop() {
        if found.contains(&next) || !fs::exists(format!("/proc/{next}/task")).unwrap_or(false) {
            continue;
        }
        found.push(next);
        open.extend(children(next));
    }
    found
}

fn children(process: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}
