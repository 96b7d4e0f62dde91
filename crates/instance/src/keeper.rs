//! The keeper of the disks: notices that a disk has left its group, polls until it is back, and
//! resyncs it. Each event is kept as news.

use std::time::{Duration, Instant};

use crate::group::{BadBlock, BadBlocks, DiskCounters, DiskState};
use crate::shared::Shared;

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A disk that fails each time it returns is retried at longer and longer intervals, up to this
/// multiple of the first one: each return costs the other disks a copy of what it missed.
const PATIENCE_MOST: u32 = 16;
/// Maximum number of bad blocks to list.
const NAMED_MOST: usize = 8;

struct Watched {
    online: bool,
    left: Instant,
    due: Instant,
    pause: Duration,
}

pub(crate) fn run(shared: &Shared) {
    let now = Instant::now();
    let pause = shared.return_after;
    let new = |_| Watched { online: true, left: now, due: now, pause };
    let mut disks: Vec<Watched> = (0..shared.group.disk_names().len()).map(new).collect();
    let mut opening = true;
    while shared.health.is_running() {
        for (number, (watched, disk)) in disks.iter_mut().zip(shared.group.counters()).enumerate() {
            watch(shared, number, watched, &disk, opening);
        }
        opening = false;
        shared.keeper_bell.wait(LOOK_EVERY);
    }
}

fn watch(
    shared: &Shared,
    number: usize,
    watched: &mut Watched,
    disk: &DiskCounters,
    opening: bool,
) {
    let online = disk.state == DiskState::Online;
    if online != watched.online {
        watched.online = online;
        if online {
            // Another caller brought it back.
            return;
        }
        watched.left = Instant::now();
        // A disk that is offline when the group is opened may have been available again for a long
        // time.
        watched.due = if opening { watched.left } else { watched.left + watched.pause };
        if !opening {
            let why = disk.last_error.as_ref().map_or(String::new(), |why| format!(" ({why})"));
            shared.tell(format!("disk {} is offline{why}; its mirrors serve", disk.name));
        }
    }
    if disk.state != DiskState::Offline || Instant::now() < watched.due {
        return;
    }
    let name = &disk.name;
    match shared.group.online_and_resync(number, &|| shared.health.is_running()) {
        Ok(units) => {
            watched.online = true;
            watched.pause = shared.return_after;
            let away = if opening {
                String::new()
            } else {
                format!(" after {:.1} s", watched.left.elapsed().as_secs_f64())
            };
            shared.tell(format!(
                "disk {name} is back{away}: {units} allocation units resynced and verified"
            ));
            tell_bad_blocks(shared);
        }
        Err(error) => {
            if opening {
                let error = error.to_string();
                let why = error.lines().next().unwrap_or_default();
                shared.tell(format!("disk {name} is offline: {why}; its mirrors serve"));
            }
            let most = shared.return_after * PATIENCE_MOST;
            watched.due = Instant::now() + watched.pause;
            watched.pause = (watched.pause * 2).min(most);
        }
    }
}

fn tell_bad_blocks(shared: &Shared) {
    let BadBlocks { count, named } = shared.group.take_bad_blocks();
    if count == 0 {
        return;
    }
    let name = |block: &BadBlock| {
        let serves = if block.is_kept { " (the returned disk's own copy serves)" } else { "" };
        format!("{} at byte {}{serves}", block.file, block.offset)
    };
    let first: Vec<String> = named.iter().take(NAMED_MOST).map(name).collect();
    let more = if count > NAMED_MOST as u64 { ", …" } else { "" };
    let first = first.join(", ");
    shared.tell(format!("{count} blocks are intact on no online disk: {first}{more}"));
}
