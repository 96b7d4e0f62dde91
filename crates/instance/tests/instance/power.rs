//! Power loss at a random operation during a load of updates, with torn and lost writes; then
//! recovery, which may lose its power too.

use std::sync::Arc;

use blockstone_base::rng::Rng;
use blockstone_instance::group::{DiskGroup, Redundancy};
use blockstone_instance::{Instance, TornProtection};

use crate::doomed::{Doom, Doomed, Fate};
use crate::load::Memory;
use crate::world::{World, open_spec};

/// Seeds tried; more with `BLOCKSTONE_SEEDS`.
fn seeds() -> u64 {
    std::env::var("BLOCKSTONE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(24)
}

/// What a world looked like after its power losses.
#[derive(Default)]
struct Aftermath {
    acknowledged: u64,
    damaged: u64,
    replayed: u64,
}

impl World {
    fn open_doomed(&self, fate: Fate, protection: TornProtection) -> (Arc<Doom>, Option<Instance>) {
        let doom = Doom::new(fate);
        let disks = self.members(&|_, disk| Doomed::disk(disk, &doom));
        let group = DiskGroup::open_on(disks).ok();
        let instance = group.and_then(|group| Instance::open(&group, &open_spec(protection)).ok());
        (doom, instance)
    }

    fn lose_power(&self) {
        for disk in &self.disks {
            disk.power_loss();
        }
    }
}

fn live_and_die(seed: u64, redundancy: Redundancy, protection: TornProtection) -> Aftermath {
    let mut rng = Rng::new(seed, 99);
    let disks = redundancy.copies() + (seed % 2) as usize;
    let (world, group) = World::create(redundancy, disks, seed);
    let instance = Instance::open(&group, &open_spec(protection)).unwrap();
    instance.load(2, &mut |_, _| {}).unwrap();
    instance.shutdown().unwrap();
    drop(group);
    let mut memory = Memory::new();
    let mut after = Aftermath::default();
    // Lives that end by a power loss; the recovery after it may lose its power as well.
    for life in 0..3 {
        let (doom, instance) = world.open_doomed(Fate::Spared, protection);
        let instance = instance.expect("with the power on, recovery succeeds");
        doom.power_goes_in(1 + rng.below(1200));
        let result = memory.load(&instance, seed * 7 + life, 400);
        assert!(result.is_err(), "a session must hear that there is no power");
        instance.crash();
        world.lose_power();
        for _ in 0..rng.below(3) {
            let fate = Fate::PowerGoesAt(1 + rng.below(500));
            drop(world.open_doomed(fate, protection));
            world.lose_power();
        }
        let (_, instance) = world.open_doomed(Fate::Spared, protection);
        let instance = instance.expect("with the power on, recovery succeeds");
        let found = memory.check(&instance, protection == TornProtection::None);
        after.acknowledged += memory.acknowledged();
        after.replayed += instance.recovery().records;
        after.damaged += found.damaged;
        if found.damaged > 0 {
            return after;
        }
        assert_eq!(instance.recovery().damaged, [] as [u64; 0], "seed {seed}");
        memory.adopt(&instance);
    }
    let (_, instance) = world.open_doomed(Fate::Spared, protection);
    let instance = instance.unwrap();
    memory.load(&instance, seed, 5).unwrap();
    instance.shutdown().unwrap();
    let (_, instance) = world.open_doomed(Fate::Spared, protection);
    let instance = instance.unwrap();
    assert_eq!(instance.recovery().records, 0, "after a shutdown nothing is recovered");
    assert_eq!(memory.check(&instance, false).damaged, 0);
    after
}

fn many_lives(protection: TornProtection) -> Aftermath {
    let mut sum = Aftermath::default();
    for seed in 0..seeds() {
        let redundancy = [Redundancy::External, Redundancy::Normal, Redundancy::High];
        let after = live_and_die(seed, redundancy[seed as usize % 3], protection);
        sum.acknowledged += after.acknowledged;
        sum.damaged += after.damaged;
        sum.replayed += after.replayed;
    }
    assert!(sum.acknowledged > 0 && sum.replayed > 0, "the lives were too short to tell anything");
    sum
}

#[test]
fn full_pages_in_the_redo_lose_nothing() {
    assert_eq!(many_lives(TornProtection::FullPage).damaged, 0);
}

#[test]
fn double_writes_lose_nothing() {
    assert_eq!(many_lives(TornProtection::DoubleWrite).damaged, 0);
}

#[test]
fn without_protection_damage_is_detected_and_never_served() {
    let damaged = many_lives(TornProtection::None).damaged;
    assert!(damaged > 0, "no write was ever torn, so this tells nothing");
}
