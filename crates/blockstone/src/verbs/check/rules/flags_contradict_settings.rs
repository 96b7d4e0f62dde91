//! Files that a server opens with flags other than its settings call for.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::verdict::Weight;
use blockstone_check::direct::findings::{DirectFindings, OpenFile};

const ABOUT: About = About {
    id: "flags-contradict-settings",
    weight: Weight::Warns,
    doc: "A server's settings ask for files to be opened past the page cache, or through it, and \
          the flags of its descriptors say otherwise; or likewise for writes that are durable by \
          themselves.",
    threshold: "Any file whose descriptors have O_DIRECT, all or none, against what \
                debug_io_direct (PostgreSQL 16), innodb_data_file_buffering and \
                innodb_log_file_buffering (MariaDB) or innodb_flush_method ask for, or only some \
                of whose descriptors have it; any redo file without the flag that wal_sync_method \
                asks for (open_datasync: O_DSYNC, open_sync: O_SYNC), or with one that it does \
                not. Inconclusive without a server, without such \
                settings, and where none of the files they concern is open.",
    cause: "The file system refused O_DIRECT and the server went on without it; or another program \
            of the same family opened the file.",
    next: "Look into the server's log for a warning about O_DIRECT, and check the path of the file \
           with blockstone check direct PATH.",
};

pub(super) const RULE: RuleOf<DirectFindings> =
    RuleOf::new(&ABOUT, |found| Judgement::when(!found.is_of_path(), || check(found)));

fn check(findings: &DirectFindings) -> Judgement {
    let asked: Vec<&OpenFile> = findings.files.iter().filter(|file| is_asked(file)).collect();
    if asked.is_empty() {
        return Judgement::inconclusive("no settings say how an open file is to be opened");
    }
    let wrong: Vec<&&OpenFile> = asked.iter().filter(|file| file.disagrees()).collect();
    let Some(first) = wrong.first() else {
        let count = asked.len();
        return Judgement::pass(format!("{count} of {count} files are opened as set"));
    };
    let asks = match first.requested.filter(|requested| *requested != first.opened) {
        Some(requested) => format!(
            "is opened {}, {} asks for {}",
            first.opened.name(),
            first.setting.as_deref().unwrap_or("a setting"),
            requested.name()
        ),
        None => format!(
            "has the sync flag {}, wal_sync_method asks for {}",
            first.sync.name(),
            first.requested_sync.map_or("", |requested| requested.name())
        ),
    };
    let evidence = format!("{} of {} files; {} {asks}", wrong.len(), asked.len(), first.path);
    Judgement::fail(evidence, wrong.iter().map(|file| file.path.clone()).collect())
}

fn is_asked(file: &OpenFile) -> bool {
    file.requested.is_some() || file.requested_sync.is_some()
}
