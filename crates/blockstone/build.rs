//! Packs the pages of docs/, which `blockstone help` prints.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").canonicalize()?;
    io::stdout().write_all(format!("cargo::rerun-if-changed={}\n", docs.display()).as_bytes())?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    let files = fs::read_dir(docs)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files = files.collect::<io::Result<Vec<PathBuf>>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(&file)?;
        let title = text.lines().next().unwrap_or_default().trim_start_matches("# ");
        let packed = out.join(format!("{name}.md.gz"));
        let mut gzip = GzEncoder::new(fs::File::create(&packed)?, Compression::best());
        gzip.write_all(text.as_bytes())?;
        gzip.finish()?;
        let packed = packed.to_string_lossy();
        let _ = writeln!(
            list,
            "Document {{ name: {name:?}, title: {title:?}, packed: include_bytes!({packed:?}) }},"
        );
    }
    fs::write(out.join("documents.rs"), list + "]\n")
}
