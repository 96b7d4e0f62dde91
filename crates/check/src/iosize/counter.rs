//! Kernel counters of sizes, and the location of the files that they belong to.

use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use blockstone_base::Capability;
use blockstone_measure::Observer;
use blockstone_sys::account;
use blockstone_sys::bpf::Subject;
use blockstone_sys::bpf::iosize::{IoObject, OfSize, SizeTracer};
use blockstone_sys::held::HeldDir;
use blockstone_sys::path;
use blockstone_sys::survey::Mounts;

use crate::evidence::Kernel;

/// PID namespace in which the kernel counts, `linux/proc_ns.h`.
const INITIAL_PID_NAMESPACE: u64 = 0xefff_fffc;
/// Maximum number of files that are written back at the end.
const FLUSHED: usize = 1_000;

#[derive(Debug)]
pub struct Counter {
    kernel: Kernel<SizeTracer>,
    mounts: Mounts,
}

impl Counter {
    pub fn start() -> Self {
        let mut kernel = Kernel::start(SizeTracer::start);
        if !is_initial_namespace() {
            kernel.lose("this is not the initial PID namespace, whose ids the kernel counts by");
        }
        Self { kernel, mounts: Mounts::read(Path::new("/")) }
    }

    /// Starts counters that tell apart which process asks.
    pub fn by_process() -> Self {
        let mut counter = Self::start();
        let _ = counter.kernel.ask(|tracer| tracer.tell_processes_apart());
        counter
    }

    pub fn capability(&self) -> Capability {
        self.kernel.capability()
    }

    pub fn want(&mut self, pid: u32) {
        self.kernel.ask(|tracer| tracer.want(pid));
    }

    /// Has a process and all its descendants counted. They are listed repeatedly until there are no
    /// new ones, because a child may be created meanwhile. The children of a counted process are
    /// counted from their start.
    pub fn follow(&mut self, root: &Path, family: &dyn Fn() -> BTreeSet<u32>) {
        while let Some(living) = self.living() {
            let family = family();
            let is_there = |pid: &&u32| account::process(root, **pid).is_some();
            let new: Vec<&u32> = family.difference(&living).filter(is_there).collect();
            if new.is_empty() {
                return;
            }
            for pid in new {
                self.want(*pid);
            }
        }
    }

    pub fn forget(&mut self, pid: u32) {
        self.kernel.ask(|tracer| tracer.forget(pid));
    }

    /// Returns the processes that are counted and have not ended.
    pub fn living(&mut self) -> Option<BTreeSet<u32>> {
        self.kernel.ask(SizeTracer::living)
    }

    pub fn dropped(&self) -> u64 {
        self.kernel.get().map_or(0, SizeTracer::dropped)
    }

    /// Returns what this kernel does not show.
    pub fn blind(&self) -> Vec<String> {
        let Some(tracer) = self.kernel.get() else { return Vec::new() };
        let all = [
            (tracer.sees_faults, "page faults"),
            (tracer.sees_mapped_writes, "writes to mapped files"),
            (tracer.sees_rings, "io_uring"),
        ];
        let blind = all.into_iter().filter(|(sees, _)| !sees);
        blind.map(|(_, what)| what.to_owned()).collect()
    }

    pub fn sizes(&mut self) -> Vec<OfSize> {
        self.kernel.ask(SizeTracer::sizes).unwrap_or_default()
    }

    /// Returns the name of each place.
    pub fn names(&mut self, sizes: &[OfSize]) -> HashMap<IoObject, String> {
        let mut names = HashMap::new();
        for OfSize { place, .. } in sizes {
            if !names.contains_key(place) {
                names.insert(*place, self.name_of(place));
            }
        }
        names
    }

    fn name_of(&mut self, place: &IoObject) -> String {
        let device = place.device();
        match place.subject() {
            Subject::File { .. } => match self.inner_path(place) {
                Some(inner) => self.path_of(place, &inner).map_or(inner, |path| path.1),
                None => "a file without a name".to_owned(),
            },
            Subject::Device => format!("device {}:{}", device.major, device.minor),
            Subject::Metadata => "file system metadata".to_owned(),
            Subject::Swap => "swap".to_owned(),
            Subject::Nothing => "no file".to_owned(),
        }
    }

    fn inner_path(&mut self, place: &IoObject) -> Option<String> {
        self.kernel.ask(|tracer| tracer.path_of(place)).flatten()
    }

    /// Returns whether the path leads to this very file, and the path: where it does, or where it
    /// would if the file had not been removed.
    fn path_of(&self, place: &IoObject, inner: &str) -> Option<(bool, String)> {
        let Subject::File { inode, .. } = place.subject() else { return None };
        let device = place.device();
        let number = format!("{}:{}", device.major, device.minor);
        let mounts = self.mounts.iter().filter(|mount| mount.number == number);
        let paths: Vec<PathBuf> = mounts
            .filter_map(|mount| {
                let below = Path::new(inner).strip_prefix(&mount.root).ok()?;
                Some(mount.mount_point.join(below))
            })
            .collect();
        let is_it = |path: &&PathBuf| {
            path::look_at_name(path).is_ok_and(|it| it.is_file() && it.ino() == inode)
        };
        let found = paths.iter().find(is_it);
        let text = |path: &PathBuf| path.display().to_string();
        found.map(|path| (true, text(path))).or_else(|| Some((false, text(paths.first()?))))
    }

    /// Has written data that is still in memory only written to the device, so that its requests
    /// are counted.
    pub fn write_back(&mut self, observer: &mut dyn Observer) {
        let sizes = self.sizes();
        let mut files: Vec<IoObject> =
            sizes.iter().filter(|size| size.is_write).map(|size| size.place).collect();
        files.sort_unstable();
        files.dedup();
        for place in files.iter().take(FLUSHED) {
            if observer.interrupted().is_some() {
                return;
            }
            let Some(inner) = self.inner_path(place) else { continue };
            let Some((true, path)) = self.path_of(place, &inner) else { continue };
            let file = HeldDir::hold_parent(Path::new(&path)).and_then(|(dir, it)| dir.read(&it));
            // A file that cannot be written back stays in memory, and its requests are not seen.
            let _ = file.and_then(|file| file.sync_data());
        }
    }
}

fn is_initial_namespace() -> bool {
    path::look(Path::new("/proc/self/ns/pid")).is_ok_and(|it| it.ino() == INITIAL_PID_NAMESPACE)
}
