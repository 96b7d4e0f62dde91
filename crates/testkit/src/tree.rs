//! Builds trees of `/proc` and `/sys` from one text each, for kernels that are not available.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Creates the files and links of a capture below `root`: a line `==> path <==` begins a file,
/// whose text follows (`\\0` is a zero byte); `==> path -> target <==` is a link. Existing files
/// are overwritten.
pub fn lay_out(capture: &str, root: &Path) -> io::Result<()> {
    let mut file: Option<(PathBuf, String)> = None;
    for line in capture.lines() {
        let Some(name) = line.strip_prefix("==> ").and_then(|line| line.strip_suffix(" <=="))
        else {
            if let Some((_, text)) = &mut file {
                text.push_str(&line.replace("\\0", "\0"));
                text.push('\n');
            }
            continue;
        };
        write(file.take())?;
        match name.split_once(" -> ") {
            Some((link, target)) => {
                let link = make_room(root, link)?;
                if !link.is_symlink() {
                    symlink(below(root, target), link)?;
                }
            }
            None => file = Some((make_room(root, name)?, String::new())),
        }
    }
    write(file)
}

fn write(file: Option<(PathBuf, String)>) -> io::Result<()> {
    file.map_or(Ok(()), |(path, text)| fs::write(path, text))
}

fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// Returns the path below the root, after creating the directories above it.
fn make_room(root: &Path, path: &str) -> io::Result<PathBuf> {
    let path = below(root, path);
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_links_are_made_and_overwritten() {
        let root = crate::ScratchDir::on_disk().unwrap();
        let capture = "==> /a/b <==\n1 2\n3\n==> /l -> /a <==\n==> /c <==\nx\\0y\n";
        lay_out(capture, root.path()).unwrap();
        lay_out(capture, root.path()).unwrap();
        let read = |path: &str| fs::read_to_string(root.path().join(path)).unwrap();
        assert_eq!((read("l/b").as_str(), read("c").as_str()), ("1 2\n3\n", "x\0y\n"));
    }
}
