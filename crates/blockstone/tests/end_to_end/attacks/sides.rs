//! Attackers who reach the port at which a side of a check waits for the others, or who answer in
//! its place: ranks of `check coherence`, writers and witness of `check durability`.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_check::meet::{self, FRAME, Frame, Hello, Kind, Link, with_text};
use blockstone_testkit::blockstone_binary;

use super::super::check::durability::Witness;
use super::super::watch::listen::half_open;
use super::servers::server;
use super::{Place, refused, signal};

const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum memory that a side under attack may take in addition, in kB.
const MORE_KB: u64 = 16 << 10;

fn check(words: &[&str]) -> Command {
    let mut command = Command::new(blockstone_binary());
    command.args(["check", words[0], "--json"]).args(&words[1..]);
    command
}

fn started(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[track_caller]
fn ends_well(child: Child) {
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
}

fn kilobytes(pid: u32, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn greeting(check: &str, version: u32) -> Vec<u8> {
    let protocol = format!("blockstone.check/{version}");
    let text = format!(r#"{{"protocol":"{protocol}","check":"{check}","rank":1,"ranks":3}}"#);
    with_text(Kind::Hello, 0, &text)
}

/// Sends these bytes to the listener and returns the reason for its refusal.
#[track_caller]
fn answer(address: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    let message = meet::read(&mut stream).unwrap().expect("an answer");
    assert_eq!(message.frame.kind, Kind::Refused, "{message:?}");
    message.text
}

/// Returns how long a connection that sends one byte per second is kept.
fn slow(mut stream: TcpStream, hello: &[u8]) -> Duration {
    let begin = Instant::now();
    for byte in hello {
        if stream.write_all(&[*byte]).is_err() {
            break;
        }
        thread::sleep(Duration::from_secs(1));
    }
    begin.elapsed()
}

/// Sends nonsense and incomplete greetings.
fn nonsense(address: &str, name: &str) {
    for (bytes, why) in [
        (&b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"[..], "not of blockstone"),
        (&[255; 4096], "not of blockstone"),
        (&Frame::new(Kind::Hello, 0, u64::MAX).bytes(), "more than 1024"),
        (&Frame::new(Kind::Message, 0, 1 << 40).bytes(), "more than 4194304"),
        (&Frame::new(Kind::Ask, 0, 0).bytes(), "no greeting"),
        (&with_text(Kind::Hello, 0, "[]"), "no greeting"),
        (&greeting(name, 99), "blockstone.check/2"),
        (&greeting("direct", 1), name),
    ] {
        let said = answer(address, bytes);
        assert!(said.contains(why), "{why}: {said}");
    }
    let hello = greeting(name, 1);
    for end in [1, FRAME - 1, FRAME, hello.len() - 1] {
        TcpStream::connect(address).unwrap().write_all(&hello[..end]).unwrap();
    }
}

fn joined(address: &str, check: &str, ranks: u32) -> Link {
    meet::connect(address, &Hello::new(check, 1, ranks), PATIENCE, &|| false).unwrap()
}

#[test]
fn whoever_reaches_the_port_of_a_side_keeps_nobody_from_it() {
    let place = Place::beside();
    let witness = Witness::start();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let data = place.data().display().to_string();
    let ranked = |rank: &str| {
        let words = ["coherence", &data, "--rounds", "2", "--patience", "50ms"];
        let mut command = check(&words);
        command.args(["--witness", &address, "--ranks", "3", "--rank", rank]);
        command
    };
    let first = started(&mut ranked("0"));
    let sides = [(&address, "coherence"), (&witness.address, "durability")];
    while TcpStream::connect(&address).is_err() {
        thread::sleep(Duration::from_millis(20));
    }
    let pids = [first.id(), witness.child.id()];
    let before = pids.map(|pid| kilobytes(pid, "VmRSS:"));
    let enough = AtomicBool::new(false);
    let hellos = sides.map(|(_, check)| greeting(check, 1));
    thread::scope(|scope| {
        let slow: Vec<_> = sides
            .iter()
            .zip(&hellos)
            .map(|((address, _), hello)| {
                // Connect before the others, who may keep it from being accepted until the side has
                // ended.
                let stream = TcpStream::connect(address).unwrap();
                scope.spawn(|| half_open(address, 300, &hello[..FRAME], &enough));
                scope.spawn(move || slow(stream, hello))
            })
            .collect();
        for (address, check) in sides {
            nonsense(address, check);
        }

        // Clients that speak the protocol: implausible lengths, an end within a message, and a name
        // that is taken.
        let mut link = joined(&witness.address, "durability", 2);
        link.send(&Frame::new(Kind::Begin, 9, 1 << 40).bytes()).unwrap();
        let why = link.receive(PATIENCE).unwrap_err().to_string();
        assert!(why.contains("it refuses: a text has"), "{why}");
        let mut link = joined(&witness.address, "durability", 2);
        link.send(&with_text(Kind::Begin, 9, "{}")[..=FRAME]).unwrap();
        drop(link);
        let link = joined(&address, "coherence", 3);
        let said = refused(&place, &mut ranked("1"));
        assert!(said.contains("it refuses: rank 1 is here already"), "{said}");
        drop(link);

        let more = pids.map(|pid| kilobytes(pid, "VmHWM:"));
        let more = [0, 1].map(|at| more[at].saturating_sub(before[at]));
        println!("kB more at the peak: {more:?}");
        assert!(more.iter().all(|more| *more < MORE_KB), "{more:?} kB");

        // Meanwhile the legitimate sides complete.
        let ranks = ["1", "2"].map(|rank| started(&mut ranked(rank)));
        let words = ["durability", "--methods", "fsync", "--patterns", "create", "--for", "300ms"];
        let mut writing = check(&words);
        let scratch = place.runs();
        ends_well(started(writing.args(["--witness", &witness.address]).arg(&scratch)));
        let mut verifying = check(&["durability", "--verify", "--witness", &witness.address]);
        let verified = verifying.arg(&scratch).output().unwrap();
        let said = String::from_utf8_lossy(&verified.stdout);
        assert!(said.contains(r#""lost":0"#) || said.contains(r#""lost": 0"#), "{said}");
        ranks.into_iter().for_each(ends_well);
        ends_well(first);
        enough.store(true, Ordering::Relaxed);
        for slow in slow {
            let kept = slow.join().unwrap();
            assert!(kept < Duration::from_secs(8), "{kept:?}");
        }
    });
    assert_eq!(place.left_in_data(), Vec::<String>::new());
    let mut witness = witness;
    signal(&witness.child, "INT");
    assert_eq!(witness.child.wait().unwrap().code(), Some(130));
}

#[test]
fn who_answers_in_place_of_a_side_is_one_clear_error() {
    let place = Place::beside();
    for (bytes, said) in [
        (b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n".to_vec(), "not of blockstone"),
        (Frame::new(Kind::Refused, 0, u64::MAX).bytes().to_vec(), "more than 1024"),
        (Frame::new(Kind::Message, 0, 1 << 40).bytes().to_vec(), "more than 4194304"),
        (with_text(Kind::Refused, 0, "\u{1b}[2J\nno"), "it refuses: [2Jno"),
        (greeting("durability", 99), "not of this check"),
        (greeting("direct", 1), "not of this check"),
    ] {
        let port = server(move |stream| drop(stream.write_all(&bytes)));
        let address = format!("127.0.0.1:{port}");
        let rank = ["coherence", "--rank", "1", "--ranks", "2", "--witness", &address];
        let writer = ["durability", "--witness", &address];
        let verifier = ["durability", "--verify", "--witness", &address];
        for words in [&rank[..], &writer, &verifier] {
            let what = refused(&place, check(words).arg(place.data()));
            assert!(what.contains(said), "{words:?}: {what}");
        }
    }
}

#[test]
fn a_side_that_waits_ends_by_a_signal() {
    let place = Place::beside();
    let data = place.data().display().to_string();
    for rank in ["0", "1"] {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let words = ["coherence", "--rank", rank, "--ranks", "2", "--witness", &address, &data];
        let waiting = started(&mut check(&words));
        thread::sleep(Duration::from_millis(300));
        signal(&waiting, "INT");
        let ended = waiting.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    assert_eq!(place.left_in_data(), Vec::<String>::new());
}
