use blockstone_base::identity::{CapKind, CgroupCap};
use blockstone_base::verdict::{Outcome, Verdict};

use super::*;
use crate::testing::{Behaviour, Fixture, LARGE, saturating};

const EBS: &str = "Amazon Elastic Block Store";

/// A calibration of a volume of this size that keeps to `cap` I/Os a second.
fn capped(cap: f64, cloud: Option<Cloud>, model: Option<&str>, gib: u64) -> Fixture {
    let mut fixture = Fixture::reads_as(|load: &LoadSpec| {
        let n = load.in_flight();
        match load.block_bytes {
            LARGE => saturating(70.0, 1.1, n),
            _ => Behaviour::capped(cap, n, 400e3),
        }
    });
    fixture.manifest.host.cloud = cloud;
    let disk = fixture.top_device();
    (disk.model, disk.size_bytes) = (model.map(str::to_owned), gib << 30);
    fixture
}

fn judged(fixture: &Fixture) -> Verdict {
    fixture.verdict("cloud-volume")
}

#[test]
fn a_burst_of_gp2_is_named_with_its_bucket_and_the_rate_after_it() {
    let verdict = judged(&capped(3_000.0, Some(Cloud::Aws), Some(EBS), 100));
    assert!(verdict.warns(), "{verdict:?}");
    let text = &verdict.evidence;
    for part in [
        "AWS volume nvme0n1 of 100 GiB",
        "gp2 (burst to 3,000 IOPS: a full bucket of 5.4 million I/Os lasts 33 min at this rate, \
         then 300 IOPS)",
        // Every gp3 has 3,000 IOPS, too: both are named.
        "gp3 (3,000 IOPS sustained)",
        "this measurement took",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(verdict.concerns.contains(&"max_iops".to_owned()), "{:?}", verdict.concerns);
    assert!(verdict.next.contains("BurstBalance"), "{}", verdict.next);
    assert!(verdict.cause.contains("general-purpose.md (read on 2026-"), "{}", verdict.cause);
}

#[test]
fn the_limit_of_a_machine_is_named_beside_those_of_volumes() {
    let mut fixture = capped(3_600.0, Some(Cloud::Aws), Some(EBS), 100);
    assert_eq!(judged(&fixture).outcome, Outcome::Inconclusive, "no volume has it");
    fixture.manifest.host.machine_type = Some("m5.large".to_owned());
    let verdict = judged(&fixture);
    let text = "published for the machine type m5.large (3,600 IOPS sustained)";
    assert!(verdict.warns() && verdict.evidence.contains(text), "{}", verdict.evidence);
    assert!(verdict.cause.contains("ebs-optimized.md (read on 2026-"), "{}", verdict.cause);
    fixture.manifest.host.machine_type = Some("m5.4xlarge".to_owned());
    assert_eq!(judged(&fixture).outcome, Outcome::Inconclusive, "another machine");
}

#[test]
fn the_rate_of_gp3_is_not_called_a_burst_where_none_is_possible() {
    // From 1,000 GiB on, gp2 does not burst.
    let verdict = judged(&capped(3_000.0, Some(Cloud::Aws), Some(EBS), 2_000));
    assert!(verdict.warns() && verdict.evidence.contains("gp3 (3,000"), "{}", verdict.evidence);
    assert!(!verdict.evidence.contains("burst"), "{}", verdict.evidence);
}

#[test]
fn a_burst_is_left_out_when_more_was_done_than_its_bucket_allows() {
    let mut fixture = capped(3_000.0, Some(Cloud::Aws), Some(EBS), 100);
    let ticks = &mut fixture.window_mut("random-read/psync/x1").ticks;
    for tick in ticks.iter_mut() {
        tick.ops += 60_000_000;
    }
    let verdict = judged(&fixture);
    assert!(verdict.warns() && !verdict.evidence.contains("gp2"), "{}", verdict.evidence);
}

#[test]
fn the_sizes_of_azure_and_google_give_their_limits() {
    let azure = judged(&capped(5_000.0, Some(Cloud::Azure), Some("Msft Virtual Disk"), 1_024));
    let p30 = "Premium SSD P30 (5,000 IOPS sustained)";
    assert!(azure.warns() && azure.evidence.contains(p30), "{}", azure.evidence);
    let google = Some("Google PersistentDisk");
    let google = judged(&capped(15_000.0, Some(Cloud::Google), google, 500));
    let ssd = "pd-ssd (15,000 IOPS sustained)";
    assert!(google.warns() && google.evidence.contains(ssd), "{}", google.evidence);
    // The model alone identifies the cloud if firmware tables are not readable.
    let model = judged(&capped(15_000.0, None, Some("nvme_card-pd"), 500));
    assert!(model.warns(), "{}", model.evidence);
}

#[test]
fn the_same_rate_elsewhere_is_no_cloud_volume() {
    for (cloud, model, gib) in [
        (None, None, 100),
        (None, Some("SAMSUNG MZQL21T9HCJR-00A07"), 1_788),
        // Hyper-V outside of Azure has disks of the same model.
        (None, Some("Msft Virtual Disk"), 1_024),
        (Some(Cloud::Aws), Some("Amazon EC2 NVMe Instance Storage"), 100),
        (Some(Cloud::Google), Some("nvme_card3"), 375),
        (Some(Cloud::Azure), Some("Microsoft NVMe Direct Disk v2"), 1_024),
    ] {
        let verdict = judged(&capped(3_000.0, cloud, model, gib));
        assert_eq!(verdict.outcome, Outcome::Pass, "{model:?}: {}", verdict.evidence);
    }
}

#[test]
fn what_a_control_group_limits_is_not_put_down_to_the_cloud() {
    let mut fixture = capped(3_000.0, Some(Cloud::Aws), Some(EBS), 100);
    let (kind, source) = (CapKind::ReadIops, "/sys/fs/cgroup/io.max".to_owned());
    fixture.manifest.target.caps =
        vec![CgroupCap { device: "254:0".into(), kind, limit: 3_000, source }];
    assert_eq!(judged(&fixture).outcome, Outcome::Inconclusive);
}

#[test]
fn a_bought_rate_several_volumes_and_a_rate_without_plateau_stay_open() {
    let bought = judged(&capped(7_300.0, Some(Cloud::Aws), Some(EBS), 100));
    assert_eq!(bought.outcome, Outcome::Inconclusive);
    assert!(bought.evidence.contains("cannot be seen"), "{}", bought.evidence);
    let mut striped = capped(3_000.0, Some(Cloud::Aws), Some(EBS), 100);
    let mut second = striped.top_device().clone();
    second.name = "nvme1n1".into();
    striped.manifest.target.devices.push(second);
    let striped = judged(&striped);
    assert_eq!(striped.outcome, Outcome::Inconclusive);
    assert!(striped.evidence.contains("2 disks"), "{}", striped.evidence);
    let mut rising = Fixture::reads_as(|load| {
        let n = load.in_flight();
        saturating(if load.block_bytes == LARGE { 70.0 } else { 3_390.0 }, 17.0, n)
    });
    rising.manifest.host.cloud = Some(Cloud::Aws);
    let rising = judged(&rising);
    assert_eq!(rising.outcome, Outcome::Inconclusive);
    assert!(rising.evidence.contains("no plateau"), "{}", rising.evidence);
}

#[test]
fn a_recording_of_an_older_version_knows_the_cloud_by_its_hypervisor() {
    let mut fixture = capped(3_000.0, None, None, 100);
    fixture.manifest.host.hypervisor = Some("Amazon EC2".into());
    assert!(judged(&fixture).warns());
}
