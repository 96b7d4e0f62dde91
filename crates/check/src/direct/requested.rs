//! Requests in the settings of a server: which of its files it opens past the page cache.

use blockstone_base::load::SyncFlag;

use crate::direct::findings::Opened;
use blockstone_probe::io::FileType;

/// Returns whether this file should be opened with `O_DIRECT`, and the setting that says so; `None`
/// if the settings do not say.
pub fn by_settings(
    settings: &[(String, String)],
    file: &str,
    file_type: FileType,
) -> Option<(Opened, String)> {
    let of_innodb = || mariadb_11(settings, file_type).or_else(|| innodb(settings, file_type));
    postgres(settings, file_type).or_else(|| is_innodb(file).then(of_innodb).flatten())
}

/// Returns the setting that decides how the server requests I/O: `io_method` of PostgreSQL 18, or
/// `innodb_use_native_aio`.
pub fn submission(settings: &[(String, String)]) -> Option<String> {
    let names = ["io_method", "innodb_use_native_aio"];
    let set = |name: &&str| Some(format!("{name}={}", value(settings, name)?));
    names.iter().find_map(set)
}

/// Returns whether a file belongs to `InnoDB`: other engines (Aria, `MyISAM`) and the binary log
/// have no such settings.
fn is_innodb(file: &str) -> bool {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    ["ibdata", "ib_logfile", "undo"].iter().any(|stem| name.starts_with(stem))
        || [".ibd", ".ibu"].iter().any(|end| name.ends_with(end))
        || folder.ends_with("/#innodb_redo")
}

/// Returns how writes to files of this type should be made durable; `None` if the settings do not
/// say.
pub fn sync_by_settings(settings: &[(String, String)], file_type: FileType) -> Option<SyncFlag> {
    let method = value(settings, "wal_sync_method").filter(|_| file_type == FileType::Redo)?;
    Some(match method {
        // Without fsync, PostgreSQL does not set the flags either.
        _ if value(settings, "fsync") == Some("off") => SyncFlag::None,
        "open_sync" => SyncFlag::Sync,
        "open_datasync" => SyncFlag::Dsync,
        _ => SyncFlag::None,
    })
}

fn value<'a>(settings: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = settings.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

fn answer(is_direct: bool, name: &str, value: &str) -> (Opened, String) {
    let opened = if is_direct { Opened::Direct } else { Opened::Buffered };
    (opened, format!("{name}={value}"))
}

/// Reads the setting of PostgreSQL 16 and later; earlier versions always open data files without
/// `O_DIRECT`.
fn postgres(settings: &[(String, String)], file_type: FileType) -> Option<(Opened, String)> {
    const NAME: &str = "debug_io_direct";
    let text = value(settings, NAME)?;
    let part = match file_type {
        FileType::Data => "data",
        FileType::Redo => "wal",
        _ => return None,
    };
    let mut parts = text.split(',').map(str::trim);
    Some(answer(parts.any(|it| it == part), NAME, text))
}

/// Reads the settings for each kind of file: MariaDB 10.8 (log) and 11.0 (data).
fn mariadb_11(settings: &[(String, String)], file_type: FileType) -> Option<(Opened, String)> {
    let name = match file_type {
        FileType::Data => "innodb_data_file_buffering",
        FileType::Redo => "innodb_log_file_buffering",
        _ => return None,
    };
    let text = value(settings, name)?;
    Some(answer(matches!(text, "OFF" | "0"), name, text))
}

/// Reads the single setting of earlier `InnoDB`, which says nothing about the log.
fn innodb(settings: &[(String, String)], file_type: FileType) -> Option<(Opened, String)> {
    const NAME: &str = "innodb_flush_method";
    let text = value(settings, NAME).filter(|text| !text.is_empty())?;
    if file_type != FileType::Data {
        return None;
    }
    Some(answer(text.starts_with("O_DIRECT"), NAME, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn asked(settings: &[(&str, &str)], file_type: FileType, expected: Option<(Opened, &str)>) {
        let file = if file_type == FileType::Redo { "/m/ib_logfile0" } else { "/m/db/t.ibd" };
        asked_of(file, settings, file_type, expected);
    }

    #[track_caller]
    fn asked_of(
        file: &str,
        settings: &[(&str, &str)],
        file_type: FileType,
        expected: Option<(Opened, &str)>,
    ) {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let settings: Vec<_> = settings.iter().map(pair).collect();
        let found = by_settings(&settings, file, file_type);
        let found = found.as_ref().map(|(opened, setting)| (*opened, setting.as_str()));
        assert_eq!(found, expected, "{settings:?} {file_type:?}");
    }

    #[test]
    fn settings_say_how_redo_is_made_durable() {
        let set = |method: &str, fsync: &str| {
            let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            [pair("wal_sync_method", method), pair("fsync", fsync)]
        };
        let redo = |method, fsync| sync_by_settings(&set(method, fsync), FileType::Redo);
        assert_eq!(redo("open_datasync", "on"), Some(SyncFlag::Dsync));
        assert_eq!(redo("open_sync", "on"), Some(SyncFlag::Sync));
        assert_eq!(redo("fdatasync", "on"), Some(SyncFlag::None));
        assert_eq!(redo("open_sync", "off"), Some(SyncFlag::None));
        assert_eq!(sync_by_settings(&set("open_sync", "on"), FileType::Data), None);
        assert_eq!(sync_by_settings(&[], FileType::Redo), None);
    }

    #[test]
    fn settings_say_how_files_are_opened() {
        use FileType::{Control, Data, Redo};
        let both = &[("debug_io_direct", "data, wal")];
        asked(both, Data, Some((Opened::Direct, "debug_io_direct=data, wal")));
        asked(both, Redo, Some((Opened::Direct, "debug_io_direct=data, wal")));
        asked(both, Control, None);
        let off = &[("debug_io_direct", "")];
        asked(off, Data, Some((Opened::Buffered, "debug_io_direct=")));
        let old = &[("innodb_flush_method", "O_DIRECT")];
        asked(old, Data, Some((Opened::Direct, "innodb_flush_method=O_DIRECT")));
        asked(old, Redo, None);
        let fsync = &[("innodb_flush_method", "fsync")];
        asked(fsync, Data, Some((Opened::Buffered, "innodb_flush_method=fsync")));
        // The newer settings take effect.
        let new = &[("innodb_flush_method", "O_DIRECT"), ("innodb_data_file_buffering", "ON")];
        asked(new, Data, Some((Opened::Buffered, "innodb_data_file_buffering=ON")));
        let log = &[("innodb_log_file_buffering", "OFF")];
        asked(log, Redo, Some((Opened::Direct, "innodb_log_file_buffering=OFF")));
        asked(&[("block_size", "8192")], Data, None);
    }

    #[test]
    fn a_setting_says_how_io_is_requested() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            submission(&pairs.collect::<Vec<_>>())
        };
        assert_eq!(
            of(&[("fsync", "on"), ("io_method", "worker")]),
            Some("io_method=worker".into())
        );
        let innodb = Some("innodb_use_native_aio=ON".into());
        assert_eq!(of(&[("innodb_use_native_aio", "ON")]), innodb);
        assert_eq!(of(&[("fsync", "on")]), None);
    }

    #[test]
    fn settings_of_innodb_say_nothing_of_other_engines() {
        use FileType::{Data, Redo};
        let direct = &[("innodb_flush_method", "O_DIRECT"), ("innodb_log_file_buffering", "OFF")];
        for file in ["/m/mysql/db.MAD", "/m/mysql/db.MAI", "/m/t/a.MYD"] {
            asked_of(file, direct, Data, None);
        }
        for file in ["/m/aria_log.00000001", "/m/mysql-bin.000001"] {
            asked_of(file, direct, Redo, None);
        }
        let log = Some((Opened::Direct, "innodb_log_file_buffering=OFF"));
        asked_of("/m/#innodb_redo/#ib_redo7", direct, Redo, log);
        for file in ["/m/ibdata1", "/m/undo001", "/m/undo_002.ibu"] {
            let data = Some((Opened::Direct, "innodb_flush_method=O_DIRECT"));
            asked_of(file, direct, Data, data);
        }
    }
}
