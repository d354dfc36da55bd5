//! The Rust interface. A process has one engine, so each test runs its body in a process of its
//! own: this binary again, with the test's name.

use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use attune_threads::net::{self, TcpListener, TcpStream};
use attune_threads::{
    Builder, Condvar, Mutex, Options, Semaphore, ThreadId, current, end_trace, imports, init, now,
    resume, spawn, statistics, suspend, trace, yield_now, yield_to,
};

const MS: Duration = Duration::from_millis(1);

fn alone(name: &str, body: impl FnOnce()) {
    if std::env::var_os("ATTUNE_TEST_BODY").is_some() {
        return body();
    }
    let me = std::env::current_exe().expect("the test's own path");
    let mut command = Command::new("timeout");
    command.arg("60").arg(me).args(["--exact", name, "--nocapture"]).env("ATTUNE_TEST_BODY", "1");
    let output = command.output().expect("it runs");
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
}

#[test]
fn threads_return_values_and_interleave() {
    alone("threads_return_values_and_interleave", || {
        let order = Rc::new(RefCell::new(String::new()));
        let spell = |c: char| {
            let order = order.clone();
            spawn(move || {
                for _ in 0..2 {
                    order.borrow_mut().push(c);
                    yield_now().unwrap();
                }
                c
            })
            .unwrap()
        };
        let (a, b) = (spell('a'), spell('b'));
        yield_to(b.id()).unwrap();
        assert_eq!((a.join().unwrap(), b.join().unwrap()), ('a', 'b'));
        assert_eq!(*order.borrow(), "baba");
        assert_eq!(current().unwrap(), ThreadId(1));
    });
}

#[test]
fn a_panic_ends_its_thread_and_is_reported_by_join() {
    alone("a_panic_ends_its_thread_and_is_reported_by_join", || {
        let dropped = Rc::new(Cell::new(false));
        struct Notes(Rc<Cell<bool>>);
        impl Drop for Notes {
            fn drop(&mut self) {
                self.0.set(true);
            }
        }
        let notes = Notes(dropped.clone());
        let handle = spawn(move || {
            let _notes = notes;
            panic!("on purpose");
        });
        let error = handle.unwrap().join().unwrap_err();
        assert_eq!(error.downcast_ref::<&str>(), Some(&"on purpose"));
        assert!(dropped.get());
        assert_eq!(spawn(|| 5).unwrap().join().unwrap(), 5);
    });
}

#[test]
fn a_dropped_handle_lets_the_thread_go_on() {
    alone("a_dropped_handle_lets_the_thread_go_on", || {
        let ran = Rc::new(Cell::new(false));
        let set = ran.clone();
        drop(spawn(move || set.set(true)).unwrap());
        assert!(!ran.get());
        attune_threads::sleep(MS).unwrap();
        assert!(ran.get());
        assert_eq!(statistics().unwrap().living, 1);
    });
}

#[test]
fn suspended_threads_wait_for_resume() {
    alone("suspended_threads_wait_for_resume", || {
        let handle =
            Builder::new().name("sleeper").spawn(|| suspend(current().unwrap()).unwrap()).unwrap();
        attune_threads::sleep(MS).unwrap();
        assert_eq!(statistics().unwrap().suspended, 1);
        assert_eq!(suspend(handle.id()).unwrap_err().raw_os_error(), Some(libc::EALREADY));
        resume(handle.id()).unwrap();
        handle.join().unwrap();
    });
}

#[test]
fn a_mutex_excludes_and_a_condition_wakes() {
    alone("a_mutex_excludes_and_a_condition_wakes", || {
        let shared = Rc::new((Mutex::new(0), Condvar::new()));
        let workers: Vec<_> = (0..10)
            .map(|_| {
                let shared = shared.clone();
                spawn(move || {
                    let mut count = shared.0.lock().unwrap();
                    let before = *count;
                    yield_now().unwrap();
                    *count = before + 1;
                    shared.1.notify_all().unwrap();
                })
                .unwrap()
            })
            .collect();
        let mut count = shared.0.lock().unwrap();
        assert_eq!(shared.0.lock().err().unwrap().raw_os_error(), Some(libc::EDEADLK));
        while *count < 10 {
            shared.1.wait(&mut count).unwrap();
        }
        assert!(!shared.1.wait_timeout(&mut count, MS).unwrap());
        drop(count);
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert!(shared.0.try_lock().unwrap().is_some());
    });
}

#[test]
fn a_semaphore_bounds_how_many_are_inside() {
    alone("a_semaphore_bounds_how_many_are_inside", || {
        let semaphore = Rc::new(Semaphore::new(3));
        let (inside, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let workers: Vec<_> = (0..20)
            .map(|_| {
                let (semaphore, inside, most) = (semaphore.clone(), inside.clone(), most.clone());
                spawn(move || {
                    semaphore.acquire().unwrap();
                    inside.set(inside.get() + 1);
                    most.set(most.get().max(inside.get()));
                    attune_threads::sleep(MS).unwrap();
                    inside.set(inside.get() - 1);
                    semaphore.release().unwrap();
                })
                .unwrap()
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!((inside.get(), most.get()), (0, 3));
        assert!(
            (0..3).all(|_| semaphore.try_acquire().unwrap()) && !semaphore.try_acquire().unwrap()
        );
        assert!(!semaphore.acquire_timeout(MS).unwrap());
    });
}

#[test]
fn sockets_over_loopback_with_a_hundred_clients() {
    alone("sockets_over_loopback_with_a_hundred_clients", || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(listener.accept_timeout(Some(MS)).unwrap_err().kind(), ErrorKind::TimedOut);
        let server = spawn(move || {
            for _ in 0..100 {
                let mut stream = listener.accept().unwrap();
                spawn(move || {
                    let mut question = [0; 4];
                    stream.read_exact(&mut question).unwrap();
                    stream.write_all(&question.repeat(100_000)).unwrap();
                })
                .unwrap();
            }
        })
        .unwrap();
        let clients: Vec<_> = (0..100u32)
            .map(|n| {
                spawn(move || {
                    let mut stream = TcpStream::connect(address).unwrap();
                    stream.set_timeout(Some(2 * MS));
                    assert_eq!(stream.read(&mut [0; 9]).unwrap_err().kind(), ErrorKind::TimedOut);
                    stream.set_timeout(None);
                    stream.write_all(&n.to_ne_bytes()).unwrap();
                    let mut answer = Vec::new();
                    stream.read_to_end(&mut answer).unwrap();
                    assert_eq!(answer, n.to_ne_bytes().repeat(100_000));
                })
                .unwrap()
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        server.join().unwrap();
    });
}

#[test]
fn poll_and_pipes() {
    alone("poll_and_pipes", || {
        let (reader, writer) = std::io::pipe().unwrap();
        let timed_out = Rc::new(Cell::new(false));
        let tell = timed_out.clone();
        let answered = spawn(move || {
            let mut text = [0; 5];
            net::read(reader.as_fd(), &mut text, None).unwrap();
            let fd = std::os::fd::AsRawFd::as_raw_fd(&reader);
            let mut wish = [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }];
            assert_eq!(net::poll(&mut wish, Some(MS)).unwrap(), 0);
            tell.set(true);
            assert_eq!(net::poll(&mut wish, None).unwrap(), 1);
            assert_eq!(wish[0].revents, libc::POLLHUP);
            text
        });
        yield_now().unwrap();
        assert_eq!(net::write(writer.as_fd(), b"hello", None).unwrap(), 5);
        while !timed_out.get() {
            attune_threads::sleep(MS).unwrap();
        }
        net::close(writer.into()).unwrap();
        assert_eq!(&answered.unwrap().join().unwrap(), b"hello");
    });
}

#[test]
fn time_passes_at_least_as_long_as_asked() {
    alone("time_passes_at_least_as_long_as_asked", || {
        let start = now();
        attune_threads::sleep(3 * MS).unwrap();
        attune_threads::sleep_until(start + 5_000_000).unwrap();
        assert!(now() >= start + 5_000_000);
    });
}

#[test]
fn a_foreign_os_thread_is_refused() {
    alone("a_foreign_os_thread_is_refused", || {
        yield_now().unwrap();
        let refused =
            std::thread::spawn(|| spawn(|| ()).err().and_then(|error| error.raw_os_error()));
        assert_eq!(refused.join().unwrap(), Some(libc::EPERM));
    });
}

#[test]
fn unknown_imports_can_be_ignored() {
    alone("unknown_imports_can_be_ignored", || {
        static VARIABLE: AtomicI64 = AtomicI64::new(3);
        init(&Options { ignore_unknown_imports: true, ..Options::default() }).unwrap();
        assert_eq!(init(&Options::default()).unwrap_err().raw_os_error(), Some(libc::EALREADY));
        imports::register("no_such_import", &VARIABLE).unwrap();
        let unowned = imports::import_int("no_such_import").unwrap_err();
        assert_eq!(unowned.raw_os_error(), Some(libc::ENOENT));
        assert_eq!(VARIABLE.load(Relaxed), 3);
    });
}

#[test]
fn a_trace_begins_and_ends() {
    alone("a_trace_begins_and_ends", || {
        let file = tempfile::NamedTempFile::new().unwrap();
        let already = |result: std::io::Result<()>| {
            assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::EALREADY));
        };
        already(end_trace());
        trace(file.path()).unwrap();
        already(trace(file.path()));
        Builder::new().name("traced").spawn(|| yield_now().unwrap()).unwrap().join().unwrap();
        end_trace().unwrap();
        let seen = attune_timeline_reader::Trace::read(&std::fs::read(file.path()).unwrap());
        assert_eq!(seen.track("2 traced").slices_named("running").count(), 2);
    });
}
