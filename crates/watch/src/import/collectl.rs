//! collectl's raw files: the lines of `/proc` that it read, below the time of reading. Our own
//! probes parse these lines.

use std::collections::BTreeMap;

use blockstone_base::column::Reading;
use blockstone_base::identity::Host;
use blockstone_probe::{Context, Pages, Probe, Row, registry};

use super::stamp::LATEST_NS;
use super::text::Text;
use super::{Failure, Format, Origin, Sink, Snapshot};

pub const FORMAT: Format = Format {
    tool: "collectl",
    holds: "kernel counters that collectl recorded",
    goes_on: true,
    made_by: "collectl's raw files (collectl -sDcmnt -f DIR)",
    recognises: |text| text.starts_with('#') && text.lines().take(20).any(is_title),
    read,
};

const TITLE: &str = "# Collectl:";
/// Fields of a disk in the oldest layout: those up to the time of all requests.
const DISK_FIELDS: usize = 11;
const NET_FIELDS: usize = 16;

fn is_title(line: &str) -> bool {
    line.starts_with(TITLE)
}

#[derive(Default)]
struct Block {
    line: usize,
    at_ns: u64,
    texts: BTreeMap<String, Vec<u8>>,
    /// The path of the text for the current line.
    path: String,
    /// First word of its last line, without digits at the end.
    last: String,
    /// Heading of the table of interrupts, which collectl leaves out: a column for each processor
    /// that had a line of its own.
    processors: String,
}

fn read(text: &mut Text, sink: &mut Sink<'_>) -> Result<Origin, Failure> {
    let pages = Pages::default();
    let context = Context::of_pages(pages.clone());
    let probes = registry::of(&context).map(|entry| (entry.open)(&context)).collect();
    let mut reader =
        Reader { pages, probes, sink, last: String::new(), last_ns: None, backwards: 0 };
    let mut origin = Origin::default();
    let mut block = Block::default();
    while let Some((number, is_cut, line)) = text.next_numbered()? {
        let damage = |what: String| Failure::Damage { line: number, what };
        if let Some(time) = line.strip_prefix(">>>") {
            let at_ns = match time.strip_suffix("<<<").and_then(|time| instant_ns(time.trim())) {
                Some(at_ns) => at_ns,
                // Truncated within the time: there is nothing after it.
                None if is_cut => break,
                None => return Err(damage(format!("`{line}` is not a time of collectl"))),
            };
            if block.line > 0 {
                reader.take(&mut block)?;
            }
            (block.line, block.at_ns) = (number, at_ns);
            block.last.clear();
            block.processors.clear();
        } else if line.starts_with('#') {
            head(line, &mut origin);
        } else if block.line > 0 && !is_cut {
            block.add(line).map_err(damage)?;
        }
    }
    // When collectl exits it writes the time once more, with nothing below it.
    if !block.last.is_empty() {
        if text.is_cut() || (!reader.last.is_empty() && reader.last != block.last) {
            let note = "the file is truncated: the incomplete sample of line";
            origin.notes.push(format!("{note} {} was skipped", block.line));
        } else {
            reader.take(&mut block)?;
        }
    }
    if reader.backwards > 0 {
        let count = reader.backwards;
        origin.notes.push(format!("its clock went back; samples skipped: {count}"));
    }
    Ok(origin)
}

struct Reader<'a, 's> {
    pages: Pages,
    probes: Vec<Box<dyn Probe>>,
    sink: &'a mut Sink<'s>,
    /// First word of the last line of the previous block.
    last: String,
    last_ns: Option<u64>,
    backwards: usize,
}

impl Reader<'_, '_> {
    /// Samples the texts of a block, and leaves empty ones with the same names.
    fn take(&mut self, block: &mut Block) -> Result<(), Failure> {
        self.last.clone_from(&block.last);
        if self.last_ns.is_some_and(|last_ns| block.at_ns <= last_ns) {
            self.backwards += 1;
            block.texts.clear();
            return Ok(());
        }
        self.last_ns = Some(block.at_ns);
        block.texts.retain(|_, text| !text.is_empty());
        block.texts = self.pages.turn(std::mem::take(&mut block.texts));
        block.texts.values_mut().for_each(Vec::clear);
        let mut readings = Vec::new();
        let mut rows = Vec::new();
        for probe in &mut self.probes {
            rows.clear();
            probe.sample(&mut rows);
            let name = probe.schema().probe;
            let named = |Row { object, cells }| Reading { probe: name, object, cells };
            readings.extend(rows.drain(..).map(named));
        }
        (self.sink)(Snapshot { at_ns: block.at_ns, readings })
    }
}

impl Block {
    /// Adds a line to the text of its original file. Lines that no probe reads are skipped.
    fn add(&mut self, line: &str) -> Result<(), String> {
        let Some(word) = line.split_ascii_whitespace().next() else { return Ok(()) };
        let (word, digits) =
            word.split_at(word.trim_end_matches(|c: char| c.is_ascii_digit()).len());
        self.last.clear();
        self.last.push_str(word);
        self.path.clear();
        let text = match word {
            "cpu" => {
                if !digits.is_empty() {
                    self.processors.extend([" CPU", digits]);
                }
                self.path.push_str("/proc/stat");
                checked(line, line, 4)?
            }
            "intr" | "ctxt" | "processes" | "procs_running" | "procs_blocked" => {
                self.path.push_str("/proc/stat");
                checked(line, line, 1)?
            }
            "disk" => {
                let mut rest = line.trim_start();
                for _ in 0..3 {
                    rest = rest.split_once(' ').map_or("", |(_, rest)| rest.trim_start());
                }
                let (name, values) = rest.split_once(' ').unwrap_or((rest, ""));
                if name.is_empty() {
                    return Err("a disk without a name".to_owned());
                }
                checked(rest, line, DISK_FIELDS)?;
                self.path.extend(["/sys/class/block/", name, "/stat"]);
                values
            }
            "Net" => {
                let line = line.trim_start_matches("Net");
                let (name, values) = line.rsplit_once(':').ok_or("an interface without `:`")?;
                checked(&format!("{name} {values}"), line, NET_FIELDS)?;
                self.path.push_str("/proc/net/dev");
                line
            }
            "int" => {
                self.path.push_str("/proc/interrupts");
                self.head_interrupts();
                line.trim_start().trim_start_matches("int")
            }
            "load" => {
                self.path.push_str("/proc/loadavg");
                line.trim_start().trim_start_matches("load")
            }
            _ if word.starts_with("tcp-") => {
                self.path.push_str("/proc/net/snmp");
                line.trim_start_matches("tcp-")
            }
            _ if line.ends_with(" kB") && word.ends_with(':') => {
                checked(line.trim_end_matches(" kB"), line, 1)?;
                self.path.push_str("/proc/meminfo");
                line
            }
            _ if line.split(' ').count() == 2 => {
                self.path.push_str("/proc/vmstat");
                line
            }
            _ => return Ok(()),
        };
        if !self.texts.contains_key(&self.path) {
            self.texts.insert(self.path.clone(), Vec::new());
        }
        if let Some(page) = self.texts.get_mut(&self.path) {
            page.extend_from_slice(text.as_bytes());
            page.push(b'\n');
        }
        Ok(())
    }

    /// Begins the page of interrupts with the line that names its processors, which collectl does
    /// not keep.
    fn head_interrupts(&mut self) {
        if self.texts.get(&self.path).is_none_or(Vec::is_empty) {
            let heading = format!("{}\n", self.processors).into_bytes();
            self.texts.insert(self.path.clone(), heading);
        }
    }
}

/// Returns `fields` unchanged if they are a word and at least `least` numbers; `line` is for the
/// error.
fn checked<'a>(fields: &'a str, line: &str, least: usize) -> Result<&'a str, String> {
    let values = || fields.split_ascii_whitespace().skip(1);
    let is_number = |value: &&str| value.bytes().all(|b| b.is_ascii_digit());
    let found = values().count();
    if found < least {
        return Err(format!("`{}` has {found} numbers, not {least}", line.trim()));
    }
    match values().find(|value| !is_number(value)) {
        Some(odd) => Err(format!("`{odd}` in `{}` is not a number", line.trim())),
        None => Ok(fields),
    }
}

/// Parses seconds like `1795342312.001` into nanoseconds.
fn instant_ns(time: &str) -> Option<u64> {
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, ""));
    let seconds: u64 = seconds.parse().ok()?;
    let digits = format!("{fraction:0<9}");
    let fraction: u64 = digits.get(..9)?.parse().ok()?;
    let at_ns = seconds.checked_mul(1_000_000_000)?.checked_add(fraction)?;
    (at_ns <= LATEST_NS).then_some(at_ns)
}

/// Parses a line of the file's head: `# Name: value  Name: value`.
pub fn head(line: &str, origin: &mut Origin) {
    let value = |name: &str| {
        let rest = line.split_once(name)?.1;
        rest.split_whitespace().next()
    };
    let text = |name: &str| value(name).unwrap_or_default().to_owned();
    let host: &mut Host = &mut origin.host;
    if line.starts_with(TITLE) {
        origin.tool_version = value("Collectl:").map(str::to_owned);
    } else if line.starts_with("# Host:") {
        host.hostname = text("Host:");
    } else if line.starts_with("# SubSys:") {
        host.cpus = value("NumCPUs:").and_then(|n| n.parse().ok()).unwrap_or_default();
        host.cpus_allowed_milli = host.cpus.saturating_mul(1000);
    } else if line.starts_with("# HZ:") {
        host.architecture = text("Arch:").split('-').next().map(str::to_owned).unwrap_or_default();
    } else if line.starts_with("# Cpu:") {
        host.cpu_model = text("Cpu:");
    } else if line.starts_with("# Kernel:") {
        host.kernel = text("Kernel:");
        let kib: Option<u64> = value("Memory:").and_then(|n| n.parse().ok());
        host.memory_bytes = kib.unwrap_or_default().saturating_mul(1024);
    }
}
