//! Invalid input is refused with a reason and a hint, and the group still opens.

use blockstone_base::Bytes;
use blockstone_base::hint::Hint as _;
use blockstone_instance::group::{DiskGroup, Redundancy};
use blockstone_instance::testing::Faults;
use blockstone_instance::wait::Statistic;
use blockstone_instance::{
    Instance, InstanceError, InstanceSpec, OpenSpec, RedoStress, Scan, TornProtection,
};

use crate::load::Memory;
use crate::world::{ROWS, create, open_on, open_spec, spec};

#[test]
fn parameters_that_cannot_be_are_refused() {
    let specs = [
        InstanceSpec { block: Bytes(5000), ..spec() },
        InstanceSpec { block: Bytes::kib(64), ..spec() },
        InstanceSpec { schemas: 0, ..spec() },
        InstanceSpec { rows: 0, ..spec() },
        InstanceSpec { redo_logs: 1, ..spec() },
        InstanceSpec { redo: Bytes(300_000), ..spec() },
        InstanceSpec { random_percent: 101, ..spec() },
    ];
    for spec in specs {
        let error = spec.files().unwrap_err().told();
        assert!(error.contains("\nhint: "), "{error}");
    }
    let (_, group) = create(Redundancy::External, 1, 1);
    let usual = open_spec(TornProtection::None);
    let opens = [
        OpenSpec { cache: Bytes::kib(4 * 63), ..usual },
        OpenSpec { writers: 0, ..usual },
        OpenSpec { writers: 17, ..usual },
        OpenSpec { log_buffer: Bytes::kib(64), ..usual },
    ];
    for open in opens {
        let error = Instance::open(&group, &open).unwrap_err().told();
        assert!(error.contains("\nhint: "), "{error}");
    }
    Instance::open(&group, &usual).unwrap().shutdown().unwrap();
}

#[test]
fn calls_that_cannot_be_served_are_refused() {
    let (_, group) = create(Redundancy::External, 1, 1);
    let instance = Instance::open(&group, &open_spec(TornProtection::None)).unwrap();
    assert!(matches!(instance.session(20), Err(InstanceError::CacheTooSmall { served: 20, .. })));
    assert!(matches!(instance.load(3, &mut |_, _| {}), Err(InstanceError::Parameter { .. })));
    instance.load(1, &mut |_, _| {}).unwrap();
    let mut session = instance.session(0).unwrap();
    assert!(matches!(session.select(1, 0, 1), Err(InstanceError::NotLoaded { schema: 1 })));
    let huge = Scan::Cached { multiblock: 257 };
    assert!(matches!(session.scan(0, huge), Err(InstanceError::Length { .. })));
    assert!(matches!(session.select(0, u64::MAX, 2), Err(InstanceError::OutOfRange { .. })));
    instance.shutdown().unwrap();
    assert!(matches!(session.select(0, 0, 1), Err(InstanceError::Stopped)));
}

#[test]
fn any_damaged_copy_of_the_control_file_is_survived_and_all_are_named() {
    let (machine, group) = create(Redundancy::External, 1, 1);
    let instance = Instance::open(&group, &open_spec(TornProtection::None)).unwrap();
    instance.load(2, &mut |_, _| {}).unwrap();
    instance.shutdown().unwrap();
    drop(group);
    let reopen = |damaged: &[u64]| {
        let group = DiskGroup::open_on(machine.disks()).unwrap();
        let control = group.file("control").unwrap();
        for &copy in damaged {
            control.write(copy, &[7; 4096], true).unwrap();
        }
        Instance::open(&group, &open_spec(TornProtection::None))
    };
    for copy in [0, 4096, 8192, 12288] {
        assert_eq!(reopen(&[copy]).unwrap().loaded(), 2, "without the copy at {copy}");
    }
    let all = reopen(&[0, 4096, 8192, 12288]);
    assert!(matches!(all, Err(InstanceError::ControlDamaged)));
}

#[test]
fn no_space_for_the_next_redo_log_is_said_and_the_group_opens_once_there_is_some() {
    let (machine, group) = create(Redundancy::External, 1, 2);
    let mut memory = Memory::new();
    let instance = Instance::open(&group, &open_spec(TornProtection::FullPage)).unwrap();
    instance.load(2, &mut |_, _| {}).unwrap();
    // Until the last of the four stripes that hold a log contains data.
    let mut session = instance.session(0).unwrap();
    let log = spec().redo.get();
    let written = || instance.snapshot().statistic(Statistic::RedoWrittenBytes);
    for key in (0..ROWS).take_while(|_| written() < log * 4 / 5) {
        session.update(0, key, 1, RedoStress::Lite).unwrap();
        session.commit().unwrap();
    }
    memory.adopt(&instance);
    assert_eq!(instance.snapshot().statistic(Statistic::LogSwitches), 0);
    machine.set_faults(Faults { full: true, ..Faults::default() });
    let error = memory.load(&instance, 2, 10_000).unwrap_err().told();
    assert!(error.contains("No space left on device"), "{error}");
    assert!(error.contains("\nhint: free some space"), "{error}");
    assert!(error.contains("lgwr: write"), "{error}");
    assert!(written() <= log, "it got no further than the first log");
    drop(session);
    instance.shutdown().unwrap_err();
    drop(group);
    machine.set_faults(Faults::default());
    let instance = open_on(&machine, &open_spec(TornProtection::FullPage)).unwrap();
    assert_eq!(memory.check(&instance, false).damaged, 0);
    memory.load(&instance, 3, 200).unwrap();
    assert!(instance.snapshot().statistic(Statistic::LogSwitches) > 0);
    instance.shutdown().unwrap();
}
