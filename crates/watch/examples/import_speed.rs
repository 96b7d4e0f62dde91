//! Measures how fast a file of another monitor is imported, such as one of `long_iostat`.
//!
//! `import_speed FILE DIR`

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::fs;
use std::path::Path;
use std::time::Instant;

use blockstone_watch::{Destination, Import};

const USAGE: &str = "usage: import_speed FILE DIR";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [file, dir] = &std::env::args().skip(1).collect::<Vec<String>>()[..] else {
        return Err(USAGE.into());
    };
    let megabytes = fs::metadata(file)?.len() as f64 / 1e6;
    let begun = Instant::now();
    let import = Import::read(&[file.into()])?;
    let read_s = begun.elapsed().as_secs_f64();
    let to = Destination { dir: Path::new(dir).to_owned(), id: "abcdef".to_owned() };
    import.record(&to, &[])?;
    let all_s = begun.elapsed().as_secs_f64();
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!("{megabytes:.0} MB: checked in {read_s:.2} s, recorded after {all_s:.2} s");
    println!("{:.0} MB/s · {peak}", megabytes / all_s);
    Ok(())
}
