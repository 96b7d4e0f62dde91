use blockstone_base::identity::DeviceKind;

use super::*;

#[test]
fn a_virtio_disk_with_the_file_system_on_it() {
    let tree = Tree::new();
    tree.disk(VDA, "254:0", 536_870_912)
        .mounts(&["23 27 0:22 / /sys rw,relatime - sysfs sysfs rw", ROOT_ON_VDA]);
    let target = describe(tree.root(), &directory("/work/data", (254, 0), 27));
    let file_system = target.file_system.as_ref().unwrap();
    assert_eq!(file_system.kind, "ext4");
    assert_eq!(file_system.options, "rw,discard,relatime,resuid=65534");
    assert_eq!(names(&target), ["vda"]);
    let vda = &target.devices[0];
    assert_eq!((vda.kind, vda.size_bytes), (DeviceKind::Disk, 256 << 30));
    assert_eq!(vda.scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!(vda.write_cache.as_deref(), Some("write back"));
    assert_eq!((vda.rotational, vda.queue_depth), (Some(true), Some(256)));
    assert_eq!((vda.logical_block_bytes, vda.physical_block_bytes), (512, 4096));
    assert_eq!(vda.max_request_bytes, Some(4 << 20));
    assert_eq!((vda.link.as_ref(), vda.model.as_ref()), (None, None));
    assert_eq!(target.direct_io.source, "statx STATX_DIOALIGN");
    assert!(target.direct_io.capability.is_full());
}

#[test]
fn lvm_over_encryption_over_raid_over_partitions() {
    let tree = Tree::new();
    let (a, b) =
        ("/sys/devices/pci0000:00/ata1/block/sda", "/sys/devices/pci0000:00/ata2/block/sdb");
    let (a1, b1) = (format!("{a}/sda1"), format!("{b}/sdb1"));
    let [md, crypt, lv] =
        ["md0", "dm-0", "dm-1"].map(|name| format!("/sys/devices/virtual/block/{name}"));
    tree.disk(a, "8:0", 2048)
        .disk(b, "8:16", 2048)
        .partition(&a1, "8:1", 1024)
        .partition(&b1, "8:17", 1024)
        .disk(&md, "9:0", 1000)
        .file(&format!("{md}/md/level"), "raid1")
        .disk(&crypt, "253:0", 990)
        .file(&format!("{crypt}/dm/name"), "secret")
        .file(&format!("{crypt}/dm/uuid"), "CRYPT-LUKS2-0123-secret")
        .disk(&lv, "253:1", 980)
        .file(&format!("{lv}/dm/name"), "vg-data")
        .file(&format!("{lv}/dm/uuid"), "LVM-abcdef")
        .stacked(&lv, &crypt)
        .stacked(&crypt, &md)
        .stacked(&md, &a1)
        .stacked(&md, &b1)
        .mounts(&["30 1 253:1 / /data rw - xfs /dev/mapper/vg-data rw,attr2"]);
    let target = describe(tree.root(), &directory("/data", (253, 1), 30));
    assert_eq!(names(&target), ["dm-1", "dm-0", "md0", "sda1", "sda", "sdb1", "sdb"]);
    let kinds: Vec<DeviceKind> = target.devices.iter().map(|device| device.kind).collect();
    assert_eq!(
        kinds[..4],
        [
            DeviceKind::DeviceMapper,
            DeviceKind::DeviceMapper,
            DeviceKind::Raid,
            DeviceKind::Partition,
        ]
    );
    let models: Vec<_> = target.devices.iter().map(|d| d.model.as_deref()).collect();
    assert_eq!(models[..3], [Some("LVM vg-data"), Some("CRYPT secret"), Some("raid1")]);
    assert_eq!(target.devices[2].beneath, ["sda1", "sdb1"]);
    // A partition shows the queue of its disk.
    assert_eq!(target.devices[3].scheduler.as_deref(), Some("mq-deadline"));

    tree.processes();
    let user = |major, minor| usage::user_of_number(tree.root(), (major, minor)).unwrap();
    for (major, minor) in [(8, 0), (8, 1), (9, 0), (253, 1)] {
        assert_eq!(user(major, minor).as_deref(), Some("mounted at /data"), "{major}:{minor}");
    }
    tree.mounts(&[ROOT_ON_VDA]);
    assert_eq!(user(253, 1), None);
    assert_eq!(user(8, 1).as_deref(), Some("part of md0"));
    assert_eq!(user(8, 0).as_deref(), Some("part of md0"), "through its partition");
    tree.file("/proc/swaps", "Filename Type Size Used Priority\n/dev/dm-1 partition 1 0 -2");
    assert_eq!(user(253, 1).as_deref(), Some("used as swap"));
}

#[test]
fn a_loop_device_over_a_file_leads_to_the_devices_of_that_file() {
    let tree = Tree::new();
    let inner = "/sys/devices/virtual/block/loop3";
    tree.disk(VDA, "254:0", 536_870_912)
        .disk(inner, "7:3", 2048)
        .file(&format!("{inner}/loop/backing_file"), "/var/tmp/image")
        .mounts(&[ROOT_ON_VDA, "40 27 7:3 / /mnt/image rw - xfs /dev/loop3 rw"]);
    let target = describe(tree.root(), &directory("/mnt/image", (7, 3), 40));
    assert_eq!(names(&target), ["loop3", "vda"]);
    assert_eq!(target.devices[0].kind, DeviceKind::Loop);
    assert_eq!(target.devices[0].beneath, ["/var/tmp/image"]);
    assert_eq!(target.devices[0].backing_file_system.as_deref(), Some("ext4"));

    let device =
        SurveyedPath { kind: PathKind::BlockDevice, ..directory("/dev/loop3", (7, 3), 24) };
    let target = describe(tree.root(), &device);
    assert_eq!(names(&target), ["loop3", "vda"]);
    assert_eq!((target.file_system, target.free_bytes), (None, 1 << 20));
}

#[test]
fn a_loop_device_over_a_file_on_itself_ends() {
    let tree = Tree::new();
    let inner = "/sys/devices/virtual/block/loop3";
    tree.disk(inner, "7:3", 2048)
        .file(&format!("{inner}/loop/backing_file"), "/mnt/image/file")
        .mounts(&["40 27 7:3 / /mnt/image rw - xfs /dev/loop3 rw"]);
    assert_eq!(names(&describe(tree.root(), &directory("/mnt/image", (7, 3), 40))), ["loop3"]);
}

#[test]
fn btrfs_has_a_number_of_its_own_and_several_devices() {
    let tree = Tree::new();
    let (a, b) = ("/sys/devices/pci0000:00/block/sda", "/sys/devices/pci0000:00/block/sdb");
    tree.disk(a, "8:0", 2048)
        .disk(b, "8:16", 2048)
        .link("/sys/fs/btrfs/1b2c/devices/sda", a)
        .link("/sys/fs/btrfs/1b2c/devices/sdb", b)
        .file("/sys/fs/btrfs/features/raid56", "0")
        .mounts(&[
            ROOT_ON_VDA,
            "50 27 0:44 /@data /srv rw - btrfs /dev/sda rw,compress=zstd:3,subvol=/@data",
        ]);
    // A file in a subvolume has an st_dev that no mount shows, and a kernel before 5.8 no mount id.
    let place = SurveyedPath { mount_id: None, ..directory("/srv/pg", (0, 45), 0) };
    let target = describe(tree.root(), &place);
    assert_eq!(names(&target), ["sda", "sdb"]);
    let options = target.file_system.unwrap().options;
    assert!(options.contains("compress=zstd:3"), "{options}");
}

#[test]
fn an_overlay_writes_to_its_upper_layer() {
    let tree = Tree::new();
    let overlay = "60 27 0:50 / /merged rw - overlay overlay \
                   rw,lowerdir=/l1:/l2,upperdir=/disk/upper,workdir=/disk/work";
    tree.disk(VDA, "254:0", 2048).mounts(&["28 27 254:0 / /disk rw - ext4 /dev/vda rw", overlay]);
    let database = directory("/merged/db", (0, 50), 60);
    assert_eq!(names(&describe(tree.root(), &database)), ["vda"]);
    let layer = upper_layer_of(tree.root(), &database).unwrap();
    assert_eq!((layer.path, &*layer.file_system), (PathBuf::from("/disk/upper/db"), "ext4"));
    assert_eq!(upper_layer_of(tree.root(), &directory("/disk/db", (254, 0), 28)), None);
    // A part of it, bound to another mount point.
    let bound = "61 27 0:50 /db /bound rw - overlay overlay rw,lowerdir=/l,upperdir=/disk/upper";
    tree.mounts(&["28 27 254:0 / /disk rw - ext4 /dev/vda rw", bound]);
    let layer = upper_layer_of(tree.root(), &directory("/bound/x", (0, 50), 61)).unwrap();
    assert_eq!(layer.path, Path::new("/disk/upper/db/x"));
}

#[test]
fn an_overlay_whose_upper_layer_is_in_memory_is_memory() {
    let tree = Tree::new();
    let overlay = "60 27 0:50 / /merged rw - overlay overlay rw,lowerdir=/l,upperdir=/fast/upper";
    tree.mounts(&["28 27 0:44 / /fast rw - tmpfs tmpfs rw", overlay]);
    let target = describe(tree.root(), &directory("/merged/db", (0, 50), 60));
    assert_eq!(target.is_memory().as_deref(), Some("overlay on tmpfs"));
    assert!(matches!(target.direct_io.capability, Capability::Degraded { .. }));
    // An overlay of an overlay.
    let over = "61 27 0:51 / /twice rw - overlay overlay rw,lowerdir=/l,upperdir=/merged/upper";
    tree.mounts(&["28 27 0:44 / /fast rw - tmpfs tmpfs rw", overlay, over]);
    let target = describe(tree.root(), &directory("/twice/db", (0, 51), 61));
    assert_eq!(target.is_memory().as_deref(), Some("overlay on tmpfs"));
}

#[test]
fn a_container_whose_layers_are_out_of_sight_has_no_devices() {
    let tree = Tree::new();
    tree.disk(VDA, "254:0", 2048).mounts(&[
        "60 1 0:50 / / rw - overlay overlay rw,lowerdir=/var/lib/l,upperdir=/var/lib/u,workdir=/w",
    ]);
    let target = describe(tree.root(), &directory("/data", (0, 50), 60));
    assert_eq!(names(&target), Vec::<&str>::new());
    assert_eq!(target.file_system.unwrap().kind, "overlay");
}

#[test]
fn tmpfs_is_memory_whatever_it_accepts() {
    let tree = Tree::new();
    tree.mounts(&["30 25 0:27 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=24684092k"]);
    let target = describe(tree.root(), &directory("/dev/shm", (0, 27), 30));
    assert!(target.devices.is_empty());
    let Capability::Degraded { why } = target.direct_io.capability else { panic!("not degraded") };
    assert!(why.contains("tmpfs keeps files in memory"), "{why}");
}

#[test]
fn xfs_with_its_log_elsewhere_lies_on_both_devices() {
    let tree = Tree::new();
    tree.disk("/sys/devices/pci0000:00/block/sda", "8:0", 2048)
        .disk("/sys/devices/pci0000:00/block/sdb", "8:16", 2048)
        .mounts(&["30 1 8:0 / /data rw - xfs /dev/sda rw,logdev=/dev/sdb,noquota"]);
    assert_eq!(names(&describe(tree.root(), &directory("/data", (8, 0), 30))), ["sda", "sdb"]);
}

#[test]
fn without_a_mount_id_the_deepest_mount_of_the_device_counts() {
    let tree = Tree::new();
    tree.mounts(&[
        ROOT_ON_VDA,
        "41 27 8:1 / /my\\040data rw - ext4 /dev/sda1 rw",
        "42 41 8:2 / /my\\040data/deep rw - ext4 /dev/sda2 rw",
        "43 27 8:1 /sub /my\\040data/deep ro - ext4 /dev/sda1 rw",
    ]);
    let mounts = Mounts::read(tree.root());
    let holding = |device, path: &str| mounts.holding(None, device, Path::new(path)).unwrap().id;
    assert_eq!(holding((8, 1), "/my data/x"), 41);
    assert_eq!(holding((8, 2), "/my data/deep/x"), 42);
    assert_eq!(holding((8, 1), "/my data/deep/x"), 43);
    assert_eq!(holding((254, 0), "/my"), 27);
    assert_eq!(mounts.above(Path::new("/my data/deep/x")).unwrap().id, 43);
    assert_eq!(mounts.above(Path::new("/my database")).unwrap().id, 27);
    let read_only = mounts.iter().find(|mount| mount.id == 43).unwrap().file_system();
    assert_eq!(read_only.options, "ro");
}

#[test]
fn a_mapped_device_is_found_by_its_name_when_udev_made_no_link() {
    let tree = Tree::new();
    let lv = "/sys/devices/virtual/block/dm-7";
    tree.disk(lv, "253:7", 2048)
        .file(&format!("{lv}/dm/name"), "vg-data")
        .mounts(&["30 1 0:44 / /data rw - btrfs /dev/mapper/vg-data rw"]);
    assert_eq!(names(&describe(tree.root(), &directory("/data", (0, 44), 30))), ["dm-7"]);
}

#[test]
fn a_raid_says_what_it_lacks_and_a_path_whether_it_runs() {
    let tree = Tree::new();
    let (md, sda) = ("/sys/devices/virtual/block/md0", "/sys/devices/pci0000:00/ata1/block/sda");
    tree.disk(sda, "8:0", 2048)
        .file(&format!("{sda}/device/state"), "transport-offline")
        .disk(md, "9:0", 1000)
        .file(&format!("{md}/md/level"), "raid5")
        .file(&format!("{md}/md/raid_disks"), "4 (3)")
        .file(&format!("{md}/md/degraded"), "1")
        .file(&format!("{md}/md/sync_action"), "recover")
        .stacked(md, sda);
    let md = devices::named(tree.root(), "md0").unwrap();
    let raid = md.raid.unwrap();
    assert_eq!((raid.disks, raid.disks_missing), (4, Some(1)));
    assert_eq!((raid.sync_action.as_deref(), md.state), (Some("recover"), None));
    let sda = devices::named(tree.root(), "sda").unwrap();
    assert_eq!((sda.state.as_deref(), sda.raid), (Some("transport-offline"), None));
}
