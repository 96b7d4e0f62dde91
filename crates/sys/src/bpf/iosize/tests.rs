use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use blockstone_testkit::{ScratchDir, require};

use super::*;
use crate::file::{Access, BlockFile};

fn started() -> SizeTracer {
    let tracer = SizeTracer::start().unwrap();
    assert!(tracer.sees_faults && tracer.sees_mapped_writes && tracer.sees_rings);
    tracer
}

/// Runs a command and returns what it requested of the files in the directory, by name.
fn asked(tracer: &mut SizeTracer, command: &mut Command, dir: &Path) -> Vec<(String, OfSize)> {
    let own = std::process::id();
    tracer.want(own).unwrap();
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    tracer.forget(own).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!tracer.living().unwrap().contains(&child.id()));
    assert_eq!(tracer.dropped(), 0);
    let sizes = tracer.sizes().unwrap().into_iter().filter(|size| size.layer == Layer::Asked);
    let named = sizes.filter_map(|size| {
        let inner = tracer.path_of(&size.place).unwrap()?;
        let (parent, name) = inner.rsplit_once('/')?;
        let is_here = parent.len() > 1 && dir.to_str().unwrap().ends_with(parent);
        is_here.then(|| (name.to_owned(), size))
    });
    named.collect()
}

/// Writes a file in full and leaves none of it in the page cache.
fn evicted(path: &Path, bytes: usize) {
    fs::write(path, vec![7; bytes]).unwrap();
    let file = BlockFile::open(path, Access::ReadWrite, false).unwrap();
    file.fsync().unwrap();
    file.drop_cached().unwrap();
}

#[test]
fn calls_of_a_child_are_counted_by_exact_size() {
    require!(Bpf);
    let scratch = ScratchDir::on_disk().unwrap();
    let path = scratch.path().join("counted");
    fs::write(&path, vec![7; 100 * 1024]).unwrap();
    let mut dd = Command::new("dd");
    dd.arg(format!("if={}", path.display())).args(["of=/dev/null", "bs=3000", "count=20"]);
    let asked = asked(&mut started(), dd.stderr(Stdio::null()), scratch.path());
    let [(_, asked)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((asked.call, asked.size_bytes, asked.is_write), ("read", 3000, false));
    let sum = asked.sum;
    assert_eq!((sum.calls, sum.moved, sum.bytes, sum.failed), (20, 20, 60_000, 0));
    assert_eq!((sum.sequential, sum.aligned), (20, 0));
}

const REQUESTS: u64 = 101;

/// Returns what fio does for that many requests of 4 KiB to a 4 MiB file in a directory of its own.
fn fio(tracer: &mut SizeTracer, arguments: &str) -> Vec<OfSize> {
    let scratch = ScratchDir::on_disk().unwrap();
    let path = scratch.path().join("file");
    evicted(&path, 4 << 20);
    let mut fio = Command::new("fio");
    fio.args(["--name=x", "--size=4m", "--bs=4k", "--io_size=404k"]);
    fio.arg(format!("--filename={}", path.display())).args(arguments.split(' '));
    let asked = asked(tracer, fio.stdout(Stdio::null()), scratch.path());
    asked.into_iter().map(|(_, size)| size).collect()
}

#[test]
fn requests_are_counted_whatever_asks_for_them() {
    require!(Bpf, Fio, Uring);
    let mut tracer = started();
    let cases = [
        ("pread", "--ioengine=psync"),
        ("preadv", "--ioengine=pvsync2"),
        ("io_uring", "--ioengine=io_uring --iodepth=8 --direct=1"),
        ("io_uring", "--ioengine=io_uring --iodepth=8 --direct=1 --registerfiles --fixedbufs"),
        ("io_uring", "--ioengine=io_uring --iodepth=8 --nonvectored=0"),
        ("aio", "--ioengine=libaio --iodepth=8 --direct=1"),
        ("page fault", "--ioengine=mmap"),
    ];
    for (call, engine) in cases {
        for rw in ["randread", "randwrite"] {
            let mut asked = fio(&mut tracer, &format!("{engine} --rw={rw}"));
            let is_write = rw == "randwrite";
            // A write through a mapping reads the page first.
            asked.retain(|size| size.is_write == is_write || call != "page fault");
            let [only] = &asked[..] else { panic!("{engine} {rw}: {asked:?}") };
            assert_eq!(only.call, call.replace("read", &rw[4..]), "{engine} {rw}");
            assert_eq!((only.size_bytes, only.is_write), (4096, is_write), "{engine} {rw}");
            let sum = only.sum;
            let all = (REQUESTS, REQUESTS, 0, REQUESTS * 4096);
            let found = (sum.calls, sum.moved, sum.failed, sum.bytes);
            assert_eq!(found, all, "{engine} {rw}");
            assert_eq!(sum.aligned, REQUESTS, "{engine} {rw}");
        }
    }
    // Sequential requests to a ring count as sequential, in whichever order they complete.
    let asked = fio(&mut tracer, "--ioengine=io_uring --iodepth=8 --direct=1 --rw=read");
    assert_eq!(asked[0].sum.sequential, REQUESTS, "{asked:?}");
}

/// Number of successful calls and bytes moved, by file, call and size.
type Totals = BTreeMap<(String, bool, String, u64), (u64, u64)>;

/// Returns the calls on files in the directory, from the output of strace.
fn calls_in(log: &str, dir: &Path) -> Totals {
    let mut totals = Totals::new();
    for line in log.lines() {
        // `4711 read(3</scratch/in>, ""..., 512) = 512`
        let Some((call, result)) = line.rsplit_once(" = ") else { continue };
        let (name, arguments) = call.split_once('(').unwrap();
        let name = name.split_whitespace().last().unwrap().replace("64", "");
        let arguments: Vec<&str> = arguments.trim_end_matches([' ', ')']).split(", ").collect();
        let moved = result.split_whitespace().next().unwrap().parse::<u64>();
        let Ok(moved) = moved else { continue };
        let size = arguments[if name == "copy_file_range" { 4 } else { 2 }].parse().unwrap();
        let sides: &[(usize, bool)] = match name.as_str() {
            "copy_file_range" => &[(0, false), (2, true)],
            _ => &[(0, name.contains("write"))],
        };
        for &(argument, is_write) in sides {
            let path = arguments[argument].split_once('<').map_or("", |(_, path)| path);
            let Ok(file) = Path::new(path.trim_end_matches('>')).strip_prefix(dir) else {
                continue;
            };
            let key = (file.display().to_string(), is_write, name.clone(), size);
            let total = totals.entry(key).or_default();
            *total = (total.0 + 1, total.1 + moved);
        }
    }
    totals
}

#[test]
fn counts_equal_those_of_strace() {
    require!(Bpf, Strace);
    let mut tracer = started();
    let cases = [
        "dd if=in of=out",
        "dd if=in of=out bs=3000",
        "cat in > out",
        "cp in out",
        "cp --sparse=always in out",
        "tar -cf out in",
        "tar -cf between in && tar -xf between --to-stdout > out",
    ];
    for case in cases {
        // The log is outside the directory, whose files are compared.
        let [scratch, log] = [0; 2].map(|_| ScratchDir::on_disk().unwrap());
        let dir = scratch.path().canonicalize().unwrap();
        let log = log.path().join("log");
        // Not a multiple of any of the sizes.
        fs::write(dir.join("in"), vec![7; (1 << 20) + 4321]).unwrap();
        let mut strace = Command::new("strace");
        strace.args(["-f", "-y", "-qq", "-s0", "-e"]);
        strace.arg("trace=read,write,pread64,pwrite64,copy_file_range").arg("-o").arg(&log);
        strace.args(["sh", "-c", case]).current_dir(&dir).stderr(Stdio::null());
        let mut counted = Totals::new();
        for (name, size) in asked(&mut tracer, &mut strace, &dir) {
            if size.call == "page fault" {
                continue;
            }
            let key = (name, size.is_write, size.call.to_owned(), size.size_bytes);
            counted.insert(key, (size.sum.calls, size.sum.bytes));
        }
        let expected = calls_in(&fs::read_to_string(&log).unwrap(), &dir);
        assert!(!expected.is_empty(), "{case}");
        assert_eq!(counted, expected, "{case}");
    }
}
