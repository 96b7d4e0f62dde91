//! A check that takes seconds: what happens to reads of 8 KiB of this process, past the page cache
//! and through it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use crate::iosize::findings::{Class, Direction, Flow, IosizeFindings};
use blockstone_base::identity::PathKind;
use blockstone_base::rng;
use blockstone_measure::{Observer, claim, scratch};
use blockstone_sys::buffer::Slot;
use blockstone_sys::file::{Access, BlockFile};
use blockstone_sys::survey;

use super::counter::Counter;
use super::{findings, flows};
use crate::CheckError;

const CALL: usize = 8192;
/// Number of calls: one megabyte in total.
const CALLS: u64 = 128;

/// Reads a scratch file in a directory, or a file or device, whose content is not changed. `id`
/// names the scratch file.
pub fn of_path(
    path: &Path,
    id: u64,
    observer: &mut dyn Observer,
) -> Result<IosizeFindings, CheckError> {
    let target = survey::target(Path::new("/"), path)?;
    let place = Path::new(&target.path);
    let began = Instant::now();
    let (direct, plain) = if target.kind == PathKind::Directory {
        claim::directory(path)?;
        scratch::remove_orphans(place, &[]);
        prepared(place, id)?
    } else {
        let file = BlockFile::open(place, Access::Read, false)?;
        (file.reopen(Access::Read, true).ok(), file.plain()?)
    };
    observer.phase("sizes");
    let mut counter = Counter::start();
    let own = std::process::id();
    let mut buffer = Slot::new(CALL)?;
    let mut tried = Vec::new();
    for name in ["8 KiB direct", "8 KiB buffered"] {
        let before = counter.sizes();
        counter.want(own);
        let mut failed = None;
        for offset in (0..CALLS).map(|call| call * CALL as u64) {
            let read = match (name, &direct) {
                ("8 KiB buffered", _) => {
                    plain.read_at(&mut buffer, offset).map_err(|error| error.to_string())
                }
                (_, Some(direct)) => direct
                    .read_at(offset, &mut buffer)
                    .map_err(|errno| std::io::Error::from_raw_os_error(errno).to_string()),
                (_, None) => Err("it cannot be opened with O_DIRECT".to_owned()),
            };
            match read {
                Ok(CALL) => {}
                // End of a file named by the user.
                Ok(_) => break,
                Err(why) => {
                    failed = Some(why);
                    break;
                }
            }
        }
        counter.forget(own);
        let sizes = flows::since(&counter.sizes(), &before);
        let mut flow =
            flows::of_all(&sizes, name).into_iter().find(|flow| flow.direction == Direction::Read);
        if flow.is_none() || failed.is_some() {
            let why = failed.unwrap_or_else(|| "it was not counted".to_owned());
            flow = Some(unknown(name, why));
        }
        tried.extend(flow);
    }
    let mut found = findings(&path.display().to_string(), &mut counter, observer);
    found.flows = tried;
    found.total = Vec::new();
    found.observed_s = began.elapsed().as_secs_f64();
    Ok(found)
}

/// Prepares an unlinked scratch file, written and dropped from the page cache.
fn prepared(dir: &Path, id: u64) -> Result<(Option<BlockFile>, File), CheckError> {
    let path = dir.join(scratch::name(id, "iosize"));
    let file = BlockFile::create_new(&path, false)?;
    let locked = file.lock_exclusive();
    file.remove()?;
    locked?;
    let made = (file.reopen(Access::Read, true).ok(), file.plain()?);
    let error = |errno| file.error("write", std::io::Error::from_raw_os_error(errno));
    let mut data = Slot::new(CALL)?;
    for call in 0..CALLS {
        rng::fill(call, &mut data);
        file.write_at(call * CALL as u64, &data).map_err(error)?;
    }
    file.fsync().map_err(error)?;
    // This fails if there is no cache to drop from, which does no harm.
    let _ = file.drop_cached();
    Ok(made)
}

pub(super) fn unknown(name: &str, evidence: String) -> Flow {
    Flow {
        path: name.to_owned(),
        direction: Direction::Read,
        class: Class::Unknown,
        evidence,
        calls: Vec::new(),
        moved: 0,
        asked_bytes: 0,
        sequential: 0,
        aligned: 0,
        added_pages: 0,
        device: Vec::new(),
        device_requests: 0,
        device_bytes: 0,
        transfers: Vec::new(),
    }
}
