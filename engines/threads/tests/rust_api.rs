//! The Rust interface. A process has one engine, so each test runs its body in a process of its
//! own: this binary again, with the test's name.

mod common;

use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use attune_threads::net::{self, TcpListener, TcpStream};
use attune_threads::{
    Builder, Condvar, Mutex, Options, Poller, Semaphore, ThreadId, Worker, blocking, current,
    end_trace, imports, init, now, poller, read_at, resume, spawn, spawn_on, statistics, suspend,
    trace, worker, workers, write_at, yield_now, yield_to,
};
use common::alone;

const MS: Duration = Duration::from_millis(1);

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
fn threads_live_on_the_worker_that_their_creator_names() {
    alone("threads_live_on_the_worker_that_their_creator_names", || {
        init(&Options { workers: 2, ..Options::default() }).unwrap();
        assert_eq!((workers().unwrap(), worker().unwrap()), (2, 1));
        let system = || std::thread::current().id();
        let there = spawn_on(Worker::Number(2), move || {
            yield_now().unwrap();
            (worker().unwrap(), system())
        });
        let (number, its_system) = there.unwrap().join().unwrap();
        assert!(number == 2 && its_system != system());
        for nowhere in [0, 3] {
            let refused = spawn_on(Worker::Number(nowhere), || ()).err().unwrap();
            assert_eq!(refused.raw_os_error(), Some(libc::EINVAL), "{nowhere}");
        }
        // The program is worker 1's.
        let gate = Arc::new(Semaphore::new(0));
        let waits = || {
            let gate = gate.clone();
            let waits = move || gate.acquire().map(|()| worker().unwrap()).unwrap();
            Builder::new().name("waits").spawn_on(Worker::LeastLoaded, waits).unwrap()
        };
        let waiting = [waits(), waits(), waits()];
        waiting.iter().for_each(|_| gate.release().unwrap());
        let mut on = waiting.map(|thread| thread.join().unwrap());
        on.sort();
        assert_eq!(on, [1, 2, 2]);
        let panics = spawn_on(Worker::Number(2), || panic!("on purpose"));
        let error = panics.unwrap().join().unwrap_err();
        assert_eq!(error.downcast_ref::<&str>(), Some(&"on purpose"));
    });
}

#[test]
fn objects_are_shared_between_workers() {
    alone("objects_are_shared_between_workers", || {
        init(&Options { workers: 2, ..Options::default() }).unwrap();
        let shared = Arc::new((Mutex::new(0), Condvar::new()));
        let threads: Vec<_> = (0..8)
            .map(|i| {
                let shared = shared.clone();
                spawn_on(Worker::Number(i % 2 + 1), move || {
                    for _ in 0..500 {
                        let mut count = shared.0.lock().unwrap();
                        let before = *count;
                        yield_now().unwrap();
                        *count = before + 1;
                        shared.1.notify_all().unwrap();
                    }
                })
                .unwrap()
            })
            .collect();
        let mut count = shared.0.lock().unwrap();
        while *count < 8 * 500 {
            shared.1.wait(&mut count).unwrap();
        }
        drop(count);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*shared.0.lock().unwrap(), 8 * 500);
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
fn a_call_that_blocks_keeps_no_other_thread_waiting_and_its_panic_comes_back() {
    alone("a_call_that_blocks_keeps_no_other_thread_waiting_and_its_panic_comes_back", || {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let waits = spawn(move || {
            let mut text = String::from("it said: ");
            let count = blocking(|| reader.read_to_string(&mut text)).unwrap();
            (count.unwrap(), text)
        });
        yield_now().unwrap();
        assert_eq!(net::write(writer.as_fd(), b"hello", None).unwrap(), 5);
        drop(writer);
        assert_eq!(waits.unwrap().join().unwrap(), (5, "it said: hello".to_owned()));

        let panics = spawn(|| blocking(|| assert!(now() == 0, "on purpose")).unwrap());
        let error = panics.unwrap().join().unwrap_err();
        assert_eq!(error.downcast_ref::<&str>(), Some(&"on purpose"));
    });
}

#[test]
fn files_are_written_and_read_at_places() {
    alone("files_are_written_and_read_at_places", || {
        let file = tempfile::tempfile().unwrap();
        let mut text = [0; 8];
        assert_eq!(write_at(file.as_fd(), b"world", 6).unwrap(), 5);
        assert_eq!(net::write(file.as_fd(), b"hello", None).unwrap(), 5);
        assert_eq!(read_at(file.as_fd(), &mut text, 3).unwrap(), 8);
        assert_eq!(&text, b"lo\0world");
        let far = read_at(file.as_fd(), &mut text, u64::MAX).unwrap_err();
        assert_eq!(far.raw_os_error(), Some(libc::EINVAL));
        if std::env::var("ATTUNE_IO").unwrap() == "epoll" {
            assert_eq!(poller().unwrap(), Poller::Epoll("ATTUNE_IO=epoll asks for it"));
        }
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
