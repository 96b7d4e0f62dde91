//! Kernel resources that may run out: inodes, file handles, sockets.

use blockstone_base::column::{Column, Origin, Unit};
use blockstone_sys::proc::numbers;

use crate::source::Source;
use crate::{Cell, Context, Probe, Row, Schema, Unmeasured};

pub const SCHEMA: Schema = Schema {
    probe: "resources",
    doc: "Kernel objects of the host: inodes, file handles, sockets of this network namespace.",
    columns: &[
        INODES.level("inodes", Unit::Count, "Inodes in memory."),
        INODES.level("inodes_unused", Unit::Count, "Those of them that are kept but not in use."),
        FILES.level("file_handles", Unit::Count, "File handles in use by all processes."),
        FILES.level("file_handles_max", Unit::Count, "Maximum number of handles (fs.file-max)."),
        SOCKETS.level("sockets", Unit::Count, "Sockets of all kinds."),
        SOCKETS.level(
            "tcp_in_use",
            Unit::Count,
            "TCP sockets in use, IPv4 and IPv6; those in time-wait are not included.",
        ),
        SOCKETS.level(
            "tcp_orphans",
            Unit::Count,
            "TCP sockets that no process has open but that are not yet closed.",
        ),
        SOCKETS.level(
            "tcp_time_wait",
            Unit::Count,
            "TCP connections that were closed and whose ports are still kept.",
        ),
    ],
};

const INODES: Origin = Origin("/proc/sys/fs/inode-nr");
const FILES: Origin = Origin("/proc/sys/fs/file-nr");
const SOCKETS: Origin = Origin("/proc/net/sockstat");
/// IPv6 sockets, if the kernel supports it.
const SOCKETS_V6: &str = "/proc/net/sockstat6";

pub fn open(context: &Context) -> Box<dyn Probe> {
    let source = |path| Source::of(context, path, "procfs is not mounted");
    Box::new(Resources {
        inodes: source(INODES.0),
        files: source(FILES.0),
        sockets: source(SOCKETS.0),
        sockets_v6: source(SOCKETS_V6),
        lacking: Vec::new(),
    })
}

#[derive(Debug)]
struct Resources {
    inodes: Source,
    files: Source,
    sockets: Source,
    sockets_v6: Source,
    /// Columns that this kernel's files do not have.
    lacking: Vec<&'static Column>,
}

impl Probe for Resources {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        let [inodes, unused] = first(self.inodes.read());
        // The middle number is that of free handles; it has always been zero since Linux 2.6.
        let [files, free, files_max] = first(self.files.read());
        let used = files.zip(free).map(|(files, free)| files.saturating_sub(free));
        let v6 = self.sockets_v6.read().and_then(|text| named(text, "TCP6:", "inuse"));
        let sockets = self.sockets.read();
        let of = |key, name| named(sockets?, key, name);
        let in_use = of("TCP:", "inuse").map(|v4| v4.saturating_add(v6.unwrap_or(0)));
        let values = [
            inodes,
            unused,
            used,
            files_max,
            of("sockets:", "used"),
            in_use,
            of("TCP:", "orphan"),
            of("TCP:", "tw"),
        ];
        let columns = SCHEMA.columns.iter().zip(&values);
        self.lacking = columns.filter(|(_, value)| value.is_none()).map(|(c, _)| c).collect();
        rows.push(Row { object: String::new(), cells: values.map(Cell::from).into() });
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        let sources = [&self.inodes, &self.files, &self.sockets];
        let why = |column: &&'static Column| {
            let source = sources.into_iter().find(|source| source.path() == column.source);
            let read = source.and_then(|source| source.unmeasured().cloned());
            let absent = || {
                let (name, file) = (column.name, column.source);
                Unmeasured::NotInVersion(format!("this kernel has no {name} in {file}"))
            };
            (column.name, read.unwrap_or_else(absent))
        };
        self.lacking.iter().map(why).collect()
    }
}

/// Returns the first numbers of a text.
fn first<const N: usize>(text: Option<&[u8]>) -> [Option<u64>; N] {
    let mut numbers = numbers(text.unwrap_or_default());
    [(); N].map(|()| numbers.next())
}

/// Returns the number after `name` in the line that begins with `key`, as in `TCP: inuse 5 orphan
/// 0`.
fn named(text: &[u8], key: &str, name: &str) -> Option<u64> {
    let line = text.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(key.as_bytes()))?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.find(|word| *word == name.as_bytes())?;
    numbers(words.next()?).next()
}
