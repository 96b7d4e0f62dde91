//! Every single operation fails once, in every phase of an instance: the answer is success or a
//! clean error, and whatever was acknowledged is there afterwards.

use blockstone_instance::group::{DiskGroup, Redundancy};
use blockstone_instance::{Instance, InstanceError, TornProtection};

use crate::doomed::{Doom, Doomed, Fate};
use crate::load::Memory;
use crate::world::{World, open_spec, spec};

/// The most operations of a phase that are tried, spread evenly; all with `BLOCKSTONE_EVERY`.
const TRIES: u64 = 40;

fn operations_to_try(total: u64) -> impl Iterator<Item = u64> {
    let all = std::env::var_os("BLOCKSTONE_EVERY").is_some();
    let step = if all { 1 } else { (total / TRIES).max(1) };
    (1..=total + 1).step_by(step as usize)
}

/// One life from creation to shutdown with updates in between; every error ends it.
fn live(world: &World, memory: &Memory, fate: Fate) -> (u64, Result<(), InstanceError>) {
    let doom = Doom::new(fate);
    let disks = world.members(&|_, disk| Doomed::disk(disk, &doom));
    let life = || {
        let group = World::group_or(Redundancy::External, disks)?;
        Instance::create(&spec(), &group)?;
        let instance = Instance::open(&group, &open_spec(TornProtection::FullPage))?;
        instance.load(2, &mut |_, _| {})?;
        memory.load(&instance, 5, 12)?;
        instance.checkpoint()?;
        memory.load(&instance, 6, 6)?;
        instance.shutdown()
    };
    let result = life();
    (doom.operations(), result)
}

#[test]
fn whichever_operation_fails_the_error_is_clean_and_nothing_acknowledged_is_lost() {
    let (total, result) = live(&World::new(1, 3), &Memory::new(), Fate::Spared);
    result.unwrap();
    let (mut failed, mut lost_groups) = (0, 0);
    for at in operations_to_try(total) {
        let (world, memory) = (World::new(1, 3), Memory::new());
        let (_, result) = live(&world, &memory, Fate::FailsAt(at));
        if let Err(error) = result {
            failed += 1;
            let text = error.to_string();
            assert!(text.contains("\nhint: "), "operation {at}: {text}");
        }
        let disks = world.members(&|_, disk| disk);
        let opened = DiskGroup::open_on(disks).map_err(InstanceError::from);
        let opened =
            opened.and_then(|group| Instance::open(&group, &open_spec(TornProtection::FullPage)));
        match opened {
            Ok(instance) if instance.loaded() == 2 => {
                assert_eq!(memory.check(&instance, false).damaged, 0, "operation {at}");
            }
            Ok(_) => assert_eq!(memory.acknowledged(), 0, "operation {at}"),
            // A creation that failed leaves nothing to open, and nothing was acknowledged.
            Err(_) => {
                lost_groups += 1;
                assert_eq!(memory.acknowledged(), 0, "operation {at}");
            }
        }
    }
    assert!(failed > 0 && lost_groups < failed, "{failed} failed, {lost_groups} were never made");
}

#[test]
fn whichever_operation_of_recovery_fails_the_next_one_succeeds() {
    let die = |world: &World| {
        let memory = Memory::new();
        let group = World::group_or(Redundancy::External, world.members(&|_, disk| disk)).unwrap();
        Instance::create(&spec(), &group).unwrap();
        let instance = Instance::open(&group, &open_spec(TornProtection::FullPage)).unwrap();
        instance.load(2, &mut |_, _| {}).unwrap();
        memory.load(&instance, 9, 10).unwrap();
        instance.crash();
        memory
    };
    let reopen = |world: &World, fate: Fate| {
        let doom = Doom::new(fate);
        let disks = world.members(&|_, disk| Doomed::disk(disk, &doom));
        let opened = DiskGroup::open_on(disks)
            .map_err(InstanceError::from)
            .and_then(|group| Instance::open(&group, &open_spec(TornProtection::FullPage)));
        (doom.operations(), opened)
    };
    let world = World::new(1, 4);
    die(&world);
    let (total, opened) = reopen(&world, Fate::Spared);
    assert!(opened.unwrap().recovery().records > 0);
    for at in operations_to_try(total) {
        let world = World::new(1, 4);
        let memory = die(&world);
        if let (_, Err(error)) = reopen(&world, Fate::FailsAt(at)) {
            assert!(error.to_string().contains("\nhint: "), "operation {at}: {error}");
        }
        let (_, opened) = reopen(&world, Fate::Spared);
        assert_eq!(memory.check(&opened.unwrap(), false).damaged, 0, "operation {at}");
    }
}

#[test]
fn with_a_mirror_a_failed_operation_is_nobodys_business() {
    let world = World::new(2, 8);
    let memory = Memory::new();
    let doom = Doom::new(Fate::FailsAt(700));
    let disks = world.members(&|_, disk| Doomed::disk(disk, &doom));
    let group = World::group_or(Redundancy::Normal, disks).unwrap();
    Instance::create(&spec(), &group).unwrap();
    let instance = Instance::open(&group, &open_spec(TornProtection::FullPage)).unwrap();
    instance.load(2, &mut |_, _| {}).unwrap();
    memory.load(&instance, 1, 60).unwrap();
    assert!(doom.operations() > 700, "the failure has happened");
    assert_eq!(memory.check_now(&instance), 0);
    instance.shutdown().unwrap();
}
