//! Writes what a session with event 10046 at level 12 would trace, up to some size.
//!
//! `long_trace FILE MEGABYTES`

use std::fs::File;
use std::io::{BufWriter, Write};

use blockstone_base::rng::Rng;

const USAGE: &str = "usage: long_trace FILE MEGABYTES";
const HEAD: &str = "\
Trace file /u01/trace/t1_ora_4711.trc
Oracle Database 19c Enterprise Edition Release 19.0.0.0.0 - Production
*** SESSION ID:(35.7) 2026-11-01T00:00:00.000001+00:00
";
/// Different statements, each with its cursor.
const STATEMENTS: u64 = 40;
const CURSOR: u64 = 140_123_456_780_000;

/// Counts what is written.
struct Counted<W> {
    to: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.to.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, megabytes] = &arguments[..] else { return Err(USAGE.into()) };
    let limit = megabytes.parse::<u64>()? * 1_000_000;
    let mut out = Counted { to: BufWriter::new(File::create(path)?), bytes: 0 };
    out.write_all(HEAD.as_bytes())?;
    let mut random = Rng::new(1, 0);
    let mut tim = 2_942_206_501_276;
    while out.bytes < limit {
        execution(&mut out, &mut random, &mut tim)?;
    }
    out.flush()?;
    Ok(())
}

/// Writes a statement that is parsed, executed and fetched from, with reads and round trips.
fn execution(out: &mut impl Write, random: &mut Rng, tim: &mut u64) -> std::io::Result<()> {
    let number = random.below(STATEMENTS);
    let cursor = CURSOR + number * 8;
    let text = format!("select a, b, c from t{number:02} where id between :1 and :2 order by a");
    let mut at = |least_us: u64| {
        *tim += least_us + random.below(900);
        *tim
    };
    writeln!(out, "=====================")?;
    writeln!(
        out,
        "PARSING IN CURSOR #{cursor} len={} dep=0 uid=99 oct=3 lid=99 tim={} hv=1488300750 \
         ad='d53dc038' sqlid='{number:013}'\n{text}\nEND OF STMT",
        text.len(),
        at(1)
    )?;
    let calls = "p=0,cr=0,cu=0,mis=0,r=0,dep=0,og=1,plh=3844077149";
    writeln!(out, "PARSE #{cursor}:c=20,e=20,{calls},tim={}", at(20))?;
    writeln!(out, "BINDS #{cursor}:")?;
    for bind in 0..2 {
        writeln!(
            out,
            " Bind#{bind}\n  oacdty=02 mxl=22(22) mxlc=00 mal=00 scl=00 pre=00\n  oacflg=03 \
             fl2=1000000 frm=00 csi=00 siz=48 off={bind}\n  kxsbbbfp=7f2a96b1b0c0  bln=22  avl=04  \
             flg=05\n  value={bind}2518"
        )?;
    }
    writeln!(out, "EXEC #{cursor}:c=50,e=60,{calls},tim={}", at(60))?;
    for _ in 0..20 {
        let wait = format!("WAIT #{cursor}: nam=");
        let to_client = "driver id=1413697536 #bytes=1 p3=0 obj#=77";
        writeln!(out, "{wait}'SQL*Net message to client' ela= 2 {to_client} tim={}", at(2))?;
        for read in 0..2 {
            let time = at(300);
            writeln!(
                out,
                "{wait}'db file sequential read' ela= 2{read}7 file#=4 block#={} blocks=1 obj#=77 \
                 tim={time}",
                time % 100_000,
            )?;
        }
        writeln!(
            out,
            "FETCH #{cursor}:c=90,e=800,p=2,cr=4,cu=0,mis=0,r=15,dep=0,og=1,plh=3844077149,tim={}",
            at(300)
        )?;
        writeln!(out, "{wait}'SQL*Net message from client' ela= 441 {to_client} tim={}", at(441))?;
    }
    writeln!(
        out,
        "STAT #{cursor} id=1 cnt=300 pid=0 pos=1 obj=77 op='TABLE ACCESS BY INDEX ROWID T (cr=80 \
         pr=40 pw=0 str=1 time=9000 us cost=4 size=34 card=300)'"
    )?;
    writeln!(out, "CLOSE #{cursor}:c=3,e=3,dep=0,type=1,tim={}", at(3))
}
