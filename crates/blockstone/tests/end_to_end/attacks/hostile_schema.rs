//! A schema whose owner wants more rights: every verb that connects as a superuser must not run its
//! code.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use blockstone_testkit::{MariadbServer, PostgresServer, Ran, blockstone_binary, require, run};

use super::databases::SMALL;
use super::{Command, Place, names};

const SCHEMA: &str = include_str!("hostile_schema.sql");
const RISEN: &str = "SELECT rolsuper FROM pg_roles WHERE rolname = 'evil'";

/// A server with the schema in a database of its own.
struct Hostile {
    server: PostgresServer,
    place: Place,
}

impl Hostile {
    fn start(place: Place) -> Self {
        let hostile = Self { server: PostgresServer::start(15, &[]).unwrap(), place };
        hostile.server.run(&["CREATE DATABASE shop"]).unwrap();
        hostile.tell("shop", &SCHEMA.replace("MARKER", hostile.marker().to_str().unwrap()));
        hostile
    }

    fn address(&self, database: &str) -> String {
        let address = self.server.address();
        format!("{}/{database}", address.rsplit_once('/').unwrap().0)
    }

    fn marker(&self) -> PathBuf {
        self.server.dir().join("marker")
    }

    fn psql(&self, database: &str) -> Command {
        let mut psql = Command::new("psql");
        psql.args(["-XqAt", "--set=ON_ERROR_STOP=1", "--dbname"]).arg(self.address(database));
        psql
    }

    #[track_caller]
    fn tell(&self, database: &str, text: &str) -> String {
        let script = self.place.file("script.sql");
        std::fs::write(&script, text).unwrap();
        let ran = run(self.psql(database).arg("--file").arg(&script));
        std::fs::remove_file(&script).unwrap();
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran.stdout.trim_end().to_owned()
    }

    /// Asserts that no code of the role ran with the rights of a superuser.
    #[track_caller]
    fn has_not_risen(&self, what: &str) {
        let said = std::fs::read_to_string(self.marker()).unwrap_or_default();
        assert_eq!(said, "", "{what}");
        assert_eq!(self.server.ask(RISEN).unwrap(), "f", "{what}");
    }

    #[track_caller]
    fn subset(&self, arguments: &[&str]) -> Ran {
        subset(&self.address("shop"), arguments)
    }
}

fn subset(from: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new(blockstone_binary());
    run(command.args(["subset", "--from", from, "--percent", "20"]).args(arguments))
}

/// Runs a database client that reads a script.
fn fed(client: &mut Command, script: &Path) -> Ran {
    let output = client.stdin(std::fs::File::open(script).unwrap()).output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[track_caller]
fn done(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[track_caller]
fn refused(ran: &Ran, words: &str) {
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains(words) && ran.stderr.contains("\nhint: "), "{ran:#?}");
}

#[test]
fn no_code_of_a_role_runs_as_the_superuser_who_connects() {
    require!(Root, Postgres);
    let hostile = Hostile::start(Place::beside());
    let address = hostile.address("shop");
    let dir = hostile.place.file("subset");
    let dir = dir.to_str().unwrap();
    hostile.server.run(&["CREATE DATABASE copy"]).unwrap();
    let copy = hostile.address("copy");
    for arguments in [
        &["--dry-run"][..],
        &["--naive"],
        &["--dry-run", "--where", "evil.paints=c = 'red' AND t.c::text IN ('red', 'blue')"],
        &["--dry-run", "--stratify", "--cap", "3"],
        &[dir],
        &["--into", &copy],
    ] {
        let ran = hostile.subset(arguments);
        done(&ran);
        hostile.has_not_risen(&format!("{arguments:?}"));
    }
    let counted = hostile.tell("copy", "SELECT count(*) > 0 FROM evil.paints WHERE c IS NOT NULL");
    assert_eq!(counted, "t");
    let target = ["--target", &address];
    done(&run(hostile.place.command("run").args(target).args(SMALL)));
    hostile.has_not_risen("run");
    done(&run(hostile.place.command("watch").args(["--once", "--for", "1s", "--db", &address])));
    hostile.has_not_risen("watch");
    let mut noise = hostile.place.command("noise");
    noise.args(["--sync", "--area", "2M", "--for", "4s", "--phase", "2s", "--db", &address]);
    let ran = run(noise.arg(hostile.place.data()));
    assert!(!ran.stderr.contains("unexpected argument"), "{ran:#?}");
    hostile.has_not_risen("noise");
    run(hostile.place.command("check").args(["direct", "--for", "1s", "--db", &address]));
    hostile.has_not_risen("check direct");
    std::fs::write(hostile.place.file("file"), vec![7; 1 << 20]).unwrap();
    let mut copied = hostile.place.command("copy");
    copied.args(["--against", "cp", "--db", &address]).arg(hostile.place.file("file"));
    run(copied.arg(hostile.place.file("copied")));
    hostile.has_not_risen("copy");
    hostile.tell(
        "shop",
        "GRANT CREATE ON DATABASE shop TO evil; SET ROLE evil; CREATE SCHEMA blockstone; \
         COMMENT ON SCHEMA blockstone IS 'made by blockstone run; may be removed'; \
         CREATE VIEW blockstone.looks AS SELECT evil.rise('a view in the schema of a run'); \
         CREATE TABLE blockstone.rows (a int CHECK (evil.rise('a check there')))",
    );
    run(hostile.place.command("run").args(target).args(SMALL));
    run(hostile.place.command("teardown").args([&address, "--destroy", &address]));
    hostile.has_not_risen("teardown");
}

#[test]
fn a_domain_is_not_checked_where_rows_are_taken() {
    require!(Root, Postgres);
    let hostile = Hostile::start(Place::beside());
    hostile.tell(
        "shop",
        "SET ROLE evil; SET search_path = evil; \
         ALTER TABLE guarded NO FORCE ROW LEVEL SECURITY; \
         CREATE FUNCTION checked(int) RETURNS boolean LANGUAGE sql \
             AS $$ SELECT evil.rise('domain') $$; \
         CREATE DOMAIN number AS int CHECK (checked(VALUE)); CREATE DOMAIN counted AS number; \
         CREATE TABLE domains (a counted PRIMARY KEY, b int CHECK (rise('check')), \
             c int GENERATED ALWAYS AS (1) STORED); \
         INSERT INTO domains SELECT generate_series(1, 50); \
         CREATE TABLE of_domains (a number REFERENCES domains, b counted DEFAULT 5); \
         INSERT INTO of_domains SELECT generate_series(1, 50)",
    );
    let dir = hostile.place.file("subset");
    for arguments in [&["--dry-run"][..], &["--naive"], &[dir.to_str().unwrap()]] {
        done(&hostile.subset(arguments));
        hostile.has_not_risen(&format!("{arguments:?}"));
    }
    // A load by a superuser runs its code, and warns about it.
    hostile.server.run(&["CREATE DATABASE copy", "CREATE DATABASE own"]).unwrap();
    let load = |address: &str| {
        let mut command = Command::new(blockstone_binary());
        run(command.args(["subset", "load"]).arg(&dir).args(["--into", address]))
    };
    let ran = load(&hostile.address("copy"));
    done(&ran);
    assert!(ran.stdout.contains("Warning: a superuser loaded it"), "{ran:#?}");
    std::fs::remove_file(hostile.marker()).unwrap();
    // A role that owns the destination has no rights to lose.
    hostile.tell("own", "CREATE ROLE loader LOGIN; ALTER DATABASE own OWNER TO loader");
    let ran = load(&hostile.address("own").replace("admin@", "loader@"));
    done(&ran);
    assert!(!ran.stdout.contains("Warning: a superuser"), "{ran:#?}");
    hostile.has_not_risen("a load by a role that owns the destination");
}

#[test]
fn what_cannot_be_read_without_code_of_a_role_is_refused_by_name() {
    require!(Root, Postgres);
    let hostile = Hostile::start(Place::beside());
    hostile.tell(
        "shop",
        "SET ROLE evil; CREATE TABLE evil.planned (id int PRIMARY KEY, a int); \
         INSERT INTO evil.planned SELECT g, g FROM generate_series(1, 20) g; \
         CREATE FUNCTION evil.pure(what text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS \
             $$ BEGIN PERFORM evil.rise(what); RETURN 0; END $$; \
         CREATE OPERATOR evil.@@@ (RIGHTARG = text, FUNCTION = evil.pure)",
    );
    done(&hostile.subset(&["--dry-run"]));
    for (make, drop, words) in [
        (
            "CREATE INDEX planned_index ON evil.planned ((a + evil.pure('index')))",
            "DROP INDEX evil.planned_index",
            "index planned_index",
        ),
        (
            "CREATE INDEX planned_part ON evil.planned (a) WHERE a > (OPERATOR(evil.@@@) 'part')",
            "DROP INDEX evil.planned_part",
            "index planned_part",
        ),
        (
            "CREATE STATISTICS evil.counted ON (a + evil.pure('statistics')), id FROM evil.planned",
            "DROP STATISTICS evil.counted",
            "statistics counted",
        ),
    ] {
        hostile.tell("shop", &format!("SET ROLE evil; {make}"));
        for arguments in ["--dry-run", "--naive"] {
            let ran = hostile.subset(&[arguments]);
            refused(&ran, words);
            assert!(ran.stderr.contains("of the role evil to read evil.planned"), "{ran:#?}");
        }
        hostile.has_not_risen(make);
        // Code of the role runs with the role's own rights.
        let own = hostile.address("shop").replace("admin@", "evil@");
        hostile.tell("shop", "ALTER TABLE evil.guarded NO FORCE ROW LEVEL SECURITY");
        done(&subset(&own, &["--dry-run"]));
        hostile.tell("shop", &format!("SET ROLE evil; {drop}"));
    }
    hostile.has_not_risen("subsets of the role");
}

/// The owner of a table or of its schema can replace the table, or add an index, unless something
/// prevents it.
#[test]
fn tables_stay_what_they_are_while_they_are_read() {
    require!(Root, Postgres);
    let hostile = Hostile::start(Place::beside());
    hostile.server.run(&["GRANT CREATE ON DATABASE shop TO evil"]).unwrap();
    let from = hostile.address("shop");
    let condition = "evil.nokey=pg_sleep(0.2) IS NOT NULL";
    let mut taken = Command::new(blockstone_binary());
    taken.args(["subset", "--from", &from, "--dry-run", "--where", condition]);
    let mut taken = taken.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let reads = "SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' \
        AND pid <> pg_backend_pid()";
    while hostile.server.ask(reads).unwrap() != "t" {
        assert!(taken.try_wait().unwrap().is_none(), "it was not seen to read");
    }
    for change in [
        "ALTER SCHEMA evil RENAME TO other",
        "CREATE INDEX ON evil.nokey (a)",
        "CREATE STATISTICS evil.counted ON (a + 1), a FROM evil.nokey",
        "ALTER TABLE evil.nokey RENAME TO other",
        "ALTER TABLE evil.nokey ALTER a TYPE bigint",
    ] {
        let text = format!("SET ROLE evil; SET lock_timeout = '50ms'; {change}");
        let ran = run(hostile.psql("shop").args(["--command", &text]));
        assert!(ran.code != Some(0) && ran.stderr.contains("lock timeout"), "{change}: {ran:#?}");
    }
    let text = "INSERT INTO evil.nokey VALUES (0, 'rows are written meanwhile')";
    assert_eq!(run(hostile.psql("shop").args(["--command", text])).code, Some(0));
    assert!(taken.try_wait().unwrap().is_none(), "it ended before");
    assert!(taken.wait().unwrap().success());
}

#[test]
fn a_routine_gains_no_rights_by_a_load() {
    require!(Root, Postgres);
    let hostile = Hostile::start(Place::beside());
    hostile.tell(
        "shop",
        "CREATE ROLE dev LOGIN; SET ROLE evil; \
         CREATE FUNCTION evil.run(what text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS \
             $$ BEGIN EXECUTE what; END $$; \
         REVOKE ALL ON FUNCTION evil.run(text) FROM PUBLIC; \
         CREATE PROCEDURE evil.\"run; --\"(INOUT what text) LANGUAGE plpgsql SECURITY DEFINER AS \
             $$ BEGIN EXECUTE what; END $$",
    );
    let dir = hostile.place.file("subset");
    done(&hostile.subset(&[dir.to_str().unwrap()]));
    hostile.server.run(&["CREATE DATABASE driver", "CREATE DATABASE script"]).unwrap();
    let mut load = Command::new(blockstone_binary());
    load.args(["subset", "load"]).arg(&dir).args(["--into", &hostile.address("driver")]);
    let ran = run(&mut load);
    done(&ran);
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["run with those of their caller (3)", "evil.run(what text)", "evil.fires()"] {
        assert!(words.contains(part), "{part}: {ran:#?}");
    }
    let mut script = hostile.psql("script");
    done(&run(script.args(["--file", "load.sql"]).current_dir(&dir)));
    for database in ["driver", "script"] {
        hostile.tell(database, "GRANT USAGE ON SCHEMA evil TO dev");
        for call in ["SELECT evil.run('%')", "CALL evil.\"run; --\"('%')"] {
            let text = call.replace('%', "ALTER ROLE dev SUPERUSER");
            let mut psql = Command::new("psql");
            psql.args(["-XqAt", "--command", &text]);
            let ran = run(psql.arg(hostile.address(database).replace("admin@", "dev@")));
            assert!(ran.code != Some(0), "{ran:#?}");
        }
        let risen = "SELECT rolsuper FROM pg_roles WHERE rolname = 'dev'";
        assert_eq!(hostile.tell(database, risen), "f", "{database}");
    }
}

/// A server may send anything as the definition of a view.
#[test]
fn psql_runs_no_program_for_a_server_that_was_sampled() {
    require!(Root, Postgres);
    let hostile = Hostile::start(Place::beside());
    let ran_here = hostile.place.file("ran-here");
    hostile.tell(
        "shop",
        &format!(
            "CREATE OR REPLACE FUNCTION pg_catalog.pg_get_viewdef(oid) RETURNS text LANGUAGE sql \
             AS $$ SELECT E' SELECT 1;\\n\\\\! touch {0}\\n\\\\o | touch {0}\\nSELECT 1;' $$",
            ran_here.display()
        ),
    );
    let dir = hostile.place.file("subset");
    done(&hostile.subset(&[dir.to_str().unwrap()]));
    hostile.server.run(&["CREATE DATABASE copy"]).unwrap();
    let mut script = hostile.psql("copy");
    let ran = run(script.args(["--file", "load.sql"]).current_dir(&dir));
    assert!(!ran_here.exists(), "{ran:#?}");
    assert!(ran.code != Some(0) && ran.stderr.contains("restrict"), "{ran:#?}");
    // The driver sends it to the server, which does not know such a statement.
    let mut load = Command::new(blockstone_binary());
    load.args(["subset", "load"]).arg(&dir).args(["--into", &hostile.address("copy")]);
    refused(&run(&mut load), "schema-before.sql");
    assert!(!ran_here.exists());
}

#[test]
fn lines_of_a_body_are_not_taken_for_those_of_a_dump() {
    require!(Root, Postgres);
    let hostile = Hostile::start(Place::beside());
    let body = "SELECT '\n\\restrict x\nSET transaction_timeout = 0;\n\\unrestrict x\n'::text";
    hostile.tell(
        "shop",
        &format!("CREATE FUNCTION lines() RETURNS text LANGUAGE sql AS $_$ {body} $_$"),
    );
    let dir = hostile.place.file("subset");
    done(&hostile.subset(&[dir.to_str().unwrap()]));
    hostile.server.run(&["CREATE DATABASE driver", "CREATE DATABASE script"]).unwrap();
    let mut load = Command::new(blockstone_binary());
    done(&run(load
        .args(["subset", "load"])
        .arg(&dir)
        .args(["--into", &hostile.address("driver")])));
    let mut script = hostile.psql("script");
    done(&run(script.args(["--file", "load.sql"]).current_dir(&dir)));
    let expected = hostile.tell("shop", "SELECT public.lines()");
    for database in ["driver", "script"] {
        assert_eq!(hostile.tell(database, "SELECT public.lines()"), expected, "{database}");
    }
}

#[test]
fn a_load_reads_through_no_link() {
    require!(Root, Postgres);
    let hostile = Hostile::start(Place::beside());
    let dir = hostile.place.file("subset");
    done(&hostile.subset(&[dir.to_str().unwrap()]));
    hostile.server.run(&["CREATE DATABASE copy"]).unwrap();
    let data = dir.join("data");
    let first = data.join(&names(&data)[0]);
    for (path, aside) in [
        (first, hostile.place.file("aside")),
        (dir.join("schema-before.sql"), hostile.place.file("aside-schema")),
        (data, hostile.place.file("aside-data")),
        (dir.join("subset.json"), hostile.place.file("aside-manifest")),
    ] {
        std::fs::rename(&path, &aside).unwrap();
        std::os::unix::fs::symlink(&aside, &path).unwrap();
        let mut load = Command::new(blockstone_binary());
        load.args(["subset", "load"]).arg(&dir).args(["--into", &hostile.address("copy")]);
        let ran = run(&mut load);
        assert_eq!(ran.code, Some(2), "{}: {ran:#?}", path.display());
        assert!(ran.stderr.contains("\nhint: "), "{ran:#?}");
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(&aside, &path).unwrap();
    }
    assert_eq!(
        hostile.tell("copy", "SELECT count(*) FROM pg_namespace WHERE nspname = 'evil'"),
        "0"
    );
}

/// For MariaDB: a user with all privileges on one database, whose function can write a file only if
/// an administrator runs it.
const OF_MARIADB: &str = "
    CREATE DATABASE shop;
    CREATE USER evil@'127.0.0.1'; CREATE USER gone@'127.0.0.1'; CREATE USER dev@'127.0.0.1';
    GRANT ALL ON shop.* TO evil@'127.0.0.1'; GRANT ALL ON shop.* TO gone@'127.0.0.1';
    GRANT EXECUTE, SELECT, INSERT ON copy.* TO dev@'127.0.0.1';";
const OF_EVIL: &str = "
    DELIMITER //
    CREATE FUNCTION rise(what text) RETURNS int DETERMINISTIC SQL SECURITY INVOKER BEGIN
        DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
        SELECT what INTO OUTFILE 'MARKER'; RETURN 1; END//
    CREATE FUNCTION crc32(what text) RETURNS int SQL SECURITY INVOKER RETURN rise('crc32')//
    CREATE PROCEDURE run(what text) BEGIN EXECUTE IMMEDIATE what; END//
    CREATE TABLE parent (id int PRIMARY KEY, t varchar(20) DEFAULT 'x', v int AS (id + 1) VIRTUAL,
        CHECK (id >= 0))//
    INSERT INTO parent (id) SELECT seq FROM seq_1_to_50//
    CREATE TABLE child (a int REFERENCES parent (id), b text)//
    INSERT INTO child SELECT seq, 'x' FROM seq_1_to_50//
    CREATE VIEW looks AS SELECT *, rise('view') AS r FROM parent//
    CREATE ALGORITHM = TEMPTABLE VIEW counted AS
        SELECT count(*) AS n FROM child WHERE rise('view') = 1//
    CREATE TRIGGER fires BEFORE INSERT ON child FOR EACH ROW SET NEW.b = rise('trigger')//";

#[test]
fn no_code_of_a_user_of_mariadb_runs_as_root_or_gains_rights() {
    require!(Root, Mariadb);
    let server = MariadbServer::start(&[]).unwrap();
    let place = Place::beside();
    let tell = |user: &str, database: &str, text: &str| {
        let script = place.file("script.sql");
        std::fs::write(&script, text).unwrap();
        let mut client = server.client(database);
        client.args(["--user", user, "--host=127.0.0.1", "--protocol=tcp"]);
        fed(client.args(["--port", &port(&server)]), &script)
    };
    done(&tell("root", "", OF_MARIADB));
    let marker = place.file("marker");
    done(&tell("evil", "shop", &OF_EVIL.replace("MARKER", marker.to_str().unwrap())));
    let more = "CREATE TRIGGER lost BEFORE UPDATE ON child FOR EACH ROW SET NEW.b = 'x'";
    done(&tell("gone", "shop", more));
    done(&tell("root", "", "DROP USER gone@'127.0.0.1'; CREATE DATABASE copy"));
    let (from, into) = (server.address("shop"), server.address("copy"));
    let dir = place.file("subset");
    let unmarked = |what: &str| {
        assert_eq!(std::fs::read_to_string(&marker).unwrap_or_default(), "", "{what}");
    };
    let condition = "child=a < 20";
    for arguments in [
        &["--dry-run"][..],
        &["--naive"],
        &["--dry-run", "--where", condition],
        &[dir.to_str().unwrap()],
    ] {
        done(&subset(&from, arguments));
        unmarked(&format!("{arguments:?}"));
    }
    let ran = subset(&from, &["--into", &into]);
    done(&ran);
    unmarked("--into");
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["rights of those who call them (5)", "left out", "(1): lost", "Warning: the user"]
    {
        assert!(words.contains(part), "{part}: {ran:#?}");
    }
    let kept = "SELECT group_concat(TRIGGER_NAME, ' ', DEFINER) FROM information_schema.TRIGGERS \
        WHERE TRIGGER_SCHEMA = 'copy'";
    assert_eq!(server.ask("copy", kept).unwrap(), "fires evil@127.0.0.1");
    let ran = tell("dev", "copy", "CALL run('GRANT ALL ON *.* TO dev@''127.0.0.1''')");
    assert!(ran.code != Some(0) && ran.stderr.contains("denied"), "{ran:#?}");
    run(place.command("watch").args(["--once", "--for", "1s", "--db", &from]));
    run(place.command("run").args(["--target", &from]).args(SMALL));
    run(place.command("teardown").args([&from, "--destroy", &from]));
    unmarked("watch, run and teardown");
}

fn port(server: &MariadbServer) -> String {
    let address = server.address("x");
    let (_, rest) = address.split_once("127.0.0.1:").unwrap();
    rest.split('/').next().unwrap().to_owned()
}

/// A server may send anything as the definition of a routine.
#[test]
fn the_client_of_mariadb_runs_no_program_for_a_subset() {
    require!(Root, Mariadb);
    let server = MariadbServer::start(&[]).unwrap();
    let place = Place::beside();
    server.ask("", "CREATE DATABASE shop; CREATE DATABASE copy; CREATE DATABASE honest").unwrap();
    server.ask("shop", "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    let dir = place.file("subset");
    done(&subset(&server.address("shop"), &["--whole", "t", dir.to_str().unwrap()]));
    let ran_here = place.file("ran-here");
    let load = |database: &str| {
        let mut client = server.client(database);
        client.args(["--binary-mode", "--local-infile=1"]).current_dir(&dir);
        fed(&mut client, &dir.join("load.sql"))
    };
    done(&load("honest"));
    let text = std::fs::read_to_string(dir.join("load.sql")).unwrap();
    for command in ["\\! touch", "system touch", "\\T", "tee", "\\P cat >", "\\. "] {
        let line = format!("{command} {}\nCREATE TABLE", ran_here.display());
        std::fs::write(dir.join("load.sql"), text.replacen("CREATE TABLE", &line, 1)).unwrap();
        for mode in [&[][..], &["--binary-mode"]] {
            let mut client = server.client("copy");
            let client = client.arg("--local-infile=1").args(mode).current_dir(&dir);
            let ran = fed(client, &dir.join("load.sql"));
            assert!(!ran_here.exists(), "{command}: {ran:#?}");
        }
    }
}

/// The owner of a schema may replace it by another, with other code under the same names.
#[test]
fn an_extension_in_the_schema_of_a_role_is_not_asked_by_a_superuser() {
    require!(Root, Postgres);
    let settings = ["shared_preload_libraries=pg_stat_statements"];
    let server = PostgresServer::start(15, &settings).unwrap();
    let place = Place::beside();
    server
        .run(&[
            "CREATE ROLE evil LOGIN",
            "CREATE SCHEMA evil AUTHORIZATION evil",
            "CREATE EXTENSION pg_stat_statements SCHEMA evil",
        ])
        .unwrap();
    let watched = || {
        let mut watch = place.command("watch");
        watch.args(["--once", "--for", "2s", "--view", "statements", "--db", &server.address()]);
        let ran = run(&mut watch);
        done(&ran);
        let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        words.contains("the schema of pg_stat_statements belongs to evil")
    };
    assert!(watched());
    server.run(&["ALTER SCHEMA evil OWNER TO admin"]).unwrap();
    assert!(!watched());
}
