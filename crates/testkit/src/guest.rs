//! A virtual machine whose power can be cut: QEMU with Debian's own kernel and one `NVMe` disk with
//! a volatile write cache, provided by nbdkit or by a faulty disk in this process. It uses pure
//! emulation, so it also runs inside another virtual machine. A script switches it on and off for
//! programs that cut the power.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use blockstone_base::Bytes;

use crate::error::TestkitError;
use crate::faulty::{Fault, Server};
use crate::lease::{self, DISK_ROOT, Lease};
use crate::tool::tool;

/// Debian packages to unpack into [`guest_home`]. The kernel is a dependency of the first; it is
/// unpacked rather than installed, because it does not belong in this machine's /boot.
pub const GUEST_KERNEL: &str = "linux-image-cloud-amd64";
pub const GUEST_PROGRAMS: &str = "busybox-static";

/// Returns the directory into which the packages are unpacked.
pub fn guest_home() -> PathBuf {
    PathBuf::from("/var/tmp/blockstone-guest")
}

/// Modules for the network to the host, relative to the kernel's module directory, in load order.
/// The disk's driver is built into the kernel.
const MODULES: [&str; 8] = [
    "drivers/virtio/virtio_ring.ko",
    "drivers/virtio/virtio.ko",
    "drivers/virtio/virtio_pci_legacy_dev.ko",
    "drivers/virtio/virtio_pci_modern_dev.ko",
    "drivers/virtio/virtio_pci.ko",
    "net/core/failover.ko",
    "drivers/net/net_failover.ko",
    "drivers/net/virtio_net.ko",
];

/// Modules of the NFS client, loaded by jobs that mount NFS.
const NFS_MODULES: [&str; 10] = [
    "net/sunrpc/sunrpc.ko",
    "fs/nfs_common/grace.ko",
    "fs/lockd/lockd.ko",
    "fs/netfs/netfs.ko",
    "fs/fscache/fscache.ko",
    "fs/nfs/nfs.ko",
    "fs/nfs_common/nfs_acl.ko",
    "fs/nfs/nfsv3.ko",
    "net/dns_resolver/dns_resolver.ko",
    "fs/nfs/nfsv4.ko",
];

/// Modules of the NFS server, loaded by jobs that serve NFS, after the client's.
const SERVER_MODULES: [&str; 2] = ["net/sunrpc/auth_gss/auth_rpcgss.ko", "fs/nfsd/nfsd.ko"];

/// Modules of SCSI disks, Linux RAID and device mapper, loaded by jobs that stack devices.
const STORAGE_MODULES: [&str; 11] = [
    "drivers/scsi/scsi_common.ko",
    "drivers/scsi/scsi_mod.ko",
    "drivers/scsi/sd_mod.ko",
    "drivers/scsi/virtio_scsi.ko",
    "drivers/scsi/scsi_debug.ko",
    "drivers/md/md-mod.ko",
    "drivers/md/raid1.ko",
    "drivers/md/dm-mod.ko",
    "drivers/md/dm-flakey.ko",
    "drivers/md/dm-multipath.ko",
    "drivers/md/dm-round-robin.ko",
];

const KERNEL: &str = "kernel";
const MEMORY: &str = "memory";
const JOB: &str = "job";
const ANSWERS: &str = "answers";
const CONSOLE: &str = "console";
const POWER: &str = "power";
const REQUESTS: &str = "requests";

/// The guest's init program. QEMU's user network has the host at 10.0.2.2. There is no mount.nfs to
/// look up addresses, so the kernel is given them. There is no mountd to answer what the kernel's
/// server exports, so its caches are filled in advance: one directory, the root (`fsid=0`,
/// `insecure`, `no_subtree_check`).
const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOST=10.0.2.2 DISK=/dev/nvme0n1 NO_COLOR=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
load() {
    for module in /$1/*; do insmod $module; done
}
mount_nfs() {
    [ -d /sys/module/nfsv4 ] || load nfs
    mkdir -p $1
    from=${4:-$HOST:/export}
    mount -t nfs -o vers=4.1,port=$2,addr=${from%%:*},clientaddr=10.0.2.15,$3 $from $1
}
serve_nfs() {
    [ -d /sys/module/nfsv4 ] || load nfs
    load nfsd
    mkdir -p /var/lib/nfs/v4recovery
    mount -t nfsd nfsd /proc/fs/nfsd
    echo "nfsd 127.0.0.1 2147483647 guest" >/proc/net/rpc/auth.unix.ip/channel
    echo "guest $1 2147483647 9218 65534 65534 0" >/proc/net/rpc/nfsd.export/channel
    echo "guest 1 \\x00000000 2147483647 $1" >/proc/net/rpc/nfsd.fh/channel
    cd /proc/fs/nfsd
    echo "-3 +4 +4.0 +4.1 +4.2" >versions
    echo "tcp 2049" >portlist
    echo 4 >threads
    echo Y >v4_end_grace
    cd /
}
# Loads what stacks devices. The module scsi_debug, which makes disks in memory, waits for its
# options.
load_storage() {
    for module in /storage/*; do
        case $module in *scsi_debug) ;; *) insmod $module ;; esac
    done
}
load modules
hostname guest
ip link set lo up
ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up
stty -F /dev/ttyS1 raw
ln -s /dev/ttyS1 /answers
. /job
poweroff -f
"#;

/// A timeout ends machine and disk, whatever happens to the processes that started them.
const SCRIPT: &str = r#"#!/bin/sh
# on; off: the machine and its disk at once; cycle: off and on; reset: the disk keeps its power.
cd 'DIR' || exit 1
start() {
    rm -f $1.pid
    pid=$1
    shift
    timeout 30m "$@" </dev/null >>log 2>&1 &
    for _ in $(seq 400); do
        [ -s $pid.pid ] && return
        sleep 0.05
    done
    exit 1
}
disk() {
    PROVIDE
}
machine() {
    start machine qemu-system-x86_64 -machine q35 -accel tcg -cpu max -smp 2 -m 1024 \
        -nodefaults -no-user-config -display none -no-reboot -pidfile 'DIR/machine.pid' \
        -kernel kernel -initrd memory \
        -append 'console=ttyS0 quiet panic=-1 random.trust_cpu=on' \
        -chardev file,id=console,path=console,append=on -serial chardev:console \
        -chardev file,id=answers,path=answers,append=on -serial chardev:answers \
        -netdev user,id=net -device virtio-net-pci,netdev=net \
        DRIVE \
        DEVICES
}
cut() {
    pids=$(cat "$@" 2>/dev/null)
    kill -9 $pids
    for pid in $pids; do
        while [ -e /proc/$pid ]; do sleep 0.02; done
    done
}
case $1 in
    on) disk; machine ;;
    off) cut machine.pid disk.pid ;;
    cycle) cut machine.pid disk.pid; disk; machine ;;
    reset) cut machine.pid; machine ;;
esac
"#;

/// QEMU's drive over the export of nbdkit.
const DRIVE: &str =
    "-drive 'file=nbd+unix:///?socket=DIR/socket,format=raw,if=none,id=disk,cache=writeback'";
/// The same with a log of all requests, which is never ahead of the requests it records.
const LOGGED: &str = "-blockdev driver=nbd,node-name=served,server.type=unix,\
server.path='DIR/socket' -blockdev driver=file,node-name=log,filename='DIR/requests' \
-blockdev driver=blklogwrites,node-name=disk,file=served,log=log";

/// QEMU's drive over the file itself, past the page cache of the host.
const IMAGE: &str = "-drive 'file=DIR/BACKING,format=raw,if=none,id=disk,cache=noneOPTIONS'";

/// The commands that start the disk if it is nbdkit.
const NBDKIT: &str = "rm -f socket
    start disk nbdkit --foreground --unix 'DIR/socket' --pidfile 'DIR/disk.pid' \
        --filter=cache file 'DIR/BACKING' cache=MODE";

/// How the disk handles a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestDisk {
    /// Writes back everything cached.
    Honest,
    /// Does nothing, because each write was written back before it returned.
    Through,
    /// Ignores it.
    IgnoresFlushes,
    /// Writes back everything cached, and logs all requests ([`Guest::requests`]).
    Logged,
    /// Passes it on to the disk of the host: the file is opened by QEMU itself, without nbdkit.
    Image,
    /// Handles it with this fault. The disk loses power whenever the machine does.
    Own(Fault),
}

impl GuestDisk {
    /// Returns the cache mode of nbdkit's filter.
    const fn mode(self) -> &'static str {
        match self {
            Self::Through => "writethrough",
            Self::IgnoresFlushes => "unsafe",
            Self::Honest | Self::Logged | Self::Image | Self::Own(_) => "writeback",
        }
    }
}

/// Actions of the power script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    On,
    /// Cuts the power of the machine and its disk at the same time.
    Off,
    /// Off, then on again.
    Cycle,
    /// Off, then on again, for the machine alone: its disk keeps its power.
    Reset,
}

impl Power {
    const fn word(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Cycle => "cycle",
            Self::Reset => "reset",
        }
    }
}

/// How the disk is attached.
#[derive(Clone, Copy, Debug)]
pub struct Hardware<'a> {
    /// Arguments of QEMU that attach the drive `disk`; `DIR` stands for the directory of
    /// [`Guest::file`].
    pub devices: &'a str,
    /// Options of the drive of [`GuestDisk::Image`], each after a comma, such as its caps.
    pub drive: &'a str,
}

impl Default for Hardware<'_> {
    fn default() -> Self {
        Self { devices: "-device nvme,drive=disk,serial=1", drive: "" }
    }
}

/// The virtual machine; removed when it goes out of scope.
#[derive(Debug)]
pub struct Guest {
    /// The disk, if it is not nbdkit.
    _disk: Option<Server>,
    lease: Lease,
}

impl Guest {
    /// Creates a machine that is off, with a disk of `size` bytes that holds zeros.
    pub fn create(size: Bytes, disk: GuestDisk) -> Result<Self, TestkitError> {
        Self::create_with(size, disk, Hardware::default())
    }

    /// Creates a machine that is off, with a disk of `size` bytes that holds zeros.
    pub fn create_with(
        size: Bytes,
        disk: GuestDisk,
        hardware: Hardware<'_>,
    ) -> Result<Self, TestkitError> {
        let lease = Lease::acquire(Path::new(DISK_ROOT))?;
        let (dir, backing) = (lease.dir(), lease.dir().join(lease::BACKING));
        let made = File::create(&backing).and_then(|file| file.set_len(size.get()));
        made.map_err(TestkitError::file("create", &backing))?;
        let cache = disk.mode();
        let drive = match disk {
            GuestDisk::Logged => LOGGED,
            GuestDisk::Image => IMAGE,
            _ => DRIVE,
        };
        let requests = dir.join(REQUESTS);
        File::create(&requests).map_err(TestkitError::file("create", &requests))?;
        let (disk, provide) = match disk {
            GuestDisk::Own(fault) => {
                (Some(Server::start((&backing, &dir.join("socket")), fault, None)?), ":")
            }
            GuestDisk::Image => (None, ":"),
            _ => (None, NBDKIT),
        };
        let script = SCRIPT
            .replace("PROVIDE", provide)
            .replace("DRIVE", drive)
            .replace("DEVICES", hardware.devices)
            .replace("OPTIONS", hardware.drive)
            .replace("MODE", cache)
            .replace("BACKING", lease::BACKING)
            .replace("DIR", &dir.to_string_lossy());
        write_program(&dir.join(POWER), &script)?;
        Ok(Self { _disk: disk, lease })
    }

    /// Returns the file that holds the contents of the medium.
    pub fn backing(&self) -> PathBuf {
        self.lease.dir().join(lease::BACKING)
    }

    /// Returns the path of a further file of this machine, which its hardware may use.
    pub fn file(&self, name: &str) -> PathBuf {
        self.lease.dir().join(name)
    }

    /// Returns the log of all requests to a logged disk, in the format of Linux's dm-log-writes.
    pub fn requests(&self) -> PathBuf {
        self.lease.dir().join(REQUESTS)
    }

    /// Installs the job that runs at each boot, before the machine turns itself off: commands for
    /// busybox's shell. They find the programs in the path, the host at `$HOST` and the disk at
    /// `$DISK`, and write to /answers what [`Guest::answers`] returns. `mount_nfs DIR PORT OPTIONS`
    /// mounts the export of a [`crate::NfsServer`]. `serve_nfs DIR` makes the guest's kernel serve
    /// a directory, which `mount_nfs DIR 2049 OPTIONS 127.0.0.1:/` mounts.
    pub fn install(&self, job: &str, programs: &[&Path]) -> Result<(), TestkitError> {
        let dir = self.lease.dir();
        let (home, root) = (guest_home(), dir.join("root"));
        let kernel = kernel(&home).ok_or_else(|| {
            TestkitError::file("find the kernel in", &home)(std::io::ErrorKind::NotFound.into())
        })?;
        for name in ["bin", "dev", "mnt", "modules", "nfs", "nfsd", "proc", "storage", "sys"] {
            let path = root.join(name);
            fs::create_dir_all(&path).map_err(TestkitError::file("create", &path))?;
        }
        copy(&kernel.image, &dir.join(KERNEL))?;
        let places = [
            ("modules", &MODULES[..]),
            ("nfs", &NFS_MODULES[..]),
            ("nfsd", &SERVER_MODULES[..]),
            ("storage", &STORAGE_MODULES[..]),
        ];
        for (place, modules) in places {
            for (number, module) in modules.iter().enumerate() {
                let module = kernel.modules.join(module);
                let name = module.file_stem().unwrap_or_default().to_string_lossy();
                copy(&module, &root.join(place).join(format!("{number:02}-{name}")))?;
            }
        }
        copy(&home.join("bin/busybox"), &root.join("bin/busybox"))?;
        for program in programs {
            let name = program.file_name().unwrap_or_default();
            copy(program, &root.join("bin").join(name))?;
            for library in libraries(program) {
                let to = root.join(library.strip_prefix("/").unwrap_or(&library));
                let dir = to.parent().unwrap_or(&root);
                fs::create_dir_all(dir).map_err(TestkitError::file("create", dir))?;
                copy(&library, &to)?;
            }
        }
        write_program(&root.join("init"), INIT)?;
        write_program(&root.join(JOB), job)?;
        let pack = "cd \"$1\" && find . | ./bin/busybox cpio -o -H newc >\"$2\"";
        let memory = dir.join(MEMORY);
        let words = ["-c", pack, "sh"].map(AsRef::as_ref);
        tool("sh", &[&words[..], &[root.as_os_str(), memory.as_os_str()]].concat())?;
        fs::remove_dir_all(&root).map_err(TestkitError::file("remove", &root))
    }

    /// Returns the shell command for this action.
    pub fn power_command(&self, power: Power) -> String {
        format!("{} {}", self.lease.dir().join(POWER).display(), power.word())
    }

    /// Performs the action.
    pub fn power(&self, power: Power) -> Result<(), TestkitError> {
        tool("sh", &["-c".as_ref(), self.power_command(power).as_ref()]).map(drop)
    }

    /// Whether the machine is still on.
    pub fn runs(&self) -> bool {
        self.lease.dir().join("machine.pid").exists()
    }

    /// Returns the answers of all boots.
    pub fn answers(&self) -> String {
        self.text(ANSWERS)
    }

    /// Returns the output of the console, and of the programs that emulate the machine.
    pub fn console(&self) -> String {
        format!("{}{}", self.text(CONSOLE), self.text("log"))
    }

    fn text(&self, name: &str) -> String {
        let bytes = fs::read(self.lease.dir().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\r', "")
    }
}

/// Returns what the program is linked with, if it is not static.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let listed = tool("ldd", &[program.as_os_str()]).unwrap_or_default();
    let words = listed.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).filter(|path| path != program).collect()
}

fn write_program(path: &Path, text: &str) -> Result<(), TestkitError> {
    let written = fs::write(path, text)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)));
    written.map_err(TestkitError::file("write", path))
}

fn copy(from: &Path, to: &Path) -> Result<(), TestkitError> {
    fs::copy(from, to).map(drop).map_err(TestkitError::file("copy", from))
}

struct Kernel {
    image: PathBuf,
    modules: PathBuf,
}

/// Finds the unpacked kernel.
fn kernel(home: &Path) -> Option<Kernel> {
    let mut entries = fs::read_dir(home.join("boot")).ok()?.filter_map(Result::ok);
    entries.find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let version = name.strip_prefix("vmlinuz-")?;
        let modules = home.join("lib/modules").join(version).join("kernel");
        Some(Kernel { image: entry.path(), modules })
    })
}

/// Checks that kernel, modules and busybox are unpacked; the error names what is missing.
pub(crate) fn unpacked() -> Result<(), String> {
    let home = guest_home();
    let missing = |what: &str| format!("no {what} of a guest is unpacked in {}", home.display());
    let kernel = kernel(&home).ok_or_else(|| missing("kernel"))?;
    let mut modules =
        MODULES.iter().chain(&NFS_MODULES).chain(&SERVER_MODULES).chain(&STORAGE_MODULES);
    let has_all = modules.all(|module| kernel.modules.join(module).is_file())
        && home.join("bin/busybox").is_file();
    if has_all { Ok(()) } else { Err(missing("modules and programs")) }
}
