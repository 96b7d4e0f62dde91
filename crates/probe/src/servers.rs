//! Names that distinguish several database servers of one product on one host: `postgres@5433`,
//! `oracle ORCL1`.
//!
//! A server is identified by its main process, its port by the sockets that this process listens
//! on. Only `/proc` is read: files of another user may be anything.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use blockstone_sys::account::Process;
use blockstone_sys::proc::{self, entries, under};

const ORACLE: &str = "oracle";

/// The names of servers that share the host with another of their product.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// By main process: the product, and the name of the server.
    of_main: HashMap<u32, (&'static str, String)>,
    /// Whether there are several Oracle instances; their processes carry the instance's name.
    has_oracles: bool,
}

/// The main processes of a host.
#[derive(Debug, Default)]
pub struct Servers(BTreeMap<u32, Main>);

#[derive(Debug)]
struct Main {
    product: &'static str,
    /// A port, or the name of an instance.
    name: Option<String>,
}

impl Servers {
    /// Records the current state of a process.
    pub fn look_at(&mut self, root: &Path, process: &Process) {
        let product = product(process);
        // A new process of a server still has the title of its parent.
        let is_child =
            self.0.get(&process.parent).is_some_and(|main| Some(main.product) == product);
        match product.filter(|_| !is_child) {
            Some(product) => {
                let name = match product {
                    ORACLE => instance(&process.title).map(str::to_owned),
                    _ => port(root, process.pid).map(|port| port.to_string()),
                };
                self.0.insert(process.pid, Main { product, name });
            }
            None => {
                self.0.remove(&process.pid);
            }
        }
    }

    pub fn keep(&mut self, pids: &BTreeSet<u32>) {
        self.0.retain(|pid, _| pids.contains(pid));
    }

    pub fn names(&self) -> Names {
        let several =
            |product: &str| self.0.values().filter(|it| it.product == product).count() > 1;
        let same = |main: &Main| {
            let others = self.0.values();
            others.filter(|it| (it.product, &it.name) == (main.product, &main.name)).count() > 1
        };
        let named =
            self.0.iter().filter(|(_, main)| main.product != ORACLE && several(main.product));
        let of_main = named.map(|(&pid, main)| {
            let product = main.product;
            // Two servers may listen on the same port of different addresses.
            let name = match &main.name {
                Some(port) if same(main) => format!("{product}@{port} pid {pid}"),
                Some(port) => format!("{product}@{port}"),
                None => format!("{product} pid {pid}"),
            };
            (pid, (product, name))
        });
        Names { of_main: of_main.collect(), has_oracles: several(ORACLE) }
    }
}

impl Names {
    /// Removes the names of servers whose main process is among `pids`.
    pub fn without(mut self, pids: &HashSet<u32>) -> Self {
        self.of_main.retain(|pid, _| !pids.contains(pid));
        self
    }

    /// Returns the role of a process, or of one of its threads, with the name of its server in
    /// place of the product.
    pub fn named(&self, process: &Process, role: String) -> String {
        let named = |product: &str, name: &str| {
            let rest = role.strip_prefix(product)?;
            (rest.is_empty() || rest.starts_with('/')).then(|| format!("{name}{rest}"))
        };
        let main = || [process.pid, process.parent].iter().find_map(|pid| self.of_main.get(pid));
        let found = if self.has_oracles && role.starts_with(ORACLE) {
            instance(&process.title).and_then(|sid| named(ORACLE, &format!("{ORACLE} {sid}")))
        } else {
            main().and_then(|(product, name)| named(product, name))
        };
        found.unwrap_or(role)
    }

    /// The same for a process id that a database reported.
    pub fn of_pid(&self, pid: u32, role: String) -> String {
        self.named(&Process { pid, parent: 0, title: String::new() }, role)
    }
}

/// Returns the product that a process is the main process of.
fn product(process: &Process) -> Option<&'static str> {
    let title = &process.title;
    if title.starts_with("postgres: ") {
        return None;
    }
    if title.starts_with("ora_pmon_") {
        return Some(ORACLE);
    }
    let path = title.split(' ').next().unwrap_or_default();
    match path.rsplit('/').next().unwrap_or(path) {
        "postgres" | "postmaster" => Some("postgres"),
        "mariadbd" | "mysqld" => Some("mariadb"),
        _ => None,
    }
}

/// Returns the instance of an Oracle process: `ora_dbw0_ORCL1`, `oracleORCL1 (LOCAL=NO)`.
fn instance(title: &str) -> Option<&str> {
    let name = match title.strip_prefix("ora_") {
        Some(rest) => rest.split_once('_')?.1,
        None => title.strip_prefix("oracle")?,
    };
    let name = name.split(' ').next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_+-".contains(c);
    (!name.is_empty() && name.chars().all(is_plain)).then_some(name)
}

/// Returns the lowest port that a process listens on, or the one in the name of its socket if it
/// listens on none.
fn port(root: &Path, pid: u32) -> Option<u16> {
    let dir = under(root, format!("/proc/{pid}"));
    let sockets: BTreeSet<String> =
        entries(&dir.join("fd")).iter().filter_map(|it| inode(it)).collect();
    let read = |name: &str| proc::read(&dir.join("net").join(name)).unwrap_or_default();
    let tables = [read("tcp"), read("tcp6")];
    let ports = tables.iter().flat_map(|table| table.lines()).filter_map(|line| {
        const LISTEN: &str = "0A";
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let is_own = *state == LISTEN && sockets.contains(*inode);
        u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok().filter(|_| is_own)
    });
    ports.min().or_else(|| {
        let named = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let path = fields.get(7).filter(|_| sockets.contains(fields[6]))?;
            path.rsplit_once(".s.PGSQL.")?.1.parse().ok()
        };
        read("unix").lines().filter_map(named).min()
    })
}

/// Returns the inode of an open socket.
fn inode(entry: &Path) -> Option<String> {
    let target = proc::link_target(entry).ok()?;
    Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn process(pid: u32, parent: u32, title: &str) -> Process {
        Process { pid, parent, title: title.to_owned() }
    }

    fn servers(processes: &[Process]) -> Names {
        let mut servers = Servers::default();
        for process in processes {
            servers.look_at(Path::new("/nowhere"), process);
        }
        servers.names()
    }

    #[test]
    fn one_server_of_a_product_needs_no_name() {
        let first = process(7, 1, "/usr/lib/postgresql/15/bin/postgres -D /data");
        let new = process(9, 7, "/usr/lib/postgresql/15/bin/postgres -D /data");
        let others = [process(3, 1, "mariadbd"), process(4, 1, "ora_pmon_ORCL")];
        let names = servers(&[&[first.clone(), new][..], &others].concat());
        assert_eq!(names, Names::default());
        let session = process(8, 7, "postgres: me bench [local] SELECT");
        assert_eq!(names.named(&session, "postgres/session".into()), "postgres/session");
    }

    #[test]
    fn two_have_names_which_their_processes_and_threads_carry() {
        let names = servers(&[
            process(7, 1, "postgres -D /a"),
            process(8, 1, "postgres -D /b"),
            process(3, 1, "mariadbd"),
            process(5, 1, "/usr/sbin/mysqld --port=1"),
            process(11, 1, "ora_pmon_ORCL1"),
            process(12, 1, "ora_pmon_ORCL2"),
        ]);
        let of = |pid, parent, title: &str, role: &str| {
            names.named(&process(pid, parent, title), role.to_owned())
        };
        assert_eq!(
            of(20, 8, "postgres: walwriter", "postgres/walwriter"),
            "postgres pid 8/walwriter"
        );
        assert_eq!(of(7, 1, "postgres -D /a", "postgres/postmaster"), "postgres pid 7/postmaster");
        assert_eq!(of(3, 1, "mariadbd", "mariadb"), "mariadb pid 3");
        assert_eq!(names.of_pid(5, "mariadb/session".into()), "mariadb pid 5/session");
        assert_eq!(of(30, 1, "ora_dbw0_ORCL2", "oracle/DBWR"), "oracle ORCL2/DBWR");
        let foreground = "oracleORCL1 (LOCAL=NO)";
        assert_eq!(of(31, 1, foreground, "oracle/foreground"), "oracle ORCL1/foreground");
        assert_eq!(of(32, 8, "x", "mine"), "mine", "a name that the user gave");
        assert_eq!(instance("oracle\u{1b}[2J (LOCAL=NO)"), None);
    }

    #[test]
    fn a_port_is_found_by_the_socket_that_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let found = port(Path::new("/"), std::process::id()).unwrap();
        // Other tests of this process may listen too.
        assert!(found <= own, "{found} {own}");
        assert_eq!(port(Path::new("/"), 1 << 30), None);
    }
}
