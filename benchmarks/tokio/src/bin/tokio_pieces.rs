// tokio's side of micro.cpp and udp_batch.cpp: the cost of single operations of its current-thread
// runtime. The command line and the output are those of Google Benchmark, as far as the suite uses
// them:
//
//   tokio_pieces --benchmark_filter=^tokio/PIECE$ --benchmark_min_time=SECONDS
//   tokio_pieces udp BYTES IN_FLIGHT
//
// Timers have millisecond resolution, so there is no timer_arm_expire.

use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

const CHILDREN: usize = 100; // for when_all
const OUTSTANDING: usize = 8; // timers armed at a time by timer_outlives_turns

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}
extern "C" {
    fn clock_gettime(clock: i32, into: *mut Timespec) -> i32;
}
const OF_PROCESS: i32 = 2;
const OF_THREAD: i32 = 3;

fn processor_seconds(clock: i32) -> f64 {
    let mut now = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the pointer is to a timespec of 64-bit Linux, which outlives the call.
    unsafe { clock_gettime(clock, &mut now) };
    now.seconds as f64 + 1e-9 * now.nanoseconds as f64
}

#[derive(Clone, Copy)]
struct Spent {
    cpu: f64,
    real: f64,
}

struct Watch {
    clock: i32,
    cpu: f64,
    real: Instant,
}
impl Watch {
    fn start(clock: i32) -> Watch {
        Watch { clock, cpu: processor_seconds(clock), real: Instant::now() }
    }
    fn stop(&self) -> Spent {
        let cpu = processor_seconds(self.clock) - self.cpu;
        Spent { cpu, real: self.real.elapsed().as_secs_f64() }
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

async fn child() -> i32 {
    1
}

/// As in micro.cpp: between 10 s and 60 s from now, in no order.
fn pending_delay(at: u64, count: u64) -> Duration {
    Duration::from_millis(10_000 + 50_000 * (at * 2_654_435_761 % count) / count)
}

async fn pending_timers(count: u64) {
    for at in 0..count {
        tokio::spawn(tokio::time::sleep(pending_delay(at, count)));
    }
    tokio::time::sleep(Duration::from_millis(1)).await; // all of them are waiting
}

/// Runs `turns` of one operation, in a task of the runtime.
async fn piece(name: String, argument: u64, turns: u64) -> Spent {
    match name.as_str() {
        "coroutine_call" => {
            let watch = Watch::start(OF_THREAD);
            for _ in 0..turns {
                black_box(child().await);
            }
            watch.stop()
        }
        "spawn_join" => {
            let watch = Watch::start(OF_THREAD);
            for _ in 0..turns {
                black_box(tokio::spawn(child()).await.expect("a result"));
            }
            watch.stop()
        }
        "yield" => {
            let watch = Watch::start(OF_THREAD);
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            watch.stop()
        }
        "when_all_100" => {
            let watch = Watch::start(OF_THREAD);
            for _ in 0..turns {
                let mut all = tokio::task::JoinSet::new();
                for _ in 0..CHILDREN {
                    all.spawn(child());
                }
                while let Some(one) = all.join_next().await {
                    black_box(one.expect("a result"));
                }
            }
            watch.stop()
        }
        "channel" => {
            let (there, mut from) = mpsc::channel::<i32>(1);
            let (to, mut back) = mpsc::channel::<i32>(1);
            tokio::spawn(async move {
                while let Some(value) = from.recv().await {
                    if to.send(value).await.is_err() {
                        break;
                    }
                }
            });
            let watch = Watch::start(OF_THREAD);
            for _ in 0..turns {
                there.send(1).await.expect("a receiver");
                black_box(back.recv().await);
            }
            watch.stop()
        }
        "timer_arm_cancel" => {
            pending_timers(argument).await;
            let limit = Duration::from_secs(30);
            let watch = Watch::start(OF_THREAD);
            for _ in 0..turns {
                let _ = black_box(tokio::time::timeout(limit, tokio::task::yield_now()).await);
            }
            watch.stop()
        }
        "timer_outlives_turns" => {
            pending_timers(argument).await;
            let mut armed: Vec<Option<tokio::task::JoinHandle<()>>> =
                (0..OUTSTANDING).map(|_| None).collect();
            let watch = Watch::start(OF_THREAD);
            for turn in 0..turns {
                let oldest = &mut armed[turn as usize % OUTSTANDING];
                if let Some(task) = oldest.take() {
                    task.abort();
                }
                *oldest = Some(tokio::spawn(tokio::time::sleep(Duration::from_secs(30))));
                tokio::task::yield_now().await;
            }
            watch.stop()
        }
        "post_same_thread" => {
            let ran = Arc::new(AtomicI64::new(0));
            let mut wanted = 0;
            let watch = Watch::start(OF_THREAD);
            for _ in 0..turns {
                for _ in 0..argument {
                    let ran = ran.clone();
                    tokio::spawn(async move {
                        ran.fetch_add(1, Ordering::Relaxed);
                    });
                }
                wanted += argument as i64;
                while ran.load(Ordering::Relaxed) != wanted {
                    tokio::task::yield_now().await;
                }
            }
            watch.stop()
        }
        "resolve_numeric" => {
            let watch = Watch::start(OF_PROCESS);
            for _ in 0..turns {
                let found = tokio::net::lookup_host(("127.0.0.1", 80)).await.expect("an address");
                black_box(found.count());
            }
            watch.stop()
        }
        other => {
            eprintln!("no such piece: {other}");
            std::process::exit(2);
        }
    }
}

fn post_across_threads(count: u64, turns: u64) -> Spent {
    let ran = Arc::new(AtomicI64::new(0));
    let runtime = runtime();
    let handle = runtime.handle().clone();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let runner = std::thread::spawn(move || runtime.block_on(stopped));
    let watch = Watch::start(OF_PROCESS);
    for _ in 0..turns {
        let wanted = ran.load(Ordering::SeqCst) + count as i64;
        for _ in 0..count {
            let ran = ran.clone();
            handle.spawn(async move {
                ran.fetch_add(1, Ordering::Relaxed);
            });
        }
        while ran.load(Ordering::SeqCst) < wanted {}
    }
    let spent = watch.stop();
    stop.send(()).expect("a runner");
    runner.join().expect("its end").expect("a message");
    spent
}

/// Like Google Benchmark: increases the number of turns until they take long enough.
fn measure(filter: &str, min_time: f64) {
    let words: Vec<&str> = filter.trim_matches(|each| each == '^' || each == '$').split('/').collect();
    let name = words.get(1).copied().unwrap_or_default().to_string();
    let argument = words.get(2).and_then(|word| word.parse().ok()).unwrap_or(1);
    let mut turns = 1u64;
    loop {
        let across = name == "post_across_threads";
        let spent = if across {
            post_across_threads(argument, turns)
        } else {
            let task = piece(name.clone(), argument, turns);
            runtime().block_on(async { tokio::spawn(task).await }).expect("a piece")
        };
        let took = if across { spent.real } else { spent.cpu };
        if took >= min_time || turns >= 1_000_000_000 {
            let each = 1e9 / turns as f64;
            println!(
                "{{\"benchmarks\": [{{\"cpu_time\": {}, \"real_time\": {}}}]}}",
                spent.cpu * each,
                spent.real * each
            );
            return;
        }
        let more = if took > min_time / 10.0 { 1.4 * min_time / took } else { 10.0 };
        turns = ((turns as f64 * more) as u64).max(turns + 1);
    }
}

/// One at a time, like udp_batch.cpp: on one thread, with that many in flight.
fn udp(bytes: usize, in_flight: usize) {
    const TOTAL: usize = 64 * 400;
    let round = || async move {
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        let from = tokio::net::UdpSocket::bind(any).await.expect("a socket");
        let to = tokio::net::UdpSocket::bind(any).await.expect("a socket");
        let there = to.local_addr().expect("an address");
        let mut buffer = vec![0u8; bytes];
        let mut done = 0;
        while done < TOTAL {
            for _ in 0..in_flight {
                from.send_to(&buffer, there).await.expect("sent");
            }
            for _ in 0..in_flight {
                to.recv_from(&mut buffer).await.expect("received");
            }
            done += in_flight;
        }
    };
    let once = || runtime().block_on(async { tokio::spawn(round()).await }).expect("a round");
    once(); // warms up
    let watch = Watch::start(OF_THREAD);
    once();
    println!("tokio_one_by_one {:.0} ns a datagram", watch.stop().cpu * 1e9 / TOTAL as f64);
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse().ok());
    if words.first().map(String::as_str) == Some("udp") {
        return udp(number(1).unwrap_or(64), number(2).unwrap_or(64));
    }
    let option = |name: &str| {
        words.iter().find_map(|word| word.strip_prefix(name)).map(str::to_string).unwrap_or_default()
    };
    measure(
        &option("--benchmark_filter="),
        option("--benchmark_min_time=").parse().unwrap_or(0.1),
    );
}
