//! Archives: tar, compressed or not, and zip. Their files are read without unpacking to disk, and
//! the names in an archive are never used as paths.

use std::ffi::OsStr;
use std::io::{self, BufReader, Cursor, Read, Seek, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blockstone_base::text::shown;
use rawzip::{ReaderAt, ZipArchive};

use crate::foreign::{Foreign, is_tar, is_zip};
use crate::unpacked::{Compression, GoOn, Unpacked};
use crate::zip::{damaged, inflated, opened};

/// Number of files in an archive that are looked at.
const FILES_MAX: usize = 100_000;
/// Bytes of all files in an archive, decompressed.
const BYTES_MAX: u64 = 64 << 30;
/// Bytes of the chosen files, compressed, which are held in memory.
const KEPT_MAX: usize = 128 << 20;
/// An archive may be in an archive, but no deeper.
const DEPTH_MAX: usize = 3;
/// Bytes at the start of a file by which it is chosen.
const HEAD_BYTES: usize = 128 << 10;
/// Longer names are cut.
const NAME_BYTES: usize = 512;
const PAX_BYTES: u64 = 64 << 10;
/// Bytes of a header of tar.
const BLOCK: usize = 512;

/// A file that can be opened repeatedly: on disk, or one of an archive, held in memory.
#[derive(Clone, Debug)]
pub struct Source {
    name: PathBuf,
    kept: Option<Arc<[u8]>>,
}

/// A file that is not read, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its path, or for a file in an archive the path of the archive and its name in there.
    pub name: PathBuf,
    pub why: String,
}

/// The files in an archive.
#[derive(Debug, Default)]
pub struct Members {
    pub chosen: Vec<Source>,
    pub left_out: Vec<LeftOut>,
}

/// Decides by the beginning of a file, decompressed and decoded, whether it is wanted; the error is
/// the reason why not.
pub type Choose<'a> = dyn FnMut(&[u8]) -> Result<(), String> + 'a;

impl Source {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { name: path.into(), kept: None }
    }

    /// Returns its path. For a file in an archive it is a name for messages, not a path.
    pub fn name(&self) -> &Path {
        &self.name
    }

    pub fn open(&self, go_on: GoOn) -> io::Result<Unpacked> {
        match &self.kept {
            Some(kept) => Unpacked::of_bytes(Cursor::new(Arc::clone(kept))),
            None => Unpacked::open(&self.name, go_on),
        }
    }
}

/// Reads the files of an archive that are wanted. `None` if the file is not an archive.
pub fn members(
    source: &Source,
    go_on: GoOn,
    choose: &mut Choose<'_>,
) -> io::Result<Option<Members>> {
    let mut walk = Walk { go_on, choose, members: Members::default(), files: 0, bytes: 0, kept: 0 };
    Ok(walk.archive(source, 1)?.then_some(walk.members))
}

struct Walk<'a, 'c> {
    go_on: GoOn,
    choose: &'a mut Choose<'c>,
    members: Members,
    files: usize,
    bytes: u64,
    kept: usize,
}

impl Walk<'_, '_> {
    /// Reads an archive; returns false if it is none.
    fn archive(&mut self, source: &Source, depth: usize) -> io::Result<bool> {
        if let Some(kept) = &source.kept
            && is_zip(kept)
        {
            let mut buffer = vec![0; rawzip::RECOMMENDED_BUFFER_SIZE];
            let archive = ZipArchive::from_seekable(Cursor::new(&kept[..]), &mut buffer);
            self.zip(&archive.map_err(|error| damaged(&error))?, source.name(), depth)?;
            return Ok(true);
        }
        if source.kept.is_none() {
            let mut file = blockstone_sys::input::open(source.name())?;
            // A pipe can be read only once, by its reader.
            if !file.metadata()?.is_file() {
                return Ok(false);
            }
            let mut head = Vec::new();
            Read::by_ref(&mut file).take(HEAD_BYTES as u64).read_to_end(&mut head)?;
            if is_zip(&head) {
                if let Some(foreign) = Foreign::of(&head) {
                    return Err(foreign.into());
                }
                file.rewind()?;
                self.zip(&opened(file)?, source.name(), depth)?;
                return Ok(true);
            }
        }
        let mut text = BufReader::with_capacity(HEAD_BYTES, source.open(self.go_on)?);
        let mut head = Vec::new();
        let read = text.by_ref().take(BLOCK as u64).read_to_end(&mut head);
        // A damaged file is not an archive as far as one can tell: its reader will say why.
        if read.is_err() || !is_tar(&head) {
            return Ok(false);
        }
        self.tar(Cursor::new(head).chain(text), source.name(), depth)?;
        Ok(true)
    }

    fn tar(&mut self, from: impl Read, archive: &Path, depth: usize) -> io::Result<()> {
        let mut from = tar::Archive::new(from);
        let mut long_name = None;
        // Headers as they are: the extensions, whose size nothing limits, are read here.
        for entry in from.entries()?.raw(true) {
            let mut entry = match entry {
                Ok(entry) => entry,
                Err(error) => return self.cut(archive, &error),
            };
            let kind = entry.header().entry_type();
            if kind.is_gnu_longname() || kind.is_pax_local_extensions() {
                let mut bytes = Vec::new();
                entry.by_ref().take(PAX_BYTES).read_to_end(&mut bytes)?;
                bytes.pop_if(|byte| *byte == 0);
                let name = if kind.is_gnu_longname() { Some(bytes) } else { pax_path(&bytes) };
                long_name = name.or(long_name);
                continue;
            }
            let is_extension = kind.is_gnu_longlink() || kind.is_pax_global_extensions();
            if is_extension || kind.is_dir() {
                continue;
            }
            let name = long_name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
            let name = inside(archive, &name);
            if !kind.is_file() && !kind.is_contiguous() {
                self.leave_out(name, "it is a link or a device in an archive");
                continue;
            }
            let size = entry.size();
            if let Err(error) = self.member(name, size, &mut entry, depth) {
                return self.cut(archive, &error);
            }
        }
        Ok(())
    }

    /// Notes that an archive ends early or is damaged; its files before that place are read.
    fn cut(&mut self, archive: &Path, error: &io::Error) -> io::Result<()> {
        if self.members.chosen.is_empty() || error.kind() == io::ErrorKind::FileTooLarge {
            return Err(io::Error::new(error.kind(), format!("read the archive: {error}")));
        }
        self.leave_out(archive.to_owned(), &format!("the rest of the archive: {error}"));
        Ok(())
    }

    fn zip<R: ReaderAt>(
        &mut self,
        zip: &ZipArchive<R>,
        archive: &Path,
        depth: usize,
    ) -> io::Result<()> {
        let mut buffer = vec![0; rawzip::RECOMMENDED_BUFFER_SIZE];
        let mut entries = zip.entries(&mut buffer);
        while let Some(entry) = entries.next_entry().map_err(|error| damaged(&error))? {
            if entry.is_dir() {
                continue;
            }
            let name = inside(archive, entry.file_path().as_ref());
            if entry.flags().is_encrypted() {
                self.leave_out(name, "it is encrypted: unzip it and name it");
                continue;
            }
            let (way, method) = (entry.wayfinder(), entry.compression_method());
            let size = way.uncompressed_size_hint();
            match inflated(zip, way, method) {
                Ok(mut from) => self.member(name, size, &mut from, depth)?,
                Err(error) => self.leave_out(name, &error.to_string()),
            }
        }
        Ok(())
    }

    /// Keeps a file of an archive, if it is wanted, or the files of an archive in the archive.
    fn member(
        &mut self,
        name: PathBuf,
        size: u64,
        from: &mut dyn Read,
        depth: usize,
    ) -> io::Result<()> {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(size);
        if self.files > FILES_MAX {
            return Err(too_large(&format!("more than {FILES_MAX} files in the archive")));
        }
        if self.bytes > BYTES_MAX {
            let most = BYTES_MAX >> 30;
            return Err(too_large(&format!("more than {most} GiB in the archive")));
        }
        if !(self.go_on)() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        // One byte more than it says: a zip may say less than it has.
        let mut from = from.take(size.saturating_add(1));
        let mut head = Vec::new();
        if let Err(error) = from.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head) {
            self.leave_out(name, &error.to_string());
            return Ok(());
        }
        match self.wanted(&head) {
            Ok(is_archive) => {
                let kept = match kept(head, &mut from, KEPT_MAX.saturating_sub(self.kept)) {
                    Ok(kept) => kept,
                    Err(error) if error.kind() == io::ErrorKind::FileTooLarge => return Err(error),
                    Err(error) => {
                        self.leave_out(name, &error.to_string());
                        return Ok(());
                    }
                };
                let source = Source { name, kept: Some(kept.into()) };
                if is_archive {
                    self.inner(&source, depth);
                } else {
                    self.kept += source.kept.as_ref().map_or(0, |kept| kept.len());
                    self.members.chosen.push(source);
                }
            }
            Err(why) => self.leave_out(name, &why),
        }
        Ok(())
    }

    /// Whether the file with this beginning is an archive, or chosen; the error is the reason why
    /// it is neither.
    fn wanted(&mut self, head: &[u8]) -> Result<bool, String> {
        if head.iter().all(u8::is_ascii_whitespace) {
            return Err("it is empty".to_owned());
        }
        let told = |foreign: Foreign| format!("{foreign}; {}", foreign.hint);
        if is_zip(head) {
            return Foreign::of(head).map_or(Ok(true), |foreign| Err(told(foreign)));
        }
        let mut unpacked = Vec::new();
        let text = Unpacked::of_bytes(Cursor::new(head.to_vec()));
        // Its beginning may end in the middle of a compressed block.
        let _ = text.and_then(|text| text.take(HEAD_BYTES as u64).read_to_end(&mut unpacked));
        if is_tar(&unpacked) {
            return Ok(true);
        }
        if let Some(foreign) = Foreign::of(&unpacked) {
            return Err(told(foreign));
        }
        (self.choose)(&crate::decoded::whole(unpacked)).map(|()| false)
    }

    /// Reads an archive in an archive.
    fn inner(&mut self, source: &Source, depth: usize) {
        let name = source.name().to_owned();
        if depth >= DEPTH_MAX {
            self.leave_out(name, "it is an archive too deep in archives: unpack it");
            return;
        }
        match self.archive(source, depth + 1) {
            Ok(true) => {}
            Ok(false) => self.leave_out(name, "it is not an archive although it begins like one"),
            Err(error) => self.leave_out(name, &error.to_string()),
        }
    }

    fn leave_out(&mut self, name: PathBuf, why: &str) {
        self.members.left_out.push(LeftOut { name, why: why.to_owned() });
    }
}

/// Returns the bytes of a file, compressed. Fails if they are more than `at_most`.
fn kept(head: Vec<u8>, rest: &mut dyn Read, at_most: usize) -> io::Result<Vec<u8>> {
    let most = KEPT_MAX >> 20;
    let full = || too_large(&format!("more than {most} MiB of files that can be read"));
    if Compression::of(&head).is_some() || is_zip(&head) {
        let mut bytes = head;
        rest.take(at_most as u64 + 1).read_to_end(&mut bytes)?;
        return if bytes.len() > at_most { Err(full()) } else { Ok(bytes) };
    }
    let mut to = zstd::Encoder::new(Vec::new(), 1)?;
    to.write_all(&head)?;
    let mut piece = vec![0; HEAD_BYTES];
    loop {
        let count = rest.read(&mut piece)?;
        if count == 0 {
            break;
        }
        to.write_all(&piece[..count])?;
        if to.get_ref().len() > at_most {
            return Err(full());
        }
    }
    to.finish()
}

/// Returns a name for messages: the path of the archive, and the name in there.
fn inside(archive: &Path, name: &[u8]) -> PathBuf {
    let name = &name[..name.len().min(NAME_BYTES)];
    let name = shown(Path::new(OsStr::from_bytes(name)));
    let mut path = archive.as_os_str().to_owned();
    path.push("/");
    path.push(name.trim_start_matches(['.', '/']));
    path.into()
}

/// Returns the path in the extensions of a tar header: lines such as `21 path=NAME`.
fn pax_path(extensions: &[u8]) -> Option<Vec<u8>> {
    let mut lines = extensions.split(|byte| *byte == b'\n');
    let path = lines.find_map(|line| {
        let at = line.iter().position(|byte| *byte == b' ')?;
        line[at + 1..].strip_prefix(b"path=")
    });
    path.map(<[u8]>::to_vec)
}

fn too_large(what: &str) -> io::Error {
    let why = format!("{what}: unpack it and name the files that are meant");
    io::Error::new(io::ErrorKind::FileTooLarge, why)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rawzip::CompressionMethod;

    use super::*;

    const TEXT: &[u8] = b"iostat: one line\nand another\n";

    fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut to = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            to.append_data(&mut header, name, *bytes).unwrap();
        }
        to.into_inner().unwrap()
    }

    fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut to = rawzip::ZipArchiveWriter::new(&mut bytes);
        for (name, content) in files {
            let file = to.new_file(name).compression_method(CompressionMethod::DEFLATE);
            let (mut entry, config) = file.start().unwrap();
            let level = flate2::Compression::fast();
            let encoder = flate2::write::DeflateEncoder::new(&mut entry, level);
            let mut writer = config.wrap(encoder);
            writer.write_all(content).unwrap();
            let (encoder, descriptor) = writer.finish().unwrap();
            encoder.finish().unwrap();
            entry.finish(descriptor).unwrap();
        }
        to.finish().unwrap();
        bytes
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        to.write_all(bytes).unwrap();
        to.finish().unwrap()
    }

    type Found = (Vec<(String, String)>, Vec<String>);

    /// Returns the names and texts of the files in an archive that begin with `iostat`, and the
    /// others with the reasons.
    fn read(bytes: &[u8]) -> io::Result<Option<Found>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, bytes).unwrap();
        let mut choose = |head: &[u8]| {
            let is_wanted = head.starts_with(b"iostat");
            is_wanted.then_some(()).ok_or_else(|| "unknown".to_owned())
        };
        let Some(members) = members(&Source::new(&path), || true, &mut choose)? else {
            return Ok(None);
        };
        let short = |name: &Path| name.strip_prefix(&path).unwrap().display().to_string();
        let text = |source: &Source| {
            let mut text = String::new();
            let opened = source.open(|| true).unwrap().decoded().unwrap();
            { opened }.read_to_string(&mut text).unwrap();
            (short(source.name()), text)
        };
        let left = members.left_out.iter().map(|it| format!("{}: {}", short(&it.name), it.why));
        Ok(Some((members.chosen.iter().map(text).collect(), left.collect())))
    }

    #[test]
    fn files_of_archives_are_chosen_by_their_contents() {
        let text = String::from_utf8(TEXT.to_vec()).unwrap();
        let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let inner = gzip(&tar_of(&[("inner/iostat", TEXT)]));
        let long = format!("{}/iostat", "d".repeat(150));
        let files: &[(&str, &[u8])] = &[
            ("osw/iostat.dat", TEXT),
            ("osw/iostat.dat.gz", &gzip(TEXT)),
            ("osw/utf16", &utf16),
            ("osw/top.dat", b"top - 10:00"),
            ("osw/empty", b""),
            ("osw/report.pdf", b"%PDF-1.4"),
            ("osw/more.tgz", &inner),
            (&long, TEXT),
        ];
        let tar = tar_of(files);
        for bytes in [tar.clone(), gzip(&tar), zip_of(files)] {
            let (chosen, left) = read(&bytes).unwrap().unwrap();
            let names: Vec<&str> = chosen.iter().map(|(name, _)| name.as_str()).collect();
            let more = ["osw/iostat.dat", "osw/iostat.dat.gz", "osw/utf16"];
            assert_eq!(names[..3], more);
            assert_eq!(names[3..], ["osw/more.tgz/inner/iostat", &long]);
            assert!(chosen.iter().all(|(_, found)| *found == text), "{chosen:?}");
            assert_eq!(left[..2], ["osw/top.dat: unknown", "osw/empty: it is empty"]);
            assert!(left[2].starts_with("osw/report.pdf: it is a PDF document; "), "{left:?}");
        }
        assert!(read(TEXT).unwrap().is_none());
        assert!(read(&gzip(TEXT)).unwrap().is_none());
    }

    #[test]
    fn names_in_an_archive_are_not_paths() {
        for (name, expected) in
            [("../../etc/iostat", "etc/iostat"), ("/etc/iostat\x1b[2J", "etc/iostat\\x1b[2J")]
        {
            let (chosen, _) = read(&zip_of(&[(name, TEXT)])).unwrap().unwrap();
            assert_eq!(chosen[0].0, expected);
        }
    }

    #[test]
    fn an_archive_has_limits_and_may_be_cut() {
        let mut bytes = TEXT.to_vec();
        for depth in 0..6 {
            bytes = tar_of(&[(&format!("{depth}.tar"), &bytes)]);
        }
        let (chosen, left) = read(&bytes).unwrap().unwrap();
        assert!(chosen.is_empty() && left[0].contains("too deep"), "{left:?}");
        let two = tar_of(&[("iostat", TEXT), ("iostat.2", &TEXT.repeat(100))]);
        let (chosen, left) = read(&two[..two.len() - 3000]).unwrap().unwrap();
        assert_eq!((chosen.len(), left.len()), (2, 1), "{left:?}");
        assert!(left[0].contains("the rest of the archive"), "{left:?}");
        let cut = zip_of(&[("iostat", TEXT)]);
        assert!(read(&cut[..cut.len() - 9]).unwrap_err().to_string().contains("zip archive"));
    }

    #[test]
    fn a_zip_of_one_file_is_read_as_this_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("conf.zip");
        let most = blockstone_base::units::Bytes::mib(1);
        fs::write(&path, zip_of(&[("slob.conf", TEXT)])).unwrap();
        assert_eq!(crate::text(&path, most, || true).unwrap().as_bytes(), TEXT);
        let refused = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            crate::text(&path, most, || true).unwrap_err().to_string()
        };
        let files: &[(&str, &[u8])] = &[("a", TEXT), ("b", TEXT)];
        assert_eq!(refused(&zip_of(files)), "it is a zip archive of several files");
        assert_eq!(refused(&gzip(&tar_of(files))), "it is a tar archive");
    }
}
