//! Pipes, manifests and batches.

use blockstone_base::hint::Hint as _;
use std::io::{Read, Write, pipe};
use std::os::fd::OwnedFd;

use super::manifest::{Compared, Entry};
use super::*;

fn file(end: impl Into<OwnedFd>) -> File {
    File::from(end.into())
}

#[test]
fn a_file_goes_through_a_pipe_and_becomes_a_file() {
    require!(Uring);
    let place = Place::new();
    for size in [0, 1, 4097, REQUEST, 33 * REQUEST + 11] {
        place.make(size, &[(0, size / 3), (size / 2, size - size / 2)]);
        let (reader, writer) = pipe().unwrap();
        let source = place.source();
        let sent = std::thread::spawn(move || {
            pipe::read(&source, &file(writer), &options(), &Until::default()).unwrap()
        });
        let verify = Options { verify: true, force: true, ..options() };
        let target = (&place.dir, Path::new(NAME));
        let watch = Until::default();
        let made = pipe::write(&file(reader), target, &verify, NOTHING, &watch).unwrap();
        let sent = sent.join().unwrap();
        assert_eq!((sent.bytes, sent.method, sent.broken), (size, Method::Direct, false));
        assert_eq!((made.bytes, made.method), (size, Method::Direct));
        assert!(matches!(made.verified, Verified::Equal { .. }), "{:?}", made.verified);
        place.is_equal();
    }
}

#[test]
fn a_pipe_that_breaks_is_a_quiet_end_and_one_that_is_interrupted_leaves_nothing() {
    require!(Uring);
    let place = Place::new();
    let size = 40 * REQUEST;
    place.make(size, &[(0, size)]);
    let (mut reader, writer) = pipe().unwrap();
    let source = place.source();
    let sent = std::thread::spawn(move || {
        pipe::read(&source, &file(writer), &options(), &Until::default()).unwrap()
    });
    let mut some = vec![0; REQUEST as usize];
    reader.read_exact(&mut some).unwrap();
    drop(reader);
    let sent = sent.join().unwrap();
    assert!(sent.broken && sent.bytes < size, "{sent:?}");

    let (reader, mut writer) = pipe().unwrap();
    let write = std::thread::spawn(move || while writer.write_all(&[7; 4096]).is_ok() {});
    let some = Until(Some(8 * REQUEST), AtomicU64::new(0));
    let target = (&place.dir, Path::new(NAME));
    let error = pipe::write(&file(reader), target, &options(), NOTHING, &some).unwrap_err();
    write.join().unwrap();
    assert!(matches!(error, CopyError::Interrupted), "{error}");
    assert_eq!((place.left(), place.target().exists()), (vec![], false));
}

#[test]
fn a_manifest_finds_what_differs() {
    require!(Uring);
    let place = Place::new();
    let size = 9 * REQUEST + 5;
    place.make(size, &[(0, 2 * REQUEST + 100), (6 * REQUEST, 3 * REQUEST + 5)]);
    let copied = place.copy(Options { hash: true, ..options() }).unwrap();
    let entries = [NAME, "a\u{e4}/b"].map(|path| Entry {
        path: PathBuf::from(path),
        size_bytes: size,
        chunks: copied.chunks.clone(),
    });
    let mut text = Vec::new();
    for entry in &entries {
        manifest::write(&mut text, entry).unwrap();
    }
    let read: Vec<Entry> = manifest::read(&text[..]).map(Result::unwrap).collect();
    assert_eq!(read, entries);
    text.extend(b"{}\n");
    let error = manifest::read(&text[..]).nth(2).unwrap().unwrap_err().told();
    assert!(
        error.starts_with("read the manifest: line 3: ") && error.contains("\nhint: "),
        "{error}"
    );

    let watch = Until::default();
    let check = || manifest::check(&entries[0], &place.dir, &options(), &watch).unwrap();
    let Compared::Equal { read_bytes, medium_bytes } = check() else { panic!("{:?}", check()) };
    assert!(medium_bytes.unwrap() >= read_bytes && read_bytes >= 5 * REQUEST);
    let target = OpenOptions::new().write(true).open(place.target()).unwrap();
    let differs = |at: u64| match check() {
        Compared::Differs { offset_bytes, .. } => (offset_bytes..=at).contains(&at),
        other => panic!("{other:?}"),
    };
    target.write_all_at(&[0; 10], 4 * REQUEST).unwrap();
    assert!(matches!(check(), Compared::Equal { .. }), "zeros are as good as a hole");
    target.write_all_at(b"x", 4 * REQUEST).unwrap();
    assert!(differs(4 * REQUEST), "what should be a hole");
    target.write_all_at(&[0], 4 * REQUEST).unwrap();
    target.write_all_at(&[0; 16], 7 * REQUEST + 9).unwrap();
    assert!(differs(7 * REQUEST + 9));
    target.set_len(size - 1).unwrap();
    assert_eq!(check(), Compared::Size { found_bytes: size - 1 });
    fs::remove_file(place.target()).unwrap();
    assert_eq!(check(), Compared::Missing);
}

#[test]
fn a_line_of_a_manifest_is_not_trusted() {
    let hash = "0".repeat(32);
    let line = |path: &str, chunks: &str| {
        let text = format!("{{\"path\":\"{path}\",\"size_bytes\":100,\"chunks\":[{chunks}]}}");
        manifest::parse(text.as_bytes())
    };
    line("a/b", &format!("[0,10,\"{hash}\"],[10,90,\"{hash}\"]")).unwrap();
    for path in ["", "/etc/passwd", "../a", "a/../b", "a\\u0000b"] {
        line(path, "").unwrap_err();
    }
    for chunk in ["[0,0,", "[0,101,", "[99,2,", "[18446744073709551615,1,", "[5,10,\"00\"],[0,1,"] {
        line("a", &format!("{chunk}\"{hash}\"]")).unwrap_err();
    }
    line("a", "[0,1,\"+0000000000000000000000000000000\"]").unwrap_err();
}

#[test]
fn a_batch_copies_each_or_says_why_not() {
    require!(Uring);
    let place = Place::new();
    let sizes = (0..300).map(|number| (number * 977) % (REQUEST + 5000));
    let sources: Vec<(PathBuf, Vec<u8>)> = sizes
        .enumerate()
        .map(|(number, size)| {
            let path = place.scratch.path().join(format!("s{number}"));
            let bytes = random(size, number as u64);
            fs::write(&path, &bytes).unwrap();
            (path, bytes)
        })
        .collect();
    let names: Vec<String> = (0..sources.len()).map(|number| format!("t{number}")).collect();
    fs::write(place.dir.path().join("t7"), "theirs").unwrap();
    fs::remove_file(&sources[9].0).unwrap();
    let refuses = |_: &File, _: &File| Err(CopyError::Interrupted);
    let jobs: Vec<BatchJob<'_>> = sources
        .iter()
        .zip(&names)
        .enumerate()
        .map(|(number, ((source, _), name))| BatchJob {
            job: Job { source, from: &place.from, target_dir: &place.dir, name: Path::new(name) },
            carry: if number == 11 { &refuses } else { NOTHING },
        })
        .collect();
    let mut copier = Copier::new(Options { verify: true, ..options() }).unwrap();
    let ended = copier.copy_batch(&jobs, &Until::default());
    assert_eq!(ended.len(), jobs.len());
    for (number, (ended, (_, bytes))) in ended.iter().zip(&sources).enumerate() {
        let target = place.dir.path().join(&names[number]);
        match (number, ended) {
            (7, Err(CopyError::Exists { .. })) => assert_eq!(fs::read(target).unwrap(), b"theirs"),
            (9, Err(CopyError::Io { .. })) | (11, Err(CopyError::Interrupted)) => {
                assert!(!target.exists());
            }
            (_, Ok(done)) => {
                assert!(fs::read(target).unwrap() == *bytes, "{number}");
                let is_equal = matches!(done.verified, Verified::Equal { .. });
                assert!(is_equal, "{number}: {:?}", done.verified);
            }
            (_, Err(error)) => panic!("{number}: {error}"),
        }
    }
    let left = place.left().into_iter().filter(|name| name.starts_with('.')).count();
    assert_eq!(left, 0);
}
