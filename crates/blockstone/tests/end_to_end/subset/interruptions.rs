//! State left by a subset that is killed, runs out of space, or whose tables change meanwhile.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use blockstone_testkit::{PostgresServer, Ran, blockstone_binary, run};

use super::{Place, address, ask, json, lines, make, names, psql};

const MOMENTS: u32 = 20;
/// Large enough that reading takes a while.
const SOURCE: &str = "
    CREATE TABLE parent (id bigint PRIMARY KEY, note text);
    CREATE TABLE child (id bigint PRIMARY KEY, parent bigint NOT NULL REFERENCES parent, note text);
    INSERT INTO parent SELECT g, repeat('p', 100) FROM generate_series(1, 60000) g;
    INSERT INTO child SELECT g, 1 + g % 60000, repeat('c', 100) FROM generate_series(1, 120000) g;
    ANALYZE";

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

/// Runs the command to completion, then kills it at moments spread over the same time; `left`
/// checks the state after each. Returns how many were killed before they completed.
fn killed(make: &dyn Fn() -> Command, left: &mut dyn FnMut(bool)) -> u32 {
    let mut first = make();
    let began = Instant::now();
    assert!(quiet(&mut first).status().unwrap().success());
    let mut whole = began.elapsed();
    left(true);
    let mut killed = 0;
    for moment in 0..MOMENTS {
        let mut command = make();
        let mut child = quiet(&mut command).spawn().unwrap();
        let began = Instant::now();
        while began.elapsed() < whole * moment / MOMENTS {
            if child.try_wait().unwrap().is_some() {
                // The machine is faster than it was during the first run.
                whole = began.elapsed();
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        let ended = child.wait().unwrap().success();
        killed += u32::from(!ended);
        left(ended);
    }
    killed
}

/// Waits until the server has seen that a client is gone.
fn settle(server: &PostgresServer, database: &str) {
    let open = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}' \
         AND pid <> pg_backend_pid()"
    );
    while ask(server, "postgres", &open) != "0" {
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn kills_leave_nothing_half_done(server: &PostgresServer, place: &Place) {
    make(server, "killed", SOURCE, place);
    let from = address(server, "killed");
    let state = "SELECT count(*), \
        (SELECT string_agg(oid || relname, ',' ORDER BY oid) FROM pg_class), \
        (SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) \
        WHERE backend_type = 'client backend' AND datname = 'killed' \
        AND pid <> pg_backend_pid()), \
        (SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables) FROM parent";
    settle(server, "killed");
    let before = ask(server, "killed", state);
    let dir = place.file("killed");
    let subset = || {
        let mut command = Command::new(blockstone_binary());
        command.args(["subset", "--from", &from, "--percent", "20"]).arg(&dir);
        command
    };
    let mut whole = Vec::new();
    let reads = killed(&subset, &mut |ended| {
        settle(server, "killed");
        assert_eq!(ask(server, "killed", state), before, "the source is as it was");
        assert!(!ended || dir.exists());
        if dir.exists() {
            let found = lines(&dir);
            assert!(whole.is_empty() || whole == found.iter().cloned().collect::<Vec<_>>());
            whole = found.into_iter().collect();
            std::fs::remove_dir_all(&dir).unwrap();
        }
    });
    // A directory that a killed run leaves is not mistaken for a subset.
    for name in names(&place.data()) {
        if name.starts_with(".blockstone-subset-") {
            std::fs::remove_dir_all(place.file(&name)).unwrap();
        }
    }
    assert!(quiet(&mut subset()).status().unwrap().success());
    let into = address(server, "killed_loads");
    let load = || {
        ask(server, "postgres", "DROP DATABASE IF EXISTS killed_loads");
        ask(server, "postgres", "CREATE DATABASE killed_loads");
        let mut command = Command::new(blockstone_binary());
        command.args(["subset", "load"]).arg(&dir).args(["--into", &into]);
        command
    };
    let loads = killed(&load, &mut |ended| {
        settle(server, "killed_loads");
        let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace \
            AND relkind = 'r'";
        let tables = ask(server, "killed_loads", tables);
        assert!(tables == "0" && !ended || tables == "2", "{tables} tables");
        if tables == "2" {
            let keys = "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND convalidated";
            assert_eq!(ask(server, "killed_loads", keys), "1");
            let rows = "SELECT (SELECT count(*) FROM parent) + (SELECT count(*) FROM child)";
            assert_eq!(ask(server, "killed_loads", rows), whole.len().to_string());
        }
    });
    println!("killed before their end: {reads} of {MOMENTS} reads, {loads} of {MOMENTS} loads");
    assert!(reads > MOMENTS / 4 && loads > MOMENTS / 4, "{reads} {loads}");
}

/// An in-memory file system of this size, mounted at a directory of its own.
struct Small(std::path::PathBuf);

impl Small {
    fn new(dir: &Path, size: &str) -> Self {
        std::fs::create_dir(dir).unwrap();
        let mount = run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"])
            .arg(dir));
        assert_eq!(mount.code, Some(0), "{mount:#?}");
        Self(dir.to_owned())
    }

    /// Takes all space but `rest` bytes.
    fn fill(&self, rest: u64) {
        let ran = run(Command::new("df").args(["--output=avail", "--block-size=1"]).arg(&self.0));
        let free: u64 = ran.stdout.lines().last().unwrap().trim().parse().unwrap();
        let length = (free - rest).to_string();
        let ran = run(Command::new("fallocate").arg("-l").arg(length).arg(self.0.join("ballast")));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        run(Command::new("umount").arg("--lazy").arg(&self.0));
    }
}

fn failed(ran: &Ran, why: &str) {
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains(why) && ran.stderr.contains("hint: "), "{ran:#?}");
    assert!(ran.stderr.lines().count() <= 2 && ran.stdout.is_empty(), "{ran:#?}");
}

pub fn a_full_disk_leaves_nothing_half_done(server: &PostgresServer, place: &Place) {
    let from = address(server, "killed");
    let small = Small::new(&place.file("small"), "2m");
    let mut subset = Command::new(blockstone_binary());
    subset.args(["subset", "--from", &from, "--percent", "50"]).arg(small.0.join("subset"));
    failed(&run(&mut subset), "No space left");
    assert_eq!(names(&small.0), Vec::<String>::new());
    let server_small = Small::new(&server.dir().join("small"), "24m");
    run(Command::new("chown").arg("postgres:").arg(&server_small.0));
    let location = server_small.0.display();
    ask(server, "postgres", &format!("CREATE TABLESPACE small LOCATION '{location}'"));
    ask(server, "postgres", "CREATE DATABASE full_disk TABLESPACE small");
    ask(server, "postgres", "CHECKPOINT");
    server_small.fill(2 << 20);
    let mut load = Command::new(blockstone_binary());
    load.args(["subset", "load"]).arg(place.file("killed"));
    failed(
        &run(load.args(["--into", &address(server, "full_disk")])),
        "free some space on the server",
    );
    settle(server, "full_disk");
    let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(ask(server, "full_disk", tables), "0");
    ask(server, "postgres", "DROP DATABASE full_disk");
    ask(server, "postgres", "DROP TABLESPACE small");
}

/// A session that holds an advisory lock until it is dropped.
struct Gate(std::process::Child);

impl Gate {
    fn close(server: &PostgresServer) -> Self {
        let mut holder = psql(server, "killed");
        holder.args(["--command", "SELECT pg_advisory_lock(7); SELECT pg_sleep(600)"]);
        let gate = Self(quiet(&mut holder).spawn().unwrap());
        let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted";
        while ask(server, "killed", held) == "0" {
            std::thread::sleep(Duration::from_millis(10));
        }
        gate
    }

    /// Terminates the session: a sleeping backend would not notice that its client is gone.
    fn open(mut self, server: &PostgresServer) {
        ask(
            server,
            "killed",
            "SELECT pg_terminate_backend(pid) FROM pg_locks \
             WHERE locktype = 'advisory' AND granted",
        );
        self.0.wait().unwrap();
    }
}

pub fn what_changes_meanwhile_is_not_seen(server: &PostgresServer, place: &Place) {
    let from = address(server, "killed");
    let slow = "child=id % 100 = 0 AND (id % 5000 > 0 OR pg_advisory_lock_shared(7) IS NOT NULL)";
    let take = |name: &str| {
        let dir = place.file(name);
        let dir = dir.to_str().unwrap();
        ["--from", &from, "--where", slow, dir].map(str::to_owned)
    };
    let arguments = take("still");
    let still = json(&arguments.each_ref().map(String::as_str));
    let gate = Gate::close(server);
    let mut command = Command::new(blockstone_binary());
    command.arg("subset").args(take("changed"));
    let mut child = quiet(&mut command).spawn().unwrap();
    let waits = "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    while ask(server, "killed", waits) != "t" {
        assert!(child.try_wait().unwrap().is_none(), "it was not seen to read");
    }
    // Rows may be inserted, changed and deleted; altering the table has to wait.
    ask(
        server,
        "killed",
        "INSERT INTO parent VALUES (100000, 'new'); \
         INSERT INTO child VALUES (200000, 100000, 'new'); \
         UPDATE child SET note = 'changed'; DELETE FROM child WHERE id % 200 = 0",
    );
    let alter = "SET lock_timeout = '50ms'; ALTER TABLE parent ADD COLUMN more int";
    let refused = run(psql(server, "killed").args(["--command", alter]));
    assert!(refused.code != Some(0) && refused.stderr.contains("timeout"), "{refused:#?}");
    assert!(child.try_wait().unwrap().is_none(), "it ended before the table was changed");
    gate.open(server);
    assert!(child.wait().unwrap().success());
    assert_eq!(lines(&place.file("still")), lines(&place.file("changed")));
    assert!(still["rows"].as_u64().unwrap() > 2000, "{still:#?}");
}
