//! A database role that wants more rights, and passwords.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use blockstone_testkit::{PostgresServer, Ran, blockstone_binary, require, run};

use super::{Command, Place, STRANGER, holds, refused};

pub const SMALL: [&str; 8] = ["--schemas", "1", "--threads", "1", "--scale", "1M", "--loops", "1"];
const SECRET: &str = "s3cr3tpw";

fn on(place: &Place, address: &str) -> Ran {
    run(place.command("run").args(["--target", address]).args(SMALL))
}

#[test]
fn a_function_of_the_same_name_is_not_called() {
    require!(Root, Postgres);
    let place = Place::beside();
    let server = PostgresServer::start(15, &[]).unwrap();
    server
        .run(&[
            "CREATE ROLE evil LOGIN",
            "GRANT CREATE ON SCHEMA public TO evil",
            "SET ROLE evil; CREATE FUNCTION public.has_database_privilege(name, text)
                RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
                IF (SELECT usesuper FROM pg_user WHERE usename = session_user)
                THEN EXECUTE 'ALTER ROLE evil SUPERUSER'; END IF; RETURN true; END $$",
        ])
        .unwrap();
    let ran = on(&place, &server.address());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let rises = "SELECT rolsuper FROM pg_roles WHERE rolname = 'evil'";
    assert_eq!(server.ask(rises).unwrap(), "f");
}

#[test]
fn a_private_server_is_closed_to_other_users() {
    require!(Root, Postgres, Mariadb);
    for target in ["postgres:scratch", "mariadb:scratch"] {
        let place = Place::beside();
        let mut command = place.command("run");
        command.args(["--target", target, "--threads", "1", "--scale", "1M", "--run-time", "30s"]);
        let mut child =
            command.arg(place.data()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + Duration::from_mins(2);
        let socket = loop {
            assert!(Instant::now() < until && child.try_wait().unwrap().is_none(), "{target}");
            let homes = place.left_in_data();
            let homes = homes.iter().filter(|name| name.starts_with("blockstone-test-"));
            let files = homes.flat_map(|home| fs::read_dir(place.file(home)).unwrap().flatten());
            let mut sockets = files.filter(|file| file.file_type().unwrap().is_socket());
            if let Some(socket) = sockets.next() {
                break socket.path();
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let home = socket.parent().unwrap();
        assert_eq!(fs::metadata(home).unwrap().mode() & 0o777, 0o700, "{target}");
        // A user who may enter the directory nevertheless, as its owner, does not know the
        // password.
        let (program, arguments, user) = if target.starts_with("postgres") {
            (
                "psql",
                vec!["-w".into(), "-d".into(), "postgres".into(), "-h".into(), home.into()],
                "blockstone",
            )
        } else {
            ("mariadb", vec!["-S".into(), socket.clone().into_os_string()], "root")
        };
        let uid = fs::metadata(home).unwrap().uid();
        for uid in [STRANGER, uid] {
            let ran = run(Command::new(program)
                .uid(uid)
                .gid(uid)
                .current_dir("/")
                .env("PSQLRC", "/dev/null")
                .args(&arguments)
                .args(["-U", user].map(|it| if program == "psql" { it } else { "--silent" }))
                .stdin(Stdio::null()));
            assert_ne!(ran.code, Some(0), "uid {uid} entered {target}: {ran:#?}");
        }
        super::signal(&child, "TERM");
        assert_eq!(child.wait().unwrap().code(), Some(130), "{target}");
        assert_eq!(place.left_in_data(), Vec::<String>::new());
    }
}

#[test]
fn a_password_is_written_nowhere() {
    require!(Root, Postgres);
    let place = Place::beside();
    let server = PostgresServer::start(15, &[]).unwrap();
    let in_authority = server.address().replace("admin@", &format!("admin:{SECRET}@"));
    let as_parameter = format!("{}?password={SECRET}", server.address());
    for address in [in_authority.replace("postgres:", "postgresql:"), in_authority, as_parameter] {
        let ran = on(&place, &address);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert!(!format!("{ran:?}").contains(SECRET), "{ran:#?}");
        let json = run(place.command("report").args(["--json", "last"]));
        assert!(!json.stdout.contains(SECRET), "{json:#?}");
        let watch = run(place
            .command("watch")
            .args(["--db", &address, "--once", "--for", "1s", "--record"])
            .arg(place.runs().join(format!("w{}", address.len()))));
        assert_eq!(watch.code, Some(0), "{watch:#?}");
        assert!(!format!("{watch:?}").contains(SECRET), "{watch:#?}");
        assert_eq!(holds(&place.runs(), SECRET), None, "{address}");
    }
    let wrong = [
        ("run", "--target", "postgres:/u:s3cr3tpw@h"),
        ("run", "--target", "oracle://u:s3cr3tpw@h/d"),
        ("run", "--target", "postgres://127.0.0.1:1/d?password=s3cr3tpw&user=u"),
        ("watch", "--db", "oracle:u:s3cr3tpw@h"),
        ("watch", "--db", "mysql://u:s3cr3tpw@127.0.0.1:1"),
    ];
    for (verb, option, address) in wrong {
        let ran = run(Command::new(blockstone_binary())
            .current_dir(place.runs())
            .args([verb, option, address]));
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(!ran.stderr.contains(SECRET), "{ran:#?}");
    }
    for address in ["oracle://u:s3cr3tpw@h/d", "postgres://u:s3cr3tpw@127.0.0.1:1/d"] {
        let ran = run(Command::new(blockstone_binary()).args(["teardown", address]));
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(!ran.stderr.contains(SECRET), "{ran:#?}");
    }
}

#[test]
fn a_schema_that_no_run_made_is_not_dropped() {
    require!(Root, Postgres);
    let place = Place::beside();
    let server = PostgresServer::start(15, &[]).unwrap();
    let address = server.address();
    server.run(&["CREATE SCHEMA blockstone", "CREATE TABLE blockstone.mine (a int)"]).unwrap();
    let what = refused(&place, place.command("teardown").arg(&address));
    assert!(what.contains("drops the schema"), "{what}");
    let mut twice = place.command("teardown");
    let what = refused(&place, twice.args([&address, "--destroy", &address]));
    assert!(what.contains("no run made"), "{what}");
    assert_eq!(server.ask("SELECT count(*) FROM blockstone.mine").unwrap(), "0");

    // The schema of a run is dropped, but not views of other users that depend on it.
    server
        .run(&[
            "COMMENT ON SCHEMA blockstone IS 'made by blockstone run; may be removed'",
            "CREATE VIEW public.theirs AS SELECT * FROM blockstone.mine",
        ])
        .unwrap();
    let what = refused(&place, place.command("teardown").args([&address, "--destroy", &address]));
    assert!(what.contains("depend"), "{what}");
    server.run(&["DROP VIEW public.theirs"]).unwrap();
    let ran = run(place.command("teardown").args([&address, "--destroy", &address]));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let left = "SELECT count(*) FROM pg_namespace WHERE nspname = 'blockstone'";
    assert_eq!(server.ask(left).unwrap(), "0");
}
