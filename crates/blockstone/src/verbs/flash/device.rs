//! The device that preset and options describe.

use anyhow::{Result, anyhow, bail};
use blockstone_base::units::{Bytes, Nanos};
use blockstone_flash::device::Device;
use blockstone_flash::preset::Preset;

use super::args::{CollectionArgs, DeviceArgs};
use super::ineffective;

use crate::failure::Failure;

pub fn preset(args: &DeviceArgs) -> Result<&'static Preset> {
    Preset::named(&args.preset).ok_or_else(|| anyhow!("there is no preset {}", args.preset))
}

pub fn of(args: &DeviceArgs, collection: Option<&CollectionArgs>) -> Result<Device> {
    let mut device = preset(args)?.device();
    capacity(args, &mut device)?;
    let set = |field: &mut u32, value: Option<u32>| *field = value.unwrap_or(*field);
    set(&mut device.pages_per_block, args.pages_per_block);
    set(&mut device.channels, args.channels);
    set(&mut device.dies_per_channel, args.dies);
    if let Some(bytes) = args.page_size {
        device.page_bytes = u32::try_from(bytes.get()).unwrap_or(u32::MAX);
    }
    let times = &mut device.times;
    set(&mut times.planes, args.planes);
    times.read_ns = args.read_time.map_or(times.read_ns, Nanos::get);
    times.erase_ns = args.erase_time.map_or(times.erase_ns, Nanos::get);
    if !args.program_times.is_empty() {
        times.program_ns = args.program_times.iter().copied().map(Nanos::get).collect();
    }
    if let Some(rate) = args.channel_rate {
        if rate.get() == 0 {
            bail!(Failure::new(
                "use --channel-rate 0: it must be greater than 0",
                "omit it for channels without a limit"
            ));
        }
        times.transfer_ns = u64::from(device.page_bytes) * 1_000_000_000 / rate.get();
    }
    times.suspend = args.suspend.unwrap_or(times.suspend);
    if let Some(collection) = collection {
        collect(collection, &mut device);
    }
    Ok(device)
}

/// Returns the device of a verb that computes by formulas; fails if an option is given that
/// formulas do not cover.
pub fn of_formulas(args: &DeviceArgs, collection: &CollectionArgs) -> Result<Device> {
    ineffective::in_formulas(args, collection)?;
    of(args, Some(collection))
}

fn capacity(args: &DeviceArgs, device: &mut Device) -> Result<()> {
    if args.raw.is_some() && args.visible.is_none() && args.format_level.is_none() {
        bail!(Failure::new(
            "use --raw alone: the visible capacity is unknown",
            "add --visible, or --format-level with the over-provisioning in percent"
        ));
    }
    device.raw_bytes = args.raw.map_or(device.raw_bytes, Bytes::get);
    device.visible_bytes = args.visible.map_or(device.visible_bytes, Bytes::get);
    if let Some(level) = args.format_level {
        device.visible_bytes = (device.raw_bytes as f64 / (1.0 + level)) as u64;
    }
    Ok(())
}

fn collect(args: &CollectionArgs, device: &mut Device) {
    device.policy = args.policy.unwrap_or(device.policy);
    device.reserve_blocks = args.reserve.unwrap_or(match args.wear_out {
        // If blocks wear out, collection needs two blocks to move pages into.
        Some(_) => device.reserve_blocks.max(2),
        None => device.reserve_blocks,
    });
    device.pace = args.collect.unwrap_or(device.pace);
    device.background = args.background.unwrap_or(device.background);
    device.idle_ns = args.idle_after.map_or(device.idle_ns, Nanos::get);
    device.separate_moves |= args.separate_moves;
    device.placement = args.placement.unwrap_or(device.placement);
    device.fast_blocks = args.fast_blocks.unwrap_or(device.fast_blocks);
    device.wear.levelling_spread = args.levelling.or(device.wear.levelling_spread);
    device.wear.bad_blocks = args.bad_blocks.unwrap_or(device.wear.bad_blocks);
    device.wear.endurance = args.wear_out.or(device.wear.endurance);
}
