//! Tasks of Tokio's current-thread runtime, which have no stack. The measurements are those of
//! bench.h.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use tokio::runtime::Builder;
use tokio::spawn;
use tokio::task::yield_now;

const WARM: usize = 3;

#[derive(Default)]
struct Bench {
    mode: u8,
    threads: usize,
    rounds: usize,
    arrived: AtomicUsize,
    finished: AtomicBool,
    /// Its bits.
    result: AtomicU64,
}

/// Bytes that this process has in memory, page tables included.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = |line: &str| -> Option<f64> {
        let rest = line.strip_prefix("VmRSS:").or_else(|| line.strip_prefix("VmPTE:"))?;
        rest.split_whitespace().next()?.parse().ok()
    };
    status.lines().filter_map(kilobytes).sum::<f64>() * 1024.0
}

impl Bench {
    fn per_turn(&self, began: Instant) -> f64 {
        began.elapsed().as_nanos() as f64 / (self.rounds as f64 * self.threads as f64)
    }

    fn must_wait(&self, number: usize) -> bool {
        match number {
            0 => self.arrived.load(Relaxed) < self.threads,
            _ => !self.finished.load(Relaxed),
        }
    }

    async fn body(self: Arc<Bench>, number: usize) {
        if self.mode == b'y' {
            for _ in 0..WARM {
                yield_now().await;
            }
            let began = Instant::now();
            for _ in 0..self.rounds {
                yield_now().await;
            }
            if number == 0 {
                self.result.store(self.per_turn(began).to_bits(), Relaxed);
            }
        }
        if self.mode != b'm' {
            return;
        }
        self.arrived.fetch_add(1, Relaxed);
        while self.must_wait(number) {
            yield_now().await;
        }
        if number == 0 {
            self.result.store(memory().to_bits(), Relaxed);
        }
        self.finished.store(true, Relaxed);
    }

    async fn batch(self: &Arc<Bench>) {
        let handles: Vec<_> =
            (0..self.threads).map(|number| spawn(self.clone().body(number))).collect();
        for handle in handles {
            handle.await.expect("it ends");
        }
    }
}

async fn measure(bench: Arc<Bench>) -> f64 {
    if bench.mode == b'c' {
        bench.batch().await;
        let began = Instant::now();
        for _ in 0..bench.rounds {
            bench.batch().await;
        }
        return bench.per_turn(began);
    }
    let before = memory();
    bench.batch().await;
    let result = f64::from_bits(bench.result.load(Relaxed));
    if bench.mode == b'm' { (result - before) / bench.threads as f64 } else { result }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |place: usize| arguments[place].parse().expect("a number");
    let bench = Arc::new(Bench {
        mode: arguments[1].as_bytes()[0],
        threads: number(2),
        rounds: number(3),
        ..Bench::default()
    });
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    println!("{:.2}", runtime.block_on(measure(bench)));
}
