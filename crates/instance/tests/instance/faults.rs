//! Every single operation fails once, in every phase of an instance: the result is success or a
//! clean error, and everything acknowledged is there afterwards.

use blockstone_base::hint::Hint as _;
use blockstone_instance::group::Redundancy;
use blockstone_instance::testing::{Faults, Machine};
use blockstone_instance::{Instance, InstanceError, TornProtection};

use crate::load::Memory;
use crate::world::{create, group_on, machine, open_on, open_spec, spec};

/// Maximum number of operations tried per phase, spread evenly; all with `BLOCKSTONE_EVERY`.
const TRIES: u64 = 40;

fn operations_to_try(total: u64) -> impl Iterator<Item = u64> {
    let all = std::env::var_os("BLOCKSTONE_EVERY").is_some();
    let step = if all { 1 } else { (total / TRIES).max(1) };
    (1..=total + 1).step_by(step as usize)
}

fn fails_at(operation: u64) -> Faults {
    Faults { fails_at: Some(operation), ..Faults::default() }
}

/// One life from creation to shutdown with updates in between; any error ends it.
fn live(machine: &Machine, memory: &Memory) -> Result<(), InstanceError> {
    let group = group_on(machine, Redundancy::External)?;
    Instance::create(&spec(), &group)?;
    let instance = Instance::open(&group, &open_spec(TornProtection::FullPage))?;
    instance.load(2, &mut |_, _| {})?;
    memory.load(&instance, 5, 12)?;
    instance.checkpoint()?;
    memory.load(&instance, 6, 6)?;
    instance.shutdown()
}

fn reopen(machine: &Machine, faults: Faults) -> Result<Instance, InstanceError> {
    machine.set_faults(faults);
    open_on(machine, &open_spec(TornProtection::FullPage))
}

#[test]
fn whichever_operation_fails_the_error_is_clean_and_nothing_acknowledged_is_lost() {
    let whole = machine(1, 3);
    live(&whole, &Memory::new()).unwrap();
    let (mut failed, mut lost_groups) = (0, 0);
    for at in operations_to_try(whole.operations()) {
        let (machine, memory) = (machine(1, at), Memory::new());
        machine.set_faults(fails_at(at));
        if let Err(error) = live(&machine, &memory) {
            failed += 1;
            let text = error.told();
            assert!(text.contains("\nhint: "), "operation {at}: {text}");
        }
        match reopen(&machine, Faults::default()) {
            Ok(instance) if instance.loaded() == 2 => {
                assert_eq!(memory.check(&instance, false).damaged, 0, "operation {at}");
            }
            Ok(_) => assert_eq!(memory.acknowledged(), 0, "operation {at}"),
            // A failed creation leaves nothing to open, and nothing was acknowledged.
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
    let die = |seed| {
        let (machine, group) = create(Redundancy::External, 1, seed);
        let memory = Memory::new();
        let instance = Instance::open(&group, &open_spec(TornProtection::FullPage)).unwrap();
        instance.load(2, &mut |_, _| {}).unwrap();
        memory.load(&instance, 9, 10).unwrap();
        instance.crash();
        (machine, memory)
    };
    // If the writers were faster than the crash, there is nothing to recover.
    let recovered = |seed| {
        let (machine, _) = die(seed);
        let instance = reopen(&machine, Faults::default()).unwrap();
        (instance.recovery().records > 0).then_some((machine, instance))
    };
    let (whole, _instance) = (4..24).find_map(recovered).expect("one crash of 20 leaves redo");
    for at in operations_to_try(whole.operations()) {
        let (machine, memory) = die(at);
        if let Err(error) = reopen(&machine, fails_at(at)) {
            assert!(error.told().contains("\nhint: "), "operation {at}: {error}");
        }
        let opened = reopen(&machine, Faults::default()).unwrap();
        assert_eq!(memory.check(&opened, false).damaged, 0, "operation {at}");
    }
}

#[test]
fn with_a_mirror_a_failed_operation_is_nobodys_business() {
    let (machine, memory) = (machine(2, 8), Memory::new());
    machine.set_faults(fails_at(700));
    let group = group_on(&machine, Redundancy::Normal).unwrap();
    Instance::create(&spec(), &group).unwrap();
    let instance = Instance::open(&group, &open_spec(TornProtection::FullPage)).unwrap();
    instance.load(2, &mut |_, _| {}).unwrap();
    memory.load(&instance, 1, 60).unwrap();
    assert!(machine.operations() > 700, "the failure has happened");
    assert_eq!(memory.check_now(&instance), 0);
    instance.shutdown().unwrap();
}
