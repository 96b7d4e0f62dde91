//! Tests whether ranks (descriptors, mounts, hosts) see each other's writes, and when.
//!
//! Rank 0 tells the others what to do, one operation at a time or all at once, and judges what they
//! saw: [`history`] decides whether one register per address explains it. Every version is written
//! once, so that the two operations that contradict each other can be named.

mod agent;
mod ask;
mod data;
pub mod findings;
mod held;
pub mod history;
mod names;
mod ranks;
mod session;
mod stamp;
#[cfg(test)]
mod tests;
mod truncate;

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::coherence::findings::{Class, CoherenceFindings};
use blockstone_base::identity::PathKind;
use blockstone_measure::claim::{self, ClaimError};
use blockstone_measure::{Observer, scratch};
use blockstone_sys::clock::now_ns;
use blockstone_sys::file::{Access, BlockFile};
use blockstone_sys::path::whole;
use blockstone_sys::survey;
use rustix::io::Errno;

use crate::CheckError;
use crate::meet::{self, Hello, LinkError};
use agent::{Agent, Place};
pub use ask::{Ask, Reply};
use ask::{BLOCKS, FILE_BYTES, STRIDE_BYTES};
use ranks::Rank;
use session::{Outcome, Session};
use stamp::BLOCK_BYTES;

const CHECK: &str = "coherence";
/// File systems that no other machine can mount at the same time.
const LOCAL: [&str; 6] = ["ext2", "ext3", "ext4", "xfs", "f2fs", "tmpfs"];
/// Time that ranks wait for each other to connect.
const MEET_WITHIN: Duration = Duration::from_mins(1);

/// Subjects and limits of a check.
#[derive(Clone, Debug)]
pub struct Plan {
    /// One path per rank of this process.
    pub paths: Vec<PathBuf>,
    /// Devices that may be overwritten.
    pub destroy: Vec<PathBuf>,
    /// ID that names the files of this check.
    pub id: u64,
    /// Number of writes per case.
    pub rounds: u32,
    /// Time that a reader waits for a write.
    pub patience: Duration,
    pub free_run: Duration,
    /// Time after the start from which nothing new is tried.
    pub limit: Duration,
}

/// Where the processes of one check meet.
#[derive(Clone, Debug)]
pub struct Meeting {
    /// `HOST:PORT` of rank 0.
    pub address: String,
    pub rank: u32,
    pub ranks: u32,
}

/// Checks the paths of the plan against each other. Each path is a rank with a thread of its own in
/// this process. Fails if a path cannot be used; writes that other ranks do not see are a finding.
pub fn of_paths(plan: &Plan, observer: &mut dyn Observer) -> Result<CoherenceFindings, CheckError> {
    let (ranks, targets) = local_ranks(plan)?;
    coordinate(plan, ranks, targets, observer)
}

/// Checks the path of the plan against those of the other processes that meet there. All of them
/// return the findings.
pub fn of_hosts(
    plan: &Plan,
    meeting: &Meeting,
    observer: &mut dyn Observer,
) -> Result<CoherenceFindings, CheckError> {
    let hello = Hello::new(CHECK, meeting.rank, meeting.ranks);
    if meeting.rank > 0 {
        let (agent, target) = agent_of(plan, &plan.paths[0])?;
        let interrupted = || observer.interrupted().is_some();
        let mut link = match meet::connect(&meeting.address, &hello, MEET_WITHIN, &interrupted) {
            Err(LinkError::Interrupted) => return Ok(ended(&target, observer)),
            link => link?,
        };
        link.tell(&target.about)?;
        let found = ranks::serve(agent, &mut link, &interrupted)?;
        return Ok(found.unwrap_or_else(|| ended(&target, observer)));
    }
    let (mut ranks, mut targets) = local_ranks(plan)?;
    let interrupted = || observer.interrupted().is_some();
    let links = match meet::gather(&meeting.address, &hello, MEET_WITHIN, &interrupted) {
        Err(LinkError::Interrupted) => return Ok(ended(&targets[0], observer)),
        links => links?,
    };
    for mut link in links {
        let about: String = link.hear(MEET_WITHIN)?.ok_or(CheckError::RankGone)?;
        let about = about.chars().filter(|it| !it.is_control()).take(200).collect();
        targets.push(Target { about, kind: targets[0].kind });
        ranks.push(Rank::process(link)?);
    }
    coordinate(plan, ranks, targets, observer)
}

/// Returns the findings of a rank whose check ended before it knew the results.
fn ended(target: &Target, observer: &dyn Observer) -> CoherenceFindings {
    CoherenceFindings {
        subject: target.about.clone(),
        ranks: Vec::new(),
        clock_bound_ns: 0,
        patience_ns: 0,
        cells: Vec::new(),
        notes: vec!["The check ended before all was tried.".to_owned()],
        unfinished: true,
        signal: observer.interrupted().map(str::to_owned),
    }
}

/// Makes a file in a directory that checks may write to later, on all mounts that have it, for
/// cases in which one of them does not see new files.
pub fn prepare(dir: &Path, id: u64) -> Result<PathBuf, CheckError> {
    claim::directory(dir)?;
    let path = dir.join(scratch::kept_name(id, CHECK));
    let file = BlockFile::create_new(&path, false)?;
    let mut block = vec![0; BLOCK_BYTES];
    let failed = |errno| file.error("write", io::Error::from_raw_os_error(errno));
    file.set_size(FILE_BYTES)?;
    for number in 0..BLOCKS {
        stamp::write(id, stamp::sectors_before(number.into()), 1, &mut block);
        file.write_at(u64::from(number) * STRIDE_BYTES, &block).map_err(failed)?;
    }
    file.fsync().map_err(failed)?;
    Ok(path)
}

#[derive(Debug)]
struct Target {
    about: String,
    kind: PathKind,
}

fn local_ranks(plan: &Plan) -> Result<(Vec<Rank>, Vec<Target>), CheckError> {
    let mut agents = Vec::new();
    let mut targets: Vec<Target> = Vec::new();
    for path in &plan.paths {
        let (agent, target) = agent_of(plan, path)?;
        if targets.first().is_some_and(|first| first.kind != target.kind) {
            let why = "the paths are not of the same kind";
            let hint = "name directories, prepared files or block devices, not some of each";
            return Err(CheckError::Target { path: path.clone(), why, hint });
        }
        targets.push(target);
        agents.push(agent);
    }
    if targets.iter().all(|target| target.kind == PathKind::Directory) {
        check_one_directory(plan)?;
    }
    Ok((agents.into_iter().map(Rank::thread).collect::<Result<_, _>>()?, targets))
}

/// Refuses unrelated directories, in which every case would fail: two of the same file system of
/// this machine alone. Directories on two file systems may still be one, like those of two devices
/// over the same bytes.
fn check_one_directory(plan: &Plan) -> Result<(), CheckError> {
    let number = |path: &Path| -> Option<(u64, u64)> {
        let found = survey::target(Path::new("/"), path).ok()?;
        let is_local = found.file_system.is_some_and(|it| LOCAL.contains(&&*it.kind));
        let found = blockstone_sys::path::look(path).ok().filter(|_| is_local)?;
        Some((found.dev(), found.ino()))
    };
    let first = plan.paths.first().and_then(|path| number(path));
    let is_other =
        |path: &&PathBuf| first.zip(number(path)).is_some_and(|(a, b)| a.0 == b.0 && a.1 != b.1);
    let Some(path) = plan.paths.iter().find(is_other) else { return Ok(()) };
    let why = "it is another directory, which has nothing to do with the first";
    let hint = "name one directory by several paths, such as two mounts of it";
    Err(CheckError::Target { path: path.clone(), why, hint })
}

fn agent_of(plan: &Plan, path: &Path) -> Result<(Agent, Target), CheckError> {
    let found = survey::target(Path::new("/"), path)?;
    let kind = found.kind;
    let file_system = found.file_system.as_ref().map_or("device", |it| it.kind.as_str());
    let about = format!("{} ({file_system})", found.path);
    let path = PathBuf::from(&found.path);
    let target_error = |why, hint| CheckError::Target { path: path.clone(), why, hint };
    let (can_write, place) = match kind {
        PathKind::Directory => {
            let can_write = match claim::directory(&path) {
                Ok(()) => true,
                Err(ClaimError::NotWritable { why, .. })
                    if why.raw_os_error() == Some(Errno::ROFS.raw_os_error()) =>
                {
                    false
                }
                Err(error) => return Err(error.into()),
            };
            let hint = "free some space, or choose another directory";
            let error = |source| CheckError::Scratch { dir: path.clone(), source, hint };
            (can_write, Place::directory(&path, can_write).map_err(error)?)
        }
        PathKind::File => {
            let file = BlockFile::open(&path, Access::Read, false)?;
            if !is_ours(&file) || file.size_bytes()? < FILE_BYTES {
                let hint = "name a directory, or make the file with --prepare DIR";
                return Err(target_error("it was not made for this check", hint));
            }
            (file.reopen(Access::ReadWrite, false).is_ok(), Place::File(file))
        }
        PathKind::BlockDevice => (true, Place::Device(device(plan, &path)?)),
    };
    Ok((Agent::new(place, can_write)?, Target { about, kind }))
}

/// Claims a device, which has to be empty and at least as large as the file of this check.
fn device(plan: &Plan, path: &Path) -> Result<BlockFile, CheckError> {
    let is_same = |it: &PathBuf| whole(it).is_ok_and(|it| it == path);
    let instead = Some("name a directory on it instead");
    let wanted = claim::Device { path, destroy: plan.destroy.iter().any(is_same), instead };
    let all = plan.paths.iter().filter(|it| plan.destroy.contains(it));
    let names = all.filter_map(|it| whole(it).ok());
    let names: Vec<String> =
        names.filter_map(|it| Some(it.file_name()?.to_str()?.to_owned())).collect();
    let is_remains = |path: &Path| Ok(is_ours(&BlockFile::open(path, Access::Read, false)?));
    wanted.claim_beside(&names, is_remains)?;
    let file = BlockFile::open_device(path, false)?;
    if file.size_bytes()? < FILE_BYTES {
        let (why, hint) = ("it has less than 16 MiB", "use a larger device");
        return Err(CheckError::Target { path: path.to_owned(), why, hint });
    }
    Ok(file)
}

fn is_ours(file: &BlockFile) -> bool {
    let mut sector = [0; stamp::SECTOR_BYTES];
    file.read_at(0, &mut sector).is_ok_and(|bytes| bytes == sector.len()) && stamp::is_ours(&sector)
}

fn coordinate(
    plan: &Plan,
    ranks: Vec<Rank>,
    targets: Vec<Target>,
    observer: &mut dyn Observer,
) -> Result<CoherenceFindings, CheckError> {
    let clock_bound_ns = ranks.iter().map(|rank| rank.bound_ns).max().unwrap_or_default();
    let mut session = session(plan, ranks, observer);
    let tried = try_all(&mut session, plan, &targets);
    let mut findings = CoherenceFindings {
        subject: subject(plan, &targets),
        ranks: targets.into_iter().map(|it| it.about).collect(),
        clock_bound_ns,
        patience_ns: plan.patience.as_nanos() as u64,
        cells: std::mem::take(&mut session.cells),
        notes: std::mem::take(&mut session.notes),
        unfinished: session.unfinished,
        signal: session.observer.interrupted().map(str::to_owned),
    };
    findings.notes.sort();
    for rank in &mut session.ranks {
        // Each removes what it made. A rank that is gone cannot.
        let ended = rank.ask(Ask::End(Some(Box::new(findings.clone()))));
        if tried.is_ok() {
            ended?;
        }
    }
    tried.map(|()| findings)
}

fn session<'a>(plan: &Plan, ranks: Vec<Rank>, observer: &'a mut dyn Observer) -> Session<'a> {
    Session {
        ranks,
        observer,
        rounds: plan.rounds,
        patience: plan.patience,
        free_run_ms: plan.free_run.as_millis() as u32,
        until: Instant::now() + plan.limit,
        unfinished: false,
        opened: Vec::new(),
        began_ns: now_ns(),
        cells: Vec::new(),
        notes: Vec::new(),
        next_version: 1,
        next_block: 0,
        next_name: 0,
    }
}

fn subject(plan: &Plan, targets: &[Target]) -> String {
    let mut names: Vec<String> = plan.paths.iter().map(|it| it.display().to_string()).collect();
    names.extend(targets.iter().skip(names.len()).map(|it| it.about.clone()));
    names.dedup();
    names.join(" and ")
}

fn try_all(session: &mut Session<'_>, plan: &Plan, targets: &[Target]) -> Result<(), CheckError> {
    let is_directory = targets[0].kind == PathKind::Directory;
    start(session, plan, is_directory)?;
    if session.opened.len() > 1 {
        data::ping_pong(session)?;
        data::free_run(session)?;
        data::false_sharing(session)?;
        // A device or file shared by mounts that do not know of each other is not truncated.
        if is_directory {
            truncate::all(session)?;
        }
        if targets[0].kind != PathKind::BlockDevice {
            names::locks(session)?;
        }
    }
    if is_directory {
        names::all(session)?;
    }
    Ok(())
}

/// Makes the file, and opens it at all ranks.
fn start(session: &mut Session<'_>, plan: &Plan, is_directory: bool) -> Result<(), CheckError> {
    if !session.ranks[0].can_write {
        let why = "rank 0 cannot write there";
        let hint = "name the path that can be written to first";
        return Err(CheckError::Target { path: plan.paths[0].clone(), why, hint });
    }
    if is_directory {
        scratch::remove_orphans(&plan.paths[0], &[]);
    }
    for rank in 0..session.ranks.len() {
        if !session.ranks[rank].can_write {
            session.notes.push(format!("Rank {rank} can only read."));
        }
        let _ = session.ask(rank, Ask::Start { id: plan.id })?;
    }
    if let Err(errno) = session.ask(0, Ask::Create)? {
        let (doing, error) = ("create a file", crate::evidence::name_of(errno));
        let hint = "free some space, or choose another directory";
        return Err(CheckError::Rank { doing, rank: 0, error, hint });
    }
    open(session)
}

/// Returns whether an existing file cannot be opened because this rank has old metadata: a
/// directory without the file, or the former content of its blocks.
fn is_stale(error: i32) -> bool {
    [Errno::NOENT, Errno::STALE, Errno::BADMSG, Errno::UCLEAN]
        .iter()
        .any(|stale| stale.raw_os_error() == error)
}

/// Opens the file at all ranks. A rank that does not see the file of rank 0 cannot read it.
fn open(session: &mut Session<'_>) -> Result<(), CheckError> {
    let began_ns = now_ns();
    for rank in 0..session.ranks.len() {
        let mut last = 0;
        let opened = session.wait_for(began_ns, session.patience, &mut |session| {
            let answer = session.ask(rank, Ask::Open { to_write: true })?;
            last = answer.as_ref().err().copied().unwrap_or_default();
            Ok(Ok(answer.is_ok()))
        })?;
        if opened.is_ok_and(|it| it.lag_ns.is_some()) {
            session.opened.push(rank);
            continue;
        }
        let error = crate::evidence::name_of(last);
        if rank == 0 || !is_stale(last) {
            let hint = "check the permissions of the path at that rank";
            return Err(CheckError::Rank { doing: "open the file", rank, error, hint });
        }
        session.notes.push(format!(
            "Rank {rank} does not see the file of rank 0, so that no data were compared. A file \
             that both see can be made with --prepare before the second mount."
        ));
        let evidence = format!("rank 0 to {rank}: the file was not seen: {error}");
        let outcome = Outcome { operations: 1, stale: 1, ..Outcome::new(Class::Never, evidence) };
        session.push("open".to_owned(), outcome);
    }
    Ok(())
}
