//! A block device with a volatile write cache whose power can be cut: nbdkit's cache filter over a
//! file, presented as a file by nbdfuse, below a loop device. Killing nbdkit loses the cache.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use blockstone_base::Bytes;

use crate::error::TestkitError;
use crate::faulty::{self, Fault, Request};
use crate::lease::{self, DISK_ROOT, Lease, retry};
use crate::tool::tool;

const START_WITHIN: Duration = Duration::from_mins(1);
const SOCKET: &str = "socket";

/// How the device handles a flush request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCache {
    /// Writes back everything cached, as it should.
    Honest,
    /// Does nothing, but reports success.
    Lying,
    /// Does nothing, because each write was written back before it returned.
    Through,
    /// Handled by a disk with this fault in this process, not by nbdkit.
    Own(Fault),
}

enum Served {
    ByNbdkit(&'static str),
    Here(Fault),
}

impl WriteCache {
    const fn served(self) -> Served {
        match self {
            Self::Honest => Served::ByNbdkit("cache=writeback"),
            Self::Lying => Served::ByNbdkit("cache=unsafe"),
            Self::Through => Served::ByNbdkit("cache=writethrough"),
            Self::Own(fault) => Served::Here(fault),
        }
    }
}

#[derive(Debug)]
enum Server {
    Nbdkit(Child),
    Here(faulty::Server),
}

impl Server {
    fn end(self) -> io::Result<()> {
        match self {
            Self::Nbdkit(mut child) => child.kill().and_then(|()| child.wait()).map(drop),
            Self::Here(server) => {
                drop(server);
                Ok(())
            }
        }
    }
}

/// The device; removed when it goes out of scope.
#[derive(Debug)]
pub struct VolatileDevice {
    cache: WriteCache,
    watched: Option<PathBuf>,
    /// Limit of each direction.
    bytes_per_s: Option<u64>,
    powered: Option<Powered>,
    lease: Lease,
}

#[derive(Debug)]
struct Powered {
    server: Server,
    file_system: Child,
    device: PathBuf,
}

impl VolatileDevice {
    /// Creates a device of `size` bytes with an honest cache. It holds zeros and is on.
    pub fn create(size: Bytes) -> Result<Self, TestkitError> {
        Self::with_cache(size, WriteCache::Honest)
    }

    /// Creates a device of `size` bytes with this cache. It holds zeros and is on.
    pub fn with_cache(size: Bytes, cache: WriteCache) -> Result<Self, TestkitError> {
        Self::set_up(size, cache, None, None)
    }

    /// Creates a device of `size` without a cache that moves at most this many bytes per second in
    /// each direction. The limit also applies to writeback by the kernel, on which
    /// [`Caps`](crate::Caps) have no effect.
    pub fn limited(size: Bytes, bytes_per_s: u64) -> Result<Self, TestkitError> {
        Self::set_up(size, WriteCache::Through, None, Some(bytes_per_s))
    }

    /// Creates an honest device that records all requests, with the size of the `watched` file at
    /// each flush.
    pub fn watching(size: Bytes, watched: &Path) -> Result<Self, TestkitError> {
        Self::set_up(size, WriteCache::Own(Fault::None), Some(watched.to_owned()), None)
    }

    fn set_up(
        size: Bytes,
        cache: WriteCache,
        watched: Option<PathBuf>,
        bytes_per_s: Option<u64>,
    ) -> Result<Self, TestkitError> {
        let lease = Lease::acquire(Path::new(DISK_ROOT))?;
        for (name, bytes) in [(lease::BACKING, size.get()), (lease::SERVED, 0)] {
            let path = lease.dir().join(name);
            let made = File::create(&path).and_then(|file| file.set_len(bytes));
            made.map_err(TestkitError::file("create", &path))?;
        }
        let mut device = Self { cache, watched, bytes_per_s, powered: None, lease };
        device.power_on()?;
        Ok(device)
    }

    /// Returns the path of the device while it is on.
    pub fn device(&self) -> Option<&Path> {
        self.powered.as_ref().map(|powered| powered.device.as_path())
    }

    /// Returns the requests to a [watching](Self::watching) device since it was turned on.
    pub fn requests(&self) -> Vec<Request> {
        match self.powered.as_ref().map(|powered| &powered.server) {
            Some(Server::Here(server)) => server.requests(),
            _ => Vec::new(),
        }
    }

    /// Cuts the power: the cache is lost, and every request fails. `leave` must then release the
    /// device, as a machine without power does.
    pub fn cut_under(&mut self, leave: &mut dyn FnMut()) -> Result<(), TestkitError> {
        let Some(mut powered) = self.powered.take() else { return Ok(()) };
        powered.server.end().map_err(TestkitError::file("end the server of", &powered.device))?;
        leave();
        let served = self.lease.dir().join(lease::SERVED);
        retry(|| tool("losetup", &["--detach".as_ref(), powered.device.as_os_str()]).map(drop))?;
        // Detaching takes effect when the last user closes the device.
        wait_until(|| Ok(lease::loops_over(&served)?.is_empty()), &powered.device)?;
        retry(|| tool("umount", &[served.as_os_str()]).map(drop))?;
        powered.file_system.wait().map_err(TestkitError::file("wait for", &served))?;
        Ok(())
    }

    /// Sets the cache to use from the next time the device is turned on.
    pub fn set_write_cache(&mut self, cache: WriteCache) {
        self.cache = cache;
    }

    /// Turns the power on again, over the data that were written back.
    pub fn power_on(&mut self) -> Result<(), TestkitError> {
        let dir = self.lease.dir();
        let (backing, shown) = (dir.join(lease::BACKING), dir.join(lease::SERVED));
        let socket = dir.join(SOCKET);
        let _ = std::fs::remove_file(&socket);
        let words = ["--foreground", "--exit-with-parent", "--filter=cache"];
        let server = match self.cache.served() {
            Served::ByNbdkit(option) => {
                let mut nbdkit = Command::new("nbdkit");
                nbdkit.args(words).args(self.bytes_per_s.map(|_| "--filter=rate"));
                nbdkit.arg("--unix").arg(&socket).arg("file").arg(&backing).arg(option);
                nbdkit.args(self.bytes_per_s.map(|bytes| format!("rate={}", 8 * bytes)));
                Server::Nbdkit(start(&mut nbdkit)?)
            }
            Served::Here(fault) => {
                let watched = self.watched.clone();
                Server::Here(faulty::Server::start((&backing, &socket), fault, watched)?)
            }
        };
        let mut uri = std::ffi::OsString::from("nbd+unix:///?socket=");
        uri.push(&socket);
        let started = wait_until(|| Ok(socket.exists()), &socket)
            .and_then(|()| start(Command::new("nbdfuse").arg(&shown).arg(uri)))
            .and_then(|file_system| {
                wait_until(|| lease::is_mounted(&shown), &shown)?;
                let words = ["--find", "--show", "--direct-io=on"].map(OsStr::new);
                let device = tool("losetup", &[&words[..], &[shown.as_os_str()]].concat())?;
                Ok((file_system, PathBuf::from(device)))
            });
        match started {
            Ok((file_system, device)) => {
                self.powered = Some(Powered { server, file_system, device });
                Ok(())
            }
            Err(error) => {
                let _ = server.end();
                Err(error)
            }
        }
    }
}

impl Drop for VolatileDevice {
    fn drop(&mut self) {
        // The lease retries whatever fails here.
        let _ = self.cut_under(&mut || {});
    }
}

fn start(command: &mut Command) -> Result<Child, TestkitError> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let program = PathBuf::from(quiet.get_program());
    quiet.spawn().map_err(TestkitError::file("start", &program))
}

fn wait_until(
    done: impl Fn() -> Result<bool, TestkitError>,
    what: &Path,
) -> Result<(), TestkitError> {
    let deadline = Instant::now() + START_WITHIN;
    while !done()? {
        if Instant::now() > deadline {
            return Err(TestkitError::file("wait for", what)(io::ErrorKind::TimedOut.into()));
        }
        sleep(Duration::from_millis(5));
    }
    Ok(())
}
