//! Kinds of files that none of the readers of text can use, by their first bytes, each with the
//! command that makes it readable or gives the same figures as text.

use std::io;

use blockstone_base::hint::Hint;
use memchr::memmem::find;

/// Bytes at the start of a file that suffice to name its kind.
pub const HEAD_BYTES: usize = 4096;

/// The first bytes of a zip archive, with files and without.
const ZIP_MARKS: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
/// Bytes of a header of tar.
const BLOCK: usize = 512;

/// The name of a kind of file that is not read, and what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Hint)]
#[error("it is {what}")]
#[hint("{hint}")]
pub struct Foreign {
    pub what: &'static str,
    pub hint: &'static str,
}

impl Foreign {
    /// Names the kind of a file by its first bytes, decompressed; `None` if it may be text, or is
    /// of an unknown kind.
    pub fn of(head: &[u8]) -> Option<Self> {
        let head = &head[..head.len().min(HEAD_BYTES)];
        ALL.iter().find(|(mark, _)| mark.is_in(head)).map(|(_, foreign)| *foreign)
    }

    /// Returns the kind that an error of this crate names.
    pub fn in_error(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl From<Foreign> for io::Error {
    fn from(foreign: Foreign) -> Self {
        Self::new(io::ErrorKind::InvalidData, foreign)
    }
}

/// How a kind is recognised.
enum Mark {
    /// The first bytes.
    First(&'static [u8]),
    /// Bytes at an offset.
    At(usize, &'static [u8]),
    /// The first bytes, and others after them.
    With(&'static [u8], &'static [u8]),
    /// Bytes anywhere in the head of a file that has zero bytes.
    Binary(&'static [u8]),
}

impl Mark {
    fn is_in(&self, head: &[u8]) -> bool {
        match *self {
            Self::First(mark) => head.starts_with(mark),
            Self::At(at, mark) => head.get(at..).is_some_and(|rest| rest.starts_with(mark)),
            Self::With(first, mark) => head.starts_with(first) && find(head, mark).is_some(),
            Self::Binary(mark) => head.contains(&0) && find(head, mark).is_some(),
        }
    }
}

const AS_TEXT: &str = "save it as text or CSV";
const PRINTED: &str = "give the report as its tool writes it, as HTML or text";
const PICTURE: &str = "give the report or the text that it was made of";
const DUMP: &str =
    "give a report: awrload.sql loads a dump of AWR, awrrpt.sql makes a report of it";
const PACKETS: &str = "tshark -r FILE shows it; give a log that the database wrote";

const fn kind(mark: Mark, what: &'static str, hint: &'static str) -> (Mark, Foreign) {
    (mark, Foreign { what, hint })
}

/// Every kind, more specific marks first.
const ALL: &[(Mark, Foreign)] = &[
    // Archives and compression.
    kind(Mark::First(b"7z\xbc\xaf\x27\x1c"), "a 7z archive", "unpack it: 7z x FILE"),
    kind(Mark::First(b"Rar!\x1a\x07"), "a RAR archive", "unpack it: unrar x FILE"),
    kind(Mark::First(b"\x1f\x9d"), "compressed with compress (.Z)", "unpack it: gzip -d FILE"),
    kind(Mark::First(b"\x1f\xa0"), "compressed with SCO compress", "unpack it: gzip -d FILE"),
    kind(Mark::First(b"\x1f\x1e"), "compressed with pack (.z)", "unpack it: gzip -d FILE"),
    kind(Mark::First(b"\x04\x22\x4d\x18"), "compressed with LZ4", "unpack it: lz4 -d FILE"),
    kind(Mark::First(b"\x89LZO\0\r\n"), "compressed with lzop", "unpack it: lzop -d FILE"),
    kind(Mark::First(b"LZIP\x01"), "compressed with lzip", "unpack it: lzip -d FILE"),
    kind(Mark::First(b"]\0\0"), "compressed with LZMA", "unpack it: xz -d FILE"),
    kind(Mark::First(b"\xff\x06\0\0sNaPpY"), "compressed with Snappy", "unpack it: snzip -d FILE"),
    kind(Mark::First(b"MSCF\0\0\0\0"), "a cabinet archive", "unpack it: cabextract FILE"),
    kind(Mark::First(b"\xed\xab\xee\xdb"), "an RPM package", "rpm2cpio FILE unpacks it"),
    kind(Mark::First(b"!<arch>\n"), "an ar archive or a Debian package", "unpack it: ar x FILE"),
    kind(Mark::First(b"\xc7\x71"), "a cpio archive", "unpack it: cpio -id < FILE"),
    // Documents and pictures.
    kind(Mark::First(b"%PDF-"), "a PDF document", PRINTED),
    kind(Mark::First(b"{\\rtf"), "an RTF document", AS_TEXT),
    kind(Mark::First(b"%!PS-Adobe"), "a PostScript document", PRINTED),
    kind(Mark::With(b"PK\x03\x04", b"[Content_Types].xml"), "a document of Excel or Word", AS_TEXT),
    kind(Mark::With(b"PK\x03\x04", b"_rels/.rels"), "a document of Excel or Word", AS_TEXT),
    kind(
        Mark::With(b"PK\x03\x04", b"mimetypeapplication/vnd.oasis"),
        "a document of LibreOffice",
        AS_TEXT,
    ),
    kind(
        Mark::First(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
        "a document of Excel or Word before 2007",
        AS_TEXT,
    ),
    kind(Mark::First(b"\x89PNG\r\n\x1a\n"), "a picture (PNG)", PICTURE),
    kind(Mark::First(b"\xff\xd8\xff"), "a picture (JPEG)", PICTURE),
    kind(Mark::First(b"GIF8"), "a picture (GIF)", PICTURE),
    kind(Mark::First(b"II*\0"), "a picture (TIFF)", PICTURE),
    kind(Mark::First(b"MM\0*"), "a picture (TIFF)", PICTURE),
    kind(Mark::At(8, b"WEBPVP8"), "a picture (WebP)", PICTURE),
    // Binary files of tools.
    kind(
        Mark::First(b"\xef\xbe\xed\xfe"),
        "atop's binary log",
        "atopsar -d -r FILE shows its disks; give a file of sar or iostat of this host",
    ),
    kind(
        Mark::First(b"PERFILE2"),
        "perf's recording",
        "perf report -i FILE shows it; its text has no load and no call of a database",
    ),
    kind(
        Mark::First(b"\x07tae"),
        "blktrace's binary file",
        "blkparse -i FILE > TEXT makes text of it, which blockstone flash sim --trace reads",
    ),
    kind(Mark::First(b"\xd4\xc3\xb2\xa1"), "a capture of packets (pcap)", PACKETS),
    kind(Mark::First(b"\xa1\xb2\xc3\xd4"), "a capture of packets (pcap)", PACKETS),
    kind(Mark::First(b"\x4d\x3c\xb2\xa1"), "a capture of packets (pcap)", PACKETS),
    kind(Mark::First(b"\xa1\xb2\x3c\x4d"), "a capture of packets (pcap)", PACKETS),
    kind(Mark::First(b"\x0a\x0d\x0d\x0a"), "a capture of packets (pcapng)", PACKETS),
    kind(
        Mark::First(b"LPKSHHRH"),
        "journald's binary file",
        "journalctl --file FILE -o short-iso > TEXT makes text of it",
    ),
    kind(
        Mark::At(4, b"\x50\x05\x26"),
        "an archive of Performance Co-Pilot",
        "pmrep -a ARCHIVE shows it; give a file of sar or iostat of this host",
    ),
    kind(
        Mark::Binary(b"P\0h\0y\0s\0i\0c\0a\0l\0D\0i\0s\0k"),
        "a log of Windows Performance Monitor (BLG)",
        "relog FILE -f csv -o TEXT makes CSV of it",
    ),
    // Databases.
    kind(
        Mark::First(b"SQLite format 3\0"),
        "an SQLite database",
        "sqlite3 -csv -header FILE 'SELECT ...' > TEXT makes CSV of it",
    ),
    kind(
        Mark::First(b"PGDMP"),
        "a dump of PostgreSQL",
        "pg_restore -f TEXT FILE makes SQL of it; give a log of the server",
    ),
    kind(
        Mark::First(b"\xfebin"),
        "a binary log of MySQL",
        "mysqlbinlog FILE shows it; the slow query log says where time went",
    ),
    kind(Mark::At(1, b"EXPORT:V"), "a dump of Oracle's exp", DUMP),
    kind(Mark::At(2, b"EXPORT:V"), "a dump of Oracle's exp", DUMP),
    kind(Mark::At(3, b"EXPORT:V"), "a dump of Oracle's exp", DUMP),
    kind(Mark::Binary(b"SYS_EXPORT_"), "a dump of Oracle Data Pump (expdp)", DUMP),
    kind(
        Mark::First(b"PAR1"),
        "a Parquet file",
        "duckdb -c \"COPY (FROM 'FILE') TO 'load.csv'\" makes CSV of it",
    ),
    kind(Mark::First(b"Obj\x01"), "an Avro file", "avro-tools tojson FILE shows it"),
    // Programs.
    kind(Mark::First(b"\x7fELF"), "a program", "name the file that it wrote"),
];

pub fn is_zip(head: &[u8]) -> bool {
    ZIP_MARKS.iter().any(|mark| head.starts_with(mark))
}

/// Whether the first block is a header of tar: the sum of its bytes is in it.
pub fn is_tar(head: &[u8]) -> bool {
    let Some(block) = head.get(..BLOCK) else { return false };
    let sum = |byte: fn(u8) -> i64| {
        let outside = block[..148].iter().chain(&block[156..]);
        outside.map(|&it| byte(it)).sum::<i64>() + 8 * i64::from(b' ')
    };
    let digits = str::from_utf8(&block[148..156]).unwrap_or_default();
    let digits = digits.trim_matches(|c: char| c == ' ' || c == '\0');
    let found = i64::from_str_radix(digits, 8).ok().filter(|_| block[0] != 0);
    // Old programs added the bytes as signed numbers.
    found.is_some_and(|it| it == sum(i64::from) || it == sum(|byte| i64::from(byte as i8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_are_not_text_are_named() {
        let dump = [&[3, 1, 0, 0], &[0; 60][..], b"\"SYS\".\"SYS_EXPORT_SCHEMA_01\""].concat();
        let excel = b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0....[Content_Types].xml";
        let cases: &[(&[u8], &str)] = &[
            (b"7z\xbc\xaf\x27\x1c\0\x04", "a 7z archive"),
            (b"\x1f\x9d\x90\x41", "compressed with compress (.Z)"),
            (b"%PDF-1.7\n", "a PDF document"),
            (excel, "a document of Excel or Word"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a document of Excel or Word before 2007"),
            (b"SQLite format 3\0\x10\0", "an SQLite database"),
            (b"\x7fELF\x02\x01", "a program"),
            (b"PERFILE2h\0", "perf's recording"),
            (b"\xef\xbe\xed\xfe\0\0", "atop's binary log"),
            (b"\xd4\xc3\xb2\xa1\x02\0", "a capture of packets (pcap)"),
            (b"\x07taE", ""),
            (b"\x07tae", "blktrace's binary file"),
            (b"\x03\x03EXPORT:V11.02.00\n", "a dump of Oracle's exp"),
            (&dump, "a dump of Oracle Data Pump (expdp)"),
            (b"sda SYS_EXPORT_ in a text", ""),
            (b"Linux 6.1.0 (db1)\n", ""),
            (b"", ""),
        ];
        for (head, expected) in cases {
            let what = Foreign::of(head).map_or("", |foreign| foreign.what);
            assert_eq!(what, *expected, "{:?}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn an_error_of_input_names_its_kind_and_its_hint() {
        let error = io::Error::from(Foreign::of(b"%PDF-1.7").unwrap());
        assert_eq!(error.to_string(), "it is a PDF document");
        assert!(Foreign::in_error(&error).unwrap().hint.contains("HTML"));
        assert!(Foreign::in_error(&io::ErrorKind::NotFound.into()).is_none());
    }
}
