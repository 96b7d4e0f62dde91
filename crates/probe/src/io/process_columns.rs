//! The columns of the probe `io_by_process`.

use blockstone_base::column::{Origin, Schema};

/// The schema: one row for each disk, role, process and file with I/O.
pub const SCHEMA: Schema = Schema {
    probe: "io_by_process",
    doc: "Bytes moved by disk, role, process and file. An object that was idle for a while has no \
          more rows, and begins at zero when it is active again.",
    columns: &[
        COUNTED.state("disk", "Kernel name of the disk."),
        PROC.state("role", "Role of the process, or of its thread where threads have roles."),
        PROC.state(
            "pid",
            "Process id; empty for work that any of the kernel's worker threads may do.",
        ),
        PROC.state("process", "Name of the process."),
        PROC.state("thread", "Thread of a database session without its own process; else empty."),
        COUNTED.state("file", "The path of the file when it was first seen, or the device."),
        BOTH.bytes("read_bytes", "Bytes read from the disk."),
        BOTH.bytes("write_bytes", "Bytes written to the disk."),
        COUNTED.count("read_ios", "Reads completed."),
        COUNTED.count("write_ios", "Writes completed."),
        COUNTED.bytes(
            "write_back_bytes",
            "Bytes of write_bytes that kernel threads wrote on behalf of the process.",
        ),
    ],
};

const COUNTED: Origin = Origin("tracepoints block_io_start, block_io_done, sys_exit");
const PROC: Origin = Origin("/proc");
const BOTH: Origin = Origin("tracepoints block_io_start, block_io_done; or /proc/PID/io");
