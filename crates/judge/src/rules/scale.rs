//! Sizes that the data of a run would need, as options that set them.

use blockstone_record::parameters::RunParameters;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Formats bytes as an option takes them, rounded up: `64M`, `118G`.
pub(super) fn option(bytes: u64) -> String {
    if bytes >= 10 * GIB || bytes > 0 && bytes.is_multiple_of(GIB) {
        format!("{}G", bytes.div_ceil(GIB))
    } else {
        format!("{}M", bytes.div_ceil(MIB).max(1))
    }
}

/// Returns the bytes of all schemas, or of the table that is scanned; `None` if the recording does
/// not have them.
pub(super) fn data_bytes(parameters: &RunParameters) -> Option<u64> {
    if let Some(table) = parameters.scan_bytes {
        return Some(table.get());
    }
    let rows = parameters.rows_per_schema?.checked_mul(u64::from(parameters.schemas?))?;
    // One row per block.
    rows.checked_mul(parameters.block_bytes?.get())
}

/// Returns the option that gives the data this total size: `--scale 118G for each of 2 schemas`.
pub(super) fn of_all(parameters: &RunParameters, bytes: u64) -> Option<String> {
    if parameters.scan_bytes.is_some() {
        return Some(format!("--scan-size {}", option(bytes)));
    }
    let schemas = u64::from(parameters.schemas.filter(|&schemas| schemas > 0)?);
    let scale = option(bytes.div_ceil(schemas));
    Some(match schemas {
        1 => format!("--scale {scale}"),
        _ => format!("--scale {scale} for each of {schemas} schemas"),
    })
}

#[cfg(test)]
mod tests {
    use blockstone_base::Bytes;

    use super::*;

    #[test]
    fn sizes_are_options_that_can_be_copied() {
        assert_eq!(option(1), "1M");
        assert_eq!(option(64 * MIB), "64M");
        assert_eq!(option(235 * GIB + 1), "236G");
        let parameters = RunParameters {
            schemas: Some(4),
            rows_per_schema: Some(8192),
            block_bytes: Some(Bytes::kib(8)),
            ..RunParameters::default()
        };
        assert_eq!(data_bytes(&parameters), Some(256 * MIB));
        let scale = of_all(&parameters, 100 * GIB).unwrap();
        assert_eq!(scale, "--scale 25G for each of 4 schemas");
        assert_eq!(of_all(&RunParameters::default(), GIB), None);
    }
}
