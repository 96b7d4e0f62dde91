//! Findings on mounts whose caching behaviour and lifetime are known.

use std::thread;

use crate::coherence::findings::{ReadMode, WriteMode};
use blockstone_testkit::{FuseCache, FuseMounts, require};

use super::*;

struct Quiet;

impl Observer for Quiet {}

/// Longer than what counts as merely late, plus a second in which the machine may be busy.
const KEPT: Duration = Duration::from_secs(2);

fn plan(mounts: &FuseMounts, patience: Duration) -> Plan {
    Plan {
        paths: mounts.paths().to_vec(),
        destroy: Vec::new(),
        id: 4711,
        rounds: 1,
        patience,
        free_run: Duration::from_millis(20),
        limit: Duration::from_mins(1),
    }
}

/// Runs a part of the check, with a rank on each of some mounts.
fn tried<T, const MOUNTS: usize>(
    caches: [FuseCache; MOUNTS],
    patience: Duration,
    part: impl FnOnce(&mut Session<'_>) -> Result<T, CheckError>,
) -> T {
    let mounts = FuseMounts::create(&caches).unwrap();
    let plan = plan(&mounts, patience);
    let (ranks, _) = local_ranks(&plan).unwrap();
    let mut observer = Quiet;
    let mut session = session(&plan, ranks, &mut observer);
    start(&mut session, &plan, true).unwrap();
    let found = part(&mut session).unwrap();
    for rank in &mut session.ranks {
        rank.ask(Ask::End(None)).unwrap();
    }
    let left = std::fs::read_dir(&mounts.paths()[0]).unwrap().count();
    assert_eq!(left, 0, "nothing is left");
    found
}

/// Returns the class of what rank 1 reads after rank 0 wrote.
fn class_of(session: &mut Session<'_>, write: WriteMode, read: ReadMode) -> Class {
    let outcome = data::one_way(session, (0, 1), write, read).unwrap();
    assert!(outcome.errno.is_none(), "{outcome:?}");
    outcome.class
}

#[test]
fn a_mount_that_drops_pages_when_a_file_is_opened_is_close_to_open() {
    require!(Fuse);
    let mounts = FuseMounts::create(&[FuseCache::UNTIL_OPENED; 2]).unwrap();
    let plan = plan(&mounts, Duration::from_millis(100));
    let found = of_paths(&plan, &mut Quiet).unwrap();
    let class = |case: &str| {
        let cell = found.cells.iter().find(|cell| cell.case == case);
        cell.unwrap_or_else(|| panic!("{case}: {found:#?}")).class
    };
    for write in WriteMode::ALL {
        let of = |read: &ReadMode| class(&format!("ping-pong/{}/{}", write.name(), read.name()));
        let found: Vec<Class> = ReadMode::ALL.iter().map(of).collect();
        let (fresh, late) = (Class::Linearizable, Class::Reopen);
        assert_eq!(found, [late, fresh, fresh, late], "{write:?}");
    }
    for (case, expected) in [
        ("truncate/held", Class::Reopen),
        ("truncate/reopened", Class::Linearizable),
        ("truncate/direct", Class::Linearizable),
        ("truncate/mapped", Class::Reopen),
        ("free-run/direct/direct", Class::Linearizable),
        ("false-sharing/fdatasync", Class::Linearizable),
        // A page is written as a whole, with its copy of the neighbour's data.
        ("false-sharing/mapped", Class::Torn),
        // Each mount has its own locks and its own size of the file.
        ("lock/exclusion", Class::Torn),
        ("lock/fence", Class::Never),
        ("name/append", Class::Torn),
        ("name/create", Class::Never),
        ("name/list", Class::Linearizable),
        ("name/extend", Class::Never),
        ("name/truncate", Class::Never),
        ("name/chmod", Class::Never),
        ("name/rename", Class::Never),
        ("name/rename-over", Class::Never),
        ("name/remove", Class::Never),
        ("name/list-removed", Class::Linearizable),
        ("name/open-removed", Class::Never),
        ("name/replace", Class::Never),
        ("name/open-renamed-over", Class::Never),
        ("name/list-renamed", Class::Linearizable),
        ("name/list-removed-elsewhere", Class::Linearizable),
        ("name/open-removed-elsewhere", Class::Never),
        ("name/exclusive-create", Class::Linearizable),
    ] {
        assert_eq!(class(case), expected, "{case}: {found:#?}");
    }
    let mut cells = found.cells.iter();
    let reopened = cells.find(|cell| cell.case == "ping-pong/direct/held").unwrap();
    assert!(reopened.witness.is_some(), "{reopened:?}");
    assert!(reopened.evidence.ends_with("read after opening again"), "{reopened:?}");
    assert_eq!(std::fs::read_dir(&mounts.paths()[0]).unwrap().count(), 0, "nothing is left");
}

/// Returns for each descriptor of this process on the file of a mount whether it can write.
fn can_write(mount: &Path) -> Vec<bool> {
    let link = |fd: &PathBuf| std::fs::read_link(fd).is_ok_and(|to| to.starts_with(mount));
    let flags = |fd: PathBuf| {
        let info = std::fs::read_to_string(fd.to_str()?.replace("/fd/", "/fdinfo/")).ok()?;
        let octal = info.lines().find_map(|line| line.strip_prefix("flags:"))?.trim();
        u32::from_str_radix(octal, 8).ok()
    };
    let fds = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    fds.filter(link).filter_map(flags).map(|flags| flags & 3 != 0).collect()
}

/// Checks that readers have nothing open for writing: an NFS client that has a file open for
/// writing does not see what others write to it.
#[test]
fn who_only_reads_has_nothing_open_to_write() {
    require!(Fuse);
    let mounts = FuseMounts::create(&[FuseCache::NOTHING; 2]).unwrap();
    let plan = plan(&mounts, Duration::from_secs(3));
    let (ranks, _) = local_ranks(&plan).unwrap();
    let mut observer = Quiet;
    let mut session = session(&plan, ranks, &mut observer);
    start(&mut session, &plan, true).unwrap();
    for pair in [(0, 1), (1, 0)] {
        let (write, read) = (WriteMode::Buffered, ReadMode::Held);
        data::one_way(&mut session, pair, write, read).unwrap();
        let [writer, reader] = [pair.0, pair.1].map(|rank| can_write(&mounts.paths()[rank]));
        assert!(writer.contains(&true), "{writer:?}");
        assert!(!reader.is_empty() && !reader.contains(&true), "{reader:?}");
    }
}

#[test]
fn a_mount_that_keeps_all_for_a_time_is_fresh_after_it() {
    require!(Fuse);
    let kept = |time| [FuseCache::NOTHING, FuseCache::for_a_time(time)];
    let data = [(WriteMode::Buffered, ReadMode::Held), (WriteMode::Direct, ReadMode::Reopened)];
    let names = [names::Change::Create, names::Change::RenameOver];
    thread::scope(|scope| {
        for (write, read) in data {
            scope.spawn(move || {
                let part = |session: &mut Session<'_>| Ok(class_of(session, write, read));
                assert_eq!(tried(kept(KEPT), KEPT * 5, part), Class::Timer, "{write:?} {read:?}");
            });
        }
        for change in names {
            scope.spawn(move || {
                let part = |session: &mut Session<'_>| names::changed(session, change, (0, 1));
                let outcome = tried(kept(KEPT), KEPT * 5, part);
                assert_eq!(outcome.class, Class::Timer, "{outcome:?}");
                assert!(outcome.lags.iter().all(|ns| *ns > 1_000_000_000), "{outcome:?}");
            });
        }
        scope.spawn(move || {
            let part =
                |session: &mut Session<'_>| truncate::cut_off(session, ReadMode::Held, (0, 1));
            let outcome = tried(kept(KEPT), KEPT * 5, part);
            assert_eq!(outcome.class, Class::Timer, "{outcome:?}");
        });
        scope.spawn(move || {
            let part = |session: &mut Session<'_>| {
                Ok(class_of(session, WriteMode::Buffered, ReadMode::Held))
            };
            let class = tried(kept(Duration::from_millis(200)), KEPT, part);
            // On a busy machine it may take longer.
            assert!([Class::Sequential, Class::Timer].contains(&class), "{class:?}");
        });
    });
}

#[test]
fn mounts_that_keep_nothing_or_all_are_told_apart() {
    require!(Fuse);
    let patience = Duration::from_millis(60);
    tried([FuseCache::FOREVER; 2], patience, |session| {
        let write = WriteMode::Fdatasync;
        let of = |read: &ReadMode| class_of(session, write, *read);
        let found: Vec<Class> = ReadMode::ALL.iter().map(of).collect();
        let (never, fresh) = (Class::Never, Class::Linearizable);
        assert_eq!(found, [never, never, fresh, never]);
        let cut = truncate::cut_off(session, ReadMode::Reopened, (0, 1))?;
        assert_eq!(cut.class, Class::Never, "{cut:?}");
        Ok(())
    });
    tried([FuseCache::NOTHING; 2], patience * 50, |session| {
        for read in [ReadMode::Held, ReadMode::Reopened, ReadMode::Direct] {
            assert_eq!(class_of(session, WriteMode::Buffered, read), Class::Linearizable);
            let cut = truncate::cut_off(session, read, (0, 1))?;
            assert_eq!(cut.class, Class::Linearizable, "{cut:?}");
        }
        // A file without pages cannot be mapped.
        let outcome = data::one_way(session, (0, 1), WriteMode::Mapped, ReadMode::Held)?;
        assert_eq!((outcome.class, outcome.errno), (Class::Unknown, Some(19)), "{outcome:?}");
        for change in [
            names::Change::Create,
            names::Change::Truncate,
            names::Change::RenameOver,
            names::Change::ListRemoved,
            names::Change::OpenRemoved,
            names::Change::Replace,
            names::Change::ListRenamed,
            names::Change::ListRemovedElsewhere,
            names::Change::OpenRemovedElsewhere,
        ] {
            let outcome = names::changed(session, change, (0, 1))?;
            assert_eq!(outcome.class, Class::Linearizable, "{outcome:?}");
        }
        Ok(())
    });
}

/// One rank creates, another removes: the first and a third list and open what is gone.
#[test]
fn a_file_that_another_rank_removed_is_looked_for_at_all_the_others() {
    require!(Fuse);
    let caches = [FuseCache::NOTHING, FuseCache::NOTHING, FuseCache::UNTIL_OPENED];
    tried(caches, Duration::from_millis(60), |session| {
        // The removing rank is 1, the creating one 0.
        let listed = names::changed(session, names::Change::ListRemovedElsewhere, (1, 0))?;
        assert_eq!(listed.class, Class::Linearizable, "{listed:?}");
        let opened = names::changed(session, names::Change::OpenRemovedElsewhere, (1, 0))?;
        assert_eq!(opened.class, Class::Never, "{opened:?}");
        assert!(opened.evidence.starts_with("rank 1 to 2: not seen for"), "{opened:?}");
        Ok(())
    });
}

#[test]
fn an_open_file_is_read_as_it_was_after_its_removal() {
    require!(Root);
    let scratch = blockstone_testkit::ScratchDir::on_disk().unwrap();
    let paths = vec![scratch.path().to_owned(); 2];
    let plan = Plan {
        paths,
        destroy: Vec::new(),
        id: 4712,
        rounds: 10,
        patience: Duration::from_secs(3),
        free_run: Duration::ZERO,
        limit: Duration::from_mins(1),
    };
    let (ranks, _) = local_ranks(&plan).unwrap();
    let mut observer = Quiet;
    let mut session = session(&plan, ranks, &mut observer);
    start(&mut session, &plan, true).unwrap();
    let held = held::removed(&mut session, (0, 1)).unwrap();
    assert_eq!((held.class, held.stale), (Class::Linearizable, 0), "{held:?}");
    let replaced = names::changed(&mut session, names::Change::Replace, (0, 1)).unwrap();
    assert!(replaced.evidence.contains("had the inode number"), "{replaced:?}");
    for rank in &mut session.ranks {
        rank.ask(Ask::End(None)).unwrap();
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing is left");
}
