//! PostgreSQL's protocol, version 3.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::{Answer, Column, find, number};

const BASE: &str = "\
? server_version_num
version:i user:t database:t all:b
180001|me|bench|t
? current_setting('server_version')
version:t
18.1 (Debian 18.1-1)
? pg_settings
name:t setting:t
block_size|8192
shared_buffers|16MB
track_io_timing|on
? quote_ident
schema:t owner:t trusted:b
public|me|t
? pg_stat_database
commits:l rollbacks:l logical_reads:l physical_reads:l rows_read:l read_ns:l db_time_ns:l logons:l
1000|3|70000|5000|90000|123456|987654321|5
? pg_control_checkpoint
redo_bytes:l checkpoint_age_bytes:l counts:b io_times:b redo_times:b redo_flushes_apart:b
123456789|4096|t|t|t|t
? pg_stat_wal
redo_records:l redo_writes:l redo_write_ns:l full_page_images:l
1000|900|5000|12
? autovacuum_count
maintenance_runs:l
17
? unnest
pid:i read_ios:l read_bytes:l read_ns:l hits:l redo_bytes:l
4711|5|40960|777|900|8192
? pg_stat_get_activity
a:l b:l c:l d:l e:l f:l g:l pid:i datid:o user:t app:t type:t state:t wt:t we:t id:l q:t b:t x:l s:l
0|0|3|2|1|0|1|4711|5|me|psql|client backend|active|Lock|tuple|77|SELECT 1|12|1000|2000
0|0|3|2|1|0|1|4712|~|~|psql|walwriter|~|~|~|~|SELECT x FROM t|~|~|~
? datname
oid:o name:t
5|bench
? pg_stat_statements(false)
queryid:l calls:l total_ns:l rows:l blocks_hit:l read_ns:l write_ns:l redo_bytes:l
77|5|1000000|50|400|300|200|100
~|1|1|1|1|1|1|1
? pg_stat_statements(true)
queryid:l text:t
77|SELECT $1, $2
";
const NEW: &str = "\
? pg_stat_checkpointer
checkpoints:l checkpoint_written_blocks:l checkpoint_write_ns:l
12|340|5600
? pg_stat_io
type:t object:t context:t read_ios:l read_ns:l write_ios:l write_bytes:l write_ns:l extend_ios:l
client backend|relation|normal|10|300|20|163840|500|1
walwriter|wal|normal|~|~|5|40960|100|~
";
const OLD: &str = "\
? pg_stat_bgwriter
checkpoints:l checkpoint_written_blocks:l session_written_blocks:l writer_written_blocks:l
12|340|50|60
? pg_stat_statements
! 55000 pg_stat_statements must be loaded via shared_preload_libraries
";

pub fn answers() -> Vec<Vec<u8>> {
    let old = BASE.replace("180001", "150004");
    [format!("{BASE}{NEW}"), format!("{OLD}{old}")].map(String::into_bytes).into()
}

/// Appends a message.
fn put(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend((body.len() as u32 + 4).to_be_bytes());
    out.extend(body);
}

fn message(stream: &mut TcpStream) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    let mut body = vec![0; len.saturating_sub(4) as usize];
    stream.read_exact(&mut body)?;
    Ok((head[0], body))
}

/// Returns the texts at the beginning of a message.
fn texts(body: &[u8]) -> [String; 2] {
    let mut texts = body.split(|byte| *byte == 0);
    [(); 2].map(|()| String::from_utf8_lossy(texts.next().unwrap_or_default()).into_owned())
}

pub fn serve(mut stream: TcpStream, answers: &[Answer<'_>]) -> io::Result<()> {
    const AUTHENTICATED: u8 = b'R';
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let startup = u64::from(u32::from_be_bytes(len)).saturating_sub(4);
    io::copy(&mut (&stream).take(startup), &mut io::sink())?;
    let (mut out, mut questions) = (Vec::new(), HashMap::<String, String>::new());
    let (mut bound, mut failed) = (String::new(), false);
    put(&mut out, AUTHENTICATED, &[0; 4]);
    put(&mut out, b'Z', b"I");
    loop {
        stream.write_all(&out)?;
        out.clear();
        // Reads messages until the client waits for an answer.
        loop {
            let (kind, body) = message(&mut stream)?;
            let [name, text] = texts(&body);
            match kind {
                b'S' => {
                    failed = false;
                    put(&mut out, b'Z', b"I");
                    break;
                }
                _ if failed => {}
                b'Q' => {
                    put(&mut out, b'C', b"SET\0");
                    put(&mut out, b'Z', b"I");
                    break;
                }
                b'P' => {
                    questions.insert(name, text);
                    put(&mut out, b'1', b"");
                }
                b'D' => {
                    let name = name.strip_prefix('S').unwrap_or_default();
                    let question = questions.get(name).map_or("", String::as_str);
                    put(&mut out, b't', &parameters(question));
                    put(&mut out, b'T', &description(&find(answers, question).columns));
                }
                b'B' => {
                    bound = questions.get(&text).cloned().unwrap_or_default();
                    put(&mut out, b'2', b"");
                }
                b'E' => {
                    let answer = find(answers, &bound);
                    failed = answer.error.is_some();
                    rows(answer, &mut out);
                }
                b'C' => put(&mut out, b'3', b""),
                b'X' => return Ok(()),
                _ => {}
            }
        }
    }
}

/// Returns the types of parameters, as the statement casts them.
fn parameters(question: &str) -> Vec<u8> {
    let casts = (1..).map_while(|number| {
        let (_, cast) = question.split_once(&format!("${number}::"))?;
        let types = [("bool", 16), ("int[]", 1007), ("bigint[]", 1016)];
        Some(types.iter().find(|(name, _)| cast.starts_with(name)).map_or(25_u32, |(_, oid)| *oid))
    });
    let casts: Vec<u32> = casts.collect();
    let count = (casts.len() as u16).to_be_bytes();
    count.into_iter().chain(casts.into_iter().flat_map(u32::to_be_bytes)).collect()
}

fn description(columns: &[Column<'_>]) -> Vec<u8> {
    let mut body = (columns.len() as u16).to_be_bytes().to_vec();
    for Column { name, kind } in columns {
        let oid: u32 = match kind {
            'b' => 16,
            'i' => 23,
            'l' => 20,
            'o' => 26,
            'f' => 701,
            _ => 25,
        };
        body.extend(name.as_bytes());
        body.extend([0; 7]); // The name's end, and no table.
        body.extend(oid.to_be_bytes());
        body.extend([0; 8]); // Sizes, and text as format: the client asks for binary.
    }
    body
}

fn rows(answer: &Answer<'_>, out: &mut Vec<u8>) {
    if let Some((code, why)) = answer.error {
        let code: String = code.chars().filter(char::is_ascii_alphanumeric).collect();
        let why = why.replace('\0', "");
        return put(out, b'E', format!("SERROR\0VERROR\0C{code}\0M{why}\0\0").as_bytes());
    }
    for row in &answer.rows {
        let mut body = (row.len() as u16).to_be_bytes().to_vec();
        for (value, column) in row.iter().zip(&answer.columns) {
            let bytes = value.map(|value| binary(value, column.kind));
            let len = bytes.as_ref().map_or(-1, |bytes| bytes.len() as i32);
            body.extend(len.to_be_bytes());
            body.extend(bytes.unwrap_or_default());
        }
        put(out, b'D', &body);
    }
    put(out, b'C', b"SELECT\0");
}

/// Encodes a value as its type is sent; if the text is not such a value, as invalid bytes.
fn binary(value: &str, kind: char) -> Vec<u8> {
    let sent = match kind {
        'b' => Some(vec![u8::from(value == "t")]),
        'i' | 'o' => number(value).map(|number| (number as i32).to_be_bytes().to_vec()),
        'l' => number(value).map(|number| number.to_be_bytes().to_vec()),
        'f' => value.parse::<f64>().ok().map(|number| number.to_be_bytes().to_vec()),
        _ => None,
    };
    sent.unwrap_or_else(|| value.as_bytes().to_vec())
}
