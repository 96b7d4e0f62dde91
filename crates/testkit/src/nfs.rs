//! An NFS server for tests: nfs-ganesha, which runs in user space and needs no server in the
//! kernel.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::TestkitError;
use crate::file::ScratchDir;
use crate::postgres_server::free_port;

const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// Version 4 needs no other services. There is no grace period: no client has locks to reclaim from
/// an earlier server.
const SETTINGS: &str = "\
NFS_CORE_PARAM {
    Protocols = 4; NFS_Port = @PORT@; Bind_addr = 127.0.0.1;
    Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; fsid_device = true;
}
NFSv4 {
    Minor_Versions = 0, 1, 2; Only_Numeric_Owners = true; Graceless = true;
    RecoveryBackend = fs; RecoveryRoot = \"@DIR@/recovery\";
}
NFS_KRB5 { Active_krb5 = false; }
EXPORT {
    Export_Id = 1; Path = \"@DIR@/exported\"; Pseudo = \"/export\";
    Access_Type = RW; Squash = No_Root_Squash; SecType = sys; Transports = TCP; Protocols = 4;
    FSAL { Name = VFS; }
}
";

/// A server on its own loopback port that exports an empty directory as /export; dropping it stops
/// it and removes its files.
#[derive(Debug)]
pub struct NfsServer {
    server: Child,
    port: u16,
    dir: ScratchDir,
}

impl NfsServer {
    pub fn start() -> Result<Self, TestkitError> {
        let dir = ScratchDir::on_disk()?;
        let port = free_port(dir.path())?;
        for name in ["exported", "recovery"] {
            let path = dir.path().join(name);
            fs::create_dir(&path).map_err(TestkitError::file("create", &path))?;
        }
        let settings = dir.path().join("settings");
        fs::write(&settings, settings_of(dir.path(), port))
            .map_err(TestkitError::file("write", &settings))?;
        let server = Path::new("ganesha.nfsd");
        // The kernel ends the server when the thread that started it exits.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig=KILL", "--"]).arg(server).args(["-F", "-N", "NIV_EVENT", "-f"]);
        command.arg(&settings).arg("-L").arg(dir.path().join("log"));
        command.arg("-p").arg(dir.path().join("pid")).current_dir(dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = command.spawn().map_err(TestkitError::file("start", server))?;
        let mut started = Self { server, port, dir };
        started.must_answer()?;
        Ok(started)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path of the exported directory on the host.
    pub fn exported(&self) -> PathBuf {
        self.dir.path().join("exported")
    }

    /// Returns the log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn must_answer(&mut self) -> Result<(), TestkitError> {
        let until = Instant::now() + ANSWERS_WITHIN;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let has_ended = matches!(self.server.try_wait(), Ok(Some(_)));
            if has_ended || Instant::now() > until {
                let (command, message) = ("ganesha.nfsd".to_owned(), self.log());
                return Err(TestkitError::Tool { command, message });
            }
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for NfsServer {
    fn drop(&mut self) {
        // Both calls fail only if the server has already exited.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn settings_of(dir: &Path, port: u16) -> String {
    SETTINGS.replace("@PORT@", &port.to_string()).replace("@DIR@", &dir.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::require;

    #[test]
    fn settings_name_the_port_and_the_directory() {
        let settings = settings_of(Path::new("/var/tmp/7"), 34_049);
        assert!(settings.contains("NFS_Port = 34049;"), "{settings}");
        assert!(settings.contains("Path = \"/var/tmp/7/exported\";"), "{settings}");
        assert!(settings.contains("\nEXPORT {") && !settings.contains('@'), "{settings}");
    }

    #[test]
    fn a_server_answers_until_it_is_dropped() {
        require!(Ganesha);
        let server = NfsServer::start().unwrap();
        let port = server.port();
        assert!(server.exported().is_dir());
        drop(server);
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    }
}
