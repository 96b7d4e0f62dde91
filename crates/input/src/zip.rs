//! Files in zip archives, found one after the other without a list in memory.

use std::fs::File;
use std::io::{self, Read};

use flate2::read::DeflateDecoder;
use rawzip::{
    CompressionMethod, FileReader, RangeReader, ReaderAt, ZipArchive, ZipArchiveEntryWayfinder,
};

use crate::foreign::Foreign;

/// Returns the only file of a zip archive. Fails if it has several.
pub fn only(file: File) -> io::Result<Box<dyn Read + Send>> {
    let several = Foreign {
        what: "a zip archive of several files",
        hint: "unzip it and name the file that is meant",
    };
    let section = file.try_clone()?;
    let zip = opened(file)?;
    let mut buffer = vec![0; rawzip::RECOMMENDED_BUFFER_SIZE];
    let mut entries = zip.entries(&mut buffer);
    let mut found = None;
    while let Some(entry) = entries.next_entry().map_err(|error| damaged(&error))? {
        if entry.is_dir() {
            continue;
        }
        if found.is_some() {
            return Err(several.into());
        }
        if entry.flags().is_encrypted() {
            let what = "an encrypted zip archive";
            return Err(Foreign { what, hint: "unzip it and name the file" }.into());
        }
        found = Some((entry.wayfinder(), entry.compression_method()));
    }
    let Some((way, method)) = found else {
        let what = "a zip archive without files";
        return Err(Foreign { what, hint: "name the file that is meant" }.into());
    };
    let entry = zip.get_entry(way).map_err(|error| damaged(&error))?;
    let (start, end) = entry.compressed_data_range();
    let from = RangeReader::new(FileReader::from(section), start..end);
    Ok(Box::new(entry.verifying_reader(Inflated::new(method, from)?)))
}

pub fn opened(file: File) -> io::Result<ZipArchive<FileReader>> {
    let mut buffer = vec![0; rawzip::RECOMMENDED_BUFFER_SIZE];
    ZipArchive::from_file(file, &mut buffer).map_err(|error| damaged(&error))
}

/// Returns a file of a zip archive, decompressed and verified.
pub fn inflated<R: ReaderAt>(
    zip: &ZipArchive<R>,
    way: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
) -> io::Result<impl Read> {
    let entry = zip.get_entry(way).map_err(|error| damaged(&error))?;
    Ok(entry.verifying_reader(Inflated::new(method, entry.reader())?))
}

/// The contents of a file in a zip archive.
enum Inflated<R> {
    Stored(R),
    Deflated(Box<DeflateDecoder<R>>),
}

impl<R: Read> Inflated<R> {
    fn new(method: CompressionMethod, from: R) -> io::Result<Self> {
        match method {
            CompressionMethod::STORE => Ok(Self::Stored(from)),
            CompressionMethod::DEFLATE => Ok(Self::Deflated(Box::new(DeflateDecoder::new(from)))),
            _ => {
                let name = method.name().unwrap_or("an unknown method");
                let why = format!("it is compressed with {name} in a zip archive: unzip it");
                Err(io::Error::new(io::ErrorKind::Unsupported, why))
            }
        }
    }
}

impl<R: Read> Read for Inflated<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stored(from) => from.read(buffer),
            Self::Deflated(from) => from.read(buffer),
        }
    }
}

pub fn damaged(error: &rawzip::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("read the zip archive: {error}"))
}
