//! Devices by name: orders of magnitude for a class of drives, not those of any manufacturer.

use crate::Policy;
use crate::device::{Device, Placement};
use crate::dies::{Suspend, Times};
use crate::ftl::{Pace, Wear};

#[derive(Clone, Copy, Debug)]
pub struct Preset {
    pub name: &'static str,
    pub doc: &'static str,
    /// P/E cycles that its blocks endure.
    pub endurance: u32,
    /// Raw and visible capacity in GiB.
    gib: (u64, u64),
    planes: u32,
    program_us: &'static [u64],
}

/// All presets; the first is the default.
pub const ALL: &[Preset] = &[
    Preset {
        name: "mlc",
        doc: "accelerator with two bits per cell, 400 of 576 GiB visible",
        endurance: 10_000,
        gib: (576, 400),
        planes: 1,
        program_us: &[300, 2500],
    },
    Preset {
        name: "slc",
        doc: "accelerator with one bit per cell, 96 of 128 GiB visible",
        endurance: 100_000,
        gib: (128, 96),
        planes: 1,
        program_us: &[300],
    },
    Preset {
        name: "tlc",
        doc: "drive with three bits per cell, 894 of 1,024 GiB visible (960 GB)",
        endurance: 3_000,
        gib: (1024, 894),
        planes: 4,
        program_us: &[300, 1400, 2500],
    },
    Preset {
        name: "qlc",
        doc: "drive with four bits per cell, 3,577 of 4,096 GiB visible (3.84 TB)",
        endurance: 1_000,
        gib: (4096, 3577),
        planes: 4,
        program_us: &[300, 1000, 1800, 2500],
    },
];

impl Preset {
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|preset| preset.name == name)
    }

    /// Returns the device: 64 dies on 8 channels, 4 KiB pages, 128 of them per block and plane,
    /// greedy collection spread over writes.
    pub fn device(&self) -> Device {
        Device {
            raw_bytes: self.gib.0 << 30,
            visible_bytes: self.gib.1 << 30,
            page_bytes: 4096,
            pages_per_block: 128,
            channels: 8,
            dies_per_channel: 8,
            times: Times {
                read_ns: 50_000,
                program_ns: self.program_us.iter().map(|us| us * 1000).collect(),
                erase_ns: 3_000_000,
                transfer_ns: 0,
                suspend: Suspend::None,
                suspend_ns: 20_000,
                planes: self.planes,
            },
            policy: Policy::Greedy,
            reserve_blocks: 1,
            pace: Pace::Spread,
            background: 0.0,
            idle_ns: 1_000_000,
            separate_moves: false,
            placement: Placement::Mixed,
            fast_blocks: 0.0,
            wear: Wear::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Plan;

    #[test]
    fn every_preset_is_a_device() {
        for preset in ALL {
            let plan = Plan::new(preset.device(), "uniform".parse().unwrap());
            let config = plan.check().unwrap_or_else(|error| panic!("{}: {error}", preset.name));
            assert!(config.effective_alpha() > 1.0, "{}", preset.name);
            assert!(Preset::named(preset.name).is_some());
        }
        let mlc = ALL[0].device();
        assert!((mlc.over_provisioning() - 0.44).abs() < 1e-12);
        assert!((mlc.spare_factor() - 0.3056).abs() < 1e-4);
        assert!((mlc.times.program_ns_mean() - 1.4e6).abs() < 1e-9);
    }
}
