//! Reproducible archives.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Context, Result, ensure};
use flate2::{Compression, GzBuilder};

const PROGRAM_MODE: u32 = 0o755;
const FOLDER_MODE: u32 = 0o755;
const DATA_MODE: u32 = 0o644;

pub struct File {
    mode: u32,
    content: Vec<u8>,
}

impl File {
    pub fn program(content: &[u8]) -> Self {
        Self { mode: PROGRAM_MODE, content: content.to_vec() }
    }

    pub fn data(content: impl Into<Vec<u8>>) -> Self {
        Self { mode: DATA_MODE, content: content.into() }
    }

    pub fn size(&self) -> usize {
        self.content.len()
    }

    pub fn mode(&self) -> u32 {
        self.mode
    }

    pub fn into_content(self) -> Vec<u8> {
        self.content
    }
}

/// Files by their path in the archive, without a leading slash.
pub type Files = BTreeMap<String, File>;

#[derive(Clone, Copy)]
pub struct Style {
    /// Modification time of every entry, in seconds since 1970.
    pub mtime_s: u64,
    pub compression: Compression,
}

impl Style {
    pub fn tar_gz(self, files: &Files, prefix: &str) -> Result<Vec<u8>> {
        self.gzip(&self.tar(files, prefix)?)
    }

    /// Returns a tar of `files` below `prefix`, which is empty or ends in a slash. Each folder has
    /// an entry, because dpkg creates none on its own.
    pub fn tar(self, files: &Files, prefix: &str) -> Result<Vec<u8>> {
        let mut entries: BTreeMap<String, Option<&File>> = BTreeMap::new();
        for (path, file) in files {
            let path = format!("{prefix}{path}");
            let folders = path.match_indices('/').map(|(slash, _)| (path[..=slash].into(), None));
            entries.extend(folders);
            entries.insert(path, Some(file));
        }
        let mut tar = tar::Builder::new(Vec::new());
        for (path, file) in entries {
            let named = || format!("archive {path}");
            let header = self.header(&path, file).with_context(named)?;
            let content = file.map_or(&[][..], |file| &file.content);
            tar.append(&header, content).with_context(named)?;
        }
        Ok(tar.into_inner()?)
    }

    fn header(self, path: &str, file: Option<&File>) -> Result<tar::Header> {
        let mut header = tar::Header::new_gnu();
        // Not `set_path`, which drops the leading `./` that dpkg-deb writes.
        let name = &mut header.as_old_mut().name;
        ensure!(path.len() <= name.len(), "the path is longer than {} bytes", name.len());
        name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(match file {
            Some(_) => tar::EntryType::Regular,
            None => tar::EntryType::Directory,
        });
        header.set_mode(file.map_or(FOLDER_MODE, |file| file.mode));
        header.set_size(file.map_or(0, File::size) as u64);
        header.set_mtime(self.mtime_s);
        header.set_uid(0);
        header.set_gid(0);
        header.set_username("root")?;
        header.set_groupname("root")?;
        header.set_cksum();
        Ok(header)
    }

    /// Compresses without a name or a time in the header, so that equal contents give equal
    /// archives.
    pub fn gzip(self, content: &[u8]) -> Result<Vec<u8>> {
        let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), self.compression);
        encoder.write_all(content)?;
        Ok(encoder.finish()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;

    fn files() -> Files {
        Files::from([
            ("usr/share/doc/a".to_owned(), File::data("about")),
            ("usr/bin/a".to_owned(), File::program(b"program")),
        ])
    }

    fn style(mtime_s: u64) -> Style {
        Style { mtime_s, compression: Compression::fast() }
    }

    #[test]
    fn entries_are_sorted_owned_by_root_and_have_their_mode_and_time() {
        let archive = style(1_700_000_000).tar_gz(&files(), "./").unwrap();
        let mut tar = tar::Archive::new(GzDecoder::new(&archive[..]));
        let mut found = Vec::new();
        for entry in tar.entries().unwrap() {
            let mut entry = entry.unwrap();
            let header = entry.header().clone();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            assert_eq!(header.username().unwrap(), Some("root"));
            assert_eq!(header.groupname().unwrap(), Some("root"));
            assert_eq!(header.mtime().unwrap(), 1_700_000_000);
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let name = String::from_utf8(entry.path_bytes().to_vec()).unwrap();
            found.push((name, header.mode().unwrap(), text));
        }
        let expected = [
            ("./", 0o755, ""),
            ("./usr/", 0o755, ""),
            ("./usr/bin/", 0o755, ""),
            ("./usr/bin/a", 0o755, "program"),
            ("./usr/share/", 0o755, ""),
            ("./usr/share/doc/", 0o755, ""),
            ("./usr/share/doc/a", 0o644, "about"),
        ];
        let expected = expected.map(|(name, mode, text)| (name.to_owned(), mode, text.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn equal_files_give_equal_archives_and_another_time_a_different_one() {
        let made = |mtime_s| style(mtime_s).tar_gz(&files(), "a/").unwrap();
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
    }

    #[test]
    fn a_path_that_does_not_fit_its_field_is_an_error() {
        let files = Files::from([("x".repeat(101), File::data(""))]);
        let error = format!("{:#}", style(0).tar_gz(&files, "").unwrap_err());
        assert!(error.ends_with("x: the path is longer than 100 bytes"), "{error}");
    }
}
