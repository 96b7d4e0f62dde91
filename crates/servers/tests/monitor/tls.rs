//! TLS with real servers, and certificates made for the test.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use blockstone_base::hint::Hint as _;
use blockstone_servers::subset::postgres::PostgresSource;
use blockstone_servers::{SqlError, monitor};
use blockstone_sys::child;
use blockstone_sys::held::HeldDir;
use blockstone_testkit::require;

use super::APPLICATION;
use super::server::{Product, Server};

const MARIADB: Product = Product::Mariadb { performance_schema: false };

/// Certificates of two authorities, readable by every user.
struct Certificates {
    dir: tempfile::TempDir,
}

impl Certificates {
    /// Creates an authority with the certificates that it issued to a server `localhost`, one of
    /// which expired a day ago, and to a client `client`; and another authority.
    fn make(product: Product) -> Self {
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        let dir = tempfile::Builder::new().permissions(open).tempdir_in("/var/tmp").unwrap();
        let made = Self { dir };
        for authority in ["ca", "other"] {
            made.openssl(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2",
                &["-subj", "/CN=it", "-keyout", "AUTHORITY.key", "-out", "AUTHORITY.pem"]
                    .map(|word| word.replace("AUTHORITY", authority)),
            );
        }
        std::fs::write(made.path("names"), "subjectAltName = DNS:localhost\n").unwrap();
        for name in ["server", "client"] {
            let word = |word: &str| word.replace("NAME", name);
            made.openssl(
                "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes",
                &["-subj", "/CN=NAME", "-keyout", "NAME.key", "-out", "NAME.csr"].map(word),
            );
            for (days, file) in [("2", "NAME.pem"), ("-1", "NAME-expired.pem")] {
                made.openssl(
                    "x509 -req -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names",
                    &["-in", "NAME.csr", "-days", days, "-out", file].map(word),
                );
            }
        }
        let users: &[&str] = if product == MARIADB { &["mysql", "nobody"] } else { &["postgres"] };
        let user = child::user(Path::new("/"), users).unwrap();
        std::os::unix::fs::chown(made.path("server.key"), Some(user.uid), Some(user.gid)).unwrap();
        made
    }

    fn openssl(&self, verb: &str, more: &[String]) {
        let mut openssl = Command::new("openssl");
        openssl.args(verb.split(' ')).args(more).current_dir(self.dir.path());
        let made = openssl.stdin(Stdio::null()).output().unwrap();
        assert!(made.status.success(), "{openssl:?}: {}", String::from_utf8_lossy(&made.stderr));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Replaces each `@name` by the path of the file.
    fn filled(&self, text: &str) -> String {
        text.replace('@', &format!("{}/", self.dir.path().display()))
    }

    /// Starts a server with these settings.
    fn serve(&self, product: Product, settings: &[&str]) -> Server {
        let settings: Vec<String> = settings.iter().map(|text| self.filled(text)).collect();
        Server::start(product, &settings.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Watches `server` as `user` by the host name `host`.
    fn watch(
        &self,
        server: &Server,
        user: &str,
        host: &str,
        parameters: &str,
    ) -> Result<Box<dyn monitor::Monitor>, SqlError> {
        let address = server.address(user).replace("127.0.0.1", host);
        monitor::open(&format!("{address}?{}", self.filled(parameters)))
    }
}

#[track_caller]
fn refused(watched: Result<Box<dyn monitor::Monitor>, SqlError>, words: &str) {
    let error = watched.err().expect("it is refused").told();
    assert!(error.contains(words) && error.contains("\nhint: "), "{error}");
}

#[test]
fn postgres_is_believed_by_its_certificate() {
    require!(Root, Postgres, Openssl);
    let made = Certificates::make(Product::Postgres(15));
    let rules = "local all all trust
        hostssl all scram all scram-sha-256
        hostssl all client all cert
        host all all all trust\n";
    std::fs::write(made.path("rules"), rules).unwrap();
    let server = made.serve(
        Product::Postgres(15),
        &[
            "ssl=on",
            "ssl_cert_file=@server.pem",
            "ssl_key_file=@server.key",
            "ssl_ca_file=@ca.pem",
            "hba_file=@rules",
        ],
    );
    let mut admin = server.session();
    admin.run("CREATE ROLE scram LOGIN PASSWORD 'secret'; CREATE ROLE client LOGIN");
    let mut is_secured = || {
        admin.ask(&format!(
            "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
             WHERE application_name = '{APPLICATION}'"
        ))
    };
    for (host, parameters, expected) in [
        ("localhost", "sslmode=verify-full&sslrootcert=@ca.pem", "t"),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert=@ca.pem", "t"),
        ("127.0.0.1", "sslmode=require", "t"),
        ("127.0.0.1", "", "t"),
        ("127.0.0.1", "sslmode=disable", "f"),
    ] {
        let watched = made.watch(&server, "admin", host, parameters);
        let watched = watched.unwrap_or_else(|error| panic!("{host} {parameters}: {error}"));
        assert_eq!(is_secured(), expected, "{host} {parameters}");
        drop(watched);
        let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !is_secured().is_empty() {
            assert!(std::time::Instant::now() < until);
        }
    }
    for (host, parameters, words) in [
        ("127.0.0.1", "sslmode=verify-full&sslrootcert=@ca.pem", "not valid for name"),
        ("localhost", "sslmode=verify-full&sslrootcert=@other.pem", "invalid peer certificate"),
        ("localhost", "sslmode=verify-ca&sslrootcert=@other.pem", "invalid peer certificate"),
        // A named file of authorities is used even with `require`.
        ("localhost", "sslmode=require&sslrootcert=@other.pem", "invalid peer certificate"),
        ("localhost", "sslmode=verify-full&sslrootcert=system", "invalid peer certificate"),
        ("localhost", "sslmode=verify-full&sslrootcert=@none.pem", "none.pem"),
    ] {
        refused(made.watch(&server, "admin", host, parameters), words);
    }
    // The password is bound to this connection, and a client has its own certificate.
    let bound = "sslmode=require&channel_binding=require";
    made.watch(&server, "scram:secret", "localhost", bound).unwrap();
    let own = "sslmode=require&sslcert=@client.pem&sslkey=@client.key";
    made.watch(&server, "client", "localhost", own).unwrap();
    refused(made.watch(&server, "client", "localhost", "sslmode=require"), "certificate");
}

#[test]
fn mariadb_is_believed_by_its_certificate() {
    require!(Root, Mariadb, Openssl);
    let made = Certificates::make(MARIADB);
    let server =
        made.serve(MARIADB, &["ssl-cert=@server.pem", "ssl-key=@server.key", "ssl-ca=@ca.pem"]);
    let mut admin = server.session();
    admin.run("CREATE USER secured@'127.0.0.1' IDENTIFIED BY 'secret' REQUIRE SSL");
    admin.run("CREATE USER known@'127.0.0.1' REQUIRE SUBJECT '/CN=client'");
    let user = "secured:secret";
    for (host, parameters) in [
        ("localhost", "ssl-mode=VERIFY_IDENTITY&ssl-ca=@ca.pem"),
        ("localhost", "ssl-verify-server-cert=1&ssl-ca=@ca.pem"),
        ("localhost", "ssl-ca=@ca.pem"),
        ("127.0.0.1", "ssl-mode=REQUIRED"),
        ("127.0.0.1", ""),
    ] {
        let watched = made.watch(&server, user, host, parameters);
        watched.unwrap_or_else(|error| panic!("{host} {parameters}: {error}"));
    }
    for (host, parameters, words) in [
        ("127.0.0.1", "ssl-ca=@ca.pem", "not valid for name"),
        ("localhost", "ssl-ca=@other.pem", "invalid peer certificate"),
        ("localhost", "ssl-mode=VERIFY_IDENTITY", "invalid peer certificate"),
        ("localhost", "ssl-ca=@none.pem", "none.pem"),
        ("localhost", "ssl-mode=DISABLED", "Access denied"),
        ("localhost", "ssl-mode=VERIFY_CA", "VERIFY_IDENTITY"),
        ("localhost", "ssl-mode=REQUIRED&ssl-ca=@ca.pem", "no effect"),
    ] {
        refused(made.watch(&server, user, host, parameters), words);
    }
    let own = "ssl-mode=REQUIRED&ssl-cert=@client.pem&ssl-key=@client.key";
    made.watch(&server, "known", "127.0.0.1", own).unwrap();
    refused(made.watch(&server, "known", "127.0.0.1", "ssl-mode=REQUIRED"), "Access denied");
}

#[test]
fn a_certificate_that_expired_is_refused() {
    require!(Root, Postgres, Mariadb, Openssl);
    for (product, user, settings, checked, unchecked) in [
        (
            Product::Postgres(15),
            "admin",
            ["ssl=on", "ssl_cert_file=@server-expired.pem", "ssl_key_file=@server.key"],
            "sslmode=verify-ca&sslrootcert=@ca.pem",
            "sslmode=require",
        ),
        (
            MARIADB,
            "root",
            ["ssl-cert=@server-expired.pem", "ssl-key=@server.key", "ssl-ca=@ca.pem"],
            "ssl-ca=@ca.pem",
            "ssl-mode=REQUIRED",
        ),
    ] {
        let made = Certificates::make(product);
        let server = made.serve(product, &settings);
        refused(
            made.watch(&server, user, "localhost", checked),
            "invalid peer certificate: Expired",
        );
        made.watch(&server, user, "localhost", unchecked).unwrap();
    }
}

#[test]
fn a_server_without_tls_is_used_on_this_machine_only_or_if_asked_for() {
    require!(Root, Postgres, Mariadb, Openssl);
    for product in [Product::Postgres(15), MARIADB] {
        let is_postgres = product.is_postgres();
        let made = Certificates::make(product);
        let server = Server::start(product, &[]);
        let user = if is_postgres { "admin" } else { "root" };
        let required = if is_postgres { "sslmode=require" } else { "ssl-mode=REQUIRED" };
        made.watch(&server, user, "127.0.0.1", "").unwrap();
        refused(made.watch(&server, user, "127.0.0.1", required), "it does not offer TLS");
        // An address of this machine that is not recognised as local.
        refused(made.watch(&server, user, "0.0.0.0", ""), "it does not offer TLS");
        let disabled = if is_postgres { "sslmode=disable" } else { "ssl-mode=DISABLED" };
        made.watch(&server, user, "0.0.0.0", disabled).unwrap();
    }
}

/// Starts a proxy between a client and servers, which connects to the server on this port.
fn between(port: &Arc<AtomicU16>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let port = Arc::clone(port);
    std::thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let far = TcpStream::connect(("127.0.0.1", port.load(Ordering::Relaxed))).unwrap();
            for (from, to) in [(&near, &far), (&far, &near)] {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    own
}

fn port(server: &Server) -> u16 {
    let address = server.admin();
    address.rsplit(':').next().unwrap().split('/').next().unwrap().parse().unwrap()
}

/// An impostor that answers only the second connection also presents a certificate.
#[test]
fn pg_dump_believes_whom_this_program_believes() {
    require!(Root, Postgres, Openssl);
    let (made, other) =
        (Certificates::make(Product::Postgres(15)), Certificates::make(Product::Postgres(15)));
    let settings = ["ssl=on", "ssl_cert_file=@server.pem", "ssl_key_file=@server.key"];
    let server = made.serve(Product::Postgres(15), &settings);
    let stranger = other.serve(Product::Postgres(15), &settings);
    server.session().run("CREATE TABLE public.t (a int PRIMARY KEY)");
    let answers = Arc::new(AtomicU16::new(port(&server)));
    let here = between(&answers);
    for (parameters, is_refused) in [
        ("sslmode=verify-full&sslrootcert=@ca.pem", true),
        ("sslmode=verify-ca&sslrootcert=@ca.pem", true),
        ("sslmode=require&sslrootcert=@ca.pem", true),
        // Any server is trusted; a snapshot is not found on another server.
        ("sslmode=require", false),
    ] {
        let parameters = made.filled(parameters);
        let address = format!("postgres://admin@localhost:{here}/postgres?{parameters}");
        answers.store(port(&server), Ordering::Relaxed);
        let mut tell = |_: &str, _: u64, _: Option<u64>| true;
        let mut source = PostgresSource::open(&address, &mut tell).unwrap();
        let dir = tempfile::tempdir().unwrap();
        answers.store(port(&stranger), Ordering::Relaxed);
        let held = HeldDir::hold(dir.path()).unwrap();
        let error = source.dump_schema(&held).unwrap_err().to_string();
        let is_about_certificate = error.contains("certificate verify failed");
        assert_eq!(is_about_certificate, is_refused, "{parameters}: {error}");
        answers.store(port(&server), Ordering::Relaxed);
        source.dump_schema(&held).unwrap();
        let text = std::fs::read_to_string(dir.path().join("schema-before.sql")).unwrap();
        assert!(
            text.starts_with("\\restrict ") && text.contains("CREATE TABLE public.t"),
            "{text}"
        );
    }
}
