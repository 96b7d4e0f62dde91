//! The files that processes hold open: what their flags request, and what becomes of their I/O.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::direct::findings::{Class, DirectFindings, OpenFile, Opened};
use blockstone_base::load::SyncFlag;
use blockstone_base::units::Bytes;
use blockstone_measure::Observer;
use blockstone_probe::io::file_type;
use blockstone_sys::account;
use blockstone_sys::bpf::effect::{Calls, Effect};
use blockstone_sys::cached::{self, Cached, Look};
use blockstone_sys::descriptors::{self, Descriptor};
use blockstone_sys::file::{Access, BlockFile};
use blockstone_sys::path::{link_target, look};
use blockstone_sys::survey::Mounts;
use rustix::fs::SeekFrom;

use super::classify::{Caching, PAGE_BYTES, pages};
use super::requested;
use super::submission::Submissions;
use super::witness::Witness;
use crate::CheckError;

/// Maximum number of files that are told apart; each is held open twice, out of the usual 1024
/// descriptors.
const FILES_MAX: usize = 400;
/// Interval between scans of the open files.
const LOOK: Duration = Duration::from_millis(200);
/// Time limit for one query of the page cache of a file.
const PATIENCE: Duration = Duration::from_millis(200);
/// Added pages count as dropped if at most one in this number is cached afterwards.
const FEW: u64 = 10;

#[derive(Clone, Debug)]
pub struct Processes {
    /// Description of what is observed, for the report.
    pub subject: String,
    /// The process; its children are observed too.
    pub pid: u32,
    /// Time for which their I/O is counted.
    pub duration: Duration,
    /// Settings of the server, if it is one; empty for other processes.
    pub settings: Vec<(String, String)>,
}

/// Observes the files of a process and of its children. Fails if there is no such process, or if
/// this user may not see what it has open.
pub fn of_processes(
    processes: &Processes,
    observer: &mut dyn Observer,
) -> Result<DirectFindings, CheckError> {
    let root = Path::new("/");
    let pid = processes.pid;
    if account::process(root, pid).is_none() {
        return Err(CheckError::NoProcess { pid });
    }
    match descriptors::of(root, pid) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(CheckError::NotPermitted { pid, source: error });
        }
        Err(_) => return Err(CheckError::NoProcess { pid }),
    }
    let mut watch = Watch {
        witness: Witness::of(&family(root, pid)),
        submissions: Some(Submissions::start(root, &|| family(root, pid))),
        mounts: Mounts::read(root),
        seen_mounts: HashMap::new(),
        files: BTreeMap::new(),
        unseen: HashSet::new(),
    };
    observer.phase("open files");
    let began = Instant::now();
    watch.look(root, pid);
    while began.elapsed() < processes.duration && observer.interrupted().is_none() {
        thread::sleep(LOOK.min(processes.duration.saturating_sub(began.elapsed())));
        watch.look(root, pid);
    }
    let effects = watch.witness.effects();
    let submissions = watch.submissions.take();
    let (submitters, submissions_unmeasured) =
        submissions.map(Submissions::found).unwrap_or_default();
    let observed_s = began.elapsed().as_secs_f64();
    let numbered = |number: Option<usize>| effects.as_ref()?.get(number?).copied();
    let files = watch.files.values();
    let mut files: Vec<OpenFile> = files
        .map(|held| held.finding(numbered(held.number), processes, watch.witness.why()))
        .collect();
    files.sort_by(|a, b| {
        let busy = |file: &OpenFile| file.requests.unwrap_or(0);
        busy(b).cmp(&busy(a)).then_with(|| a.path.cmp(&b.path))
    });
    Ok(DirectFindings {
        subject: processes.subject.clone(),
        file_system: String::new(),
        mount_options: String::new(),
        statx: None,
        kernel: watch.witness.capability(),
        cells: Vec::new(),
        files,
        submitters,
        submissions_unmeasured,
        submission_setting: requested::submission(&processes.settings),
        unseen_files: watch.unseen.len() as u64,
        observed_s,
        unfinished: false,
        signal: observer.interrupted().map(str::to_owned),
    })
}

/// Returns the process and all its descendants.
pub(crate) fn family(root: &Path, pid: u32) -> BTreeSet<u32> {
    let all = account::all(root).into_iter().filter_map(|pid| account::process(root, pid));
    let all: Vec<account::Process> = all.collect();
    let mut family = BTreeSet::from([pid]);
    let mut members = 0;
    while members < family.len() {
        members = family.len();
        let born = all.iter().filter(|process| family.contains(&process.parent));
        let born: Vec<u32> = born.map(|process| process.pid).collect();
        family.extend(born);
    }
    family
}

/// Device and inode.
type Identity = (u64, u64);

#[derive(Debug)]
struct Watch {
    witness: Witness,
    /// Taken at the end of the observation.
    submissions: Option<Submissions>,
    mounts: Mounts,
    /// Mounts whose files are observed, as each process sees them.
    seen_mounts: HashMap<u32, HashSet<u64>>,
    files: BTreeMap<Identity, Held>,
    unseen: HashSet<Identity>,
}

/// A file that was seen open, and is held open to observe it.
#[derive(Debug)]
struct Held {
    path: String,
    plain: File,
    caching: Caching,
    in_memory: bool,
    /// Number among the files that the witness watches.
    number: Option<usize>,
    /// All descriptors seen, by process and number.
    descriptors: HashSet<PathBuf>,
    is_direct: bool,
    is_buffered: bool,
    sync: SyncFlag,
}

impl Watch {
    /// Notes which files are open now.
    fn look(&mut self, root: &Path, pid: u32) {
        for pid in family(root, pid) {
            if let Some(submissions) = &mut self.submissions {
                submissions.look(root, pid);
            }
            let Ok(all) = descriptors::of(root, pid) else { continue };
            let mounts = self.seen_mounts.entry(pid).or_insert_with(|| {
                let mut mounts = descriptors::local_mounts(root, pid);
                mounts.extend(descriptors::memory_mounts(root, pid));
                mounts
            });
            let seen = |it: &Descriptor| it.mount.is_some_and(|mount| mounts.contains(&mount));
            let seen: Vec<Descriptor> = all.into_iter().filter(seen).collect();
            for descriptor in seen {
                self.note(descriptor);
            }
        }
    }

    fn note(&mut self, Descriptor { path, flags, .. }: Descriptor) {
        let Ok(found) = look(&path) else { return };
        let is_device = found.file_type().is_block_device();
        if !found.is_file() && !is_device {
            return;
        }
        let identity = if is_device { (0, found.rdev()) } else { (found.dev(), found.ino()) };
        if !self.files.contains_key(&identity) {
            if self.unseen.contains(&identity) {
                return;
            }
            let held = if self.files.len() < FILES_MAX {
                Held::open(&self.mounts, &path, is_device).ok()
            } else {
                None
            };
            let Some(mut held) = held else {
                self.unseen.insert(identity);
                return;
            };
            held.number = held.plain.try_clone().ok().and_then(|it| self.witness.watch(it));
            self.files.insert(identity, held);
        }
        let Some(held) = self.files.get_mut(&identity) else { return };
        held.is_direct |= flags.is_direct();
        held.is_buffered |= !flags.is_direct();
        held.sync = match held.sync {
            _ if flags.is_sync() => SyncFlag::Sync,
            SyncFlag::None if flags.is_dsync() => SyncFlag::Dsync,
            known => known,
        };
        held.descriptors.insert(path);
    }
}

impl Held {
    /// Opens the file behind a descriptor for observation only.
    fn open(mounts: &Mounts, path: &Path, is_device: bool) -> io::Result<Self> {
        // The descriptor may have been reused for a pipe in the meantime, which is not opened.
        let plain = BlockFile::open(path, Access::Read, false).map_err(io::Error::other)?;
        let plain = plain.into_file();
        let name = link_target(path).unwrap_or_default();
        let device = plain.metadata()?.dev();
        let number = (rustix::fs::major(device), rustix::fs::minor(device));
        let kind = mounts.holding(None, number, &name).map_or("", |mount| mount.kind.as_str());
        let kind = if is_device { "" } else { kind };
        Ok(Self {
            path: name.to_string_lossy().into_owned(),
            in_memory: cached::is_in_memory(&plain)?,
            caching: Caching::of(kind, is_device),
            plain,
            number: None,
            descriptors: HashSet::new(),
            is_direct: false,
            is_buffered: false,
            sync: SyncFlag::None,
        })
    }

    fn finding(&self, effect: Option<Effect>, processes: &Processes, unseen: &str) -> OpenFile {
        // The size of a device is the offset of its end.
        let size_bytes = rustix::fs::seek(&self.plain, SeekFrom::End(0)).unwrap_or(0);
        let cached = match cached::look_at(&self.plain, size_bytes, Instant::now() + PATIENCE) {
            Ok(Look::Cached(cached)) => Some(cached),
            _ => None,
        };
        let opened = match (self.is_direct, self.is_buffered) {
            (true, false) => Opened::Direct,
            (true, true) => Opened::Both,
            _ => Opened::Buffered,
        };
        let file_type = file_type(&self.path);
        let asked = requested::by_settings(&processes.settings, &self.path, file_type);
        let (requested, setting) = asked.unzip();
        let seen = Open { opened, cached, effect, held: self, unseen };
        let (class, evidence) = seen.classify();
        let total = effect.map(|effect| sum(&effect));
        OpenFile {
            path: self.path.clone(),
            file_type: file_type.name().to_owned(),
            descriptors: self.descriptors.len() as u64,
            opened,
            sync: self.sync,
            requested,
            setting,
            requested_sync: requested::sync_by_settings(&processes.settings, file_type),
            class,
            evidence,
            size_bytes,
            cached_bytes: cached.map(|it| it.cached_bytes),
            dirty_bytes: cached.map(|it| it.dirty_bytes),
            requests: total.map(|total| total.calls),
            cached_share: total
                .filter(|total| total.calls > 0)
                .map(|total| total.cached_calls as f64 / total.calls as f64),
        }
    }
}

/// Sums all requests to a file. AIO and `io_uring` requests are seen only when they enter the
/// direct path.
fn sum(effect: &Effect) -> Calls {
    let (direct, buffered) = (effect.all_direct(), effect.all_buffered());
    let others = effect.direct_ios.unwrap_or(0).saturating_sub(direct.calls);
    Calls {
        calls: direct.calls + buffered.calls + others,
        cached_calls: direct.cached_calls + buffered.cached_calls,
        ..Calls::default()
    }
}

/// Facts about an open file.
struct Open<'a> {
    opened: Opened,
    cached: Option<Cached>,
    effect: Option<Effect>,
    held: &'a Held,
    unseen: &'a str,
}

impl Open<'_> {
    fn classify(&self) -> (Class, String) {
        if self.held.in_memory {
            return (Class::Memory, "its file system keeps files in memory".to_owned());
        }
        let Some(effect) = self.effect else {
            return match self.opened {
                Opened::Buffered => self.opened_buffered("its I/O was not counted"),
                _ => (Class::Unknown, format!("its I/O was not counted: {}", self.unseen)),
            };
        };
        let (direct, buffered) = (effect.all_direct(), effect.all_buffered());
        let entered = effect.direct_ios.unwrap_or(0);
        if self.opened == Opened::Buffered && direct.calls == 0 {
            let what = match buffered.calls {
                0 => "no I/O was seen".to_owned(),
                calls => format!(
                    "{} of {calls} requests added {} to the page cache",
                    buffered.cached_calls,
                    pages(buffered.added_pages)
                ),
            };
            return self.opened_buffered(&what);
        }
        if direct.calls == 0 {
            return self.asynchronous(entered, effect.other_pages);
        }
        let calls = direct.calls;
        if direct.added_pages > 0 {
            let evidence = format!(
                "O_DIRECT is set, and {} of {calls} requests added {} to the page cache",
                direct.cached_calls,
                pages(direct.added_pages)
            );
            return self.left(evidence, direct.added_pages);
        }
        match self.held.caching {
            Caching::PageCache if entered >= calls => {
                (Class::Direct, format!("{calls} of {calls} took the direct path, no page added"))
            }
            Caching::PageCache if effect.direct_ios == Some(0) && self.is_cached() => {
                let evidence = format!("O_DIRECT is set, and none of {calls} took the direct path");
                self.left(evidence, 0)
            }
            Caching::OwnPath | Caching::Served if !self.is_cached() => {
                (Class::Direct, format!("{calls} requests added no page, and none is there"))
            }
            _ => (
                Class::Unknown,
                format!("{calls} requests, {entered} took the direct path, no page added"),
            ),
        }
    }

    /// Classifies AIO and `io_uring` requests, which are not calls for a file.
    fn asynchronous(&self, entered: u64, other_pages: u64) -> (Class, String) {
        match (entered, other_pages) {
            (0, 0) => (Class::Unknown, "no I/O was seen".to_owned()),
            (_, 0) => (
                Class::Direct,
                format!("{entered} (AIO or io_uring) took the direct path, no page added"),
            ),
            (0, _) if self.opened == Opened::Direct => {
                let evidence = format!(
                    "O_DIRECT is set, and AIO, io_uring or page faults added {} to the page cache",
                    pages(other_pages)
                );
                self.left(evidence, other_pages)
            }
            _ => {
                let evidence = format!(
                    "{entered} took the direct path, and {} were added by AIO, io_uring or page \
                     faults",
                    pages(other_pages)
                );
                (Class::Unknown, evidence)
            }
        }
    }

    fn opened_buffered(&self, evidence: &str) -> (Class, String) {
        let kept = self.cached.map(|it| format!("; {} are cached", Bytes(it.cached_bytes)));
        (
            Class::Buffered,
            format!("opened without O_DIRECT; {evidence}{}", kept.unwrap_or_default()),
        )
    }

    /// Classifies as buffered or dropped, by what is left of the added pages.
    fn left(&self, evidence: String, added_pages: u64) -> (Class, String) {
        match self.cached {
            Some(Cached { cached_bytes: 0, .. }) => {
                (Class::Dropped, format!("{evidence}; nothing stays cached"))
            }
            Some(cached) => {
                let kept = Bytes(cached.cached_bytes);
                let added_bytes = added_pages.saturating_mul(PAGE_BYTES);
                // Some of it is always cached while requests are served.
                let few = cached.cached_bytes.saturating_mul(FEW) <= added_bytes;
                let class = if few { Class::Dropped } else { Class::Buffered };
                (class, format!("{evidence}; {kept} are cached"))
            }
            None => (Class::Buffered, evidence),
        }
    }

    fn is_cached(&self) -> bool {
        self.cached.is_none_or(|cached| cached.cached_bytes > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use blockstone_testkit::{ScratchDir, require};

    use super::*;

    struct Quiet;

    impl Observer for Quiet {}

    fn fio(dir: &Path, engine: &str) -> Child {
        let mut fio = Command::new("fio");
        fio.args(["--name=x", "--thread", "--rw=randread", "--bs=4k", "--size=1m", "--direct=1"]);
        fio.args(["--time_based", "--runtime=60", "--rate_iops=500", "--iodepth=4"]);
        fio.arg(format!("--ioengine={engine}")).arg(format!("--filename={engine}"));
        fio.current_dir(dir).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn a_process_that_does_not_wait_for_its_requests_is_told_from_one_that_does() {
        require!(Bpf, Fio, Uring);
        let scratch = ScratchDir::on_disk().unwrap();
        let engines = [("psync", "blocking"), ("libaio", "aio"), ("io_uring", "io_uring")];
        let mut children = engines.map(|(engine, _)| fio(scratch.path(), engine));
        for ((engine, expected), child) in engines.iter().zip(&children) {
            let processes = Processes {
                subject: String::new(),
                pid: child.id(),
                duration: Duration::from_millis(100),
                settings: Vec::new(),
            };
            // It lays out its file first, in calls that block.
            let found = (0..100).find_map(|_| {
                let found = of_processes(&processes, &mut Quiet).unwrap();
                let requested = found.requested().unwrap();
                (requested.how() == *expected).then_some(found)
            });
            let found = found.unwrap_or_else(|| panic!("{engine}"));
            let [it] = &found.submitters[..] else { panic!("{engine}: {found:#?}") };
            assert_eq!(it.pid, child.id());
            assert!(it.title.starts_with("fio "), "{it:?}");
            assert_eq!(it.rings, Some(u64::from(*engine == "io_uring")), "{it:?}");
            assert_eq!(it.aio_contexts.is_some_and(|it| it > 0), *engine == "libaio", "{it:?}");
        }
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
