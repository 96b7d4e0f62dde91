//! Common programs that copy, each on a scratch file, and the sizes they request here.

use std::io::{BufWriter, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::iosize::findings::{Direction, Flow, IosizeFindings, Tool};
use blockstone_base::rng;
use blockstone_base::units::Bytes;
use blockstone_measure::{Observer, claim, scratch};
use blockstone_sys::bpf::iosize::OfSize;
use blockstone_sys::child::Program;
use blockstone_sys::held::HeldDir;
use blockstone_sys::scratch::ScratchDir;
use blockstone_sys::survey;

use super::counter::Counter;
use super::{command, direct_cost, findings, flows};
use crate::CheckError;

/// Lines of the scratch file and bytes per line, 4 MiB in total.
const LINES: u64 = 65_536;
const LINE: usize = 64;
/// Time limit for one of them.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time limit for its version output, and the maximum size read of that.
const VERSION: (Duration, Bytes) = (Duration::from_secs(5), Bytes::kib(64));
const INPUT: &str = "in";
const OUTPUT: &str = "out";
/// First part that `split` makes of it, here the only one.
const PART: &str = "outaa";

const READ: Direction = Direction::Read;
const WRITE: Direction = Direction::Write;

/// A program, and its arguments: if the last is `>`, its output goes to the file, and if it is `<`,
/// its input comes from one.
struct Wanted {
    name: &'static str,
    arguments: &'static [&'static str],
    /// Sizes of its calls in Red Hat Enterprise Linux 4, where they were published.
    published: &'static [(Direction, u64)],
}

const fn tool(
    name: &'static str,
    arguments: &'static [&'static str],
    published: &'static [(Direction, u64)],
) -> Wanted {
    Wanted { name, arguments, published }
}

const TOOLS: &[Wanted] = &[
    tool("cp", &["in", "out"], &[(READ, 4096), (WRITE, 4096)]),
    tool("cat", &["in", ">"], &[(READ, 4096), (WRITE, 4096)]),
    tool("dd", &["if=in", "of=out"], &[]),
    tool("tar", &["-cf", "out", "in"], &[(READ, 10_240), (WRITE, 10_240)]),
    tool("gzip", &["-1", "-c", "in", ">"], &[(READ, 32_768), (WRITE, 16_384)]),
    tool("sum", &["in"], &[]),
    tool("md5sum", &["in"], &[(READ, 4096)]),
    tool("sha256sum", &["in"], &[]),
    tool("wc", &["in"], &[]),
    tool("sort", &["-o", "out", "in"], &[]),
    tool("uniq", &["in", "out"], &[(READ, 4096), (WRITE, 4096)]),
    tool("split", &["-b", "1G", "in", "out"], &[(READ, 4096), (WRITE, 4096)]),
    tool("tee", &["out", "<"], &[]),
    tool("compress", &["-c", "in", ">"], &[]),
    tool("bzip2", &["-1", "-c", "in", ">"], &[]),
    tool("rsync", &["--whole-file", "in", "out"], &[]),
    tool("zstd", &["-q", "-1", "in", "-o", "out"], &[]),
    tool("xz", &["-0", "-c", "in", ">"], &[]),
];

/// A database that `pg_dump` writes to the scratch directory.
#[derive(Clone, Debug)]
pub struct Dumped {
    /// Connection string of libpq, without the password.
    pub address: String,
    pub password: Option<String>,
}

const DUMP: Wanted = tool("pg_dump", &["--no-password", "--file=out"], &[]);

/// Runs those that are installed, one after the other, in their own directory in `dir`, which `id`
/// names. Fails if the directory cannot be used.
pub fn of_tools(
    dir: &Path,
    dumped: Option<&Dumped>,
    id: u64,
    observer: &mut dyn Observer,
) -> Result<IosizeFindings, CheckError> {
    let target = survey::target(Path::new("/"), dir)?;
    claim::directory(dir)?;
    let dir = Path::new(&target.path);
    scratch::remove_orphans(dir, &[]);
    let place = Scratch::create(&dir.join(scratch::name(id, "iosize")))?;
    let mut counter = Counter::start();
    let began = Instant::now();
    let (mut tools, mut absent) = (Vec::new(), Vec::new());
    let dump = dumped.map(|dumped| (&DUMP, Some(dumped)));
    for (wanted, dumped) in TOOLS.iter().map(|wanted| (wanted, None)).chain(dump) {
        if observer.interrupted().is_some() {
            break;
        }
        match version(wanted.name, observer) {
            Ok(version) => {
                tools
                    .push(Tool { version, ..ran(wanted, dumped, &place, &mut counter, observer)? });
            }
            Err(why) => absent.push(why),
        }
    }
    let mut found = findings("tools", &mut counter, observer);
    // Its programs in the kernel take time in every call.
    drop(counter);
    found.subject = dir.display().to_string();
    found.total = Vec::new();
    found.flows = Vec::new();
    found.absent = absent;
    found.observed_s = began.elapsed().as_secs_f64();
    let of_tools = |tool: &Tool| {
        let name = tool.name.clone();
        tool.flows.clone().into_iter().map(move |flow| Flow { path: name.clone(), ..flow })
    };
    let flows: Vec<Flow> = tools.iter().flat_map(of_tools).collect();
    let at = direct_cost::Place {
        read: Some(place.held.path().join(INPUT)),
        written: Some(place.held.path().to_owned()),
        id,
    };
    direct_cost::predict(&mut found, &flows, &at, observer);
    found.signal = observer.interrupted().map(str::to_owned);
    found.tools = tools;
    Ok(found)
}

/// Runs one, and returns what it requested of its files.
fn ran(
    wanted: &Wanted,
    dumped: Option<&Dumped>,
    place: &Scratch,
    counter: &mut Counter,
    observer: &mut dyn Observer,
) -> Result<Tool, CheckError> {
    let Wanted { name, arguments, published } = wanted;
    observer.phase(name);
    place.reset()?;
    let before = counter.sizes();
    let ran = command::run(place.command(wanted, dumped)?, counter, Some(PATIENCE), observer);
    counter.write_back(observer);
    let after = counter.sizes();
    let names = counter.names(&after);
    let is_here = |size: &OfSize| {
        let path = names.get(&size.place);
        path.is_some_and(|path| Path::new(path).starts_with(place.held.path()))
    };
    let sizes: Vec<OfSize> = flows::since(&after, &before).into_iter().filter(is_here).collect();
    let mut command = arguments.join(" ").replace('>', "> out").replace('<', "< in");
    if let Some(Dumped { address, .. }) = dumped {
        command = format!("{command} {address}");
    }
    Ok(Tool {
        name: (*name).to_owned(),
        version: String::new(),
        command: format!("{name} {command}"),
        flows: flows::of_all(&sizes, name),
        exit: ran?.exit,
        published,
    })
}

/// Returns the first line that a program of the system prints about itself, or why it cannot be
/// run.
fn version(name: &str, observer: &dyn Observer) -> Result<String, String> {
    let mut program = Program::find(name).map_err(|error| error.to_string())?;
    program.arg("--version");
    let go_on = &mut || observer.interrupted().is_none();
    let output = program.output(VERSION.0, VERSION.1, go_on);
    let output = output.map_err(|error| format!("{name} --version: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().unwrap_or_default();
    let line: String = line.chars().filter(|char| !char.is_control()).take(80).collect();
    Ok(line.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A directory that is removed with this value; a later check finds it if this one is killed.
struct Scratch {
    dir: ScratchDir,
    /// The same directory, to make files in it.
    held: HeldDir,
}

impl Scratch {
    fn create(path: &Path) -> Result<Self, CheckError> {
        let failed = failed(path);
        let dir = ScratchDir::create(path, None).map_err(&failed)?;
        let held = dir.as_fd().try_clone_to_owned().map_err(&failed)?;
        let made = Self { dir, held: HeldDir::of(held, path) };
        made.fill().map_err(failed)?;
        Ok(made)
    }

    /// Writes lines of hexadecimal digits: text that can be sorted, counted and compressed.
    fn fill(&self) -> std::io::Result<()> {
        let mut file = BufWriter::new(self.held.create_new(Path::new(INPUT))?);
        let mut bytes = [0; LINE / 2];
        for line in 0..LINES {
            rng::fill(line, &mut bytes);
            let text = bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
            file.write_all(&text.as_bytes()[1..])?;
            file.write_all(b"\n")?;
        }
        file.into_inner()?.sync_all()
    }

    /// Removes the output, and drops the input from the page cache.
    fn reset(&self) -> Result<(), CheckError> {
        let error = failed(self.held.path());
        for output in [OUTPUT, PART] {
            match self.held.remove(Path::new(output)) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error(source));
                }
                _ => {}
            }
        }
        let file = self.held.read(Path::new(INPUT)).map_err(error)?;
        // This fails if there is no cache to drop from, which does no harm.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        Ok(())
    }

    fn command(&self, wanted: &Wanted, dumped: Option<&Dumped>) -> Result<Program, CheckError> {
        let Wanted { name, arguments, .. } = wanted;
        let error = failed(self.held.path());
        let mut program = Program::find(name).map_err(&error)?;
        program.dir(&self.dir).map_err(&error)?;
        let arguments = match arguments.split_last() {
            Some((&">", rest)) => {
                program.stdout(self.held.create_new(Path::new(OUTPUT)).map_err(&error)?);
                rest
            }
            Some((&"<", rest)) => {
                program.stdin(self.held.read(Path::new(INPUT)).map_err(&error)?);
                rest
            }
            _ => arguments,
        };
        program.args(arguments);
        if let Some(Dumped { address, password }) = dumped {
            program.arg(format!("--dbname={address}"));
            // Not among its arguments, which every user can read.
            if let Some(password) = password {
                program.env("PGPASSWORD", password);
            }
        }
        Ok(program)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The next check in the directory removes anything that cannot be removed now.
        let _ = self.dir.remove();
    }
}

fn failed(dir: &Path) -> impl Fn(std::io::Error) -> CheckError {
    let dir = dir.to_owned();
    let hint = "free some space, or choose another directory";
    move |source| CheckError::Scratch { dir: dir.clone(), source, hint }
}
