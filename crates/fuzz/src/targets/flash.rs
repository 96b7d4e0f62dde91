//! Traces of requests, and logs of bandwidth.

use blockstone_flash::device::Device;
use blockstone_flash::trace::{Format, Trace};
use blockstone_flash::{fio, fit, preset};

const MSR: &str = "\
128166372003061629,hm,0,Read,1048576,4096,151
128166372016382155,hm,0,Write,8192,8192,1200
128166372026382245,hm,0,Write,12288,4096,1200
";
const BLKPARSE: &str = "\
  8,0    3        1     0.000000000   697  Q   W 2048 + 8 [kjournald]
  8,0    3        2     0.000012000   697  D   W 2048 + 8 [kjournald]
  8,0    3        3     0.500000000   697  D   R 4096 + 16 [dd]
  8,0    3        5     0.600000000   697  D  DS 8192 + 64 [fstrim]
CPU3 (sda):
 Reads Queued:           1,        8KiB  Writes Queued:           1,        4KiB
";
const FIO_3: &str = "\
fio version 3 iolog
0 /dev/sdb add
1 /dev/sdb open
100 /dev/sdb write 4096 8192
250 /dev/sdb read 0 4096
300 /dev/sdb trim 4096 4096
300 /dev/sdb close
";
const FIO_2: &str = "\
fio version 2 iolog
/dev/sdb add
/dev/sdb open
/dev/sdb wait 100 0
/dev/sdb write 4096 8192
/dev/sdb read 0 4096
";
const DISKSIM: &str = "\
0.000000 0 2048 8 0
0.150000 0 4096 16 1
12.500000 0 100 8 0
";

pub fn traces() -> Vec<Vec<u8>> {
    [MSR, BLKPARSE, FIO_3, FIO_2, DISKSIM].map(|text| text.as_bytes().to_vec()).into()
}

/// Reads a trace for a small and for the largest device, in the format that it looks like and in
/// every other.
pub fn trace(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let mut taken = false;
    for format in Format::ALL.iter().map(|&format| Some(format)).chain([None]) {
        for device_bytes in [1 << 30, u64::MAX] {
            let Ok(trace) = Trace::read(text.lines().map(str::to_owned), format, device_bytes)
            else {
                continue;
            };
            taken = true;
            trace.paged(16 << 10).for_each(drop);
        }
    }
    taken
}

/// Returns a log of a drive that falls from 2 GB/s to 0.5 GB/s, with reads in between.
pub fn logs() -> Vec<Vec<u8>> {
    let line = |second: u32| {
        let value = if second < 20 { 2_000_000 } else { 500_000 + second % 7 };
        format!("{}, {value}, 1, 131072, 0\n{}, 7, 0, 4096\n", second * 1000, second * 1000 + 1)
    };
    let lines: String = (1..60).map(line).collect();
    vec![lines.into_bytes()]
}

/// Reads a log, and fits a small device to it.
pub fn log(input: &[u8]) -> bool {
    let log = fio::read_log(&String::from_utf8_lossy(input), 1024.0);
    assert!(log.samples.iter().all(|sample| sample.duration_s > 0.0 && sample.bytes >= 0.0));
    let device = Device { pages_per_block: 4, ..preset::ALL[0].device() };
    fit::fit(&device, &log.samples).is_ok() && log.bad_lines == 0
}
