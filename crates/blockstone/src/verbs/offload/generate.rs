//! `blockstone offload generate`: generates the table of card transactions, at any scale.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use blockstone_base::rows;
use blockstone_base::table::{Measure, Rows as _, count, level, text};
use blockstone_base::text::parent_dir;
use blockstone_base::units::Bytes;
use blockstone_pushdown::cards::{COLUMNS, Cards, OWN, OWN_SHARE, ROW_BYTES, TABLE};
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Headline, Report, Section};
use blockstone_sys::held::HeldDir;
use blockstone_sys::{output, path, survey};
use clap::{Args, ValueHint};

use super::earlier;
use crate::choice::{Choice, one_of};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::progress::Progress;
use crate::purpose::Purpose;
use crate::verb::Context;

const CHUNK: usize = 1 << 20;
/// Longest line of a row, in bytes.
const LINE_BYTES: u64 = 120;

/// Arguments of `offload generate`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone offload generate --scale 1G cards.csv
  blockstone offload generate --format copy cards.txt   for COPY of PostgreSQL
  blockstone offload generate --schema                  the statement for it")]
pub struct GenerateArgs {
    /// The file to write, new or empty; `-` is standard output
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(required_unless_present = "schema")]
    #[arg(add = Purpose::Output)]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub cards: CardsArgs,
    /// How rows are written
    #[arg(long, value_parser = one_of(FORMATS), default_value = "csv")]
    pub format: Format,
    /// Only print the statement that makes the table
    #[arg(long, conflicts_with_all = ["file", "scale", "seed", "format"])]
    pub schema: bool,
}

/// The table of card transactions.
#[derive(Args, Debug)]
pub struct CardsArgs {
    /// Size of the table as Oracle stores it, at 83.4 bytes a row
    #[arg(long, value_name = "SIZE", default_value = "128M")]
    pub scale: Bytes,
    /// The same seed gives the same rows
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv,
    Copy,
}

const FORMATS: [Choice<Format>; 2] = [
    ("csv", "with a first line of column names", Format::Csv),
    ("copy", "as PostgreSQL's COPY takes it, tabs between columns", Format::Copy),
];

rows! {
    /// Single figures of a table that was written.
    pub struct Summary {
        /// The file that was written.
        file: String = text("file"),
        /// Rows of the table.
        rows: u64 = count("rows"),
        /// Rows with one of the shop's own cards, which the filter of `offload run` selects.
        own_rows: u64 = count("own rows"),
        /// Bytes that were written.
        file_bytes: u64 = level("size", Measure::Bytes),
        /// Seed of the rows, in digits.
        seed: String = text("seed"),
    }
}

rows! {
    /// Columns of the table that was written.
    pub struct ColumnRow {
        /// Its name.
        column: &'static str = text("column"),
        /// Its type there.
        oracle: &'static str = text("in the published table"),
        /// The type that holds the same here.
        sql: &'static str = text("type"),
    }
}

pub const TABLES: Tables = &[("columns", ColumnRow::COLUMNS)];

impl CardsArgs {
    /// Refuses a table without rows, or of 1 PiB or more.
    pub fn cards(&self) -> Result<Cards> {
        let least = ROW_BYTES as u64 + 1;
        if !(least..1 << 50).contains(&self.scale.get()) {
            bail!(Failure::new(
                format!("make a table of {}: it must have a row, and less than 1 PiB", self.scale),
                "--scale 128M"
            ));
        }
        Ok(Cards::of_bytes(self.scale.get(), self.seed))
    }
}

/// Returns the statement that creates the table, in PostgreSQL's types.
fn schema() -> String {
    let column = |column: &blockstone_pushdown::cards::Column| {
        format!("    {:<15} {:<13} NOT NULL", column.name, column.sql)
    };
    let columns: Vec<String> = COLUMNS.iter().map(column).collect();
    format!("CREATE TABLE {TABLE} (\n{}\n);\n", columns.join(",\n"))
}

pub fn run(args: &GenerateArgs, context: &Context) -> Result<Exit> {
    let Some(file) = &args.file else {
        if let Some(option) = context.global.asks_for_report() {
            bail!(Failure::new(format!("print the schema: {option} has no effect"), "omit it"));
        }
        context.printer.answer(&schema())?;
        return Ok(Exit::Done);
    };
    let cards = args.cards.cards()?;
    let piped = file == Path::new("-");
    if let Some(option) = context.global.asks_for_report().filter(|_| piped) {
        bail!(Failure::new(
            format!("write rows to standard output: {option} writes there too"),
            "name a file"
        ));
    }
    let mut bar = Progress::start(context.printer)?;
    let written = if piped {
        write(&mut io::stdout().lock(), &cards, args.format, &mut bar)
    } else {
        refuse_full(file, &cards)?;
        to_file(file, &cards, args.format, &mut bar)
    };
    bar.finish();
    let Some(bytes) = written? else {
        context.printer.note("interrupted: the file is incomplete and was removed");
        return Ok(Exit::Interrupted);
    };
    if piped { Ok(Exit::Done) } else { finish(&report(file, &cards, bytes, args), context) }
}

/// Checks that the file is new or empty, and that its file system has room.
fn refuse_full(file: &Path, cards: &Cards) -> Result<()> {
    if path::look(file).is_ok_and(|found| found.is_file() && found.len() > 0) {
        bail!(Failure::new(
            format!("write {}: it is not empty", file.display()),
            "name a new file"
        ));
    }
    let found = survey::target(Path::new("/"), parent_dir(file))?;
    let asked = cards.rows().saturating_mul(LINE_BYTES);
    if found.free_bytes < asked && !file.exists() {
        bail!(Failure::new(
            format!(
                "write {}: up to {} are needed, and {} are free",
                file.display(),
                Bytes(asked),
                Bytes(found.free_bytes)
            ),
            "a smaller --scale, or another file system"
        ));
    }
    Ok(())
}

fn to_file(file: &Path, cards: &Cards, format: Format, bar: &mut Progress) -> Result<Option<u64>> {
    let failed = |error: anyhow::Error| {
        let what = format!("write {}", file.display());
        Failure::new(what, "free some space, or name another file").because(error)
    };
    let created = output::create(file).map_err(|error| failed(error.into()))?;
    let mut out: BufWriter<File> = BufWriter::new(created);
    let written = write(&mut out, cards, format, bar);
    let flushed = out.flush();
    match (written, flushed) {
        (Ok(Some(bytes)), Ok(())) => Ok(Some(bytes)),
        (Ok(None), _) => {
            remove(file, out.get_ref());
            Ok(None)
        }
        (written, flushed) => {
            remove(file, out.get_ref());
            let error = written.err().or(flushed.err().map(Into::into));
            bail!(failed(error.unwrap_or_else(|| anyhow::anyhow!("it ended early"))))
        }
    }
}

/// Removes an incomplete file, which must not be taken for the table. A pipe is left alone.
fn remove(path: &Path, file: &File) {
    if file.metadata().is_ok_and(|found| found.is_file()) {
        let above = HeldDir::hold_parent(path);
        let _ = above.and_then(|(above, name)| above.remove_this(name.as_os_str(), file.as_fd()));
    }
}

/// Writes all rows; returns `None` if a signal ended it.
fn write(
    out: &mut dyn io::Write,
    cards: &Cards,
    format: Format,
    bar: &mut Progress,
) -> Result<Option<u64>> {
    let mut chunk = Vec::with_capacity(CHUNK + LINE_BYTES as usize);
    let mut bytes = 0;
    let separator = match format {
        Format::Csv => {
            let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
            chunk.extend(format!("{}\n", names.join(",")).bytes());
            ','
        }
        Format::Copy => '\t',
    };
    let mut next = 0;
    while next < cards.rows() {
        while chunk.len() < CHUNK && next < cards.rows() {
            cards.row(next).write(separator, &mut chunk);
            next += 1;
        }
        match out.write_all(&chunk) {
            // The reader has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Some(bytes)),
            written => written?,
        }
        bytes += chunk.len() as u64;
        chunk.clear();
        if !bar.step(next as f64 / cards.rows() as f64, "rows") {
            return Ok(None);
        }
    }
    out.flush()?;
    Ok(Some(bytes))
}

fn report(file: &Path, cards: &Cards, bytes: u64, args: &GenerateArgs) -> Report {
    let columns = COLUMNS.iter().map(|column| ColumnRow {
        column: column.name,
        oracle: column.oracle,
        sql: column.sql,
    });
    let table = ColumnRow::table("columns", "Columns", columns);
    let file = file.display().to_string();
    let text = format!("{} rows, {}", cards.rows(), Bytes(bytes));
    let own = format!(
        "{} rows ({:.5} %) have a card that begins with {}",
        cards.own(),
        cards.own() as f64 / cards.rows() as f64 * 100.0,
        OWN.join(" or ")
    );
    let seed = args.cards.seed;
    let summary = Summary {
        file: file.clone(),
        rows: cards.rows(),
        own_rows: cards.own(),
        file_bytes: bytes,
        seed: seed.to_string(),
    };
    Report {
        verb: "offload-generate".into(),
        version: 2,
        headline: Headline { subject: file, text, ..Headline::default() },
        identity: vec![
            own,
            format!("seed {seed} · {:.5} % in the published table", OWN_SHARE * 1e2),
        ],
        sections: vec![Section::of("columns", table)],
        scalars: Some(Summary::table("offload-generate", "", [summary])),
        earlier: Some(earlier::generate),
        ..Report::default()
    }
}
