//! `watch --listen`: scraped by Prometheus and by attackers.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_testkit::{ScratchDir, blockstone_binary, require, run};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use serde_json::Value;

use super::{Ended, Turn, signal, watch};

const TOKEN: &str = "qFUVsKHVJgnd1e8cZkYvPA7x";
/// Time limit for actions that take moments on an idle machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// A watch that listens on this host.
struct Listening {
    watch: Ended,
    stderr: BufReader<ChildStderr>,
    address: String,
}

impl Listening {
    fn start(arguments: &[&str]) -> Self {
        Self::at("127.0.0.1:0", 1024, arguments)
    }

    fn with_descriptors(most: u32, arguments: &[&str]) -> Self {
        Self::at("127.0.0.1:0", most, arguments)
    }

    fn at(address: &str, most: u32, arguments: &[&str]) -> Self {
        let limited = format!("ulimit -n {most}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &limited]).arg(blockstone_binary());
        command.args(["watch", "--listen", address, "--interval", "200ms"]).args(arguments);
        let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut child = child.unwrap();
        let (mut stderr, mut line) = (BufReader::new(child.stderr.take().unwrap()), String::new());
        stderr.read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap_or_else(|| panic!("{line}"));
        let address = address.trim().trim_end_matches("/metrics").to_owned();
        Self { watch: Ended(child), stderr, address }
    }

    fn child(&self) -> &Child {
        &self.watch.0
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Returns the answer, which may be empty.
    fn ask(&self, headers: &str) -> String {
        let mut answer = Vec::new();
        if let Ok(mut stream) = TcpStream::connect(&self.address) {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
            let _ = stream.write_all(format!("GET /metrics HTTP/1.1\r\n{headers}\r\n").as_bytes());
            let _ = stream.read_to_end(&mut answer);
        }
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Scrapes until `times` attempts have succeeded.
    fn scrapes(&self, times: u32) {
        let end = Instant::now() + PATIENCE;
        let (mut succeeded, mut failed) = (0, 0);
        while succeeded < times {
            let answer = self.ask("Host: localhost\r\n");
            if answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("# EOF\n") {
                succeeded += 1;
            } else {
                failed += 1;
                thread::sleep(Duration::from_millis(50));
            }
            assert!(Instant::now() < end, "{succeeded} scrapes succeeded, {failed} failed");
        }
    }

    /// Returns a number from `/proc/PID/status`: threads, or kilobytes of memory.
    fn status(&self, name: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child().id())).unwrap();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Returns the exit code, and the messages up to then.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        (self.watch.0.wait().unwrap().code(), said)
    }
}

/// Prometheus with one job.
struct Prometheus {
    port: u16,
    _server: Ended,
}

impl Prometheus {
    fn start(address: &str, dir: &Path, options: &str) -> Self {
        let config = dir.join("prometheus.yml");
        let text = format!(
            "global:\n  scrape_interval: 2s\nscrape_configs:\n  - job_name: blockstone\n\
             {options}    static_configs:\n      - targets: ['{address}']\n"
        );
        fs::write(&config, text).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", dir.join("tsdb").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { port, _server: Ended(server) }
    }

    fn query(&self, text: &str) -> Option<Value> {
        let ran = run(Command::new("curl")
            .args(["-s", "-G", "--data-urlencode"])
            .arg(format!("query={text}"))
            .arg(format!("http://127.0.0.1:{}/api/v1/query", self.port)));
        let document: Value = serde_json::from_str(&ran.stdout).ok()?;
        document["data"]["result"].get(0).cloned()
    }

    /// Queries until there is a result, and returns it.
    fn wait_for(&self, text: &str) -> Value {
        let patience = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = self.query(text) {
                return found;
            }
            assert!(Instant::now() < patience, "no {text}: up is {:?}", self.query("up"));
            thread::sleep(Duration::from_millis(500));
        }
    }
}

/// The beginning of a request.
const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ";

/// Keeps connections with unfinished requests open, and reopens them when they are closed.
pub fn half_open(address: &str, connections: usize, saying: &[u8], enough: &AtomicBool) {
    let mut open: Vec<Option<TcpStream>> = (0..connections).map(|_| None).collect();
    while !enough.load(Ordering::Relaxed) {
        for place in &mut open {
            let is_closed = place.as_mut().is_none_or(|stream| {
                let read = stream.read(&mut [0; 64]);
                !read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
            });
            if is_closed && let Ok(mut stream) = TcpStream::connect(address) {
                let _ = stream.write_all(saying);
                let _ = stream.set_nonblocking(true);
                *place = Some(stream);
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn token_file(dir: &Path, mode: u32) -> PathBuf {
    let path = dir.join(format!("token-{mode:o}"));
    fs::write(&path, format!("{TOKEN}\n")).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    path
}

#[test]
fn prometheus_scrapes_it_and_answers_with_our_series() {
    require!(Prometheus);
    let _turn = Turn::beside();
    let watching = Listening::start(&[]);
    let scratch = ScratchDir::on_disk().unwrap();
    let prometheus = Prometheus::start(&watching.address, scratch.path(), "");
    prometheus.wait_for("rate(blockstone_host_cpu_idle_seconds_total[10s])");
    let found = prometheus.query("blockstone_memory_memory_bytes").unwrap();
    let bytes: f64 = found["value"][1].as_str().unwrap().parse().unwrap();
    assert!(bytes > 1e8 && found["metric"]["host"].is_string(), "{found:#}");
    let read_ios = prometheus.query("blockstone_block_read_ios_total").unwrap();
    assert!(read_ios["metric"]["device"].is_string());
}

#[test]
fn prometheus_with_the_token_scrapes_beside_half_open_connections() {
    require!(Prometheus);
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let token = token_file(scratch.path(), 0o600);
    let token = token.to_str().unwrap();
    let watching = Listening::with_descriptors(256, &["--listen-token-file", token]);
    let enough = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| half_open(&watching.address, 300, REQUEST, &enough));
        let credentials = format!("    authorization:\n      credentials_file: {token}\n");
        let prometheus = Prometheus::start(&watching.address, scratch.path(), &credentials);
        let five = "blockstone_watch_ticks_total and on() (sum(sum_over_time(up[5m])) >= 5)";
        prometheus.wait_for(five);
        enough.store(true, Ordering::Relaxed);
    });
    let refused = watching.ask("Host: localhost\r\n");
    assert!(refused.starts_with("HTTP/1.1 401 ") && !refused.contains("# EOF"), "{refused}");
}

#[test]
fn half_open_connections_stop_neither_scrapes_nor_probes() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let dir = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let measured = |name: &str| -> BTreeSet<(String, String)> {
        let manifest = fs::read_to_string(scratch.path().join(name).join("manifest.json"));
        let manifest: Value = serde_json::from_str(&manifest.unwrap()).unwrap();
        let mut measured = BTreeSet::new();
        for probe in manifest["probes"].as_array().unwrap() {
            for column in probe["columns"].as_array().unwrap() {
                let name = |value: &Value| value.as_str().unwrap().to_owned();
                if column["unmeasured"].is_null() {
                    measured.insert((name(&probe["probe"]), name(&column["name"])));
                }
            }
        }
        measured
    };
    let alone = ["--record", &dir("alone"), "--for", "1s", "--interval", "200ms"];
    assert_eq!(run(&mut watch(&alone)).code, Some(0));
    let watching = Listening::with_descriptors(256, &["--record", &dir("attacked")]);
    let enough = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| half_open(&watching.address, 400, REQUEST, &enough));
        thread::sleep(Duration::from_secs(2));
        watching.scrapes(10);
        assert!(watching.status("Threads:") < 16, "{} threads", watching.status("Threads:"));
        enough.store(true, Ordering::Relaxed);
    });
    signal(watching.child(), "INT");
    let (code, said) = watching.end();
    assert_eq!(code, Some(130), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    let (alone, attacked) = (measured("alone"), measured("attacked"));
    assert!(alone.is_subset(&attacked), "{:?}", alone.difference(&attacked));
}

#[test]
fn who_asks_for_much_or_reads_nothing_costs_little() {
    let _turn = Turn::beside();
    let watching = Listening::with_descriptors(256, &["--no-bpf"]);
    watching.scrapes(1);
    let before_kb = watching.status("VmRSS:");
    // One header of 200 MiB, as far as it is accepted.
    let mut endless = watching.connect();
    let part = vec![b'a'; 1 << 20];
    let _ = endless.write_all(b"GET / HTTP/1.1\r\nX: ");
    let taken = (0..200).take_while(|_| endless.write_all(&part).is_ok()).count();
    assert!(taken < 100, "{taken} MiB of a header were taken");
    // Answers that are never read, and answers followed by something that is not a request.
    let asked = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let unread: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = watching.connect();
            let _ = stream.write_all(asked);
            stream
        })
        .collect();
    for _ in 0..20 {
        let mut stream = watching.connect();
        let _ = stream.write_all(asked);
        let _ = stream.write_all(&part[..100_000]);
    }
    watching.scrapes(5);
    drop(unread);
    let more_kb = watching.status("VmHWM:").saturating_sub(before_kb);
    println!("{more_kb} kB more at the peak, {taken} MiB of the header sent");
    assert!(more_kb < 128 << 10, "{more_kb} kB");
}

/// A page of another site whose name is rebound to 127.0.0.1 must not read the metrics.
#[test]
fn a_browser_that_was_rebound_reads_nothing() {
    let _turn = Turn::beside();
    let watching = Listening::start(&["--listen-host", "db1.example"]);
    let port = watching.address.rsplit(':').next().unwrap();
    for host in ["127.0.0.1", "localhost", "DB1.example", "[::1]"] {
        let answer = watching.ask(&format!("Host: {host}:{port}\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("# EOF"), "{answer}");
    }
    for host in ["evil.example", "db1.example.evil.example", "169.254.169.254", ""] {
        let answer = watching.ask(&format!("Host: {host}:{port}\r\n"));
        assert!(answer.starts_with("HTTP/1.1 4") && !answer.contains("# EOF"), "{answer}");
    }
}

#[test]
fn other_hosts_need_the_token() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let remote = |file: &Path| -> Vec<String> {
        let arguments = ["--allow-remote", "--listen-token-file"].map(str::to_owned);
        arguments.into_iter().chain([file.to_str().unwrap().to_owned()]).collect()
    };
    let readable = token_file(scratch.path(), 0o644);
    let mut command = watch(&["--listen", "0.0.0.0:0"]);
    let refused = run(command.args(remote(&readable)));
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("other users may use it (mode 644)"), "{refused:#?}");
    assert!(!refused.stderr.contains(TOKEN), "{refused:#?}");
    let remote = remote(&token_file(scratch.path(), 0o600));
    let arguments: Vec<&str> = remote.iter().map(String::as_str).collect();
    let mut watching = Listening::at("[::]:0", 1024, &arguments);
    watching.address = watching.address.replace("[::]", "127.0.0.1");
    for (credentials, code) in [
        (String::new(), 401),
        ("Authorization: Bearer wrong\r\n".to_owned(), 401),
        (format!("Authorization: Basic {TOKEN}\r\n"), 401),
        (format!("Authorization: Bearer {}\r\n", &TOKEN[1..]), 401),
        (format!("Authorization: Bearer {TOKEN}\r\n"), 200),
    ] {
        let answer = watching.ask(&format!("Host: localhost\r\n{credentials}"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{credentials}: {answer}");
        assert_eq!(answer.contains("# EOF"), code == 200, "{answer}");
    }
}

/// A lost listener ends the watch, because its loss would otherwise go unnoticed.
#[test]
fn a_watch_ends_when_nobody_can_be_served_any_more() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let dir = scratch.path().join("recording");
    let watching = Listening::start(&["--record", dir.to_str().unwrap()]);
    watching.scrapes(1);
    let pid = Pid::from_child(watching.child());
    let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    // Shut down the listening socket from outside the process.
    let shut = (0..256).any(|number| {
        let socket = pidfd_getfd(&process, number, PidfdGetfdFlags::empty());
        let socket = socket.map(TcpListener::from);
        let Ok(socket) = socket else { return false };
        let is_it = socket.local_addr().is_ok_and(|at| at.to_string() == watching.address);
        is_it
            && TcpStream::from(std::os::fd::OwnedFd::from(socket)).shutdown(Shutdown::Both).is_ok()
    });
    assert!(shut, "no listening socket");
    let address = watching.address.clone();
    let (code, said) = watching.end();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(&format!("serve metrics at {address}: ")), "{said}");
    assert!(said.contains("\nhint: ") && !said.contains("panicked"), "{said}");
    let manifest = fs::read_to_string(dir.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert!(manifest["end"].to_string().contains("serve metrics"), "{}", manifest["end"]);
}

#[test]
fn paths_of_files_are_served_when_they_are_asked_for() {
    require!(Bpf);
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    fs::set_permissions(scratch.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let script = "while :; do echo x >> blockstone-private-file; sync blockstone-private-file; \
                  sleep 0.1; done";
    let mut writer = Command::new("sh");
    let writer = writer.args(["-c", script]).current_dir(scratch.path());
    let writer = Ended(writer.spawn().unwrap());
    let pid = writer.0.id().to_string();
    let wait_for = |arguments: &[&str], wanted: &str| {
        let watching = Listening::start(arguments);
        let patience = Instant::now() + PATIENCE;
        loop {
            let answer = watching.ask("Host: localhost\r\n");
            if answer.contains(wanted) {
                return answer;
            }
            assert!(Instant::now() < patience, "no {wanted} in {answer}");
            thread::sleep(Duration::from_millis(200));
        }
    };
    let shown = wait_for(&["--pid", &pid, "--listen-paths"], "blockstone-private-file");
    assert!(shown.contains("file=\"/"), "{shown}");
    let by_role = "blockstone_kernel_io_ios_total{host=\"";
    let hidden = wait_for(&["--pid", &pid], by_role);
    assert!(!hidden.contains("private-file") && !hidden.contains("file=\""), "{hidden}");
}
