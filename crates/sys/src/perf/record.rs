//! Records that the kernel writes into an event's buffer, `linux/perf_event.h`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    Sample(Sample),
    /// A thread has a new name, perhaps because its process executes a new program.
    Name {
        process: u32,
        thread: u32,
        name: &'a str,
        is_new_program: bool,
    },
    Began {
        process: u32,
        thread: u32,
        parent_thread: u32,
    },
    Ended {
        process: u32,
        thread: u32,
    },
    /// Records did not fit, or were invalid.
    Lost {
        records: u64,
    },
}

/// Code executed by a processor at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// ID of the process: zero for a processor without a task, and for processes outside this PID
    /// namespace; all bits set for one that has ended but for its last instructions.
    pub process: u32,
    pub thread: u32,
    pub address: u64,
    pub is_kernel: bool,
}

const HEADER_BYTES: usize = 8;
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const CPU_MODE_MASK: u16 = 7;
const CPU_MODE_KERNEL: u16 = 1;
const MISC_COMM_EXEC: u16 = 1 << 13;

/// Visits every record of `bytes`. From the first invalid byte on, the rest counts as one lost
/// record.
pub fn each(mut bytes: &[u8], visit: &mut impl FnMut(Record<'_>)) {
    while !bytes.is_empty() {
        let header = (u32_at(bytes, 0), u16_at(bytes, 4), u16_at(bytes, 6));
        let (Some(kind), Some(misc), Some(size)) = header else {
            return visit(Record::Lost { records: 1 });
        };
        let size = usize::from(size);
        if size < HEADER_BYTES || size > bytes.len() {
            return visit(Record::Lost { records: 1 });
        }
        let (whole, rest) = bytes.split_at(size);
        if let Some(record) = record(kind, misc, &whole[HEADER_BYTES..]) {
            visit(record);
        }
        bytes = rest;
    }
}

/// Parses a record from the bytes after its header; `None` for kinds that are not used here.
fn record(kind: u32, misc: u16, body: &[u8]) -> Option<Record<'_>> {
    match kind {
        SAMPLE => Some(Record::Sample(Sample {
            address: u64_at(body, 0)?,
            process: u32_at(body, 8)?,
            thread: u32_at(body, 12)?,
            is_kernel: misc & CPU_MODE_MASK == CPU_MODE_KERNEL,
        })),
        COMM => {
            let name = body.get(8..)?.split(|&byte| byte == 0).next()?;
            Some(Record::Name {
                process: u32_at(body, 0)?,
                thread: u32_at(body, 4)?,
                name: std::str::from_utf8(name).unwrap_or("unknown"),
                is_new_program: misc & MISC_COMM_EXEC != 0,
            })
        }
        FORK => Some(Record::Began {
            process: u32_at(body, 0)?,
            thread: u32_at(body, 8)?,
            parent_thread: u32_at(body, 12)?,
        }),
        EXIT => Some(Record::Ended { process: u32_at(body, 0)?, thread: u32_at(body, 8)? }),
        LOST => Some(Record::Lost { records: u64_at(body, 8)? }),
        LOST_SAMPLES => Some(Record::Lost { records: u64_at(body, 0)? }),
        _ => None,
    }
}

pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend(((HEADER_BYTES + body.len()) as u16).to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn texts(bytes: &[u8]) -> Vec<String> {
        let mut texts = Vec::new();
        each(bytes, &mut |record| texts.push(format!("{record:?}")));
        texts
    }

    #[test]
    fn records_are_read_in_their_order_and_unknown_ones_are_passed_over() {
        let sample = |address: u64, process: u32| {
            let mut body = address.to_ne_bytes().to_vec();
            body.extend(words(&[process, 8]));
            body
        };
        let mut name = words(&[7, 8]);
        name.extend(b"checkpointer\0\0\0\0");
        let bytes = [
            written(SAMPLE, 1, &sample(0xffff_ffff_8100_0000, 7)),
            written(77, 0, &words(&[1, 2])),
            written(SAMPLE, 2, &sample(0x1000, u32::MAX)),
            written(COMM, MISC_COMM_EXEC, &name),
            written(FORK, 0, &words(&[7, 1, 9, 8, 0, 0])),
            written(EXIT, 0, &words(&[7, 1, 9, 8, 0, 0])),
            written(LOST, 0, &words(&[5, 0, 12, 0])),
        ];
        let mut seen = 0;
        each(&bytes.concat(), &mut |record| {
            let is_expected = match (seen, record) {
                (0, Record::Sample(sample)) => sample.is_kernel && sample.process == 7,
                (1, Record::Sample(sample)) => !sample.is_kernel && sample.process == u32::MAX,
                (2, Record::Name { name, is_new_program, .. }) => {
                    name == "checkpointer" && is_new_program
                }
                (3, Record::Began { process: 7, thread: 9, parent_thread: 8 })
                | (4, Record::Ended { process: 7, thread: 9 })
                | (5, Record::Lost { records: 12 }) => true,
                _ => false,
            };
            assert!(is_expected, "{seen}: {record:?}");
            seen += 1;
        });
        assert_eq!(seen, 6);
    }

    #[test]
    fn bytes_that_are_no_record_are_told_and_end_it() {
        let lost = ["Lost { records: 1 }"];
        let good = written(LOST, 0, &words(&[5, 0, 1, 0]));
        assert_eq!(texts(&good), lost);
        assert_eq!(texts(&good[..5]), lost, "half a header");
        assert_eq!(texts(&good[..20]), lost, "longer than what is there");
        assert_eq!(texts(&written(SAMPLE, 1, &[])), [""; 0], "without a body");
        let endless = [words(&[SAMPLE]), vec![0; 4]].concat();
        assert_eq!(texts(&endless), lost, "a record of no size");
    }
}
