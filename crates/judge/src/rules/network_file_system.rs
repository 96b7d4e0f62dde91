//! Storage that another machine serves as files.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Manifest;

use super::{CalibrationRule, RunRule, is_served};

const ABOUT: About = About {
    id: "network-file-system",
    weight: Weight::Warns,
    doc: "The files are served by another machine or by a program: their numbers include the \
          network and the server, and what the server answered from its own memory cannot be seen \
          from here.",
    threshold: "The type of the file system (/proc/self/mountinfo), or of the one that holds the \
                backing file of a loop device: nfs, nfs4, cifs, smb3, smbfs, virtiofs, 9p, ceph, \
                afs, lustre, gpfs, vboxsf or any of FUSE. Inconclusive for a file system without a \
                block device beneath it that is none of these, such as an overlay whose layers \
                cannot be seen.",
    cause: "The path is a network mount, a directory that a hypervisor shares with its guest, or a \
            FUSE mount.",
    next: "Compare the numbers only with others of the same mount. To see the disks, run \
           blockstone on the server; to see past its cache, use a file larger than the server's \
           memory (--size).",
};

pub(super) const CALIBRATION: CalibrationRule =
    CalibrationRule::new(&ABOUT, |case| case.of_storage(check));
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, |case| case.of_storage(check));

fn check(manifest: &Manifest) -> Judgement {
    let target = &manifest.target;
    let beneath_loop = target.devices.iter().find_map(|device| {
        let kind = device.backing_file_system.as_deref().filter(|kind| is_served(kind))?;
        Some(format!("the backing file of {} lies on {kind}", device.name))
    });
    if let Some(beneath) = beneath_loop {
        return Judgement::fail(beneath, Vec::new());
    }
    let Some(fs) = &target.file_system else {
        return match target.devices.first() {
            Some(device) => Judgement::pass(format!("{} is a block device", device.name)),
            None => Judgement::inconclusive("what the storage is was not recorded"),
        };
    };
    if is_served(&fs.kind) {
        let evidence = format!("{} ({} at {})", fs.kind, fs.source, fs.mount_point);
        return Judgement::fail(evidence, Vec::new());
    }
    match target.devices.first() {
        Some(device) => Judgement::pass(format!("{} on {}", fs.kind, device.name)),
        None => match fs.in_memory() {
            Some(memory) => Judgement::pass(format!("{memory} is memory of this machine")),
            None => Judgement::inconclusive(format!(
                "no block device is known beneath {} at {}",
                fs.kind, fs.mount_point
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::identity::DeviceKind;
    use blockstone_base::verdict::{Outcome, Verdict};

    use crate::testing::{Fixture, device};

    fn on(kind: &str, has_device: bool) -> Verdict {
        let mut fixture = Fixture::healthy();
        let fs = fixture.manifest.target.file_system.as_mut().unwrap();
        (fs.kind, fs.source) = (kind.into(), "filer:/export".into());
        if !has_device {
            fixture.manifest.target.devices.clear();
        }
        fixture.verdict("network-file-system")
    }

    #[test]
    fn what_a_server_keeps_is_warned_about() {
        for kind in
            ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "fuse.sshfs", "fuseblk"]
        {
            let verdict = on(kind, false);
            assert!(verdict.warns() && !verdict.concerns.is_empty(), "{kind}");
            assert!(verdict.evidence.contains("filer:/export"), "{}", verdict.evidence);
        }
    }

    #[test]
    fn file_systems_on_devices_of_this_machine_pass() {
        for kind in ["ext4", "xfs", "btrfs", "nfsd-like"] {
            assert_eq!(on(kind, true).outcome, Outcome::Pass, "{kind}");
        }
        assert_eq!(on("tmpfs", false).outcome, Outcome::Pass);
        for kind in ["overlay", "zfs"] {
            assert_eq!(on(kind, false).outcome, Outcome::Inconclusive, "{kind}");
        }
    }

    #[test]
    fn a_loop_device_over_a_served_file_is_no_local_disk() {
        let mut fixture = Fixture::healthy();
        let mut over = device("loop0", DeviceKind::Loop);
        over.backing_file_system = Some("nfs4".into());
        fixture.manifest.target.devices = vec![over];
        let verdict = fixture.verdict("network-file-system");
        assert_eq!(verdict.outcome, Outcome::Fail);
        assert!(verdict.evidence.contains("loop0 lies on nfs4"), "{}", verdict.evidence);
    }
}
