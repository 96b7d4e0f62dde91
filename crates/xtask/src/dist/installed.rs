//! Files of an installation, as packages of distributions contain them.

use anyhow::Result;

use super::Release;
use super::archive::{File, Files};
use super::documents::Shell;

/// Folder of the documents that are installed.
const DOCUMENTS: &str = "usr/share/doc/blockstone";
const SERVICE: &str = "packaging/blockstone-watch.service";

/// Returns the files by path. `completion` returns where a distribution expects the script of a
/// shell.
pub fn files(
    release: &Release,
    completion: &dyn Fn(&Shell) -> Option<&'static str>,
) -> Result<Files> {
    let mut files = Files::from([
        ("usr/bin/blockstone".to_owned(), File::program(&release.binary)),
        (format!("{DOCUMENTS}/copyright"), File::data(copyright(release))),
    ]);
    for (path, text) in &release.texts {
        let path = match path.as_str() {
            SERVICE => "usr/lib/systemd/system/blockstone-watch.service".to_owned(),
            _ => format!("{DOCUMENTS}/{path}"),
        };
        files.insert(path, File::data(text.as_slice()));
    }
    for (page, text) in &release.documents.man {
        let file = File::data(release.style.gzip(text)?);
        files.insert(format!("usr/share/man/man1/{page}.gz"), file);
    }
    for (name, text) in &release.documents.schemas {
        files.insert(format!("usr/share/blockstone/schema/{name}"), File::data(text.as_slice()));
    }
    for (shell, script) in &release.documents.completions {
        if let Some(path) = completion(shell) {
            files.insert(path.to_owned(), File::data(script.as_str()));
        }
    }
    Ok(files)
}

fn copyright(release: &Release) -> Vec<u8> {
    let mut text = b"Blockstone is licensed under MIT or Apache-2.0, at your choice.\n\n".to_vec();
    for (_, licence) in release.texts.iter().filter(|(name, _)| name.starts_with("LICENSE-")) {
        text.extend(licence);
        text.push(b'\n');
    }
    text.extend(release.third_party.as_bytes());
    text
}
