//! The report of a cluster as text.

use super::{Locale, activity_rows, columns, rows as of_rows, section};

/// A report of two instances, each of which did half of the work.
pub fn global_text(release: &str, locale: Locale) -> String {
    let table = |widths: &[usize], heads: &[&[&str]], rows: &[&[&str]], sums: &[&[&str]]| {
        let lines = columns(widths, heads, &of_rows(rows), locale);
        if sums.is_empty() {
            return lines;
        }
        let tildes: Vec<String> = widths.iter().map(|width| "~".repeat(*width)).collect();
        let below = columns(widths, &[], &of_rows(sums), locale);
        let (_, below) = below.split_once('\n').unwrap();
        format!("{lines}{}\n{below}", tildes.join(" "))
    };
    let instance = |number: &'static str| {
        let times = ["01-May-24 08:00", "14-May-24 10:00", "14-May-24 11:00"];
        vec![number, "sales", "secret-a", times[0], times[1], times[2], release]
    };
    let mut instances = [instance("1"), instance("2")];
    instances[1][2] = "secret-b";
    let widths = [4, 9, 10, 15, 15, 15, 15];
    let heads =
        ["I#", "Instance", "Host", "Startup", "Begin Snap Time", "End Snap Time", "Release"];
    let included = columns(&widths, &[&heads], &instances, locale);
    let os = ["I#", "#CPUs", "#Cores", "#Sckts", "Busy Time (s)", "Idle Time (s)", "MB"];
    let of = |id| [id, "4", "2", "1", "3,600.36", "10,801.08", "8,192.00"];
    let os = table(
        &[4, 5, 6, 6, 14, 14, 12],
        &[&os],
        &[&of("1"), &of("2")],
        &[&["Sum", "", "", "", "7,200.72", "21,602.16", ""]],
    );
    let half = ["900.00", "300.00", "18.00"];
    let model = table(
        &[4, 12, 12, 12],
        &[&["I#", "DB time (s)", "DB CPU (s)", "bg CPU (s)"]],
        &[&["1", half[0], half[1], half[2]], &["2", half[0], half[1], half[2]]],
        &[&["Sum", "1,800.00", "600.00", "36.00"]],
    );
    let waits = table(
        &[4, 12, 12, 12, 12],
        &[&["I#", "User I/O(s)", "Commit (s)", "Cluster (s)", "DB CPU (s)"]],
        &[&["1", "500.00", "100.00", "", "300.00"], &["2", "500.00", "100.00", "0.00", "300.00"]],
        &[],
    );
    let rows: Vec<Vec<&str>> = activity_rows(&["Statistic"]).into_iter().skip(1).collect();
    let (first, second) = rows.split_at(rows.len() / 2);
    let page = |rows: &[Vec<&str>]| {
        let heads: &[&[&str]] =
            &[&["", "", "per", "per"], &["Statistic", "Total", "Second", "Trans"]];
        columns(&[35, 18, 14, 13], heads, rows, locale)
    };
    let absolute = table(
        &[4, 8, 8, 8, 8],
        &[&["", "Sessions", "", "Open", ""], &["I#", "Begin", "End", "Begin", "End"]],
        &[&["1", "19", "20", "1", "2"], &["2", "19", "20", "1", "2"]],
        &[],
    );
    let functions = table(
        &[4, 20, 10, 10, 10, 10],
        &[&["I#", "Function Name", "Reads/s", "Writes/s", "Read MB/s", "Write MB/s"]],
        &[
            &["*", "Total", "200.00", "100.00", "3.125", ".78125"],
            &["1", "Total", "100.00", "50.00", "1.56", ".39"],
        ],
        &[],
    );
    let memory = table(
        &[4, 8, 8, 8, 8, 8, 8],
        &[&["I#", "Begin", "End", "Begin", "End", "Begin", "End"]],
        &[
            &["1", "1.0", "1.0", "2.0", "2.0", "400.00", "512.00"],
            &["2", "1.0", "1.0", "2.0", "2.0", "400.00", "512.00"],
        ],
        &[],
    );
    let mut text = format!(
        "\nWORKLOAD REPOSITORY REPORT (RAC)\n\nDatabase Summary\n~~~~~~~~~~~~~~~~\n\
         \n              Database                    Snapshot Ids\n\
         ------------------------------------   -----------------\n         \
         Id Name      RAC Block Size      Begin      End\n\
         ----------- --------- --- ----------   -------- --------\n       \
         4711 SALES     YES       8192        100      101\n\n\
         Database Instances Included In Report\n-> Listed in order of instance number, I#\n\n\
         {included}\n"
    );
    for (name, pages) in [
        ("OS Statistics By Instance", vec![os]),
        ("Foreground Wait Classes", vec![waits]),
        ("Time Model", vec![model]),
        ("IOStat by Function (per Second)", vec![functions]),
        ("System Statistics (Global)", vec![page(first), page(second)]),
        ("System Statistics (Absolute Values)", vec![absolute]),
        ("PGA Aggregate Target Statistics", vec![memory]),
    ] {
        text += &section(name, &pages);
    }
    text + "End of Report\n"
}
