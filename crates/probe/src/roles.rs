//! Which processes are watched, and under which role: the role that a database gives each of its
//! processes, read from their titles; processes that the user names; and what a database itself
//! reports about its processes and threads, which takes precedence.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blockstone_sys::account::{self, Process};
use regex::Regex;

use crate::servers::Names;

/// The rules by which processes are assigned roles. Clones share what databases reported.
#[derive(Clone, Debug, Default)]
pub struct Roles {
    pids: Vec<u32>,
    groups: Vec<(String, Regex)>,
    reported: Arc<Mutex<HashMap<Member, String>>>,
    names: Arc<Mutex<Names>>,
}

/// A process, or one thread of it.
pub type Member = (u32, Option<u32>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The whole process has one role.
    Process(String),
    /// The threads of the process have their own roles, below this one.
    Threads(String),
}

impl Roles {
    /// Creates rules that also watch the processes `pids`, and those whose command line matches a
    /// pattern, under the name given with it.
    pub fn with(pids: Vec<u32>, groups: Vec<(String, Regex)>) -> Self {
        Self { pids, groups, ..Self::default() }
    }

    /// Sets the names of servers. The server that reports its processes has the name of its
    /// product. Returns whether the names have changed.
    pub(crate) fn tell_apart(&self, names: Names) -> bool {
        let reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let pids: HashSet<u32> = reported.keys().map(|(pid, _)| *pid).collect();
        drop(reported);
        let names = names.without(&pids);
        let mut known = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *known != names;
        *known = names;
        is_new
    }

    /// Sets what a database reports about its processes and threads, replacing its previous report.
    pub fn report(&self, members: impl IntoIterator<Item = (Member, String)>) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        reported.clear();
        reported.extend(members);
    }

    /// Returns the role that a database gave process `pid`, or its thread.
    pub fn reported(&self, pid: u32, thread: Option<u32>) -> Option<String> {
        let reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let role = reported.get(&(pid, thread)).cloned();
        drop(reported);
        role.map(|role| self.names().of_pid(pid, role))
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the role of any thread: as its database reports or its process title says; otherwise
    /// the name of the thread, and `kernel` for the kernel's own threads.
    pub fn of_any(&self, root: &Path, pid: u32, thread: u32, name: &str) -> String {
        self.of_member(root, pid, thread, name, |_| name.to_owned())
    }

    /// The same, but otherwise the name of the program: `name` only if it has ended.
    pub fn of_program(&self, root: &Path, pid: u32, thread: u32, name: &str) -> String {
        self.of_member(root, pid, thread, name, |process| {
            process.map_or(name, |process| program(&process.title)).to_owned()
        })
    }

    fn of_member(
        &self,
        root: &Path,
        pid: u32,
        thread: u32,
        name: &str,
        other: impl Fn(Option<&Process>) -> String,
    ) -> String {
        if let Some(role) = self.reported(pid, Some(thread)) {
            return role;
        }
        let process = account::process(root, pid);
        match process.as_ref().and_then(|process| self.of(process)) {
            Some(Role::Process(role)) => role,
            Some(Role::Threads(above)) => self.of_thread(&above, pid, thread, name),
            None => match &process {
                Some(process) if process.parent == KTHREADD || pid == KTHREADD => {
                    "kernel".to_owned()
                }
                process => other(process.as_ref()),
            },
        }
    }

    /// Returns the role of a process; `None` if it is not watched.
    pub fn of(&self, process: &Process) -> Option<Role> {
        let named = |role| self.names().named(process, role);
        Some(match self.without_name(process)? {
            Role::Process(role) => Role::Process(named(role)),
            Role::Threads(above) => Role::Threads(named(above)),
        })
    }

    fn without_name(&self, process: &Process) -> Option<Role> {
        if let Some(role) = self.reported(process.pid, None) {
            return Some(Role::Process(role));
        }
        let named = self.groups.iter().find(|(_, pattern)| pattern.is_match(&process.title));
        if let Some((name, _)) = named {
            return Some(Role::Process(name.clone()));
        }
        let known = known(&process.title);
        let asked = || {
            let program = program(&process.title);
            self.pids.contains(&process.pid).then(|| Role::Process(program.to_owned()))
        };
        known.or_else(asked)
    }

    /// Returns the role of a thread, by its name, in a process whose threads have roles below
    /// `above`.
    pub fn of_thread(&self, above: &str, pid: u32, thread: u32, name: &str) -> String {
        self.reported(pid, Some(thread)).unwrap_or_else(|| {
            // Sessions are numbered; their role is not.
            let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || "-_:/".contains(c));
            if name.is_empty() { above.to_owned() } else { format!("{above}/{name}") }
        })
    }
}

/// The parent of the kernel's threads.
const KTHREADD: u32 = 2;

/// Prefixes of the titles of PostgreSQL processes, with their roles.
const POSTGRES: [(&str, &str); 15] = [
    ("checkpointer", "checkpointer"),
    ("background writer", "background writer"),
    ("walwriter", "walwriter"),
    ("wal writer", "walwriter"),
    ("walsender", "walsender"),
    ("walreceiver", "walreceiver"),
    ("autovacuum launcher", "autovacuum launcher"),
    ("autovacuum worker", "autovacuum worker"),
    ("logical replication launcher", "logical replication launcher"),
    ("logical replication", "logical replication worker"),
    ("parallel worker", "parallel worker"),
    ("io worker", "io worker"),
    ("startup", "startup"),
    ("archiver", "archiver"),
    ("stats collector", "stats collector"),
];

/// Prefixes of Oracle's background process names after `ora_`, with their roles.
const ORACLE: [(&str, &str); 9] = [
    ("dbw", "DBWR"),
    ("bw", "DBWR"),
    ("lgwr", "LGWR"),
    ("lg", "LGWR"),
    ("ckpt", "CKPT"),
    ("arc", "ARCn"),
    ("smon", "SMON"),
    ("pmon", "PMON"),
    ("mmon", "MMON"),
];

/// Returns the role of a process of a known database, by its title.
fn known(title: &str) -> Option<Role> {
    if let Some(rest) = title.strip_prefix("postgres: ") {
        // A cluster name may precede the rest, and a process with a role of its own has a title
        // that ends with a space.
        let starts = |text: &str| POSTGRES.iter().find(|(start, _)| text.starts_with(start));
        let named = rest.split_once(": ").and_then(|(_, rest)| starts(rest));
        let role = starts(rest).or(named).map_or("session", |(_, role)| role);
        return Some(Role::Process(format!("postgres/{role}")));
    }
    if let Some(rest) = title.strip_prefix("ora_") {
        let role = ORACLE.iter().find(|(start, _)| rest.starts_with(start));
        return Some(Role::Process(format!("oracle/{}", role.map_or("other", |(_, role)| role))));
    }
    if title.starts_with("oracle") && title.contains("(LOCAL=") {
        return Some(Role::Process("oracle/foreground".to_owned()));
    }
    match program(title) {
        "postgres" | "postmaster" => Some(Role::Process("postgres/postmaster".to_owned())),
        "mariadbd" | "mysqld" => Some(Role::Threads("mariadb".to_owned())),
        "blockstone" => Some(Role::Threads("blockstone".to_owned())),
        _ => None,
    }
}

fn program(title: &str) -> &str {
    let path = title.split(' ').next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(title: &str) -> Option<String> {
        let process = Process { pid: 7, parent: 1, title: title.to_owned() };
        Roles::default().of(&process).map(|role| match role {
            Role::Process(role) => role,
            Role::Threads(above) => format!("{above}/*"),
        })
    }

    #[test]
    fn databases_are_known_by_what_their_processes_call_themselves() {
        for (title, wanted) in [
            ("postgres: checkpointer ", "postgres/checkpointer"),
            ("postgres: 15/main: background writer ", "postgres/background writer"),
            ("postgres: me bench [local] SELECT", "postgres/session"),
            ("postgres: 15/main: me bench 10.0.0.1(5) idle", "postgres/session"),
            ("postgres: io worker 2", "postgres/io worker"),
            ("/usr/lib/postgresql/15/bin/postgres -D /data", "postgres/postmaster"),
            ("ora_dbw0_ORCL", "oracle/DBWR"),
            ("ora_lgwr_ORCL", "oracle/LGWR"),
            ("oracleORCL (LOCAL=NO)", "oracle/foreground"),
            ("/usr/sbin/mariadbd --no-defaults", "mariadb/*"),
            ("blockstone run .", "blockstone/*"),
        ] {
            assert_eq!(role(title).as_deref(), Some(wanted), "{title}");
        }
        assert_eq!(role("/usr/bin/vim postgres.conf"), None);
    }

    #[test]
    fn what_is_named_and_told_counts_before_what_is_guessed() {
        let process = |pid, title: &str| Process { pid, parent: 1, title: title.to_owned() };
        let pattern = Regex::new("checkpointer").unwrap();
        let roles = Roles::with(vec![9], vec![("mine".to_owned(), pattern)]);
        let writer = process(3, "postgres: checkpointer");
        assert_eq!(roles.of(&writer), Some(Role::Process("mine".to_owned())));
        roles.report([((3, None), "told".to_owned()), ((4, Some(5)), "log writer".to_owned())]);
        assert_eq!(roles.clone().of(&writer), Some(Role::Process("told".to_owned())));
        assert_eq!(roles.of(&process(9, "/bin/fio a")), Some(Role::Process("fio".to_owned())));
        assert_eq!(roles.of(&process(8, "/bin/fio a")), None);
        assert_eq!(roles.of_thread("mariadb", 4, 5, "io"), "log writer");
        assert_eq!(roles.of_thread("blockstone", 4, 6, "session-12"), "blockstone/session");
    }
}
