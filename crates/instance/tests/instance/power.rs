//! Power loss at a random operation during a load of updates, with torn and lost writes; then
//! recovery, which may lose power too.

use blockstone_base::rng::Rng;
use blockstone_instance::group::Redundancy;
use blockstone_instance::testing::Faults;
use blockstone_instance::{Instance, TornProtection};

use crate::load::Memory;
use crate::world::{create, open_on, open_spec};

/// Number of seeds tried; more with `BLOCKSTONE_SEEDS`.
fn seeds() -> u64 {
    std::env::var("BLOCKSTONE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(24)
}

/// Result of checks after the power losses of a machine.
#[derive(Default)]
struct Aftermath {
    acknowledged: u64,
    damaged: u64,
    replayed: u64,
}

fn live_and_die(seed: u64, redundancy: Redundancy, protection: TornProtection) -> Aftermath {
    let mut rng = Rng::new(seed, 99);
    let disks = redundancy.copies() + (seed % 2) as usize;
    let (machine, group) = create(redundancy, disks, seed);
    let spec = open_spec(protection);
    let instance = Instance::open(&group, &spec).unwrap();
    instance.load(2, &mut |_, _| {}).unwrap();
    instance.shutdown().unwrap();
    drop(group);
    let mut memory = Memory::new();
    let mut after = Aftermath::default();
    // Each life ends with a power loss; the recovery after it may lose power as well.
    for life in 0..3 {
        let instance = open_on(&machine, &spec).expect("with the power on, recovery succeeds");
        let power_goes_at = |at| Faults { power_goes_at: Some(at), ..Faults::default() };
        machine.set_faults(power_goes_at(1 + rng.below(1200)));
        let result = memory.load(&instance, seed * 7 + life, 400);
        assert!(result.is_err(), "a session must hear that there is no power");
        instance.crash();
        machine.lose_power();
        for _ in 0..rng.below(3) {
            machine.set_faults(power_goes_at(1 + rng.below(2000)));
            drop(open_on(&machine, &spec));
            machine.lose_power();
        }
        let instance = open_on(&machine, &spec).expect("with the power on, recovery succeeds");
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
    let instance = open_on(&machine, &spec).unwrap();
    memory.load(&instance, seed, 5).unwrap();
    instance.shutdown().unwrap();
    let instance = open_on(&machine, &spec).unwrap();
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
