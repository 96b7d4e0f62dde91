//! ClickHouse servers that each hold a part of a table, the shards, and one that joins them with
//! `Distributed` tables, the host: all private, started for a measurement and gone with it.
//!
//! As with [`crate::cells`], what each server and each connection took for a statement is read
//! before and after it. Here a side is a process with all its threads.

mod config;
mod http;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_sys::child::Signal;
use blockstone_sys::process;

use crate::cells::counted::{self, Counted, Ends, Moved};
use crate::cells::{CellsSpec, GoOn, Rows, ended, free_port};
use crate::sql::error::{FREE_SPACE, SqlError};
use crate::sql::scratch::{Home, Server};
use config::Ports;
use http::Link;

/// The first port of each kind, where no other program can have it.
const PORTS: Ports = Ports { native: 54_321, http: 55_321 };
const USERS: &[&str] = &["clickhouse", "nobody"];
const USUAL: [&str; 4] = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/clickhouse/bin"];
const LOOK: Duration = Duration::from_millis(10);
/// Bytes of rows that are inserted at a time.
const INSERT: usize = 16 << 20;
const USER: &str = "default";
/// Statements are asked again when connections changed in between.
const TRIES: u32 = 10;

/// A host and its shards. Dropping it ends them and removes their directories.
#[derive(Debug)]
pub struct Shards {
    nodes: Vec<Node>,
    host: Node,
    release: String,
    apart: bool,
    /// Statements that were logged.
    logged: u32,
}

#[derive(Debug)]
struct Node {
    link: Link,
    server: Server,
    home: Home,
    ports: Ports,
}

impl Shards {
    /// Starts them all. Fails when the program is missing, or `go_on` says no; then nothing is
    /// left.
    pub fn start(spec: &CellsSpec, go_on: &mut GoOn<'_>) -> Result<Self, SqlError> {
        let program = find(spec.programs.as_deref())?;
        let ports = |at: usize| {
            let at = at as u16;
            if spec.apart {
                return Ok(Ports { native: PORTS.native + at, http: PORTS.http + at });
            }
            Ok(Ports { native: free_port()?, http: free_port()? })
        };
        let ports: Vec<Ports> =
            (0..spec.places.len()).map(ports).collect::<Result<_, SqlError>>()?;
        let mut nodes: Vec<Node> = Vec::new();
        // The host is the last: it knows the passwords of the others.
        for at in (1..spec.places.len()).chain([0]) {
            if !go_on(&format!("server {} of {}", nodes.len() + 1, spec.places.len())) {
                return Err(SqlError::Interrupted);
            }
            let known: Vec<(u16, &str)> = match at {
                0 => nodes.iter().map(|it| (it.ports.native, it.home.password())).collect(),
                _ => Vec::new(),
            };
            let node = Node::start(&program, spec, (&spec.places[at], ports[at]), &known)?;
            nodes.push(node);
        }
        let Some(mut host) = nodes.pop() else { return Err(SqlError::Interrupted) };
        let release = host.done("SELECT version()", "query its version")?;
        Ok(Self { nodes, host, release, apart: spec.apart, logged: 0 })
    }

    pub fn release(&self) -> &str {
        &self.release
    }

    pub fn on_shard(&mut self, at: usize, text: &str) -> Result<(), SqlError> {
        self.nodes[at].done(text, &format!("prepare shard {}", at + 1)).map(drop)
    }

    pub fn on_host(&mut self, text: &str) -> Result<(), SqlError> {
        self.host.done(text, "prepare the host").map(drop)
    }

    /// Recreates a table of shard `at` and fills it, in one part. Returns the size of its files in
    /// bytes. `create` is what follows the table's name in the statement that makes it.
    pub fn fill(
        &mut self,
        at: usize,
        (table, create): (&str, &str),
        rows: &mut Rows<'_>,
    ) -> Result<u64, SqlError> {
        let node = &mut self.nodes[at];
        let what = format!("load shard {}", at + 1);
        for text in
            [format!("DROP TABLE IF EXISTS {table}"), format!("CREATE TABLE {table} {create}")]
        {
            node.done(&text, &what)?;
        }
        let insert = format!("query=INSERT%20INTO%20{table}%20FORMAT%20TabSeparated");
        let (mut gathered, mut chunk) = (Vec::new(), Vec::new());
        loop {
            chunk.clear();
            let flow = rows(&mut chunk);
            gathered.extend_from_slice(&chunk);
            let is_last = matches!(flow, ControlFlow::Break(true));
            if matches!(flow, ControlFlow::Break(false)) {
                return Err(SqlError::Interrupted);
            }
            if !gathered.is_empty() && (is_last || gathered.len() >= INSERT) {
                node.sent(&insert, &gathered, &what)?;
                gathered.clear();
            }
            if is_last {
                break;
            }
        }
        node.done(&format!("OPTIMIZE TABLE {table} FINAL"), &what)?;
        let ask = format!(
            "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND table = '{table}'"
        );
        let said = node.done(&ask, &what)?;
        said.parse().map_err(|_| unexpected(&what, &said))
    }

    /// What the host answers, in columns, and what that took. `settings` are those of the
    /// statement, as a query string has them.
    pub fn ask(
        &mut self,
        shards: usize,
        (settings, text): (&str, &str),
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Moved, SqlError> {
        let moved = self.watched(shards, (settings, text), go_on);
        moved.map_err(|error| {
            let running = self.nodes[..shards].iter_mut().map(|node| node.server.is_running());
            let running: Vec<bool> = running.collect();
            ended(error, "shard", &running, self.host.server.is_running())
        })
    }

    fn watched(
        &mut self,
        shards: usize,
        asked: (&str, &str),
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Moved, SqlError> {
        for _ in 0..TRIES {
            let before = self.look(shards)?;
            let (answer, seconds) = self.answer(asked, go_on)?;
            let after = self.look(shards)?;
            // A server closes a connection whose end it did not read, and what that carried is not
            // known any more.
            if before.ends.host.len() >= shards && are_kept(&before.ends, &after.ends) {
                let answer = answer.split('\t').map(str::to_owned).collect();
                return Ok(Moved::between(&before, &after, (answer, seconds)));
            }
        }
        let why = format!("its host closed a connection in each of {TRIES} statements");
        Err(SqlError::unsuitable("ClickHouse", why, "run it again, or with fewer --cells"))
    }

    fn answer(
        &mut self,
        (settings, text): (&str, &str),
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(String, f64), SqlError> {
        let link = &mut self.host.link;
        let breaker = link.breaker().map_err(|error| failed("query the shards", &error))?;
        let asked = thread::scope(|scope| {
            let asking = scope.spawn(move || {
                let began = Instant::now();
                let said = link.post(settings, text.as_bytes());
                (said, began.elapsed().as_secs_f64())
            });
            let mut stopped = false;
            while !asking.is_finished() {
                if !stopped && !go_on() {
                    stopped = true;
                    breaker.end();
                }
                thread::sleep(LOOK);
            }
            (asking.join(), stopped)
        });
        let (Ok((said, seconds)), false) = asked else { return Err(SqlError::Interrupted) };
        Ok((taken(said, "query the shards")?, seconds))
    }

    /// The statement that the first shard gets for one of the host; empty if it gets none.
    pub fn sent(&mut self, settings: &str, text: &str) -> Result<String, SqlError> {
        const WHAT: &str = "read the log of statements of a shard";
        self.logged += 1;
        let id = format!("blockstone-{}", self.logged);
        let settings = format!("{settings}&log_queries=1&query_id={id}");
        self.host.sent(&settings, text.as_bytes(), WHAT)?;
        let shard = &mut self.nodes[0];
        shard.done("SYSTEM FLUSH LOGS", WHAT)?;
        let ask = format!(
            "SELECT query FROM system.query_log WHERE initial_query_id = '{id}' LIMIT 1 \
             FORMAT TabSeparatedRaw"
        );
        shard.done(&ask, WHAT)
    }

    fn look(&mut self, shards: usize) -> Result<Counted, SqlError> {
        let nodes = &self.nodes[..shards];
        let ports: Vec<u16> = nodes.iter().map(|node| node.ports.native).collect();
        let own = self.host.ports.http;
        let (interface_bytes, ends) = counted::connections(&ports, self.apart.then_some(own))?;
        let cpu = |node: &Node| process::cpu_ns(node.server.pid()).ok();
        Ok(Counted {
            interface_bytes,
            ends,
            buffer_reads: 0,
            buffer_hits: 0,
            cpu_ns: std::iter::once(&self.host).chain(nodes).map(cpu).collect(),
            io: nodes.iter().map(|node| counted::io_of(node.server.pid())).collect(),
        })
    }
}

impl Node {
    fn start(
        program: &Path,
        spec: &CellsSpec,
        (place, ports): (&Path, Ports),
        shards: &[(u16, &str)],
    ) -> Result<Self, SqlError> {
        let home = Home::make(place, program, USERS)?;
        match Self::serve(program, spec, (&home, ports), shards) {
            Ok((server, link)) => Ok(Self { link, server, home, ports }),
            Err(error) => {
                home.remove();
                Err(error)
            }
        }
    }

    fn serve(
        program: &Path,
        spec: &CellsSpec,
        (home, ports): (&Home, Ports),
        shards: &[(u16, &str)],
    ) -> Result<(Server, Link), SqlError> {
        let users = home.secret("users.xml", &config::users(home.password()))?;
        let text = config::server(home.path(), &users, ports, spec.cache, (USER, shards));
        let main = home.secret("config.xml", &text)?;
        let mut arguments = Vec::new();
        if program.file_name().is_some_and(|name| name == "clickhouse") {
            arguments.push("server".to_owned());
        }
        arguments.push(format!("--config-file={}", main.display()));
        let mut server = home.start(program, &arguments, "a ClickHouse server")?;
        let link = server.wait_for(|| {
            let Ok(mut link) = Link::connect(ports.http, home.password()) else { return Ok(None) };
            let said = link.post("", b"SELECT 1");
            Ok(matches!(said, Ok(Ok(_))).then_some(link))
        })?;
        Ok((server, link))
    }

    fn done(&mut self, text: &str, what: &str) -> Result<String, SqlError> {
        self.sent("", text.as_bytes(), what)
    }

    fn sent(&mut self, parameters: &str, body: &[u8], what: &str) -> Result<String, SqlError> {
        taken(self.link.post(parameters, body), what)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Nothing in it is needed any more.
        self.server.stop(Signal::KILL);
        self.home.remove();
    }
}

/// Whether all connections were there before and are there now.
fn are_kept(before: &Ends, after: &Ends) -> bool {
    let cookies = |ends: &Ends| -> BTreeSet<u64> { ends.host.iter().map(|it| it.cookie).collect() };
    cookies(before) == cookies(after)
}

fn taken(said: std::io::Result<Result<String, String>>, what: &str) -> Result<String, SqlError> {
    match said {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(words)) => Err(SqlError::Statement {
            what: what.to_owned(),
            why: words.lines().next().unwrap_or_default().to_owned(),
            hint: FREE_SPACE.to_owned(),
        }),
        Err(error) => Err(failed(what, &error)),
    }
}

fn failed(what: &str, error: &std::io::Error) -> SqlError {
    SqlError::Program {
        what: what.to_owned(),
        why: error.to_string(),
        hint: "the log of the kernel may say why a server ended: dmesg".to_owned(),
    }
}

fn unexpected(what: &str, said: &str) -> SqlError {
    SqlError::unsuitable("ClickHouse", format!("{what}: it answered {said:?}"), "report it")
}

/// The server: the program that is named, or one of the usual places.
fn find(given: Option<&Path>) -> Result<PathBuf, SqlError> {
    const NAMES: [&str; 2] = ["clickhouse-server", "clickhouse"];
    // It is started in another directory.
    let absolute = given.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    let dirs = match absolute {
        Some(path) if path.is_file() => return Ok(path),
        Some(dir) => vec![dir],
        None => USUAL.iter().map(PathBuf::from).collect(),
    };
    let found = dirs.iter().flat_map(|dir| NAMES.map(|name| dir.join(name)));
    found.into_iter().find(|path| path.is_file()).ok_or_else(|| SqlError::Program {
        what: "find clickhouse-server".to_owned(),
        why: match given {
            Some(dir) => format!("it is not in {}", dir.display()),
            None => "it is in none of the usual places".to_owned(),
        },
        hint: "install it (Debian 12: clickhouse-server), or name the program with --clickhouse; \
               the Python module chdb has no server"
            .to_owned(),
    })
}
