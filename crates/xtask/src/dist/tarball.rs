//! `blockstone-VERSION-TRIPLE.tar.gz`: everything in one folder, for any distribution.

use anyhow::Result;

use super::Release;
use super::archive::{File, Files};

/// Returns the file's name and contents.
pub fn package(release: &Release) -> Result<(String, Vec<u8>)> {
    let name = format!("blockstone-{}-{}", release.version, release.triple);
    let archive = release.style.tar_gz(&files(release), &format!("{name}/"))?;
    Ok((format!("{name}.tar.gz"), archive))
}

fn files(release: &Release) -> Files {
    let mut files = Files::from([
        ("blockstone".to_owned(), File::program(&release.binary)),
        ("THIRD-PARTY-LICENSES.txt".to_owned(), File::data(release.third_party.as_str())),
    ]);
    let texts = release.texts.iter().map(|(path, text)| (path.clone(), text));
    let man = release.documents.man.iter().map(|(page, text)| (format!("man/{page}"), text));
    let schemas = release.documents.schemas.iter();
    let schemas = schemas.map(|(name, text)| (format!("schema/{name}"), text));
    files.extend(
        texts.chain(man).chain(schemas).map(|(path, text)| (path, File::data(text.as_slice()))),
    );
    for (shell, script) in &release.documents.completions {
        files.insert(format!("completions/{}", shell.file), File::data(script.as_str()));
    }
    files
}
