//! The protocol of MySQL and MariaDB.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::{Answer, Column, find, number};

const SEED: &str = "\
? CURRENT_USER
version:t user:t schema:l tid:l
10.11.6-MariaDB|me@%|1|77
? @@version
version:t
10.11.6-MariaDB-0+deb12u1
? @@pid_file
file:t
none.pid
? @@datadir
dir:t
/nonexistent/
? GLOBAL VARIABLES
name:t value:t
innodb_page_size|16384
innodb_doublewrite|ON
? setup_consumers
name:t
events_waits_current
events_statements_current
? GLOBAL_STATUS
name:t value:t own:t
INNODB_DATA_READS|500|~
INNODB_DATA_READ|8192000|~
INNODB_DATA_WRITES|700|~
INNODB_DATA_WRITTEN|9000000|~
INNODB_DBLWR_PAGES_WRITTEN|30|~
COM_COMMIT|900|5
QUESTIONS|10000|40
INNODB_ROW_LOCK_TIME|12|~
UPTIME|3600|~
? events_statements_summary_global_by_event_name
all:l own:l
123456789|1000
? file_summary_by_event_name
name:t r:l rb:l rn:l w:l wb:l wn:l
innodb/innodb_data_file|10|163840|5000|20|327680|7000
innodb/innodb_log_file|0|0|0|50|25600|900
? events_waits_summary_global_by_event_name
name:t n:l ns:l
wait/io/file/innodb/innodb_data_file|30|12000
? events_statements_summary_by_digest
id:t text:t calls:l ns:l rows:l
abcdef|SELECT ?|5|1000|7
? session_connect_attrs
id:l name:t
5|sysbench
? PROCESSLIST
id:l user:t db:t command:t state:t info:t ms:f tid:l trx:t us:l blockers:t wait:t digest:t
5|me|bench|Query|Updating|UPDATE t|12.5|100|LOCK WAIT|5000|6|wait/lock/table/sql/handler|abcdef
6|me|bench|Sleep||~|3000|101|RUNNING|9000000|~|~|~
~|~|~|~|~|~|~|4|~|~|~|~|~
";

pub fn answers() -> Vec<Vec<u8>> {
    let plain = SEED.replace("|me@%|1|", "|me@%|0|");
    let refused = plain.replace("? @@pid_file", "? SELECT trx_id\n! 1227 denied\n? @@pid_file");
    [SEED, &plain, &refused].map(|text| text.as_bytes().to_vec()).into()
}

/// Packets that are not yet sent, and the sequence number of the next one.
struct Out {
    bytes: Vec<u8>,
    sequence: u8,
}

impl Out {
    fn put(&mut self, body: &[u8]) {
        self.bytes.extend(&(body.len() as u32).to_le_bytes()[..3]);
        self.bytes.push(self.sequence);
        self.bytes.extend(body);
        self.sequence = self.sequence.wrapping_add(1);
    }

    fn ok(&mut self) {
        self.put(&[0, 0, 0, 2, 0, 0, 0]);
    }

    fn end(&mut self) {
        self.put(&[0xfe, 0, 0, 2, 0]);
    }

    fn columns(&mut self, columns: &[Column<'_>]) {
        for Column { name, kind } in columns {
            let mut body = Vec::new();
            for text in ["def", "", "", "", name, name] {
                put_text(&mut body, text.as_bytes());
            }
            body.extend([0x0c, 33, 0, 0, 1, 0, 0, type_of(*kind), 0, 0, 0, 0, 0]);
            self.put(&body);
        }
        self.end();
    }

    fn error(&mut self, code: &str, why: &str) {
        let code = code.parse().unwrap_or(1064_u16);
        self.put(&[&[0xff][..], &code.to_le_bytes(), b"#42000", why.as_bytes()].concat());
    }

    /// Answers a query or a prepared statement.
    fn answer(&mut self, answer: &Answer<'_>, row: fn(&[Option<&str>], &[Column<'_>]) -> Vec<u8>) {
        if let Some((code, why)) = answer.error {
            return self.error(code, why);
        }
        if answer.columns.is_empty() {
            return self.ok();
        }
        let mut count = Vec::new();
        put_len(&mut count, answer.columns.len());
        self.put(&count);
        self.columns(&answer.columns);
        answer.rows.iter().for_each(|values| self.put(&row(values, &answer.columns)));
        self.end();
    }
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    if len < 0xfb {
        return out.push(len as u8);
    }
    out.push(0xfd);
    out.extend(&(len as u32).to_le_bytes()[..3]);
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_len(out, text.len());
    out.extend(text);
}

fn type_of(kind: char) -> u8 {
    match kind {
        'i' | 'o' => 0x03,
        'l' => 0x08,
        'f' => 0x05,
        _ => 0xfd,
    }
}

fn text_row(values: &[Option<&str>], _: &[Column<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for value in values {
        match value {
            Some(value) => put_text(&mut body, value.as_bytes()),
            None => body.push(0xfb),
        }
    }
    body
}

fn binary_row(values: &[Option<&str>], columns: &[Column<'_>]) -> Vec<u8> {
    let mut nulls = vec![0; (values.len() + 9) / 8];
    let mut rest = Vec::new();
    for (at, (value, column)) in (2..).zip(values.iter().zip(columns)) {
        let Some(value) = value else {
            nulls[at / 8] |= 1 << (at % 8);
            continue;
        };
        let number = number(value).unwrap_or_default();
        match type_of(column.kind) {
            0x03 => rest.extend((number as i32).to_le_bytes()),
            0x08 => rest.extend(number.to_le_bytes()),
            0x05 => rest.extend(value.parse::<f64>().unwrap_or_default().to_le_bytes()),
            _ => put_text(&mut rest, value.as_bytes()),
        }
    }
    [vec![0], nulls, rest].concat()
}

fn packet(stream: &mut TcpStream) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    stream.read_exact(&mut body)?;
    Ok((head[3], body))
}

fn greeting() -> Vec<u8> {
    // The protocol since 4.1, passwords by plugins, connection attributes.
    const CAPABILITIES: u32 = 0x0018_a201;
    let [low, high] = [CAPABILITIES as u16, (CAPABILITIES >> 16) as u16].map(u16::to_le_bytes);
    let mut body = b"\x0a5.5.5-10.11.6-MariaDB\0\x07\0\0\0saltsalt\0".to_vec();
    body.extend([low[0], low[1], 33, 2, 0, high[0], high[1], 21]);
    body.extend([0; 10]);
    body.extend(b"saltsaltsalt\0mysql_native_password\0");
    body
}

pub fn serve(mut stream: TcpStream, answers: &[Answer<'_>]) -> io::Result<()> {
    const QUIT: u8 = 1;
    const QUERY: u8 = 3;
    const PREPARE: u8 = 0x16;
    const EXECUTE: u8 = 0x17;
    const CLOSE: u8 = 0x19;
    let mut out = Out { bytes: Vec::new(), sequence: 0 };
    out.put(&greeting());
    stream.write_all(&out.bytes)?;
    out.sequence = packet(&mut stream)?.0 + 1;
    out.bytes.clear();
    out.ok();
    let mut prepared = Vec::new();
    loop {
        stream.write_all(&out.bytes)?;
        let (sequence, body) = packet(&mut stream)?;
        out = Out { bytes: Vec::new(), sequence: sequence.wrapping_add(1) };
        let (command, rest) = body.split_first().unwrap_or((&QUIT, &[]));
        let text = String::from_utf8_lossy(rest);
        match *command {
            QUIT => return Ok(()),
            CLOSE => {}
            // A question of the driver itself.
            QUERY if text.contains("@@max_allowed_packet") => {
                out.answer(&super::answer_of("", "size:l\n16777216"), text_row);
            }
            QUERY if text.starts_with("SET ") => out.ok(),
            QUERY => out.answer(find(answers, &text), text_row),
            PREPARE => {
                let answer = find(answers, &text);
                prepared.push(answer);
                let count = (answer.columns.len() as u16).to_le_bytes();
                let id = (prepared.len() as u32 - 1).to_le_bytes();
                out.put(&[&[0], &id[..], &count, &[0; 5]].concat());
                if !answer.columns.is_empty() {
                    out.columns(&answer.columns);
                }
            }
            EXECUTE => {
                let id = rest.first().copied().unwrap_or_default();
                out.answer(
                    prepared.get(usize::from(id)).copied().unwrap_or(&super::EMPTY),
                    binary_row,
                );
            }
            _ => out.ok(),
        }
    }
}
