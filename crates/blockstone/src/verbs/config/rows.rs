//! Tables of settings. All media are made from these declarations.

use blockstone_base::rows;
use blockstone_base::table::text;

rows! {
    /// Settings of every verb that a file can set.
    pub(super) struct SettingRow {
        /// Its key in a file; the option has the same name with `-` for `_`.
        setting: String = text("setting").answer(),
        /// The value in force.
        value: String = text("value").path(),
        /// Where it comes from: `default`, `file`, `environment` or `option`.
        origin: &'static str = text("from"),
        /// The file and its line, the environment variable, or the option.
        place: String = text("where").path(),
    }
}

rows! {
    /// Files of settings that were looked for, of which the last takes precedence.
    pub(super) struct FileRow {
        /// The file.
        file: String = text("file").path(),
        /// `read`, `absent` or `not used`.
        outcome: &'static str = text("outcome"),
        /// Why it is not used.
        why: String = text("why").prose(),
    }
}
