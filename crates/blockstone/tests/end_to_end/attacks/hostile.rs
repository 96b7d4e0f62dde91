//! Servers that accept a client and then send nonsense, or never stop sending. Each answer is one
//! error with a hint, soon, in bounded memory, for every verb that connects.

mod mariadb;
mod postgres;

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use blockstone_sys::process;
use blockstone_testkit::Ran;

use super::servers::{all, fails_clearly};
use super::{Place, signal};
use crate::memory::resident_peak_bytes;

/// Maximum memory that a program may take with any of these servers.
const MEMORY_MOST: u64 = 256 << 20;
/// Programs that run at the same time; most of them wait.
const AT_ONCE: usize = 8;
/// Eight seconds for an answer, plus some time for a busy machine.
const LIMIT: Duration = Duration::from_mins(1);

/// Behaviour of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// No bytes at all.
    Silent,
    /// No answer to the first statement.
    SilentLater,
    Closes,
    /// An error with a text of 3 MiB that contains terminal control sequences.
    LongError,
    /// A message with the largest possible length, sent as far as it is accepted.
    HugeMessage,
    /// Messages without content where content is expected.
    EmptyMessages,
    /// A message of another kind than requested.
    WrongKind,
    /// A row that ends in the middle of a value.
    TruncatedRow,
    /// A row with more values than columns.
    MoreValues,
    FewerValues,
    /// No value where one is expected.
    Null,
    /// Negative counts and lengths, or the largest possible ones.
    HugeCounts,
    InvalidUtf8,
    EndlessRows,
    EndlessColumns,
    /// A correct answer, at one byte per second.
    Drip,
    /// A malformed request for a password.
    BadPasswordRequest,
    /// Requests a file of the client, or starts a COPY that was not requested.
    AsksForFile,
}

const MODES: [Mode; 18] = [
    Mode::Silent,
    Mode::SilentLater,
    Mode::Closes,
    Mode::LongError,
    Mode::HugeMessage,
    Mode::EmptyMessages,
    Mode::WrongKind,
    Mode::TruncatedRow,
    Mode::MoreValues,
    Mode::FewerValues,
    Mode::Null,
    Mode::HugeCounts,
    Mode::InvalidUtf8,
    Mode::EndlessRows,
    Mode::EndlessColumns,
    Mode::Drip,
    Mode::BadPasswordRequest,
    Mode::AsksForFile,
];

const TEXT_BYTES: usize = 3 << 20;

/// Starts a server on the loopback that runs `serve` for each connection, and then closes it.
/// Returns its port.
fn server(serve: impl Fn(&mut TcpStream) -> io::Result<()> + Send + Clone + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || {
                let _ = stream.set_nodelay(true);
                let _ = serve(&mut stream);
            });
        }
    });
    port
}

/// Waits until the client leaves.
fn stay(stream: &mut TcpStream) -> io::Result<()> {
    io::copy(stream, &mut io::sink()).map(drop)
}

/// Sends `bytes` over and over, as long as they are accepted.
fn flood(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    let many = bytes.repeat((256 << 10) / bytes.len().max(1) + 1);
    loop {
        stream.write_all(&many)?;
    }
}

/// Sends `count` zeros.
fn zeros(stream: &mut TcpStream, count: u64) -> io::Result<()> {
    io::copy(&mut io::repeat(0).take(count), stream).map(drop)
}

fn drip(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    for byte in bytes.iter().cycle() {
        stream.write_all(&[*byte])?;
        std::thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}

fn long_text() -> Vec<u8> {
    let mut text = b"\x1b]0;owned\x07\x1b[2J".to_vec();
    text.resize(TEXT_BYTES, b'x');
    text
}

/// Returns the commands that connect to a database, with this address.
fn verbs(place: &Place, address: &str) -> Vec<Command> {
    let mut commands = all(place, address);
    let mut check = place.command("check");
    check.args(["direct", "--db", address]);
    let mut subset = place.command("subset");
    subset.args(["--from", &format!("{address}/d"), "--percent", "10", "--dry-run"]);
    let mut noise = place.command("noise");
    noise.args(["--db", address, "--area", "1M", "--phase", "2s", "--for", "12s"]);
    noise.arg(place.data());
    let mut copy = place.command("copy");
    copy.args(["--against", "cp", "--db", address]);
    copy.arg(place.file("source")).arg(place.file("target"));
    commands.extend([check, subset, noise, copy]);
    commands
}

struct Ended {
    ran: Ran,
    seconds: f64,
    memory_peak_bytes: u64,
}

/// Runs the command to its end; it may not take longer than [`LIMIT`].
fn ended(command: &mut Command) -> Ended {
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let began = Instant::now();
    let read = |mut pipe: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            pipe.read_to_end(&mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let stdout = read(Box::new(child.stdout.take().unwrap()));
    let stderr = read(Box::new(child.stderr.take().unwrap()));
    let mut memory_peak_bytes = 0;
    while !process::has_ended(&child).unwrap() {
        memory_peak_bytes = memory_peak_bytes.max(resident_peak_bytes(child.id()).unwrap_or(0));
        if began.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("{command:?} still runs after {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let seconds = began.elapsed().as_secs_f64();
    let ended = process::wait(child).unwrap();
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    Ended { ran: Ran { code: ended.status.code(), stdout, stderr }, seconds, memory_peak_bytes }
}

/// Runs `work` on each item, some at the same time.
fn each<T: Send, R: Send>(all: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let (queue, (tell, told)) = (Mutex::new(all), mpsc::channel());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            let (queue, work, tell) = (&queue, &work, tell.clone());
            scope.spawn(move || {
                loop {
                    let Some(next) = queue.lock().unwrap().pop() else { return };
                    tell.send(work(next)).unwrap();
                }
            });
        }
    });
    drop(tell);
    told.iter().collect()
}

/// Runs each verb against each server.
fn all_fail_clearly(place: &Place, address_of: impl Fn(Mode) -> String) {
    std::fs::write(place.file("source"), vec![7; 1 << 20]).unwrap();
    let cases: Vec<(Mode, Command)> = MODES
        .into_iter()
        .flat_map(|mode| verbs(place, &address_of(mode)).into_iter().map(move |it| (mode, it)))
        .collect();
    let figures = each(cases, |(mode, mut command)| {
        let Ended { ran, seconds, memory_peak_bytes } = ended(&mut command);
        let said = format!("{mode:?} {seconds:.1} s {command:?} {ran:#?}");
        println!("{said}");
        fails_clearly(&ran);
        assert!(!ran.stderr.contains("panicked"), "{said}");
        assert!(memory_peak_bytes < MEMORY_MOST, "{} MiB: {said}", memory_peak_bytes >> 20);
        (mode, seconds, memory_peak_bytes)
    });
    for mode in MODES {
        let of = figures.iter().filter(|(of, ..)| *of == mode);
        let (seconds, bytes) =
            of.fold((0.0_f64, 0), |(seconds, bytes), (_, s, b)| (seconds.max(*s), bytes.max(*b)));
        println!("figures: {mode:?}: {seconds:.1} s, {} MiB at most", bytes >> 20);
    }
}

#[test]
fn a_hostile_postgresql_is_one_error_for_every_verb() {
    let place = Place::beside();
    all_fail_clearly(&place, |mode| {
        let port = server(move |stream| postgres::serve(stream, mode));
        format!("postgres://u:p@127.0.0.1:{port}")
    });
}

#[test]
fn a_hostile_mariadb_is_one_error_for_every_verb_and_gets_no_file() {
    let place = Place::beside();
    let (tell, sent) = mpsc::channel();
    all_fail_clearly(&place, |mode| {
        let tell = tell.clone();
        let port = server(move |stream| mariadb::serve(stream, mode, &tell));
        format!("mysql://u:p@127.0.0.1:{port}")
    });
    drop(tell);
    let sent: Vec<Vec<u8>> = sent.try_iter().collect();
    assert!(!sent.is_empty(), "no server asked for a file");
    assert!(sent.iter().all(Vec::is_empty), "{sent:?}");
}

#[test]
fn the_first_interrupt_ends_every_verb_while_a_server_is_silent() {
    let place = Place::beside();
    std::fs::write(place.file("source"), vec![7; 1 << 20]).unwrap();
    for mode in [Mode::Silent, Mode::SilentLater] {
        let postgres = server(move |stream| postgres::serve(stream, mode));
        let (tell, _) = mpsc::channel();
        let mariadb = server(move |stream| mariadb::serve(stream, mode, &tell));
        let mut cases = verbs(&place, &format!("postgres://u:p@127.0.0.1:{postgres}"));
        cases.extend(verbs(&place, &format!("mysql://u:p@127.0.0.1:{mariadb}")));
        each(cases, |mut command| {
            let piped = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            let child = piped.spawn().unwrap();
            std::thread::sleep(Duration::from_millis(1_500));
            signal(&child, "INT");
            let asked = Instant::now();
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            println!("{:.1} s after the signal: {command:?}", asked.elapsed().as_secs_f64());
            // A verb that has nothing to close keeps the default action of the signal.
            let is_130 = output.status.code() == Some(130) || output.status.signal() == Some(2);
            assert!(is_130 && !said.contains("did not answer"), "{command:?} {output:?} {said}");
        });
    }
}

#[test]
fn the_first_interrupt_ends_what_reads_a_silent_pipe() {
    let place = Place::beside();
    let pipe = place.file("pipe");
    let made = blockstone_testkit::run(Command::new("mkfifo").arg(&pipe));
    assert_eq!(made.code, Some(0));
    let mut writer = None;
    for arguments in [vec!["trace", "-"], vec!["trace", pipe.to_str().unwrap()]] {
        for has_writer in [false, true] {
            if has_writer && arguments[1] != "-" {
                // Opening the pipe waits for a reader, which is the second run.
                let path = pipe.clone();
                let open = move || std::fs::OpenOptions::new().write(true).open(path);
                writer = Some(std::thread::spawn(open));
            }
            let mut command = place.command(arguments[0]);
            command.arg(arguments[1]).stdin(Stdio::piped());
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            let held = child.stdin.take();
            std::thread::sleep(Duration::from_millis(1_500));
            signal(&child, "INT");
            let until = Instant::now() + LIMIT;
            while child.try_wait().unwrap().is_none() {
                assert!(Instant::now() < until, "{arguments:?} is not ended by a signal");
                std::thread::sleep(Duration::from_millis(20));
            }
            drop(held);
            assert_eq!(child.wait().unwrap().code(), Some(130), "{arguments:?} {has_writer}");
        }
    }
    drop(writer.map(std::thread::JoinHandle::join));
}
