//! The type of a file, derived from its path, following the file layouts of databases.

use blockstone_base::named;

named! {
    #[derive(PartialOrd, Ord)]
    FileType {
        /// Tables, indexes, undo: the files that a checkpoint writes.
        Data = "data",
        /// Files that a commit waits for and recovery reads: redo, write-ahead and binary logs.
        Redo = "redo",
        Temp = "temp",
        /// Small files without which a database does not open.
        Control = "control",
        /// Data that a file system keeps in addition to its files: its journal, inodes,
        /// directories.
        Metadata = "file system metadata",
        Swap = "swap",
        Other = "other",
    }
}

/// Returns the type of the file at `path`, by the naming of PostgreSQL, MariaDB and MySQL, SQLite,
/// Oracle and Blockstone's disk groups. A block device that is opened as a file holds data.
pub fn file_type(path: &str) -> FileType {
    let mut folders: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let name = folders.pop().unwrap_or_default();
    let found = postgres(&folders, name)
        .or_else(|| mariadb(&folders, name))
        .or_else(|| sqlite(name))
        .or_else(|| oracle(name));
    match found {
        Some(found) => found,
        None if name == "blockstone.disk" || path.starts_with("/dev/") => FileType::Data,
        None => FileType::Other,
    }
}

/// Returns the path under which a file is counted: redo and temporary files of PostgreSQL come and
/// go, so all of them in one folder count as one.
pub fn family(path: &str) -> String {
    match path.rsplit_once('/') {
        Some((folder, _)) if is_transient(folder) => format!("{folder}/*"),
        _ => path.to_owned(),
    }
}

fn is_transient(folder: &str) -> bool {
    let last = folder.rsplit('/').next().unwrap_or_default();
    ["pg_wal", "pg_xlog"].contains(&last) || last.starts_with("pgsql_tmp")
}

fn postgres(folders: &[&str], name: &str) -> Option<FileType> {
    let within = |folder: &str| folders.contains(&folder);
    if within("pg_wal") || within("pg_xlog") {
        return Some(FileType::Redo);
    }
    if name.starts_with("pgsql_tmp") || folders.iter().any(|part| part.starts_with("pgsql_tmp")) {
        return Some(FileType::Temp);
    }
    if name == "pg_control" {
        return Some(FileType::Control);
    }
    let of_transactions = ["pg_xact", "pg_multixact", "pg_subtrans", "pg_commit_ts", "pg_clog"];
    if of_transactions.iter().any(|folder| within(folder)) {
        return Some(FileType::Data);
    }
    // base/OID/RELATION, global/RELATION, or PG_15_202209061/OID/RELATION in a tablespace.
    let of_relations = within("base") || within("global") || within("pg_tblspc");
    if !of_relations && !folders.iter().any(|part| part.starts_with("PG_")) {
        return None;
    }
    if is_relation(name) {
        return Some(FileType::Data);
    }
    // t3_16384 is a temporary relation of backend 3.
    let (backend, relation) = name.strip_prefix('t')?.split_once('_')?;
    (is_number(backend) && is_relation(relation)).then_some(FileType::Temp)
}

/// `16384`, `16384.1`, `16384_fsm`, `16384_vm.2`
fn is_relation(name: &str) -> bool {
    let (main, segment) = name.split_once('.').unwrap_or((name, "0"));
    let (node, fork) = main.split_once('_').unwrap_or((main, "vm"));
    is_number(node) && is_number(segment) && ["fsm", "vm", "init"].contains(&fork)
}

fn mariadb(folders: &[&str], name: &str) -> Option<FileType> {
    let numbered = |stem: &str| name.strip_prefix(stem).is_some_and(is_number);
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let of_redo = folders.last() == Some(&"#innodb_redo") || stem.starts_with("aria_log");
    if name == "aria_log_control" {
        Some(FileType::Control)
    } else if numbered("ibtmp") || extension == "ibt" || name.starts_with("#sql") {
        Some(FileType::Temp)
    } else if numbered("ib_logfile") || of_redo || is_binary_log(stem, extension) {
        Some(FileType::Redo)
    } else if numbered("ibdata")
        || numbered("undo")
        || numbered("undo_")
        || ["ibd", "ibu", "MYD", "MYI", "MAD", "MAI"].contains(&extension)
    {
        Some(FileType::Data)
    } else {
        None
    }
}

/// mysql-bin.000001, binlog.000002, host-relay-bin.000003, and their index files.
fn is_binary_log(stem: &str, extension: &str) -> bool {
    let numbered = extension.len() >= 6 && is_number(extension);
    (stem.ends_with("-bin") || stem == "binlog") && (numbered || extension == "index")
}

fn sqlite(name: &str) -> Option<FileType> {
    const EXTENSIONS: [&str; 5] = ["db", "db3", "sqlite", "sqlite3", "sdb"];
    if name.starts_with("etilqs_") {
        Some(FileType::Temp)
    } else if name.ends_with("-wal") || name.ends_with("-journal") {
        Some(FileType::Redo)
    } else if name.ends_with("-shm") {
        Some(FileType::Control)
    } else {
        let (_, extension) = name.rsplit_once('.')?;
        EXTENSIONS.contains(&extension).then_some(FileType::Data)
    }
}

fn oracle(name: &str) -> Option<FileType> {
    let (stem, extension) = name.rsplit_once('.')?;
    match extension {
        "ctl" => Some(FileType::Control),
        "dbf" if stem.starts_with("temp") => Some(FileType::Temp),
        "dbf" => Some(FileType::Data),
        "log" if stem.starts_with("redo") => Some(FileType::Redo),
        "arc" => Some(FileType::Redo),
        _ => None,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_are(expected: FileType, paths: &[&str]) {
        for path in paths {
            assert_eq!(file_type(path), expected, "{path}");
        }
    }

    #[test]
    fn postgres_files_are_told_apart() {
        let data = [
            "/var/lib/postgresql/15/main/base/5/16397",
            "/pg/base/5/16397.1",
            "/pg/base/5/2619_fsm",
            "/pg/base/5/2619_vm.1",
            "/pg/global/1262",
            "/space/PG_15_202209061/5/16400",
            "/pg/pg_xact/0000",
        ];
        all_are(FileType::Data, &data);
        all_are(FileType::Redo, &["/pg/pg_wal/00000001000000000000000F", "/pg/pg_wal/xlogtemp.9"]);
        all_are(FileType::Temp, &["/pg/base/pgsql_tmp/pgsql_tmp3664.0", "/pg/base/5/t3_16384"]);
        all_are(FileType::Control, &["/pg/global/pg_control"]);
        all_are(FileType::Other, &["/pg/base/5/PG_VERSION", "/pg/postgresql.conf", "/pg/16384"]);
    }

    #[test]
    fn mariadb_files_are_told_apart() {
        all_are(FileType::Data, &["/m/ibdata1", "/m/undo001", "/m/db/t.ibd", "/m/mysql/x.MAD"]);
        let redo = [
            "/m/ib_logfile0",
            "/m/#innodb_redo/#ib_redo7",
            "/m/mysql-bin.000001",
            "/m/binlog.000042",
            "/m/aria_log.00000001",
        ];
        all_are(FileType::Redo, &redo);
        all_are(FileType::Control, &["/m/aria_log_control"]);
        all_are(FileType::Temp, &["/m/ibtmp1", "/tmp/#sql-temptable-1-2.MAI"]);
        all_are(FileType::Other, &["/m/ib_buffer_pool", "/m/db/t.frm", "/bin/mysql-bin"]);
    }

    #[test]
    fn sqlite_oracle_and_disk_group_files_are_told_apart() {
        all_are(FileType::Redo, &["/s/app.db-wal", "/s/app.db-journal", "/o/redo01.log"]);
        all_are(FileType::Data, &["/s/app.db", "/o/users01.dbf", "/o/undotbs01.dbf"]);
        all_are(FileType::Data, &["/disks/0/blockstone.disk", "/dev/sdb"]);
        all_are(FileType::Temp, &["/o/temp01.dbf", "/var/tmp/etilqs_ab12"]);
        all_are(FileType::Control, &["/o/control01.ctl", "/s/app.db-shm"]);
        all_are(FileType::Other, &["", "/", "/home/a/notes.log", "/home/a/b"]);
    }

    #[test]
    fn files_that_come_and_go_count_as_one() {
        assert_eq!(family("/pg/pg_wal/00000001000000000000000F"), "/pg/pg_wal/*");
        assert_eq!(family("/pg/base/pgsql_tmp/pgsql_tmp1.0"), "/pg/base/pgsql_tmp/*");
        assert_eq!(family("/pg/base/5/16384"), "/pg/base/5/16384");
        assert_eq!(family("name"), "name");
    }
}
