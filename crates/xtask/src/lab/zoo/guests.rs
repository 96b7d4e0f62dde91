//! Set-ups that need a kernel of their own: stacks of devices, zones, nodes and clocks, in a
//! machine that QEMU emulates. Its speed is that of an emulation, so only ratios mean something.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use blockstone_base::Bytes;
use blockstone_testkit::{Guest, GuestDisk, Hardware, Power};
use serde_json::Value;

use super::Setup;
use super::setups::{deceptive, flushes, honest};
use crate::lab::measure::Product;
use crate::lab::power_cut::await_within;

const PATIENCE: Duration = Duration::from_mins(5);
const BOOTS: usize = 3;
/// Larger than the cache that a single disk is assumed to have.
const FILLED: Bytes = Bytes::mib(320);
const VOLUME: Bytes = Bytes::gib(100);
/// Has rates that an emulated machine reaches on a busy host.
const SMALL_VOLUME: Bytes = Bytes::gib(30);

/// A machine and what it does.
struct Machine {
    hardware: Hardware<'static>,
    size: Bytes,
    /// Shell commands before the measurement.
    prepare: &'static str,
    /// The same, after these.
    then: &'static str,
    /// Command before the program's name.
    under: &'static str,
    /// Arguments of `calibrate`.
    words: &'static str,
}

const ONE_NVME: Machine = Machine {
    hardware: Hardware { devices: "-device nvme,drive=disk,serial=1", drive: "" },
    size: FILLED,
    prepare: "",
    then: "",
    under: "",
    words: "--quick --read-only $DISK",
};

const TWO_DISKS: &str = "-device virtio-scsi-pci -device scsi-hd,drive=disk,serial=1,wwn=0x5000 \
     -drive file=DIR/second,format=raw,if=none,id=second,cache=none \
     -device scsi-hd,drive=second";

/// One disk at two addresses of a controller.
const TWO_PATHS: &str = "-device virtio-scsi-pci \
     -drive file=DIR/backing,format=raw,if=none,id=other,cache=none,file.locking=off \
     -device scsi-hd,drive=disk,serial=1,share-rw=on \
     -device scsi-hd,drive=other,serial=1,share-rw=on";

const NVME_PATHS: &str = "-device nvme-subsys,id=paths -device nvme,id=one,serial=1,subsys=paths \
     -device nvme,id=two,serial=1,subsys=paths -device nvme-ns,drive=disk,bus=one,shared=on";

/// The disk is at node 1, as is the second processor.
const TWO_NODES: &str = "-object memory-backend-ram,id=near,size=512M \
     -object memory-backend-ram,id=far,size=512M -numa node,nodeid=0,cpus=0,memdev=near \
     -numa node,nodeid=1,cpus=1,memdev=far -device pxb-pcie,id=remote,bus_nr=64,numa_node=1 \
     -device pcie-root-port,id=remote1,bus=remote,chassis=1 \
     -device nvme,drive=disk,serial=1,bus=remote1";

const HOT: &str = "-device nvme,drive=disk,serial=1,smart_critical_warning=2";
const AWS: &str = "-smbios 'type=1,manufacturer=Amazon EC2,product=m5.large' \
     -device nvme,drive=disk,serial=1";
const AZURE: &str = "-smbios type=3,asset=7783-7084-3265-9085-8269-3286-77 \
     -device virtio-scsi-pci -device scsi-hd,drive=disk,vendor=Msft,product='Virtual Disk'";
const GOOGLE: &str = "-smbios type=1,manufacturer=Google,product='Google Compute Engine' \
     -device virtio-scsi-pci -device scsi-hd,drive=disk,vendor=Google,product=PersistentDisk";

/// An array without metadata, of the two disks.
const MIRROR: &str = "load_storage
    sleep 1
    echo md0 >/sys/module/md_mod/parameters/new_array
    cd /sys/block/md0/md
    echo raid1 >level
    echo none >metadata_version
    echo 2 >raid_disks
    for disk in sda sdb; do
        cat /sys/block/$disk/dev >new_dev
        echo 0 >dev-$disk/offset
        echo 327680 >dev-$disk/size
    done
    echo 327680 >component_size
    echo none >resync_start
    echo 0 >dev-sda/slot
    echo 1 >dev-sdb/slot
    echo active >array_state
    cd /
";

const MULTIPATH: &str = "load_storage
    sleep 1
    mkdir -p /run /dev/mapper
    dmsetup create paths --uuid mpath-1 --table \
        '0 655360 multipath 0 0 1 1 round-robin 0 2 1 8:0 1000 8:16 1000'
    dmsetup mknodes
";

pub(super) const ALL: &[Setup] = &[
    honest("an NVMe disk of a machine", |it| ONE_NVME.measure(it)),
    deceptive("a mirror without a disk", &["raid-degraded"], |it| {
        let machine = mirror("echo faulty >/sys/block/md0/md/dev-sdb/state");
        machine.measure(it)
    }),
    honest("a mirror with both disks", |it| mirror("").measure(it)),
    deceptive("an NVMe disk that lost a path", &["multipath-leg"], |it| {
        nvme_paths("echo 1 >/sys/class/nvme/nvme1/device/remove; sleep 1").measure(it)
    }),
    honest("an NVMe disk with two paths", |it| nvme_paths("").measure(it)),
    deceptive("a multipath disk with a path offline", &["multipath-leg"], |it| {
        multipath("echo offline >/sys/block/sdb/device/state").measure(it)
    }),
    honest("a multipath disk with two paths", |it| multipath("").measure(it)),
    deceptive("a clock that is set meanwhile", &["clock-step"], |it| {
        let prepare = "(sleep 8; date -s @$(($(date +%s) + 3600))) >/dev/null &";
        Machine { prepare, ..ONE_NVME }.measure(it)
    }),
    honest("a clock that was set before", |it| {
        let prepare = "date -s @$(($(date +%s) + 3600)) >/dev/null";
        Machine { prepare, ..ONE_NVME }.measure(it)
    }),
    deceptive("processors of another node", &["device-locality"], |it| {
        Machine { under: "taskset 1", ..on(TWO_NODES) }.measure(it)
    }),
    honest("processors of the disk's node", |it| {
        Machine { under: "taskset 2", ..on(TWO_NODES) }.measure(it)
    }),
    deceptive("a drive that is hot", &["drive-throttled"], |it| on(HOT).measure(it)),
    deceptive("a disk with zones", &["shingled"], |it| {
        let prepare = "load_storage
            insmod /storage/*-scsi_debug dev_size_mb=320 zbc=aware zone_size_mb=16 delay=0
            sleep 1";
        Machine { prepare, words: "--quick --read-only /dev/sda", ..ONE_NVME }.measure(it)
    }),
    deceptive("a cache that the kernel does not flush", &["lying-flush"], |it| {
        written("echo write through >/sys/block/nvme0n1/queue/write_cache").measure(it)
    }),
    flushes("a cache that the kernel flushes", |it| written("").measure(it)),
    deceptive("a disk that fails now and then", &["io-errors"], |it| {
        let prepare = "load_storage
            mkdir -p /run /dev/mapper
            dmsetup create flaky --table '0 655360 flakey /dev/nvme0n1 0 3 1'
            dmsetup mknodes";
        Machine { prepare, words: "--quick --read-only /dev/dm-0", ..ONE_NVME }.measure(it)
    }),
    deceptive("a volume of AWS at its rate", &["cloud-volume"], |it| {
        volume(AWS, "--read-only $DISK", ",throttling.iops-total=300").measure(it)
    }),
    honest("a volume of AWS below its rate", |it| on(AWS).measure(it)),
    deceptive("a volume of Azure at its rate", &["cloud-volume"], |it| {
        scsi_volume(AZURE, ",throttling.iops-total=120").measure(it)
    }),
    deceptive("a volume of Google at its rate", &["cloud-volume"], |it| {
        scsi_volume(GOOGLE, ",throttling.iops-total=180").measure(it)
    }),
];

const fn on(devices: &'static str) -> Machine {
    Machine { hardware: Hardware { devices, drive: "" }, ..ONE_NVME }
}

/// A disk that is emptied and then written to.
const fn written(then: &'static str) -> Machine {
    let prepare = "dd if=/dev/zero of=$DISK bs=1M 2>/dev/null; sync";
    Machine { prepare, then, words: "--quick $DISK --destroy $DISK", ..ONE_NVME }
}

const fn volume(devices: &'static str, words: &'static str, drive: &'static str) -> Machine {
    Machine { hardware: Hardware { devices, drive }, size: VOLUME, words, ..ONE_NVME }
}

const fn scsi_volume(devices: &'static str, drive: &'static str) -> Machine {
    let words = "--read-only /dev/sda";
    let (prepare, size) = ("load_storage; sleep 1", SMALL_VOLUME);
    Machine { size, prepare, ..volume(devices, words, drive) }
}

fn mirror(then: &'static str) -> Machine {
    Machine { prepare: MIRROR, then, words: "--quick --read-only /dev/md0", ..on(TWO_DISKS) }
}

fn nvme_paths(then: &'static str) -> Machine {
    // Its number is that of the subsystem.
    Machine { then, words: "--quick --read-only /dev/nvme?n1", ..on(NVME_PATHS) }
}

fn multipath(then: &'static str) -> Machine {
    Machine { prepare: MULTIPATH, then, words: "--quick --read-only /dev/dm-0", ..on(TWO_PATHS) }
}

impl Machine {
    fn measure(&self, product: &Product<'_>) -> Result<Value> {
        let Self { hardware, size, prepare, then, under, words } = self;
        let guest = Guest::create_with(*size, GuestDisk::Image, *hardware)?;
        fill(&guest.backing())?;
        if hardware.devices.contains("DIR/second") {
            fs::copy(guest.backing(), guest.file("second")).context("copy the disk")?;
        }
        let job = format!(
            "{prepare}\n{then}\n\
             {under} blockstone calibrate --json --quiet {words} >/answers 2>/said || \
             cat /said\n"
        );
        let tools = ["/usr/sbin/dmsetup"].map(Path::new);
        let tools = tools.into_iter().filter(|tool| tool.exists());
        guest.install(&job, &[product.binary()].into_iter().chain(tools).collect::<Vec<_>>())?;
        // On a busy host, a kernel may find that its timer does not work, and panic.
        for _ in 0..BOOTS {
            guest.power(Power::On)?;
            let over = await_within(PATIENCE, || !guest.runs());
            over.with_context(|| format!("wait for the machine:\n{}", guest.console()))?;
            if !guest.answers().is_empty() {
                break;
            }
        }
        serde_json::from_str(&guest.answers())
            .with_context(|| format!("understand what the machine answered:\n{}", guest.console()))
    }
}

/// Writes random data at the start of a file, as much as is measured.
fn fill(path: &Path) -> Result<()> {
    let source = File::open("/dev/urandom").context("open a source of random bytes")?;
    let mut file = fs::OpenOptions::new().write(true).open(path).context("open the disk")?;
    io::copy(&mut source.take(FILLED.get()), &mut file).context("fill the disk")?;
    file.sync_all().context("sync the disk")
}
