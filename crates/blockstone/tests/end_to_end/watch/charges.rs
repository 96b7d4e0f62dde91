//! Bytes that the kernel charges for buffered writes on a file system with large folios.

use std::fs;
use std::process::Stdio;

use blockstone_base::Bytes;
use blockstone_testkit::{DeviceSpec, FileSystem, LoopDevice, require, run};

use super::{Ended, Turn, watch};

#[test]
fn folios_charged_for_buffered_writes_are_no_bytes_written() {
    require!(Root, Loop, Xfs, Fio);
    let _turn = Turn::beside();
    let device = LoopDevice::create(DeviceSpec {
        size: Bytes::mib(600),
        file_system: Some(FileSystem::Xfs),
        ..DeviceSpec::default()
    });
    let device = device.unwrap();
    let path = device.mount_point().unwrap().join("data");
    fs::write(&path, vec![7; 256 << 20]).unwrap();
    let mut writer = device.command("fio");
    writer.args(["--name=writer", "--thread", "--rw=randwrite", "--bs=8k", "--ioengine=psync"]);
    writer.args(["--invalidate=0", "--fdatasync=50", "--time_based", "--runtime=20"]);
    writer.arg("--thinktime=1ms").arg(format!("--filename={}", path.display()));
    let writer = Ended(writer.stdout(Stdio::null()).spawn().unwrap());
    let pid = writer.0.id().to_string();
    let look = ["--once", "--for", "3s", "--interval", "500ms", "--no-bpf", "--json"];
    let document = run(watch(&look).args(["--view", "processes", "--pid", &pid])).json();
    let rows = document["views"]["processes"].as_array().unwrap();
    let asked =
        |row: &serde_json::Value| row["requested_write_bytes_per_s"].as_f64().unwrap_or(0.0);
    let row = rows.iter().find(|row| asked(row) > 1e5);
    let row = row.unwrap_or_else(|| panic!("{document:#}"));
    // This kernel may or may not charge whole folios: a charge is only shown if calls or disks
    // explain it.
    match row["write_bytes_per_s"].as_f64() {
        None => assert_eq!(row["write_bytes_per_s"]["unmeasured"], "no evidence", "{row:#}"),
        Some(shown) => assert!(shown < 1.2 * asked(row), "{row:#}"),
    }
}
