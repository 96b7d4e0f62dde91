//! `cargo xtask device`: disks of known limits for manual use, from the same kit that tests use.

use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use blockstone_base::Bytes;
use blockstone_testkit::{Caps, DeviceSpec, FileSystem, LoopDevice};

/// Actions on devices of known limits.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Make a loop device with direct I/O over a file that is written in full
    Create {
        /// Its size
        #[arg(long, default_value = "1G")]
        size: Bytes,
        /// A limit, as read-iops=437 or write-bytes=100M (a second); may be given several times
        #[arg(long = "cap", value_name = "LIMIT")]
        caps: Vec<Limit>,
        /// A file system to make and mount on it
        #[arg(long, value_name = "ext4|xfs", value_parser = file_system)]
        fs: Option<FileSystem>,
        /// Its name
        #[arg(default_value = "disk")]
        name: String,
    },
    /// Run a command under the limits of a device
    Run {
        /// The device's name
        name: String,
        /// The command and its arguments
        #[arg(required = true, last = true)]
        command: Vec<String>,
    },
    /// List the devices
    List,
    /// Remove devices with all that belongs to them
    Remove {
        /// Their names
        #[arg(required_unless_present = "all")]
        names: Vec<String>,
        /// Remove every device
        #[arg(long, conflicts_with = "names")]
        all: bool,
    },
}

type Slot = fn(&mut Caps) -> &mut Option<u64>;

/// Names of the limits, and the field of [`Caps`] that each sets.
const LIMITS: [(&str, Slot); 4] = [
    ("read-iops", |caps| &mut caps.read_iops),
    ("write-iops", |caps| &mut caps.write_iops),
    ("read-bytes", |caps| &mut caps.read_bytes_per_s),
    ("write-bytes", |caps| &mut caps.write_bytes_per_s),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Index into [`LIMITS`].
    kind: usize,
    value: u64,
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORMS: &str = "write read-iops=N, write-iops=N, read-bytes=SIZE or write-bytes=SIZE";
        let (name, value) = text.split_once('=').ok_or(FORMS)?;
        let count = name.ends_with("-iops").then(|| value.parse().ok()).flatten();
        let value = match count {
            Some(count) => count,
            None => value.parse::<Bytes>().map_err(|error| error.to_string())?.get(),
        };
        if value == 0 {
            return Err("a limit of 0 would stop all I/O".to_owned());
        }
        let kind = LIMITS.iter().position(|(known, _)| *known == name).ok_or(FORMS)?;
        Ok(Self { kind, value })
    }
}

pub fn run(action: Action) -> Result<ExitCode> {
    match action {
        Action::Create { size, caps, fs, name } => {
            let spec = DeviceSpec { size, file_system: fs, caps: combined(&caps)? };
            let device = LoopDevice::create_kept(&name, spec)?;
            describe(&name, &device);
            let target = device.mount_point().unwrap_or_else(|| device.device().to_owned());
            let target = target.display();
            println!("run     cargo xtask device run {name} -- blockstone calibrate {target}");
            println!("remove  cargo xtask device remove {name}");
        }
        Action::Run { name, command } => return under_caps(&name, &command),
        Action::List => {
            for name in LoopDevice::kept()? {
                match LoopDevice::find_kept(&name) {
                    Ok(device) => describe(&name, &device),
                    Err(error) => println!("{name}: {error}"),
                }
            }
        }
        Action::Remove { names, all } => {
            for name in if all { LoopDevice::kept()? } else { names } {
                LoopDevice::remove_kept(&name)?;
                println!("removed {name}");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn under_caps(name: &str, command: &[String]) -> Result<ExitCode> {
    let device = LoopDevice::find_kept(name)?;
    let [program, arguments @ ..] = command else { bail!("name a command to run") };
    let status = device
        .command(program)
        .args(arguments)
        .status()
        .with_context(|| format!("start {program} under the caps of {name}"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn describe(name: &str, device: &LoopDevice) {
    let spec = device.spec();
    let Caps { read_iops, write_iops, read_bytes_per_s, write_bytes_per_s } = spec.caps;
    println!("{name}: {}, {}", device.device().display(), spec.size);
    if let (Some(mount), Some(file_system)) = (device.mount_point(), spec.file_system) {
        println!("  {} mounted at {}", file_system.name(), mount.display());
    }
    for (limit, what) in [(read_iops, "reads"), (write_iops, "writes")] {
        if let Some(limit) = limit {
            println!("  at most {limit} {what} a second");
        }
    }
    for (limit, what) in [(read_bytes_per_s, "read"), (write_bytes_per_s, "written")] {
        if let Some(limit) = limit {
            println!("  at most {} {what} a second", Bytes(limit));
        }
    }
}

/// Combines the limits given into one set of caps; a limit given twice is a contradiction.
fn combined(limits: &[Limit]) -> Result<Caps> {
    let mut caps = Caps::default();
    for Limit { kind, value } in limits {
        let (name, slot) = LIMITS[*kind];
        if slot(&mut caps).replace(*value).is_some() {
            bail!("{name} is given twice");
        }
    }
    Ok(caps)
}

fn file_system(text: &str) -> Result<FileSystem, String> {
    let found = FileSystem::ALL.iter().find(|file_system| file_system.name() == text);
    found.copied().ok_or_else(|| {
        let known: Vec<&str> = FileSystem::ALL.iter().map(|known| known.name()).collect();
        format!("known: {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_nonsense_is_refused() {
        assert_eq!("read-iops=437".parse(), Ok(Limit { kind: 0, value: 437 }));
        assert_eq!("write-bytes=100M".parse(), Ok(Limit { kind: 3, value: 100 << 20 }));
        for text in ["read-iops", "iops=4", "read-iops=0", "read-iops=x"] {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
    }

    #[test]
    fn limits_combine_unless_they_contradict() {
        let limit = |kind, value| Limit { kind, value };
        let caps = combined(&[limit(0, 1), limit(3, 2)]).unwrap();
        assert_eq!((caps.read_iops, caps.write_bytes_per_s), (Some(1), Some(2)));
        assert!(combined(&[limit(0, 1), limit(0, 2)]).is_err());
    }
}
